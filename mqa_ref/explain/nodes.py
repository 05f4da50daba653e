"""The computation of one logit as a graph of steps, in the same form for the reference and for a kernel.

A step knows which heads its result depends on; that is how steps of two graphs are brought together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqa_ref.flow import Flow
from mqa_ref.numerics import FORMATS, MachineModel
from mqa_ref.numerics.listening import listening
from mqa_ref.problem import Problem
from mqa_ref.reference import scalar_logit

OPERATIONS = ("fma", "add", "sub", "mul", "abs", "max", "min", "neg", "cvt")


@dataclass(frozen=True)
class KStep:
    """One tensor-core instruction for one accumulator: 32 codes of the key, 32 of the query, the accumulator before
    (None where it starts) and after."""

    key: tuple[int, ...]
    query: tuple[int, ...]
    before: int | None
    bits: int
    place: tuple[int | None, str | None, str | None] = (None, None, None)


@dataclass(frozen=True)
class Node:
    """One number on the way to the logit. ``kind``: "dot", "operation" or "input". ``operation``: its class, such as
    "fma"; ``how``: as it is written, "fma.rn.f32x2" or "fma_f32". ``width``: bits. ``inputs``: number of the node of
    each operand (None for a given number) and its bits; ``givens``: those among these nodes that no head has a part
    in. ``place``: PTX line, PTX text and source line."""

    kind: str
    operation: str
    how: str
    bits: int
    width: int
    heads: frozenset[int]
    inputs: tuple[tuple[int | None, int], ...] = ()
    steps: tuple[KStep, ...] = ()
    place: tuple[int | None, str | None, str | None] = (None, None, None)
    givens: frozenset[int] = frozenset()


class _Known(int):
    """A bit pattern that remembers the node it is the result of."""

    node: int


def _known(bits: int, node: int) -> _Known:
    made = _Known(bits)
    made.node = node
    return made


class Recorder:
    """Listens to the scalar reference and writes its steps down. ``heads``: how many dot products there are."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._dots = 0

    def __call__(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any], result: int) -> int:
        """One operation of ``numerics.scalar``."""
        if name == "mma_step":
            return self._step(arguments, result, str(named["acc"]))
        inputs = [(one.node if isinstance(one, _Known) else None, int(one)) for one in arguments]
        heads: frozenset[int] = frozenset().union(
            *(self.nodes[node].heads for node, _ in inputs if node is not None)
        )
        width = (
            32 if name.startswith("cvt_f32") or (name.endswith("_f32") and not name.startswith("cvt")) else 16
        )
        stem = name.split("_", 1)[0]
        self.nodes.append(
            Node(
                "operation",
                stem,
                name,
                int(result),
                width,
                heads,
                tuple(inputs),
                givens=given(inputs, self.nodes),
            )
        )
        return _known(int(result), len(self.nodes) - 1)

    def _step(self, arguments: tuple[Any, ...], result: int, acc: str) -> int:
        key, query, before = arguments
        going_on = isinstance(before, _Known)
        step = KStep(tuple(key), tuple(query), int(before) if going_on else None, int(result))
        if going_on:
            node = before.node
            old = self.nodes[node]
            self.nodes[node] = _dot((*old.steps, step), old.heads, old.width, "mma_step")
        else:
            node = len(self.nodes)
            self.nodes.append(
                _dot((step,), frozenset((self._dots,)), 16 if acc == "fp16" else 32, "mma_step")
            )
            self._dots += 1
        return _known(int(result), node)


def _dot(steps: tuple[KStep, ...], heads: frozenset[int], width: int, how: str, **more: Any) -> Node:
    return Node("dot", "dot", how, steps[-1].bits if steps else 0, width, heads, steps=steps, **more)


def reference_nodes(
    problem: Problem,
    flow: Flow,
    machine: str | MachineModel,
    row: int,
    column: int,
    **more: Any,
) -> list[Node]:
    """The steps of ``scalar_logit`` for one valid logit, in its order; the last one is the logit. ``more``: its other
    arguments."""
    recorder = Recorder()
    with listening(recorder):
        found = scalar_logit(problem, flow, machine, row, column, **more)
    assert recorder.nodes[-1].bits == found, "the last operation gives the logit"
    return recorder.nodes


def kernel_nodes(plain: Mapping[str, Any], heads: int) -> list[Node]:
    """The steps of a kernel from what ``mqa_ref.verification.observe`` saw; the last one is what was stored."""
    nodes: list[Node] = []
    for one in plain["nodes"]:
        inputs = tuple((node, bits) for node, bits in one["inputs"])
        place = (one["ptx_line"], one["ptx_text"], one["source"])
        if one["kind"] == "accumulator":
            mine = frozenset() if one["column"] is None else frozenset((one["column"] % heads,))
            steps = _kernel_steps(one["steps"])
            nodes.append(Node("dot", "dot", one["opcode"], one["bits"], one["width"], mine, (), steps, place))
            continue
        stem = one["opcode"].split(".", 1)[0]
        among: frozenset[int] = frozenset().union(*(nodes[node].heads for node, _ in inputs))
        kind = "operation" if one["kind"] == "operation" else "input"
        kind = "operation" if one["kind"] == "other" and among else kind
        operation = stem if stem in OPERATIONS else "other"
        told = (one["opcode"], one["bits"], one["width"])
        nodes.append(Node(kind, operation, *told, among, inputs, (), place, given(inputs, nodes)))
    return nodes


def given(inputs: Iterable[tuple[int | None, int]], nodes: Sequence[Node]) -> frozenset[int]:
    """The nodes among the operands that depend on no head: weights, scales and constants, and conversions of them."""
    return frozenset(node for node, _ in inputs if node is not None and not nodes[node].heads)


def _kernel_steps(plain: list[Mapping[str, Any]]) -> tuple[KStep, ...]:
    steps: list[KStep] = []
    for one in plain:
        before = steps[-1].bits if one["accumulates"] and steps else None
        place = (one["ptx_line"], one["ptx_text"], None)
        steps.append(KStep(tuple(one["a"]), tuple(one["b"]), before, one["bits"], place))
    return tuple(steps)


def value_of(bits: int, width: int, fmt: str) -> float:
    """The number a pattern stands for. ``fmt`` decides between the 16-bit formats."""
    name = "fp32" if width == 32 else fmt
    decoded = FORMATS[name].decode(bits)
    return float(decoded)
