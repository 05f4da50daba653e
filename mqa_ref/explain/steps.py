"""Brings the steps of a kernel together with those of the reference, row by row, and finds where they part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from mqa_ref.explain.nodes import KStep, Node, value_of
from mqa_ref.explain.terms import in_words
from mqa_ref.numerics import MachineModel


@dataclass(frozen=True)
class Value:
    """One side of a row: the bits, the number, how it was computed, and where in the kernel."""

    bits: int
    width: int
    number: float
    how: str
    ptx_line: int | None = None
    ptx_text: str | None = None
    source: str | None = None

    @property
    def word(self) -> str:
        """The bits as a hex word."""
        return f"0x{self.bits:0{self.width // 4}x}"


@dataclass(frozen=True)
class Row:
    """One step. ``reference`` or ``kernel`` is None where that side has no such step. ``pair``: the nodes behind it."""

    name: str
    heads: tuple[int, ...]
    reference: Value | None
    kernel: Value | None
    pair: tuple[Node | None, Node | None]
    k: int | None = None

    @property
    def both(self) -> bool:
        """Do both sides have it?"""
        return self.reference is not None and self.kernel is not None

    @property
    def agrees(self) -> bool:
        """Do both sides have it, with the same bits? NaN is one class."""
        if self.reference is None or self.kernel is None or self.reference.width != self.kernel.width:
            return False
        same = self.reference.bits == self.kernel.bits
        return same or (
            self.reference.number != self.reference.number and self.kernel.number != self.kernel.number
        )


@dataclass(frozen=True)
class Models:
    """What the two sides are computed with: tensor core of the reference and of the kernel, formats of the
    accumulator, the 16-bit epilogue and the output."""

    reference: MachineModel
    kernel: MachineModel
    acc: str
    epi: str
    out: str


def rows(reference: Sequence[Node], kernel: Sequence[Node], models: Models) -> list[Row]:
    """All steps, in the order of the reference; steps that only the kernel has stand before the first that needs
    them."""
    return [*_dots(reference, kernel, models), *_operations(reference, kernel, models)]


def parting(found: Sequence[Row]) -> int | None:
    """The number of the first row where the two part, None where every step of the reference agrees.

    A step that one side alone has counts when the two differ right after it, or when the other side has nothing for
    the same heads and the last row differs: another order, which may be harmless as long as the end agrees.
    """
    differs = bool(found) and not found[-1].agrees
    for number, row in enumerate(found):
        if row.agrees:
            continue
        if row.both:
            return _back(found, number)
        partner = any(other.both and other.heads == row.heads for other in found)
        if differs and not partner:
            return number
    return None


def _back(found: Sequence[Row], number: int) -> int:
    """Steps of one side alone that lead to the row belong to it."""
    heads = found[number].heads
    while (
        number
        and found[number - 1].heads == heads
        and not found[number - 1].both
        and found[number - 1].k is None
    ):
        number -= 1
    return number


def _dots(reference: Sequence[Node], kernel: Sequence[Node], models: Models) -> list[Row]:
    mine = {next(iter(node.heads)): node for node in reference if node.kind == "dot"}
    theirs: dict[int, Node] = {}
    for node in kernel:
        if node.kind == "dot" and node.heads:
            theirs.setdefault(next(iter(node.heads)), node)
    made = []
    for head in sorted(mine):
        left, right = mine[head], theirs.get(head)
        count = max(len(left.steps), len(right.steps) if right else 0)
        for k in range(count):
            name = f"head {head}: dot product, K step {k + 1} of {count}"
            told = _k_value(left, k, models.reference, models.acc)
            got = None if right is None else _k_value(right, k, models.kernel, models.acc)
            made.append(Row(name, (head,), told, got, (left, right), k))
        if right is not None and right.steps and right.bits != right.steps[-1].bits:
            # What is loaded is not what the last product left: somebody wrote over it, or the load came too early.
            loaded = _value(right, models)
            made.append(
                Row(
                    f"head {head}: load",
                    (head,),
                    _k_value(left, count - 1, models.reference, models.acc),
                    loaded,
                    (left, right),
                )
            )
    return made


def _k_value(node: Node, k: int, machine: MachineModel, acc: str) -> Value | None:
    if k >= len(node.steps):
        return None
    step: KStep = node.steps[k]
    number = value_of(step.bits, node.width, acc)
    return Value(step.bits, node.width, number, in_words(step, machine, acc), *step.place)


def _operations(reference: Sequence[Node], kernel: Sequence[Node], models: Models) -> list[Row]:
    mine, theirs = _groups(reference), _groups(kernel)
    order = list(mine)
    for heads in theirs:
        if heads not in mine:
            place = next((i for i, other in enumerate(order) if heads < other), len(order))
            order.insert(place, heads)
    made = []
    for heads in order:
        for left, right in align(mine.get(heads, []), theirs.get(heads, [])):
            node = left or right
            assert node is not None
            name = _name(node, reference if left else kernel)
            told, got = (None if one is None else _value(one, models) for one in (left, right))
            made.append(Row(name, tuple(sorted(heads)), told, got, (left, right)))
    return made


def _groups(nodes: Iterable[Node]) -> dict[frozenset[int], list[Node]]:
    """Operations by the heads their result depends on."""
    found: dict[frozenset[int], list[Node]] = {}
    for node in nodes:
        if node.kind == "operation" and node.heads:
            found.setdefault(node.heads, []).append(node)
    return found


def align(mine: Sequence[Node], theirs: Sequence[Node]) -> list[tuple[Node | None, Node | None]]:
    """Pairs of steps that depend on the same heads: by their operation, and the last of both where both are left over,
    since whatever they are, they give the same result."""
    left, right = ([node.operation for node in nodes] for nodes in (mine, theirs))
    pairs: list[tuple[Node | None, Node | None]] = []
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs += zip(mine[i:i_end], theirs[j:j_end], strict=True)
            continue
        ends = i_end == len(mine) and j_end == len(theirs) and i < i_end and j < j_end
        pairs += [(node, None) for node in mine[i : i_end - ends]]
        pairs += [(None, node) for node in theirs[j : j_end - ends]]
        if ends:
            pairs.append((mine[-1], theirs[-1]))
    return pairs


def _value(node: Node, models: Models) -> Value:
    fmt = "bf16" if "bf16" in node.how else models.epi if models.epi != "fp32" else "fp16"
    operands = ", ".join(f"0x{bits:x}" for _, bits in node.inputs)
    return Value(
        node.bits, node.width, value_of(node.bits, node.width, fmt), f"{node.how}({operands})", *node.place
    )


def _name(node: Node, nodes: Sequence[Node]) -> str:
    """The operation and the heads it works on; of a sum, what is added to what."""
    parts = [nodes[one].heads for one, _ in node.inputs if one is not None and nodes[one].heads]
    different = [one for one in dict.fromkeys(parts) if one != node.heads]
    if len(different) > 1:
        return f"{node.operation}: {in_heads(different[0])} and {in_heads(different[-1])}"
    return f"{in_heads(node.heads)}: {node.operation}"


def in_heads(heads: Iterable[int]) -> str:
    """Heads in words: "head 3", "heads 0, 4 ... 60"."""
    listed = sorted(heads)
    if len(listed) == 1:
        return f"head {listed[0]}"
    gaps = {b - a for a, b in pairwise(listed)}
    if len(listed) > 3 and len(gaps) == 1:
        return f"heads {listed[0]}, {listed[1]} ... {listed[-1]}"
    if len(listed) > 8:
        return f"{len(listed)} heads from {listed[0]} to {listed[-1]}"
    return "heads " + ", ".join(str(head) for head in listed)
