"""Which versions a report was made with: a different compiler makes different PTX, so this belongs to every
verdict."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("mqa-ref", "numpy", "ml_dtypes", "nvidia-cutlass-dsl", "llvmlite")


def package_version(name: str) -> str | None:
    """The installed version of a distribution, None when it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def environment(*more: str) -> dict[str, str]:
    """Python, the platform and the packages that decide a result, ``more`` of them on request; "absent" for one that is
    not installed."""
    told = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}".lower(),
    }
    return told | {name: package_version(name) or "absent" for name in (*PACKAGES, *more)}
