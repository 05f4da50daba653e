"""What a native launch needs, looked for in this order: the driver, a GPU, the Python package, the compute capability.

The first three are asked of the driver library by ctypes, so that the answer costs nothing and needs no package.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mqa_ref.errors import Fault, InputError, NotAvailable

DRIVER = "libcuda.so.1"
PACKAGE = "cuda.bindings"
DEVICE_VARIABLE = "MQA_REF_CUDA_DEVICE"
WORKER_VARIABLE = "PYTEST_XDIST_WORKER"
_VERSION_FILE = Path("/proc/driver/nvidia/version")
_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR (cuda.h)."""


@dataclass(frozen=True)
class GpuFacts:
    """One GPU: its index among the visible ones, its name, its compute capability, and the driver's CUDA version."""

    index: int
    name: str
    capability: tuple[int, int]
    cuda: str

    def environment(self) -> dict[str, str]:
        """What belongs into a report beside the versions of packages: GPU, driver, date."""
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "gpu": self.name,
            "compute_capability": f"{self.capability[0]}.{self.capability[1]}",
            "driver": driver_version(),
            "cuda_of_driver": self.cuda,
        }

    @property
    def told(self) -> str:
        """In words."""
        return f"GPU {self.index}, {self.name}, compute capability {self.capability[0]}.{self.capability[1]}"


def driver_version() -> str:
    """The version of the kernel's driver module, where it tells one."""
    try:
        text = _VERSION_FILE.read_text()
    except OSError:
        return "unknown"
    words = text.partition("Kernel Module")[2].split()
    return next((word for word in words if word[:1].isdigit()), "unknown")


def load_driver() -> Any:
    """The driver library. Raises OSError without one; tests put another in its place."""
    return ctypes.CDLL(DRIVER)


def missing() -> str | None:
    """Why nothing can be launched here; None when the driver, a GPU and the package are there."""
    try:
        driver = load_driver()
    except OSError:
        return f"the NVIDIA driver library {DRIVER} is not here"
    if driver.cuInit(0) != 0:
        return "the NVIDIA driver is here but does not start"
    if _count(driver) == 0:
        return "the NVIDIA driver is here but sees no GPU"
    return None if _has_package() else f"the package {PACKAGE} is not installed; the extra `gpu` brings it"


def _count(driver: Any) -> int:
    count = ctypes.c_int(0)
    return count.value if driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def _has_package() -> bool:
    try:
        return find_spec(PACKAGE) is not None
    except ModuleNotFoundError:
        return False


def choose_device(count: int, environment: Mapping[str, str] | None = None) -> int:
    """The index of the GPU to use, of ``count`` visible ones: MQA_REF_CUDA_DEVICE, else by the number of the
    pytest-xdist worker, in turn, else 0. Raises InputError for a variable that names no such GPU."""
    given = os.environ if environment is None else environment
    told = given.get(DEVICE_VARIABLE, "")
    if told:
        if not re.fullmatch(r"[0-9]{1,4}", told) or int(told) >= count:
            raise InputError([Fault(DEVICE_VARIABLE, repr(told), f"a number from 0 to {count - 1}")])
        return int(told)
    worker = re.fullmatch(r"gw([0-9]{1,6})", given.get(WORKER_VARIABLE, ""))
    return int(worker[1]) % count if worker else 0


def require(capabilities: tuple[tuple[int, int], ...] = (), what: str = "this") -> GpuFacts:
    """The GPU to use. Raises NotAvailable that names what is missing: driver, GPU, package, or one of the compute
    capabilities that ``what`` needs (any will do for none)."""
    problem = missing()
    if problem is not None:
        raise NotAvailable(f"cannot launch on a GPU: {problem}")
    driver = load_driver()
    driver.cuInit(0)
    index = choose_device(_count(driver))
    facts = _facts(driver, index)
    if capabilities and facts.capability not in capabilities:
        needed = " or ".join(f"{major}.{minor}" for major, minor in capabilities)
        raise NotAvailable(f"{what} needs a GPU of compute capability {needed}; here is {facts.told}")
    return facts


def _facts(driver: Any, index: int) -> GpuFacts:
    device, number = ctypes.c_int(0), ctypes.c_int(0)
    driver.cuDeviceGet(ctypes.byref(device), index)
    name = ctypes.create_string_buffer(128)
    driver.cuDeviceGetName(name, 128, device)
    found = []
    for attribute in (_MAJOR, _MINOR):
        driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        found.append(number.value)
    driver.cuDriverGetVersion(ctypes.byref(number))
    version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    return GpuFacts(index, name.value.decode(errors="replace"), (found[0], found[1]), version)
