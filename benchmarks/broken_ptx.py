"""Random changes of a PTX text that leave it well formed, for programs that nobody wrote.

Each change is of one place: an instruction left out, doubled, put elsewhere or added; a register, constant, guard,
target of a branch or opcode replaced. Registers and opcodes are replaced by others of the same widths, so most of the
changed programs are accepted and run.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from mqa_ref.emulator.compiled import native
from mqa_ref.emulator.compiled.vectors import Kernel

_DECLARED = re.compile(r"\.reg\s+\.(pred|[bfus](?:8|16|32|64))\s+(%\w+?)<(\d+)>")
_REGISTER = re.compile(r"%[a-z]+\d+\b")
_NUMBER = re.compile(r"(?<![\w%.$])\d+(?![\w.])")
_LABEL = re.compile(r"^\s*(\$?\w+):", re.MULTILINE)
_OPCODE = re.compile(r"^(\s*(?:@!?%\w+\s+)?)([a-z][\w.:]*)(.*)$", re.DOTALL)


@dataclass(frozen=True)
class Text:
    """A PTX text to be changed: its lines, those that hold a whole instruction, the width of each family of registers
    (1 for predicates), the registers that are used by width, and the labels."""

    lines: tuple[str, ...]
    places: tuple[int, ...]
    families: dict[str, int]
    used: dict[int, tuple[str, ...]]
    labels: tuple[str, ...]


def read(ptx: str) -> Text:
    """What the changes need to know."""
    lines = ptx.split("\n")
    places = [
        number
        for number, line in enumerate(lines)
        if line.rstrip().endswith(";") and not line.lstrip().startswith((".", "//", "{"))
    ]
    families = {prefix: 1 if kind == "pred" else int(kind[1:]) for kind, prefix, _ in _DECLARED.findall(ptx)}
    used: dict[int, dict[str, None]] = {}
    for place in places:
        for name in _REGISTER.findall(lines[place]):
            used.setdefault(families.get(name.rstrip("0123456789"), 0), {})[name] = None
    widths = {width: tuple(names) for width, names in used.items() if width}
    return Text(tuple(lines), tuple(places), families, widths, tuple(_LABEL.findall(ptx)))


def broken(text: Text, draw: random.Random) -> str:
    """The text with one random change, in one case of eight with two or three."""
    lines = list(text.lines)
    for _ in range(draw.choice((1, 1, 1, 1, 1, 1, 1, 2 + draw.randrange(2)))):
        for _ in range(64):
            at = draw.choice(text.places)
            changed = draw.choice(_CHANGES)(lines, at, text, draw)
            if changed is not None and changed != lines[at]:
                lines[at] = changed
                break
    return "\n".join(lines)


def _left_out(lines: list[str], at: int, text: Text, draw: random.Random) -> str | None:  # noqa: ARG001
    return ""


def _doubled(lines: list[str], at: int, text: Text, draw: random.Random) -> str | None:  # noqa: ARG001
    return f"{lines[at]}\n{lines[at]}"


def _moved(lines: list[str], at: int, text: Text, draw: random.Random) -> str | None:
    """An instruction changes places with one that stands up to eight further on."""
    where = text.places.index(at) + 1 + draw.randrange(8)
    if where >= len(text.places):
        return None
    other = text.places[where]
    moved, lines[other] = lines[other], lines[at]
    return moved


def _other_register(lines: list[str], at: int, text: Text, draw: random.Random) -> str | None:
    found = list(_REGISTER.finditer(lines[at]))
    if not found:
        return None
    one = draw.choice(found)
    same = text.used.get(text.families.get(one.group().rstrip("0123456789"), 0))
    return lines[at][: one.start()] + draw.choice(same) + lines[at][one.end() :] if same else None


def _other_number(lines: list[str], at: int, text: Text, draw: random.Random) -> str | None:  # noqa: ARG001
    numbers = list(_NUMBER.finditer(lines[at]))
    if not numbers:
        return None
    number = draw.choice(numbers)
    other = int(number.group()) + draw.choice((-1, 1, 2, 8, 16, 128))
    return lines[at][: number.start()] + str(max(other, 0)) + lines[at][number.end() :]


def _other_guard(lines: list[str], at: int, text: Text, draw: random.Random) -> str | None:
    """A guard turned round, taken away or given."""
    guard = re.match(r"(\s*)@(!?)(%\w+)\s+(.*)", lines[at], re.DOTALL)
    if guard:
        return draw.choice(
            (f"{guard[1]}@{'' if guard[2] else '!'}{guard[3]} {guard[4]}", guard[1] + guard[4])
        )
    predicates = text.used.get(1)
    return (
        f"\t@{draw.choice(('', '!'))}{draw.choice(predicates)} {lines[at].lstrip()}" if predicates else None
    )


def _other_target(lines: list[str], at: int, text: Text, draw: random.Random) -> str | None:
    jump = re.match(r"(.*\bbra(?:\.uni)?\s+)(\$?\w+)(.*)", lines[at], re.DOTALL)
    return f"{jump[1]}{draw.choice(text.labels)}{jump[3]}" if jump and text.labels else None


def _other_opcode(lines: list[str], at: int, text: Text, draw: random.Random) -> str | None:  # noqa: ARG001
    """Another operation on operands of the same widths."""
    found = _OPCODE.match(lines[at])
    kernel = native.kernels().get(found[2]) if found else None
    if found is None or kernel is None:
        return None
    return f"{found[1]}{draw.choice(_alike()[kernel.results, kernel.sources])}{found[3]}"


def _added(lines: list[str], at: int, text: Text, draw: random.Random) -> str | None:
    """Any operation that has a vector kernel, on registers that the program uses."""
    results, sources = draw.choice(sorted(_alike()))
    widths = (*results, *sources)
    if any(width not in text.used for width in widths):
        return None
    operands = ", ".join(draw.choice(text.used[width]) for width in widths)
    return f"\t{draw.choice(_alike()[results, sources])} {operands};\n{lines[at]}"


_CHANGES = (
    *(_left_out, _doubled, _moved, _other_register, _other_register, _other_number, _other_guard),
    *(_other_target, _other_opcode, _added),
)


def _named(kernel: Kernel, name: str) -> bool:
    """Is it an opcode of its own, with plain operands?"""
    inner = ("pack.", "unpack.", "param.", "shfl.", "elect", "meet")
    plain = len(kernel.results) == 1 and kernel.sources and not kernel.exchanges and not kernel.broadcasts
    return bool(plain) and not name.startswith(inner)


def _alike() -> dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]]:
    """Widths of results and sources -> opcodes."""
    if not _KNOWN:
        for name, kernel in sorted(native.kernels().items()):
            if _named(kernel, name):
                _KNOWN.setdefault((kernel.results, kernel.sources), []).append(name)
    return _KNOWN


_KNOWN: dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = {}
