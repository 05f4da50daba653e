"""The folder in which a campaign keeps what it found: one case file for each class of failure, and reading it back.

Several processes may write at once, and any may be killed: a file appears under its name only when it is whole.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mqa_ref.errors import Fault, InputError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under a temporary name beside it, flush it to the disk, then rename."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def open_folder(option: str, path: Path) -> Path:
    """A folder to write into, made if it is not there. Raises InputError naming ``option`` when that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError([Fault(option, str(path), f"a folder: {error.strerror}")]) from error
    if not os.access(path, os.W_OK):
        raise InputError([Fault(option, str(path), "a folder that may be written to")])
    return path


def case_paths(folder: Path, suffix: str) -> tuple[Path, ...]:
    """The whole files of a folder, by name; unfinished ones begin with a dot."""
    return tuple(
        sorted(
            path
            for path in folder.iterdir()
            if path.suffix == suffix and not path.name.startswith(".") and path.is_file()
        )
    )
