"""Operators on the machine: waits, arrivals, byte counts, fences, descriptors, tile loads, stores, votes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mqa_ref.fuzz.mutants.arithmetic import Change
from mqa_ref.fuzz.mutants.statements import Listing

_ADDRESS = re.compile(r"\[(%r\w*\d+)(?:\+(\d+))?\]")
_DROPPED = ";"
_FENCES = (
    "tcgen05.fence",
    "tcgen05.wait::ld",
    "fence",
    "bar",
    "griddepcontrol",
    "membar",
)
INSTRUCTION_BITS = (4, 7, 10, 13, 14, 15, 16, 17, 19, 24, 26)
"""Of the instruction descriptor: accumulator, A and B formats, negations, majors, columns, rows (PTX ISA, "Instruction
descriptor")."""
SHARED_BITS = (16, 18, 32, 34, 46, 61, 62)
"""Of the shared memory descriptor: leading and stride byte offsets, version, swizzle (PTX ISA, "Shared memory
descriptor")."""
_SKIPPED = 8


def waits(listing: Listing, index: int) -> Iterator[Change]:
    """A wait that passes at once, and one that waits for nothing but the first try."""
    one = listing.statements[index]
    if one.opcode.startswith("mbarrier.try_wait"):
        yield "wait", "left-out", f"setp.eq.u32 {one.operands[0]}, 0, 0;"


def parities(listing: Listing, index: int) -> Iterator[Change]:
    """A wait for the other phase, for a fixed one, or with a phase that is never changed."""
    one = listing.statements[index]
    if one.opcode.startswith("mbarrier.try_wait.parity"):
        phase = one.operands[2]
        other = one.but(operands={2: "MP"})
        yield "phase", "other", f"{{ .reg .b32 MP; xor.b32 MP, {phase}, 1; {other} }}"
        for fixed in ("0", "1"):
            yield "phase", fixed, f"{{ .reg .b32 MP; mov.b32 MP, {fixed}; {other} }}"
    if one.opcode == "xor.b32" and one.operands[0] == one.operands[1]:
        yield "phase", "kept", _DROPPED


def arrivals(listing: Listing, index: int) -> Iterator[Change]:
    """An arrival, an initialisation or a commit left out or done twice; a count that is one off."""
    one = listing.statements[index]
    if one.opcode.startswith(("mbarrier.arrive", "mbarrier.init", "tcgen05.commit")):
        yield "arrival", "left-out", _DROPPED
    if one.opcode.startswith("mbarrier.arrive.shared") and one.operands[0].startswith("%"):
        yield "arrival", "twice", f"{{ {one.text} {one.text} }}"
    if one.opcode.startswith("tcgen05.commit"):
        yield "arrival", "twice", f"{{ {one.text} {one.text} }}"
    if one.opcode.startswith("mbarrier.init"):
        for step in (1, -1):
            text = f"{{ .reg .b32 MC; add.s32 MC, {one.operands[1]}, {step}; {one.but(operands={1: 'MC'})} }}"
            yield "count", f"{step:+d}", text


def byte_counts(listing: Listing, index: int) -> Iterator[Change]:
    """Bytes announced to a barrier: 16 more, 16 less, half, none."""
    one = listing.statements[index]
    if "expect_tx" not in one.opcode:
        return
    count = one.operands[2]
    for name, change in (
        ("more", f"add.s32 MC, {count}, 16;"),
        ("less", f"add.s32 MC, {count}, -16;"),
        ("half", f"shr.u32 MC, {count}, 1;"),
        ("none", "mov.b32 MC, 0;"),
    ):
        yield "bytes", name, f"{{ .reg .b32 MC; {change} {one.but(operands={2: 'MC'})} }}"


def fences(listing: Listing, index: int) -> Iterator[Change]:
    """A fence, a barrier of threads, or a wait for the tensor memory left out."""
    one = listing.statements[index]
    if one.opcode.startswith(_FENCES):
        yield one.base, "left-out", _DROPPED
    if one.opcode.startswith(("tcgen05.dealloc", "tcgen05.relinquish", "tcgen05.alloc")):
        yield "allocation", "left-out", _DROPPED


def descriptors(listing: Listing, index: int) -> Iterator[Change]:
    """Bits of descriptors, operands of a product that change places, a product left out or not accumulated."""
    one = listing.statements[index]
    if one.opcode == "or.b64" and one.operands[2].isdigit() and int(one.operands[2]) >> 40:
        for bit in SHARED_BITS:
            other = str(int(one.operands[2]) ^ (1 << bit))
            yield "shared", f"bit{bit}", one.but(operands={2: other})
    if not one.opcode.startswith("tcgen05.mma"):
        return
    yield "product", "left-out", _DROPPED
    yield "product", "exchanged", one.but(operands={1: one.operands[2], 2: one.operands[1]})
    chosen = one.operands[-1]
    yield (
        "accumulate",
        "inverted",
        f"{{ .reg .pred MQ; not.pred MQ, {chosen}; {_last(one.text, chosen, 'MQ')} }}",
    )
    for bit in INSTRUCTION_BITS:
        body = one.but(operands={3: "MD"})
        yield (
            "instruction",
            f"bit{bit}",
            f"{{ .reg .b32 MD; xor.b32 MD, {one.operands[3]}, {1 << bit}; {body} }}",
        )


def _last(text: str, name: str, other: str) -> str:
    before, _, after = text.rpartition(name)
    return before + other + after


def tile_loads(listing: Listing, index: int) -> Iterator[Change]:
    """A tile load left out, done twice, into another place, from other coordinates, or with another barrier."""
    one = listing.statements[index]
    if not one.opcode.startswith("cp.async.bulk.tensor"):
        return
    yield "load", "left-out", _DROPPED
    yield "load", "twice", f"{{ {one.text} {one.text} }}"
    for place, name in ((0, "target"), (2, "barrier")):
        moved = _moved(one.operands[place], 8 if place else 128)
        if moved:
            yield name, moved, one.but(operands={place: moved})
    found = re.fullmatch(r"\[(%rd\d+), \{(.*)\}\]", one.operands[1])
    if found:
        names = [name.strip() for name in found[2].split(",")]
        first, last = names[0], names[-1]
        yield (
            "coordinates",
            "first",
            one.but(operands={1: f"[{found[1]}, {{{', '.join([*names[:-1], first])}}}]"}),
        )
        turned = [last, *names[1:-1], first]
        yield "coordinates", "exchanged", one.but(operands={1: f"[{found[1]}, {{{', '.join(turned)}}}]"})
        for step in (1, -1):
            body = one.but(operands={1: f"[{found[1]}, {{{', '.join([*names[:-1], 'MX'])}}}]"})
            yield "coordinates", f"{step:+d}", f"{{ .reg .b32 MX; add.s32 MX, {last}, {step}; {body} }}"


def _moved(operand: str, step: int) -> str | None:
    found = _ADDRESS.fullmatch(operand)
    return f"[{found[1]}+{int(found[2] or 0) + step}]" if found else None


def addresses(listing: Listing, index: int) -> Iterator[Change]:
    """A load or a barrier access one element further on."""
    one = listing.statements[index]
    steps = {"b16": 2, "b32": 4, "b64": 8}
    if one.base in ("ld", "mbarrier") and not one.opcode.startswith("ld.param"):
        step = steps.get(one.opcode.split(".")[-1], 4) * (2 if ".v2" in one.opcode else 1)
        for place, operand in enumerate(one.operands):
            found = re.fullmatch(r"\[(%r\w*\d+)(?:\+(\d+))?\]", operand)
            if found:
                moved = f"[{found[1]}+{int(found[2] or 0) + step}]"
                yield "address", f"+{step}", one.but(operands={place: moved})
                back = int(found[2] or 0) - step
                yield (
                    "address",
                    f"-{step}",
                    one.but(operands={place: f"[{found[1]}+{back}]".replace("+-", "-")}),
                )


def stores(listing: Listing, index: int) -> Iterator[Change]:
    """A store left out, beside its place, of another value, or done where its guard forbids it."""
    one = listing.statements[index]
    if not one.opcode.startswith("st.global"):
        return
    size = {"b32": 4, "b16": 2}.get(one.opcode.split(".")[-1], 4)
    yield "store", "left-out", _DROPPED
    yield "store", "next", one.but(operands={0: one.operands[0][:-1] + f"+{size}]"})
    yield "store", "before", one.but(operands={0: one.operands[0][:-1] + f"-{size}]"})
    for back in range(index - 1, max(-1, index - _SKIPPED), -1):
        guard = listing.statements[back]
        if guard.base == "setp":
            wider = {"le": "lt", "ge": "gt", "lt": "le", "gt": "ge"}
            _, relation, kind = guard.opcode.split(".")
            if relation in wider:
                yield "guard", "wider", {guard.line: guard.but(opcode=f"setp.{wider[relation]}.{kind}")}
            never = guard.but(opcode=f"setp.ne.{'b' + kind[1:]}", operands={2: guard.operands[1]})
            yield "guard", "always", {guard.line: never}
            return


def votes(listing: Listing, index: int) -> Iterator[Change]:
    """Lanes that take part, and lanes that are asked."""
    one = listing.statements[index]
    mask = {"shfl": 4, "elect": 1, "bar": 0}.get(one.base)
    if mask is not None and len(one.operands) > mask and one.operands[mask] == "-1":
        for other in ("2147483647", "-2"):
            yield "mask", other, one.but(operands={mask: other})
    if one.base == "shfl":
        for name, change in (("lane+1", "add.s32 ML, {0}, 1;"), ("lane-xor", "xor.b32 ML, {0}, 16;")):
            body = one.but(operands={2: "ML"})
            yield name, "", f"{{ .reg .b32 ML; {change.format(one.operands[2])} {body} }}"
