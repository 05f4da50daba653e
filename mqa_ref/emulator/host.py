"""Runs the compiled host function for real, with the CUDA runtime replaced by callbacks, and captures the
launch it makes.

The host object is relocatable machine code with eight undefined CUDA symbols. llvmlite's MCJIT links it
against the callbacks below; the host function then derives grid, shared memory and tensor maps from the
arguments exactly as it does on a machine with a GPU. Only code that this process compiled itself may be
passed here: it is executed.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mqa_ref.emulator.ptx import Program
from mqa_ref.errors import EmulatorError

_POINTER = ctypes.c_void_p
_INT = ctypes.c_int
_LIBRARY_HANDLE, _KERNEL_HANDLE = 0x11110000, 0x22220000
_MAX_SHARED_OPTIN_ATTRIBUTE = 97
_DEVICE_ATTRIBUTES = {_MAX_SHARED_OPTIN_ATTRIBUTE: 232448}
"""cudaDevAttrMaxSharedMemoryPerBlockOptin and its value on SM100."""
_PDL_ATTRIBUTE = 6
"""cudaLaunchAttributeProgrammaticStreamSerialization."""


class _LaunchConfig(ctypes.Structure):
    """cudaLaunchConfig_t (CUDA runtime API)."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_size_t),
        ("stream", _POINTER),
        ("attributes", _POINTER),
        ("attribute_count", ctypes.c_uint),
    )


@dataclass(frozen=True)
class LaunchCall:
    """A captured launch. ``parameters`` holds the parameter space of the kernel, laid out as its PTX
    declares.

    ``overlaps``: programmatic dependent launch was asked for, so the kernel may start before the one ahead of
    it has ended.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    parameters: bytes
    overlaps: bool = False


class _LaunchAttribute(ctypes.Structure):
    """cudaLaunchAttribute: an identifier, padding, and a union of 64 bytes of which an int comes first here."""

    _fields_ = (("id", _INT), ("padding", ctypes.c_char * 4), ("value", _INT), ("rest", ctypes.c_char * 60))


class _Recorder:
    """Where the callbacks put what they see; one launch at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.program: Program | None = None
        self.calls: list[LaunchCall] = []

    def launch(self, config: int, function: int, arguments: int) -> int:
        if self.program is None:
            return 1
        found = ctypes.cast(config, ctypes.POINTER(_LaunchConfig)).contents
        pointers = ctypes.cast(arguments, ctypes.POINTER(_POINTER))
        space = bytearray(self.program.parameter_bytes)
        for number, parameter in enumerate(self.program.parameters):
            raw = ctypes.string_at(pointers[number] or 0, parameter.size)
            space[parameter.offset : parameter.offset + parameter.size] = raw
        gx, gy, gz = found.grid
        bx, by, bz = found.block
        attributes = ctypes.cast(found.attributes, ctypes.POINTER(_LaunchAttribute))
        overlaps = any(
            attributes[i].id == _PDL_ATTRIBUTE and attributes[i].value for i in range(found.attribute_count)
        )
        self.calls.append(
            LaunchCall((gx, gy, gz), (bx, by, bz), int(found.shared_bytes), bytes(space), overlaps)
        )
        return 0


_RECORDER = _Recorder()


def _store(pointer: int, value: int, kind: type[Any]) -> int:
    ctypes.cast(pointer, ctypes.POINTER(kind))[0] = value
    return 0


def _device_attribute(target: int, attribute: int, device: int) -> int:
    if attribute not in _DEVICE_ATTRIBUTES:
        return 1
    return _store(target, _DEVICE_ATTRIBUTES[attribute], _INT)


_CALLBACKS: dict[str, tuple[tuple[Any, ...], Callable[..., int]]] = {
    "_cudaLibraryLoadData": (
        (_POINTER, _POINTER, _POINTER, _POINTER, ctypes.c_uint, _POINTER, _POINTER, ctypes.c_uint),
        lambda library, *rest: _store(library, _LIBRARY_HANDLE, ctypes.c_uint64),
    ),
    "_cudaLibraryGetKernel": (
        (_POINTER, _POINTER, ctypes.c_char_p),
        lambda kernel, library, name: _store(kernel, _KERNEL_HANDLE, ctypes.c_uint64),
    ),
    "_cuKernelGetAttribute": (
        (_POINTER, _INT, _POINTER, _INT),
        lambda target, *rest: _store(target, 0, _INT),
    ),
    "_cudaKernelSetAttributeForDevice": ((_POINTER, _INT, _INT, _INT), lambda *rest: 0),
    "_cudaFuncSetAttribute": ((_POINTER, _INT, _INT), lambda *rest: 0),
    "_cudaDeviceGetAttribute": ((_POINTER, _INT, _INT), _device_attribute),
    "_cudaGetDevice": ((_POINTER,), lambda target: _store(target, 0, _INT)),
    "_cudaLaunchKernelEx": ((_POINTER, _POINTER, _POINTER), _RECORDER.launch),
}


@lru_cache(maxsize=1)
def _bind_symbols() -> list[Any]:
    """Make the callbacks known to the linker; they must live as long as the process."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    kept = []
    for name, (arguments, function) in _CALLBACKS.items():
        callback = ctypes.CFUNCTYPE(_INT, *arguments)(function)
        address = ctypes.cast(callback, _POINTER).value
        llvm.add_symbol(name, address)
        kept.append(callback)
    return kept


class HostFunction:
    """A linked host object. ``call`` runs the host function once and returns the launch it made."""

    def __init__(self, host_object: bytes, host_symbol: str, init_symbol: str, load_symbol: str) -> None:
        import llvmlite.binding as llvm

        _bind_symbols()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(host_object))
        self._engine.finalize_object()
        self._symbols = (host_symbol, init_symbol, load_symbol)
        self._library = ctypes.c_uint64(0)
        self._load()

    def _function(self, symbol: str, *arguments: Any) -> Any:
        address = self._engine.get_function_address(symbol)
        if not address:
            raise EmulatorError(f"the host object has no function {symbol}")
        return ctypes.CFUNCTYPE(None, *arguments)(address)

    def _load(self) -> None:
        _, init, load = self._symbols
        library = _POINTER(ctypes.addressof(self._library))
        status, device = _INT(0), ctypes.c_int32(0)
        with _RECORDER.lock:
            for symbol, values in ((init, (library, status)), (load, (library, device, status))):
                packed = (_POINTER * len(values))(*[ctypes.addressof(v) for v in values])
                self._function(symbol, _POINTER)(ctypes.addressof(packed))
                if status.value:
                    raise EmulatorError(f"{symbol} answers with CUDA error {status.value}")

    def call(self, arguments: Sequence[bytes], program: Program) -> LaunchCall:
        """Run the host function. ``arguments``: the raw bytes of each argument (struct or scalar), in order."""
        buffers = [ctypes.create_string_buffer(raw, len(raw) + 16) for raw in arguments]
        status = ctypes.c_int32(0)
        pointers = [ctypes.addressof(b) for b in buffers] + [ctypes.addressof(status)]
        packed = (_POINTER * len(pointers))(*pointers)
        function = self._function(self._symbols[0], _POINTER, ctypes.c_int32)
        with _RECORDER.lock:
            _RECORDER.program, _RECORDER.calls = program, []
            try:
                function(ctypes.addressof(packed), len(pointers))
            finally:
                calls, _RECORDER.program = _RECORDER.calls, None
        if status.value or len(calls) != 1:
            raise EmulatorError(
                f"the host code made {len(calls)} launches and answers with CUDA error {status.value}"
            )
        return calls[0]
