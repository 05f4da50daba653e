"""The few calls of the CUDA driver that the recorders need, through cuda-python."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from cuda.bindings import driver
from numpy.typing import NDArray

from mqa_ref.golden.silicon.bodies import Tile
from mqa_ref.kernel.raw_launch import ELEMENT_BYTES, Pointer, RawLaunch, Scalar


def check(result: Any) -> Any:
    """The value of a driver call, or an error that names the code."""
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"CUDA driver error {status}")
    return values[0] if len(values) == 1 else values


class Gpu:
    """Device 0 with its primary context."""

    def __init__(self) -> None:
        check(driver.cuInit(0))
        self.device = check(driver.cuDeviceGet(0))
        self.context = check(driver.cuDevicePrimaryCtxRetain(self.device))
        check(driver.cuCtxSetCurrent(self.context))
        self.kept: list[Any] = []

    def describe(self) -> dict[str, str]:
        """Name, compute capability and driver version."""
        attribute = driver.CUdevice_attribute
        major = check(
            driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, self.device)
        )
        minor = check(
            driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, self.device)
        )
        name = check(driver.cuDeviceGetName(128, self.device)).split(b"\0")[0].decode()
        version = check(driver.cuDriverGetVersion())
        return {"gpu": name, "compute_capability": f"{major}.{minor}", "cuda_driver_api": str(version)}

    def upload(self, array: NDArray[Any]) -> int:
        """A device copy of an array; its address."""
        raw = np.ascontiguousarray(array)
        pointer = check(driver.cuMemAlloc(max(16, raw.nbytes)))
        check(driver.cuMemcpyHtoD(pointer, raw.ctypes.data, raw.nbytes))
        self.kept.append(pointer)
        return int(pointer)

    def download(self, address: int, count: int, kind: Any) -> NDArray[Any]:
        """``count`` elements from device memory."""
        out = np.empty(count, kind)
        check(driver.cuMemcpyDtoH(out.ctypes.data, address, out.nbytes))
        return out

    def function(self, image: bytes, name: str) -> Any:
        """A kernel of a PTX text or cubin."""
        module = check(driver.cuModuleLoadData(image))
        self.kept.append(module)
        return check(driver.cuModuleGetFunction(module, name.encode()))

    def launch(self, function: Any, blocks: int, threads: int, shared: int, arguments: Sequence[Any]) -> None:
        """Launch and wait. Arguments are ctypes values or byte buffers."""
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
        check(
            driver.cuLaunchKernel(
                function, blocks, 1, 1, threads, 1, 1, shared, 0, ctypes.addressof(pointers), 0
            )
        )
        check(driver.cuCtxSynchronize())

    def tensor_map(self, tile: Tile, address: int) -> bytes:
        """The 128 bytes that the driver encodes for a tile."""
        kinds = driver.CUtensorMapDataType
        kind = {1: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8, 2: kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT16}
        kind[4] = kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT32
        swizzles = driver.CUtensorMapSwizzle
        swizzle = {0: swizzles.CU_TENSOR_MAP_SWIZZLE_NONE, 1: swizzles.CU_TENSOR_MAP_SWIZZLE_32B}
        swizzle |= {2: swizzles.CU_TENSOR_MAP_SWIZZLE_64B, 3: swizzles.CU_TENSOR_MAP_SWIZZLE_128B}
        rank = len(tile.sizes)
        encoded = check(
            driver.cuTensorMapEncodeTiled(
                kind[tile.element_bytes],
                rank,
                address,
                [driver.cuuint64_t(size) for size in tile.sizes],
                [driver.cuuint64_t(stride) for stride in tile.strides],
                [driver.cuuint32_t(box) for box in tile.box],
                [driver.cuuint32_t(1)] * rank,
                driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle[tile.swizzle],
                driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
                driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        )
        return ctypes.string_at(encoded.getPtr(), 128)

    def arguments(self, launch: RawLaunch, addresses: Mapping[str, int]) -> list[Any]:
        """The kernel parameters of a described launch whose buffers lie at these addresses."""
        made: list[Any] = []
        for one in launch.parameters:
            if isinstance(one, Scalar):
                made.append({1: ctypes.c_uint8, 4: ctypes.c_uint32, 8: ctypes.c_uint64}[one.size](one.value))
            elif isinstance(one, Pointer):
                made.append(ctypes.c_uint64(0 if one.buffer is None else addresses[one.buffer] + one.offset))
            else:
                tile = Tile(
                    ELEMENT_BYTES[one.element], one.sizes, one.strides, one.box, 3 if one.swizzle else 0
                )
                raw = self.tensor_map(tile, addresses[one.buffer] + one.offset)
                made.append(ctypes.create_string_buffer(raw, 128))
        return made
