"""docs/opcodes.md: the opcode table as a person reads it, one line for each family of rows.

python -m mqa_ref.emulator.opcodes.document > docs/opcodes.md
"""

from __future__ import annotations

import sys
from collections import defaultdict

from mqa_ref.emulator import opcodes
from mqa_ref.emulator.opcodes.table import TABLE, Row

HEAD = """# Opcodes

Every PTX instruction that the emulator executes, from its opcode table (`mqa_ref/emulator/opcodes/`): {count} full
names in {families} families. A name that is not in the table, because of an unknown modifier for instance, is refused
with its line before anything runs. This page is generated (`python -m mqa_ref.emulator.opcodes.document`); a test says
that it is current.

*Standing* is where the rule comes from: **doc** the PTX ISA, **hw** the ISA and recordings of an H200
(`mqa_ref/golden/silicon`), **published** measurements of others. "type" stands for the types that have rows, brackets
for what may be left out.
"""


def _plain(types: list[str]) -> str:
    """Types of a family's rows: each one, or how many there are."""
    found = sorted(set(types))
    if len(found) <= 3:
        return ", ".join(f"`{each}`" for each in found if each)
    return f"{len(found)} types"


def _line(family: str, rows: list[Row]) -> str:
    sources = [", ".join(row.sources) for row in rows]
    standing = sorted({row.standing for row in rows})
    cells = (
        f"`{family}`",
        str(len(rows)),
        _plain([r.result for r in rows]),
        _plain(sources),
        ", ".join(standing),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def document() -> str:
    """The page."""
    opcodes.load()
    sections: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in TABLE.values():
        sections[row.section][row.family].append(row)
    families = sum(len(each) for each in sections.values())
    parts = [HEAD.format(count=len(TABLE), families=families)]
    for section in sorted(sections):
        parts.append(
            f"\n## {section}\n\n| instruction | names | result | sources | standing |\n|---|---|---|---|---|\n"
        )
        parts += [_line(family, rows) + "\n" for family, rows in sorted(sections[section].items())]
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(document())
