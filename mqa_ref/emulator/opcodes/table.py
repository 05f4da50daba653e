"""The opcode table: one row for each opcode that is modelled, under its full name, modifiers included.

An opcode that has no row is an error that names the instruction and its line, so an unknown modifier is never ignored.
``decode.OPCODES`` holds what builds the operation of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from mqa_ref.emulator.decode import OPCODES, Builder
from mqa_ref.emulator.opcodes.recorded import is_recorded

Types = tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One opcode.

    ``result`` and ``sources`` are PTX types, "pred", or words for what is no plain value ("address", "label",
    "mask", ...); ``result`` is "" where the instruction gives none. ``function`` is what it does: for lanewise
    instructions arrays of bit patterns to an array, else the builder of its operation. ``section`` names the section of
    the PTX ISA, ``standing`` where the rule comes from: "doc" (the ISA), "hw" (recorded on hardware too), "published"
    (measured by others). ``family`` is the line of docs/opcodes.md that the row belongs to.
    """

    name: str
    result: str
    sources: Types
    function: Callable[..., Any]
    section: str
    standing: str
    family: str

    @property
    def base(self) -> str:
        """The name with no modifier."""
        return self.name.split(".")[0]

    @property
    def modifiers(self) -> Types:
        """Everything after the base, types included."""
        return tuple(self.name.split(".")[1:])


TABLE: dict[str, Row] = {}


def add(row: Row, build: Builder) -> None:
    """Put a row into the table; its standing is "hw" where it was recorded. A name can be there once."""
    if row.name in TABLE:
        raise AssertionError(f"opcode {row.name} is in the table twice")
    TABLE[row.name] = replace(row, standing="hw") if is_recorded(row) else row
    OPCODES[row.name] = build


def opcode(
    *names: str,
    section: str,
    result: str = "",
    sources: Types = (),
    standing: str = "doc",
    family: str | None = None,
) -> Callable[[Builder], Builder]:
    """Add a row for each name, whose operation the decorated function builds."""

    def register(build: Builder) -> Builder:
        for name in names:
            add(Row(name, result, sources, build, section, standing, family or name), build)
        return build

    return register


def lanewise(
    rows: Iterable[tuple[str, str, Types, Callable[..., Any]]],
    *,
    section: str | Callable[[str], str],
    family: Callable[[str], str] = str,
) -> None:
    """Add rows (name, result, sources, function) of instructions that work on each lane alone."""
    from mqa_ref.emulator.opcodes.arith import elementwise

    for name, result, sources, function in rows:
        title = section if isinstance(section, str) else section(name)
        add(
            Row(name, result, sources, function, title, "doc", family(name)),
            elementwise(result, sources, function),
        )


def explain_unknown(name: str) -> str:
    """Why an opcode is not in the table: its base is unknown, or which modifier is."""
    base, *modifiers = name.split(".")
    known = [row.modifiers for row in TABLE.values() if row.base == base]
    if not known:
        return f"opcode {name!r} is not modelled"
    used = {modifier for row in known for modifier in row}
    strange = [f".{modifier}" for modifier in modifiers if modifier not in used]
    if strange:
        return f"opcode {name!r} is not modelled: {base} has no row with {' or '.join(strange)}"
    return f"opcode {name!r} is not modelled: {base} has no row with these modifiers together"
