"""The folder of cached results: what is costly to make and always the same, kept between runs.

``MQA_REF_CACHE`` names the folder, ``off`` turns caching off; without it it is ``mqa-ref`` in ``XDG_CACHE_HOME``, or in
``~/.cache``. Some entries are native code that is executed when they are used, so whoever can write here can run code
as this user: the folder is made with mode 0700, and one that belongs to another user, or that others may write to, is
never used.

An entry is one file: a line with the sha256 of the rest, a line of JSON, raw bytes. Nothing in it is executed by
reading it. It is written under a temporary name and renamed, so several processes can share the folder; an entry that
is not what was written is removed and answered as absent. The oldest entries go when the folder grows over its limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqa_ref.errors import Fault, InputError

VARIABLE = "MQA_REF_CACHE"
LIMIT_BYTES = 1 << 30
"""What one kind of entries may take on disk."""

_MAGIC = "mqa-ref cache 1"
_SUFFIX = ".entry"
_LEFTOVER_SECONDS = 3600.0
"""A temporary file that is older was left by a process that died."""


@dataclass(frozen=True)
class Entry:
    """What was stored: ``meta``, anything JSON can say, and named ``blobs``."""

    meta: Any
    blobs: Mapping[str, bytes]


def key_of(*parts: str | bytes) -> str:
    """A name for an entry: the sha256 of the parts, each with its length, so that no two lists of parts are one."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def root() -> tuple[Path | None, str | None]:
    """The folder of all kinds of entries and why it is not used; (None, None) where it is turned off.

    It is not made. Raises InputError for a value of ``MQA_REF_CACHE`` that is neither ``off`` nor an absolute path.
    """
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "off":
        return None, None
    if chosen and not Path(chosen).is_absolute():
        raise InputError([Fault(VARIABLE, repr(chosen), "off or an absolute path")])
    home = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(home) if Path(home).is_absolute() else Path(os.path.expanduser("~")) / ".cache"  # noqa: PTH111
    path = Path(chosen) if chosen else base / "mqa-ref"
    return path, _unsafe(path)


def folder(kind: str) -> Path | None:
    """The folder of one kind of entries ("kernels", ...), made where it is not there; None where nothing is cached.

    Raises InputError when ``MQA_REF_CACHE`` names a folder that must not be used. The folder without the variable is
    then passed over: nobody chose it.
    """
    path, reason = root()
    if path is None:
        return None
    if reason is None:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            (path / kind).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            reason = f"it cannot be made: {error.strerror}"
        else:
            reason = _unsafe(path) or _unsafe(path / kind)
    if reason is None:
        return path / kind
    if os.environ.get(VARIABLE):
        raise InputError([Fault(VARIABLE, str(path), f"off or a private folder of this user's; {reason}")])
    return None


def _unsafe(path: Path) -> str | None:
    """Why a folder must not be used, None where it may or is not there."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    if status.st_mode & 0o022:
        return "others may write to it"
    return None


def load(kind: str, key: str) -> Entry | None:
    """The entry, None where there is none that is whole. One that was damaged is removed. ``key``: of ``key_of``."""
    place = folder(kind)
    if place is None:
        return None
    path = place / (key + _SUFFIX)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            data = file.read() if os.fstat(file.fileno()).st_uid == os.geteuid() else b""
    except OSError:
        return None
    entry = _unpack(data, key)
    with contextlib.suppress(OSError):
        if entry is None:
            path.unlink()
        else:
            os.utime(path)  # what was used last is removed last
    return entry


def store(kind: str, key: str, entry: Entry, *, limit_bytes: int = LIMIT_BYTES) -> None:
    """Keep an entry; what cannot be written (a full or read-only disk) is left out without a word."""
    place = folder(kind)
    if place is None:
        return
    with contextlib.suppress(OSError):
        _write(place, key + _SUFFIX, _pack(entry, key))
        _make_room(place, limit_bytes)


def usage() -> tuple[int, int]:
    """How many files of all kinds there are and how many bytes they have."""
    path, reason = root()
    if path is None or reason is not None:
        return 0, 0
    sizes = [size for place in path.glob("*/") for _, size, _ in _files(place)]
    return len(sizes), sum(sizes)


def _pack(entry: Entry, key: str) -> bytes:
    sizes = {name: len(blob) for name, blob in entry.blobs.items()}
    head = json.dumps({"format": _MAGIC, "key": key, "meta": entry.meta, "blobs": sizes})
    rest = head.encode() + b"\n" + b"".join(entry.blobs.values())
    return hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _unpack(data: bytes, key: str) -> Entry | None:
    digest, _, rest = data.partition(b"\n")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        return None
    line, _, content = rest.partition(b"\n")
    head = json.loads(line)
    if head["format"] != _MAGIC or head["key"] != key:
        return None
    blobs, at = {}, 0
    for name, size in head["blobs"].items():
        blobs[name] = content[at : at + size]
        at += size
    return Entry(head["meta"], blobs)


def _write(place: Path, name: str, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=place)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(place / name)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _files(place: Path) -> list[tuple[float, int, Path]]:
    """Time of last use, size and path of every file; those that another process removes meanwhile are left out."""
    found = []
    for path in place.iterdir():
        with contextlib.suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                found.append((status.st_mtime, status.st_size, path))
    return found


def _make_room(place: Path, limit_bytes: int) -> None:
    files = sorted(_files(place))
    total = sum(size for _, size, _ in files)
    stale = time.time() - _LEFTOVER_SECONDS
    for used, size, path in files:
        part = path.name.endswith(".part")
        if (part and used < stale) or (not part and total > limit_bytes):
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size
