"""The calls of the CUDA driver that a launch needs, through cuda-python, with errors that say what to do.

One ``Gpu`` is one GPU with its primary context and one stream. After an error that the driver calls sticky (a fault, a
launch that failed) the context is lost: the process that has it must end. ``mqa_ref.verification.worker`` sees to it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import KernelError, NotAvailable, Unsupported
from mqa_ref.kernel.raw_launch import TENSOR_MAP_BYTES, TensorMap

Bytes = NDArray[np.uint8]
HINT = "run the REPRO line under `compute-sanitizer` to see the access"
_FAULTS = (
    *("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_MISALIGNED_ADDRESS", "CUDA_ERROR_INVALID_ADDRESS_SPACE"),
    *("CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_HARDWARE_STACK_ERROR", "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    *("CUDA_ERROR_INVALID_PC", "CUDA_ERROR_ASSERT", "CUDA_ERROR_LAUNCH_TIMEOUT"),
)
_NO_IMAGE = ("CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "CUDA_ERROR_INVALID_PTX")


@dataclass(frozen=True)
class Bound:
    """A launch with every address known. ``parameters``: the bytes of each kernel parameter. ``overlaps``: programmatic
    dependent launch, it may start before what is ahead of it on the stream has ended."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    parameters: tuple[bytes, ...]
    overlaps: bool = False


def import_driver() -> Any:
    """The module ``cuda.bindings.driver``. Raises NotAvailable without it."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise NotAvailable(f"the package cuda.bindings cannot be imported: {error}") from error
    return driver


class Gpu:
    """One GPU. ``api``: the module of the driver calls; tests give their own.

    Every method raises KernelError for a fault or a launch that failed, Unsupported for an image that this GPU or its
    driver does not take, NotAvailable for everything else that the driver refuses.
    """

    def __init__(self, index: int, api: Any = None) -> None:
        self.api = import_driver() if api is None else api
        self.call("cuInit", 0)
        device = self.call("cuDeviceGet", index)
        self.context = self.call("cuDevicePrimaryCtxRetain", device)
        self.call("cuCtxSetCurrent", self.context)
        self.stream = self.call("cuStreamCreate", 1)  # CU_STREAM_NON_BLOCKING
        self._modules: dict[bytes, Any] = {}

    def call(self, name: str, *arguments: Any) -> Any:
        """One driver call; its value."""
        status, *values = getattr(self.api, name)(*arguments)
        if int(status) != 0:
            raise self._error(name, status)
        return values[0] if len(values) == 1 else (tuple(values) or None)

    def _error(self, name: str, status: Any) -> Exception:
        told = getattr(status, "name", str(status))
        if told in _FAULTS:
            return KernelError(f"the kernel failed on the GPU: {told}; {HINT}")
        if told in _NO_IMAGE:
            return Unsupported(f"the GPU or its driver does not take this image: {told} in {name}")
        return NotAvailable(f"the CUDA driver refuses {name}: {told}")

    # memory

    def allocate(self, size: int) -> int:
        """The address of new device memory."""
        return int(self.call("cuMemAlloc", max(16, size)))

    def free(self, address: int) -> None:
        """Give memory back."""
        self.call("cuMemFree", address)

    def upload(self, address: int, data: Bytes) -> None:
        """Copy to the device, in the order of the stream, and wait."""
        if data.size:
            self.call("cuMemcpyHtoDAsync", address, data.ctypes.data, data.size, self.stream)
            self.synchronize()

    def download(self, address: int, size: int) -> Bytes:
        """Copy from the device after everything on the stream."""
        self.synchronize()
        out = np.empty(size, np.uint8)
        if size:
            self.call("cuMemcpyDtoH", out.ctypes.data, address, size)
        return out

    def synchronize(self) -> None:
        """Wait for the stream."""
        self.call("cuStreamSynchronize", self.stream)

    # kernels

    def function(self, image: bytes, entry: str, shared_bytes: int = 0) -> Any:
        """A kernel of a cubin or of a PTX text, which may have so many bytes of dynamic shared memory."""
        if image not in self._modules:
            text = image if image.startswith(b"\x7fELF") else image + b"\0"
            self._modules[image] = self.call("cuModuleLoadData", text)
        function = self.call("cuModuleGetFunction", self._modules[image], entry.encode())
        attribute = self.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.call("cuFuncSetAttribute", function, attribute, shared_bytes)
        return function

    def launch(self, function: Any, bound: Bound) -> None:
        """Put a launch on the stream."""
        config = self.api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = bound.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = bound.block
        config.sharedMemBytes, config.hStream = bound.shared_bytes, self.stream
        if bound.overlaps:
            attribute, allowed = self.api.CUlaunchAttribute(), self.api.CUlaunchAttributeValue()
            allowed.programmaticStreamSerializationAllowed = 1
            attribute.id = self.api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value = allowed
            config.attrs, config.numAttrs = [attribute], 1
        kept, pointers = _arguments(bound.parameters)
        self.call("cuLaunchKernelEx", config, function, ctypes.addressof(pointers), 0)
        del kept  # the driver has copied the parameters

    def captured(self, enqueue: Callable[[], None]) -> Any:
        """A graph of what ``enqueue`` puts on the stream, ready for ``replay``."""
        mode = self.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self.call("cuStreamBeginCapture", self.stream, mode)
        try:
            enqueue()
        finally:
            graph = self.call("cuStreamEndCapture", self.stream)
        return self.call("cuGraphInstantiate", graph, 0)

    def replay(self, graph: Any) -> None:
        """Put a captured graph on the stream and wait."""
        self.call("cuGraphLaunch", graph, self.stream)
        self.synchronize()

    def tensor_map(self, one: TensorMap, address: int) -> bytes:
        """The descriptor that the driver encodes for a tensor map of a buffer at ``address``."""
        api, rank = self.api, len(one.sizes)
        kinds, swizzles = api.CUtensorMapDataType, api.CUtensorMapSwizzle
        promotions = api.CUtensorMapL2promotion
        kind = {
            "uint8": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8,
            "float32": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        }
        swizzle = {0: swizzles.CU_TENSOR_MAP_SWIZZLE_NONE, 128: swizzles.CU_TENSOR_MAP_SWIZZLE_128B}
        promotion = {
            0: promotions.CU_TENSOR_MAP_L2_PROMOTION_NONE,
            64: promotions.CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
            128: promotions.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            256: promotions.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        }
        encoded = self.call(
            *("cuTensorMapEncodeTiled", kind[one.element], rank, address + one.offset),
            [api.cuuint64_t(size) for size in one.sizes],
            [api.cuuint64_t(stride) for stride in one.strides],
            [api.cuuint32_t(box) for box in one.box],
            [api.cuuint32_t(1)] * rank,
            api.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle[one.swizzle],
            promotion[one.l2_promotion],
            api.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        return ctypes.string_at(encoded.getPtr(), TENSOR_MAP_BYTES)


def _arguments(parameters: Sequence[bytes]) -> tuple[list[Any], Any]:
    """Aligned copies of the parameters and the array of pointers to them; both must live until the launch is made."""
    kept, addresses = [], []
    for raw in parameters:
        buffer = ctypes.create_string_buffer(len(raw) + 64)
        start = -(-ctypes.addressof(buffer) // 64) * 64
        ctypes.memmove(start, raw, len(raw))
        kept.append(buffer)
        addresses.append(start)
    return kept, (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
