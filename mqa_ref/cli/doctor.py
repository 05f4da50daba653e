"""``mqa-ref doctor``: what can run on this machine, and why the rest cannot."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec

import click

_DRIVER = "libcuda.so.1"


def driver_problem() -> str | None:
    """Why there is no NVIDIA GPU to launch on, None when the driver answers and counts at least one."""
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return f"the NVIDIA driver library {_DRIVER} is not here"
    if driver.cuInit(0) != 0:
        return "the NVIDIA driver is here but does not start"
    count = ctypes.c_int(0)
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "the NVIDIA driver is here but sees no GPU"
    return None


def _missing(*modules: str) -> str | None:
    absent = [name for name in modules if find_spec(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def _tool(name: str) -> str | None:
    """Why a CUDA command-line tool is not to be had, None when a package or the PATH has it."""
    import shutil
    import sys
    from pathlib import Path

    packaged = any(True for folder in sys.path for _ in Path(folder or ".").glob(f"nvidia/cu*/bin/{name}"))
    return None if packaged or shutil.which(name) else f"install the package nvidia-cuda-{name}"


def _sglang() -> str | None:
    """Why the upstream kernel cannot be tested, None when it can."""
    from mqa_ref.errors import NotAvailable
    from mqa_ref.kernel.sources import sglang_path

    try:
        sglang_path()
    except NotAvailable as error:
        return str(error)
    return None


def abilities() -> list[tuple[str, str | None]]:
    """What the package can do, each with the reason why it cannot do it here, None when it can."""
    no_gpu = driver_problem()
    not_yet = "this version has no native backend"
    return [
        ("reference and schedules", _missing("numpy")),
        ("target builtin (compile)", _missing("cutlass")),
        ("target sglang", _missing("cutlass") or _sglang()),
        ("targets FILE.py:CLASS, MODULE:CLASS", _missing("cutlass")),
        ("backend emulator", _missing("llvmlite", "cutlass")),
        ("backend cuda", f"{not_yet}; {no_gpu}" if no_gpu else not_yet),
        ("machine code counts (nvdisasm)", _tool("nvdisasm")),
    ]


@click.command("doctor")
def doctor_command() -> int:
    """Say what can run here, and why not."""
    from mqa_ref.report.environment import environment, package_version

    click.echo("versions")
    told = dict(environment())
    for name in ("nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm"):
        told[name] = package_version(name) or "absent"
    for name, value in told.items():
        click.echo(f"  {name:24} {value}")
    click.echo(f"  {'NVIDIA GPU':24} {driver_problem() or 'present'}")
    click.echo("abilities")
    for name, reason in abilities():
        click.echo(f"  {name:36} {'yes' if reason is None else f'no: {reason}'}")
    return 0
