"""One launch of a compiled kernel as data: what a driver would be told, with the buffers by name instead of by address.

Kernels that come without host code of their own (CUDA C++ compiled by nvcc) are described this way, once; the emulator
and a GPU both place the buffers, turn tensor maps into descriptors, and launch. Nothing here needs a compiler or a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import Fault, InputError

POISON_BYTE = 0xFD
"""What an output buffer holds before the launch: a NaN in no format, and no value a kernel is likely to store."""
TENSOR_MAP_BYTES = 128

Element = Literal["uint8", "float32"]
ELEMENT_BYTES: dict[Element, int] = {"uint8": 1, "float32": 4}


@dataclass(frozen=True)
class RawKernel:
    """What nvcc made of one kernel for one architecture ("sm_90a", "sm_100a").

    ``ptx``: text with the source line of each instruction (``.loc``). ``cubin``: ELF for the GPU. ``entry``: the
    kernel's symbol in both. ``compiler``: the version line of the compiler.
    """

    ptx: str
    cubin: bytes
    entry: str
    arch: str
    compiler: str


@dataclass(frozen=True)
class Buffer:
    """One allocation of global memory: its bytes before the launch, flat uint8. ``row_bytes``: the length of one row
    where rows belong to sequences, 0 where they do not. Only a ``writable`` one may be stored to."""

    name: str
    data: NDArray[np.uint8]
    writable: bool = False
    row_bytes: int = 0


@dataclass(frozen=True)
class Scalar:
    """A kernel parameter by value: ``size`` bytes, little-endian."""

    value: int
    size: int = 4


@dataclass(frozen=True)
class Pointer:
    """A kernel parameter that is the address of a buffer plus ``offset`` bytes; the null pointer without a buffer."""

    buffer: str | None
    offset: int = 0


@dataclass(frozen=True)
class TensorMap:
    """A kernel parameter that is a tensor map (128 bytes, 64-byte aligned), as ``cuTensorMapEncodeTiled`` takes it.

    The tensor begins ``offset`` bytes into ``buffer``. ``sizes`` and ``box``: elements, contiguous dimension first;
    ``strides``: bytes of the other dimensions; ``swizzle``: 0 or 128 bytes. Element strides are 1, nothing is
    interleaved, what is out of range is filled with zeros; ``l2_promotion``: bytes, of no effect on values.
    """

    buffer: str
    element: Element
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    offset: int = 0
    l2_promotion: int = 256


Parameter = Scalar | Pointer | TensorMap


@dataclass(frozen=True)
class RawLaunch:
    """One launch. ``shared_bytes``: dynamic shared memory. ``parameters``: in the kernel's order. ``output``: the name
    of the buffer that holds the logits, rows of ``row_stride`` elements of ``itemsize`` bytes. ``overlaps``: it is
    launched with programmatic stream serialization, so that it may start before the launch ahead of it has ended.

    Raises InputError for parameters that name no buffer, tensor maps past their buffer, or misaligned ones.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    parameters: tuple[Parameter, ...]
    buffers: tuple[Buffer, ...]
    output: str
    overlaps: bool = False

    def __post_init__(self) -> None:
        faults = [fault for at, one in enumerate(self.parameters) for fault in self._faults(at, one)]
        names = [buffer.name for buffer in self.buffers]
        if len(set(names)) < len(names):
            faults.append(Fault("buffers", ", ".join(names), "names that differ"))
        if self.output not in names or not self.buffer(self.output).writable:
            faults.append(Fault("output", self.output, "the name of a writable buffer"))
        if faults:
            raise InputError(faults)

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name."""
        return next(one for one in self.buffers if one.name == name)

    def _faults(self, at: int, one: Parameter) -> list[Fault]:
        if isinstance(one, Scalar):
            fits = one.size in (1, 2, 4, 8) and 0 <= one.value < 1 << 8 * one.size
            return [] if fits else [Fault(f"parameters[{at}]", str(one), "a value that fits its size")]
        if one.buffer is None:
            return []
        held = next((b for b in self.buffers if b.name == one.buffer), None)
        if held is None:
            return [Fault(f"parameters[{at}]", one.buffer, "the name of a buffer")]
        if isinstance(one, Pointer):
            good = 0 <= one.offset <= held.data.size
            return [] if good else [Fault(f"parameters[{at}]", f"offset {one.offset}", "inside the buffer")]
        return _map_faults(f"parameters[{at}]", one, held)


def _map_faults(what: str, one: TensorMap, held: Buffer) -> list[Fault]:
    """Rules of cuTensorMapEncodeTiled (CUDA driver API), and that the tensor lies in its buffer."""
    size = ELEMENT_BYTES[one.element]
    rank = len(one.sizes)
    faults = []
    if not 1 <= rank <= 5 or len(one.box) != rank or len(one.strides) != rank - 1:
        return [Fault(what, f"{rank} sizes, {len(one.strides)} strides", "as many dimensions in all, 1 to 5")]
    if one.offset % 16 or any(stride % 16 for stride in one.strides):
        faults.append(Fault(what, f"offset {one.offset}, strides {one.strides}", "multiples of 16 bytes"))
    if any(not 1 <= box <= 256 for box in one.box) or one.box[0] * size % 16:
        faults.append(Fault(what, f"box {one.box}", "1 to 256 each, the first a multiple of 16 bytes"))
    if one.swizzle not in (0, 128) or (one.swizzle and one.box[0] * size > one.swizzle):
        faults.append(
            Fault(what, f"swizzle {one.swizzle}, box {one.box}", "0, or 128 with a box row that fits")
        )
    extents = zip(one.sizes[1:], one.strides, strict=True)
    last = one.offset + one.sizes[0] * size + sum((n - 1) * stride for n, stride in extents)
    if min(one.sizes) < 1 or last > held.data.size:
        faults.append(Fault(what, f"{last} bytes of {held.name}", f"at most {held.data.size}"))
    return faults


def flat(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of an array, C-contiguous and little-endian, as a new flat uint8 array."""
    plain = np.ascontiguousarray(array)
    return np.frombuffer(plain.astype(plain.dtype.newbyteorder("<")).tobytes(), np.uint8).copy()


def poisoned(size: int) -> NDArray[np.uint8]:
    """A flat output buffer of ``size`` bytes that nothing has stored to."""
    return np.full(size, POISON_BYTE, np.uint8)
