"""The folder of golden files: which file belongs to which case, reading one, replacing many."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from mqa_ref.errors import Fault, InputError
from mqa_ref.golden import container
from mqa_ref.golden.entry import Entry
from mqa_ref.golden.metadata import is_name

DATA = Path(__file__).resolve().parent / "data"
"""The files that come with the package."""

SUFFIX = ".safetensors"
HISTORY = "HISTORY.jsonl"
"""Why files were regenerated, one JSON object a line, oldest first."""


def path_of(name: str, folder: Path = DATA) -> Path:
    """The file of the case ``name``. InputError for what cannot name a case, such as a path."""
    if not is_name(name):
        raise InputError([Fault("case", repr(name), "words of a-z and 0-9 joined by '-'")])
    return folder / f"{name}{SUFFIX}"


def load(name: str, folder: Path = DATA) -> Entry:
    """The stored entry of the case ``name``. InputError with one fault that names the file when it is not
    there, is no golden file, is damaged, or says that it is another case."""
    return load_with_bytes(name, folder)[0]


def load_with_bytes(name: str, folder: Path = DATA) -> tuple[Entry, bytes]:
    """As ``load``, with the content of the file."""
    path = path_of(name, folder)
    data = container.read(path)
    entry = container.decode(data, str(path))
    if entry.name != name:
        raise InputError(
            [Fault(str(path), f"the case {entry.name}", f"the case {name}: the file was renamed")]
        )
    return entry, data


def unused(names: Iterable[str], folder: Path = DATA) -> tuple[str, ...]:
    """What lies in the folder and belongs to none of the cases ``names``."""
    known = {path_of(name, folder).name for name in names} | {HISTORY}
    return tuple(sorted(path.name for path in folder.iterdir() if path.name not in known))


def replace(files: Mapping[str, bytes | None], folder: Path = DATA) -> None:
    """Write all ``files`` (by file name; None removes one) under temporary names, then rename them: a reader
    sees an old or a new file, never half of one, and an error before the first rename changes nothing."""
    temporary: dict[str, Path] = {}
    try:
        for name, data in files.items():
            if data is None:
                continue
            handle, path = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
            temporary[name] = Path(path)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            # mkstemp keeps others out; a golden is an ordinary file.
            temporary[name].chmod(0o644)
        for name in files:
            if name in temporary:
                temporary.pop(name).replace(folder / name)
            else:
                (folder / name).unlink(missing_ok=True)
    finally:
        for path_left in temporary.values():
            path_left.unlink(missing_ok=True)
