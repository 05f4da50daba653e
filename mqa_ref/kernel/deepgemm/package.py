"""The installed wheel ``sgl-deep-gemm``: its headers, found without importing anything of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from mqa_ref.errors import NotAvailable

DISTRIBUTION, VERSION = "sgl-deep-gemm", "0.1.5"
"""Later versions (0.2.5) hold another operation, with block scales."""
INSTALL = f"pip install --no-deps {DISTRIBUTION}=={VERSION}"
_INCLUDE = "deep_gemm/include"
_MARKER = f"{_INCLUDE}/deep_gemm/impls/sm90_fp8_paged_mqa_logits.cuh"


@dataclass(frozen=True)
class Headers:
    """``include``: the folder for nvcc's -I. ``identity``: a hash of the package's list of files, which has a hash of
    each, and of the bytes of DeepGEMM's own headers."""

    include: Path
    identity: str


@cache
def headers() -> Headers:
    """The headers of the wheel. Raises NotAvailable with the command that installs it."""
    try:
        found = distribution(DISTRIBUTION)
    except PackageNotFoundError as error:
        raise NotAvailable(f"the package {DISTRIBUTION} is not installed; {INSTALL} brings it") from error
    if found.version != VERSION:
        raise NotAvailable(f"{DISTRIBUTION} {found.version} is not served; {INSTALL} brings one that is")
    include = Path(str(found.locate_file(_INCLUDE)))
    if not Path(str(found.locate_file(_MARKER))).is_file():
        raise NotAvailable(f"{DISTRIBUTION} {found.version} has no file {_MARKER}; {INSTALL} brings it")
    digest = hashlib.sha256((found.read_text("RECORD") or "").encode())
    for path in sorted((include / "deep_gemm").rglob("*.cuh")):
        digest.update(path.relative_to(include).as_posix().encode() + b"\n" + path.read_bytes())
    return Headers(include, digest.hexdigest())
