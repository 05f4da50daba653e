"""What to say of the step where a kernel parts from the reference: what each side does, and whose number was taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mqa_ref.explain.nodes import KStep, Node
from mqa_ref.explain.steps import Row, Value, in_heads
from mqa_ref.numerics import scalar
from mqa_ref.problem import Problem
from mqa_ref.reference.scalar import key_and_scale


def verdict(
    found: Sequence[Row], at: int | None, kernel: Sequence[Node], problem: Problem, row: int, column: int
) -> str:
    """One sentence, or a few. ``kernel``: the kernel's steps, to which the inputs of a step refer."""
    if at is None:
        missing, besides = (sum(row is None for row in side) for side in _sides(found))
        if missing or besides:
            told = f"{missing} steps of the reference the kernel does not have, {besides} it has besides"
            return f"the stored logit is right, and every step that both have agrees; {told}"
        return "the kernel agrees with the reference in every step"
    end = "" if not found[-1].agrees else " (the stored logit is right all the same)"
    place = _place(found[at])
    first = found[at]
    heads = first.heads
    group = [one for one in found[at:] if one.heads == heads and one.k is None] or [first]
    if first.k is not None:
        return f"they part at {first.name}{place}: {_of_dot(first, problem, row, column)}{end}"
    last = next((one for one in group if one.both), None)
    if last is None:
        return f"they part at {first.name}{place}: {_of_order(found[at:], first)}{end}"
    alone = group[: group.index(last) + 1]
    mine = [one.reference.how for one in alone if one.reference is not None]
    theirs = [one.kernel.how for one in alone if one.kernel is not None]
    before = _alone_before(found, last, kernel)
    theirs = [*before, *theirs]
    told = f"they part at {last.name}{_place(last)}: "
    if [_class(one.pair[0]) for one in alone if one.pair[0]] != [
        _class(one.pair[1]) for one in alone if one.pair[1]
    ]:
        return told + f"the reference does {_then(mine)}, the kernel {_then(theirs)}" + end
    hints = "; ".join(_operands(last, problem, row))
    return told + (hints or f"the reference does {_then(mine)}, the kernel {_then(theirs)}") + end


def _sides(found: Sequence[Row]) -> tuple[list[Value | None], list[Value | None]]:
    return [row.kernel for row in found], [row.reference for row in found]


def _alone_before(found: Sequence[Row], row: Row, kernel: Sequence[Node]) -> list[str]:
    """Operands of the kernel's step that the reference has not, of other heads than the step itself."""
    node = row.pair[1]
    alone = {id(one.pair[1]): one for one in found if one.reference is None and one.heads != row.heads}
    inputs = [] if node is None else [id(kernel[number]) for number, _ in node.inputs if number is not None]
    return [alone[one].kernel.how for one in inputs if one in alone and alone[one].kernel is not None]  # type: ignore[union-attr]


def _then(words: Sequence[str]) -> str:
    return ", then ".join(words) if words else "nothing there"


def _class(node: Node | None) -> str:
    return "" if node is None else node.operation


def _place(row: Row) -> str:
    if row.kernel is None or row.kernel.ptx_line is None:
        return ""
    source = f", {row.kernel.source}" if row.kernel.source else ""
    return f" (PTX line {row.kernel.ptx_line}{source})"


def _of_order(rest: Sequence[Row], first: Row) -> str:
    """One side sums heads together that the other never has together."""
    mine = next((one for one in rest if one.kernel is None and one.k is None), None)
    theirs = next((one for one in rest if one.reference is None and one.k is None), None)
    if mine is not None and theirs is not None:
        return f"another order: the reference has {mine.name}, the kernel {theirs.name}"
    side = "reference" if first.kernel is None else "kernel"
    return f"only the {side} has a result of {in_heads(first.heads)}"


def _operands(row: Row, problem: Problem, at: int) -> Iterator[str]:
    """Given numbers that the two sides do not share, and whose they are."""
    left, right = row.pair
    if left is None or right is None or left.operation != right.operation:
        return
    mine, theirs = ([_given(node, side) for node in range(len(side.inputs))] for side in (left, right))
    wanted = [bits for bits in mine if bits is not None]
    for bits in (one for one in theirs if one is not None):
        if bits in wanted:
            wanted.remove(bits)
            continue
        missing = next(iter(one for one in wanted if one not in theirs), None)
        told = f"the kernel takes 0x{bits:x}{_owner(bits, right.width, problem, at)}"
        instead = (
            "" if missing is None else f" instead of 0x{missing:x}{_owner(missing, left.width, problem, at)}"
        )
        yield told + instead


def _given(number: int, node: Node) -> int | None:
    """The bits of an operand that is no result of a step, else None."""
    before, bits = node.inputs[number]
    return bits if before is None or before in node.givens else None


def _owner(bits: int, width: int, problem: Problem, row: int) -> str:
    """Whose number it is: a weight of the row, or a scale of one of its tokens."""
    weights = problem.weights.view(np.uint32)[row].tolist()
    sequence = row // problem.next_n
    length = int(problem.context_lens[sequence])
    scales = [key_and_scale(problem, sequence, column)[1] for column in range(length)]
    narrow = scalar.cvt_f16_f32 if width == 16 else int
    for name, values in (("the weight of head", weights), ("the scale of column", scales)):
        owners = [number for number, value in enumerate(values) if value == bits or narrow(value) == bits]
        if len(owners) == 1:
            return f" ({name} {owners[0]})"
    return ""


def _of_dot(row: Row, problem: Problem, at: int, column: int) -> str:
    """Why two accumulators differ: other codes, or other arithmetic on the same."""
    left, right = row.pair
    k = row.k or 0
    if left is None or right is None or k >= len(left.steps) or k >= len(right.steps):
        return "one side has no such step"
    mine, theirs = left.steps[k], right.steps[k]
    words = []
    if mine.key != theirs.key:
        words.append(f"the key's codes are others{_key_owner(theirs, k, problem, at, column)}")
    if mine.query != theirs.query:
        words.append("the query's codes are others")
    if (mine.before or 0) != (theirs.before or 0):
        words.append("the accumulator before it is another")
    return " and ".join(words) or "the same codes, summed otherwise"


def _key_owner(step: KStep, k: int, problem: Problem, row: int, column: int) -> str:
    sequence, width = row // problem.next_n, len(step.key)
    length = int(problem.context_lens[sequence])
    for other in range(length):
        key, _ = key_and_scale(problem, sequence, other)
        if other != column and tuple(key[k * width : (k + 1) * width]) == step.key:
            return f", those of column {other}"
    for page, token in np.ndindex(problem.num_pages, problem.page):
        codes = problem.key_codes[page, token, k * width : (k + 1) * width]
        if tuple(codes.tolist()) == step.key:
            return f", those of token {token} of page {page}"
    return ""
