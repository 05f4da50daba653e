"""Operators on values: other operations, relations, constants, registers, predicates, roundings, orders.

Each takes a listing and an index and gives (operator, detail, new text), or (operator, detail, edits) where it takes
more than one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from mqa_ref.fuzz.mutants.statements import Listing, Statement

Change = tuple[str, str, str | Mapping[int, str]]
Operator = Callable[[Listing, int], Iterator[Change]]

SWAPS: Mapping[str, tuple[str, ...]] = {
    "add.s32": ("sub.s32",),
    "add.s64": ("sub.s64",),
    "sub.s32": ("add.s32",),
    "min.s32": ("max.s32",),
    "max.s32": ("min.s32",),
    "and.b32": ("or.b32",),
    "or.b32": ("and.b32", "xor.b32"),
    "or.b64": ("and.b64",),
    "xor.b32": ("or.b32", "and.b32"),
    "shl.b32": ("shr.u32",),
    "shl.b64": ("shr.u64",),
    "shr.u32": ("shl.b32",),
    "shr.s32": ("shl.b32",),
    "mul.lo.s32": ("add.s32",),
    "mul.lo.s64": ("add.s64",),
    "add.rn.f32": ("sub.rn.f32", "mul.rn.f32"),
    "mul.rn.f32": ("add.rn.f32",),
    "add.rn.f32x2": ("mul.rn.f32x2",),
    "add.rn.f16x2": ("mul.rn.f16x2",),
    "add.rn.f16": ("mul.rn.f16",),
    "mul.rn.f16": ("add.rn.f16",),
    "add.f16": ("mul.f16",),
    "mul.f16": ("add.f16",),
}
RELATIONS: Mapping[str, tuple[str, ...]] = {
    "eq": ("ne",),
    "ne": ("eq",),
    "lt": ("le", "ge"),
    "le": ("lt", "gt"),
    "gt": ("ge", "le"),
    "ge": ("gt", "lt"),
}
_COUNTED = ("add", "sub", "mad", "mul", "setp", "shl", "shr", "and", "min", "max", "mov")
_INTEGER = re.compile(r"-?\d+")
_REGISTER = re.compile(r"(%[a-z]+)(\d+)")
_ORDERED = ("sub", "shl", "shr", "setp")


def swaps(listing: Listing, index: int) -> Iterator[Change]:
    """Another operation with the same operands."""
    one = listing.statements[index]
    for other in SWAPS.get(one.opcode, ()):
        yield "swap", other, one.but(opcode=other)
    if one.base == "fma":
        product, total = one.opcode.replace("fma", "mul"), one.opcode.replace("fma", "add")
        yield "swap", "product-only", f"{one.guard}{product} {', '.join(one.operands[:3])};"
        yield (
            "swap",
            "sum-only",
            f"{one.guard}{total} {one.operands[0]}, {one.operands[2]}, {one.operands[3]};",
        )
    if one.base == "mad":
        total = one.opcode.replace("mad.lo", "add")
        yield (
            "swap",
            "sum-only",
            f"{one.guard}{total} {one.operands[0]}, {one.operands[1]}, {one.operands[3]};",
        )


def relations(listing: Listing, index: int) -> Iterator[Change]:
    """Another relation: its opposite, and the one that differs where both sides are equal; choices the other way."""
    one = listing.statements[index]
    if one.base == "setp":
        _, relation, kind = one.opcode.split(".")
        for other in RELATIONS.get(relation, ()):
            yield "relation", other, one.but(opcode=f"setp.{other}.{kind}")
    if one.base == "selp" and one.operands[1] != one.operands[2]:
        yield "choice", "swapped", one.but(operands={1: one.operands[2], 2: one.operands[1]})


def constants(listing: Listing, index: int) -> Iterator[Change]:
    """An integer constant that is one more or one less; stages are a class of their own."""
    one = listing.statements[index]
    if one.base not in _COUNTED or is_stage_limit(listing, index):
        return
    for place, operand in enumerate(one.operands):
        if place and _INTEGER.fullmatch(operand):
            for step in (1, -1):
                other = int(operand) + step
                yield f"constant{step:+d}", str(other), one.but(operands={place: str(other)})


def stages(listing: Listing, index: int) -> Iterator[Change]:
    """A ring that turns around one slot early or late, or does not advance."""
    one = listing.statements[index]
    if is_stage_limit(listing, index):
        for step in (1, -1):
            other = int(one.operands[2]) + step
            yield f"limit{step:+d}", str(other), one.but(operands={2: str(other)})
    before = listing.definition(one.operands[1], index) if is_stage_limit(listing, index) else None
    if before is not None:
        add = listing.statements[before]
        yield "stuck", "0", {add.line: add.but(operands={2: "0"})}


def is_stage_limit(listing: Listing, index: int) -> bool:
    """Is it ``slot + 1 == stages``?"""
    one = listing.statements[index]
    if one.opcode != "setp.eq.b32" or not _INTEGER.fullmatch(one.operands[2]):
        return False
    before = listing.definition(one.operands[1], index)
    return (
        before is not None
        and listing.statements[before].opcode == "add.s32"
        and (listing.statements[before].operands[2] == "1")
    )


def registers(listing: Listing, index: int) -> Iterator[Change]:
    """The neighbour register in place of one that is read, and operands that change places."""
    one = listing.statements[index]
    if one.base in ("bra", "ret", "bar", "cp", "prefetch", "elect") or one.opcode.startswith("tcgen05.ld"):
        return
    for place, operand in enumerate(one.operands):
        found = _REGISTER.fullmatch(operand)
        if found and place and found[1] != "%p":
            name = f"{found[1]}{int(found[2]) - 1}"
            yield "neighbour", f"{operand}>{name}", one.but(operands={place: name})
    if one.base in _ORDERED and one.operands[1] != one.operands[2] and "%" in one.operands[2]:
        yield "exchange", "a,b", one.but(operands={1: one.operands[2], 2: one.operands[1]})
    if one.base == "fma":
        yield "exchange", "b,c", one.but(operands={2: one.operands[3], 3: one.operands[2]})
    for place, operand in enumerate(one.operands):
        inside = [name.strip() for name in operand[1:-1].split(",")] if operand.startswith("{") else []
        if len(inside) == 2 and inside[0] != inside[1]:
            yield "exchange", f"vector{place}", one.but(operands={place: f"{{{inside[1]}, {inside[0]}}}"})


def predicates(listing: Listing, index: int) -> Iterator[Change]:
    """A guard inverted or left out, a branch left out, a predicate not negated."""
    one = listing.statements[index]
    if one.guard:
        name = one.guard.strip().lstrip("@")
        inverted = f"@{name[1:]} " if name.startswith("!") else f"@!{name} "
        yield "guard", "inverted", one.but(guard=inverted)
        yield "guard", "left-out", one.but(guard="")
        if one.base == "bra":
            yield "branch", "left-out", ";"
    if one.opcode == "not.pred":
        yield "not", "left-out", one.but(opcode="mov.pred")


def roundings(listing: Listing, index: int) -> Iterator[Change]:
    """Two roundings in place of one, and a result that loses its last bit."""
    one = listing.statements[index]
    parts = one.opcode.split(".")
    if parts[-1] not in ("f32", "f32x2", "f16", "f16x2") or parts[0] not in ("add", "mul", "fma"):
        return
    kind, result = parts[-1], one.operands[0]
    if parts[0] == "fma" and not one.guard:
        width = {"f32": "b32", "f32x2": "b64", "f16": "b16", "f16x2": "b32"}[kind]
        a, b, c = one.operands[1:]
        yield (
            *("unfused", ""),
            f"{{ .reg .{width} MU; mul.rn.{kind} MU, {a}, {b}; add.rn.{kind} {result}, MU, {c}; }}",
        )
    masks = {
        "f32": ("b32", -2),
        "f32x2": ("b64", -0x1_0000_0002),
        "f16": ("b16", -2),
        "f16x2": ("b32", -0x10002),
    }
    width, mask = masks[kind]
    if not one.guard:
        yield "coarse", "", f"{{ {one.text} and.{width} {result}, {result}, {mask}; }}"


def orders(listing: Listing, index: int) -> Iterator[Change]:
    """Of a sum of three, other two are added first."""
    second = listing.statements[index]
    if second.opcode not in ("add.rn.f32", "add.rn.f16", "add.f16"):
        return
    before = listing.definition(second.operands[1], index)
    if before is None or listing.statements[before].opcode != second.opcode:
        return
    first, later = listing.statements[before], second.operands[2]
    defined = listing.definition(later, index)
    if defined is not None and defined < before:
        edits = {
            first.line: first.but(operands={2: later}),
            second.line: second.but(operands={2: first.operands[2]}),
        }
        yield "sum", "order", edits


def relus(listing: Listing, index: int) -> Iterator[Change]:
    """No magnitude, or a negated one; no maximum with zero."""
    one = listing.statements[index]
    if one.opcode == "abs.f32":
        yield "abs", "left-out", one.but(opcode="mov.b32")
        yield "abs", "negated", one.but(opcode="neg.f32")
    if one.base == "max" and one.opcode.endswith(("f16x2", "f32", "f16")):
        kind = {"f16x2": "b32", "f32": "b32", "f16": "b16"}[one.opcode.split(".")[-1]]
        yield "max", "left-out", f"{one.guard}mov.{kind} {one.operands[0]}, {one.operands[1]};"
        yield "max", "min", one.but(opcode=one.opcode.replace("max", "min"))


def is_address(one: Statement) -> bool:
    """Does it read or write memory through an address with brackets?"""
    return one.base in ("ld", "st")
