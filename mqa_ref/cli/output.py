"""Files that a command writes, whole or not at all, and the progress bar, which only a terminal gets."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mqa_ref.errors import Fault, InputError


def check_writable(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written in the end; said before the work starts. None is fine."""
    if path is None:
        return
    folder = path.absolute().parent
    if path.is_dir():
        raise InputError([Fault(option, str(path), "a file, not a folder")])
    if not folder.is_dir():
        raise InputError([Fault(option, str(path), f"a file in a folder that exists; {folder} does not")])
    if not os.access(folder, os.W_OK):
        raise InputError([Fault(option, str(path), "a file in a folder that may be written to")])


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name beside it, then rename: nobody ever reads half a file."""
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.absolute().parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # mkstemp keeps others out; a report is an ordinary file.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """A function that moves a bar on stderr, or None when stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[name]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, name="")

        def move(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, name=name)

        yield move
