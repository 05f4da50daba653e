"""The builtin kernel with faults in its source: edits of single places of its text, written out like a user's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mqa_ref.kernel.own_copy import CLASS, MAIN, PREFIX, own_copy


@dataclass(frozen=True)
class Fault:
    """``what`` is wrong in ``module``; every ``old`` there becomes ``new``; ``times``: how many there are."""

    what: str
    module: str
    old: str
    new: str
    times: int = 1

    @property
    def file(self) -> str:
        """The file of the copy that it is in."""
        return f"{PREFIX}{self.module}.py"


def edited(faults: Sequence[Fault]) -> dict[str, str]:
    """File name -> text of the kernel with faults in it. Raises ValueError when a place is not there, or not as often
    as it is said to be."""
    texts = own_copy()
    for fault in faults:
        found = texts[fault.file].count(fault.old)
        if found != fault.times:
            raise ValueError(
                f"{fault.what}: {fault.old!r} is {found} times in {fault.file}, not {fault.times}"
            )
        texts[fault.file] = texts[fault.file].replace(fault.old, fault.new)
    return texts


def write_kernel(folder: Path, faults: Sequence[Fault]) -> str:
    """Write the copy into ``folder``; the name by which it is a kernel. Raises ValueError as ``edited``."""
    for file, text in edited(faults).items():
        (folder / file).write_text(text, encoding="utf-8")
    return f"{folder / MAIN}:{CLASS}"
