"""The builtin kernel broken in one place at a time, in its PTX or in the model it is held against: each must fail."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import pytest

from mqa_ref.flow import Flow
from mqa_ref.kernel.targets import resolve
from mqa_ref.numerics import MACHINES
from mqa_ref.report import Report
from mqa_ref.verification.problems import NamedProblem, Recipe, make
from mqa_ref.verification.verify import verify

FLOW = Flow.parse("fp32-fp32-fp32")
# Seven rows on one CTA: every slot of every ring is used more than twice.
RINGS = Recipe("rings", "all rings wrap", (1100, 0, 300, 129, 700, 600, 100), 1, data="bits")
WIDE = Recipe("wide", "products of unlike size", (300,), 1, data="wide")
TIES = Recipe("ties", "sums that show a second rounding", (200,), 1, data="fma_ties")


@lru_cache(maxsize=4)
def problem(recipe: Recipe) -> NamedProblem:
    return make(recipe)


def run(recipe: Recipe, edit: Callable[[str], str] | None = None, **arguments: object) -> Report:
    report = verify(problems=[problem(recipe)], edit_ptx=edit, **arguments)  # type: ignore[arg-type]
    assert all(case.status != "error" for case in report.case_list), [
        case.message for case in report.case_list
    ]
    return report


def ptx() -> str:
    return resolve("builtin").compile(problem(RINGS).problem, FLOW).ptx


def once(text: str, pattern: str, replacement: str) -> str:
    """Replace the first match, which must exist."""
    changed, count = re.subn(pattern, replacement, text, count=1)
    assert count == 1, pattern
    return changed


def unfuse(text: str) -> str:
    pattern = r"fma\.rn\.f32x2\s+(%rd\d+), (%rd\d+), (%rd\d+), (%rd\d+);"
    body = r"{ .reg .b64 T; mul.rn.f32x2 T, \2, \3; add.rn.f32x2 \1, T, \4; }"
    changed, count = re.subn(pattern, body, text)
    assert count == 32
    return changed


def swap_kv_page(text: str) -> str:
    """The last coordinate of the last three-dimensional tile load becomes its first, which is zero."""
    loads = list(re.finditer(r"cp\.async\.bulk\.tensor\.3d[^;]*\{(%r\d+), %r\d+, (%r\d+)\}[^;]*;", text))
    assert loads
    start, end = loads[-1].span(2)
    return text[:start] + loads[-1].group(1) + text[end:]


def shift_scale(text: str) -> str:
    """The math warps' only 32-bit load from the ring of scales, one token further."""
    (load,) = re.finditer(r"ld\.shared\.b32\s+%r\d+, \[%r\d+\+(\d+)\];", text)
    start, end = load.span(1)
    return text[:start] + str(int(load.group(1)) + 4) + text[end:]


def drop_half(text: str) -> str:
    return once(text, r"\b1056964608\b|0f3F000000", "0f3F800000")


def swap_weights(text: str) -> str:
    pattern = r"ld\.shared\.v2\.b64(\s+)\{(%rd\d+), (%rd\d+)\}"
    return once(text, pattern, r"ld.shared.v2.b64\1{\3, \2}")


EDITS: dict[str, tuple[Recipe, Callable[[str], str]]] = {
    "the final half is dropped": (WIDE, drop_half),
    "two pairs of weights are swapped": (WIDE, swap_weights),
    "multiply and add are not fused": (TIES, unfuse),
    "page 0 is read instead of the right one": (WIDE, swap_kv_page),
    "the ReLU is missing": (WIDE, lambda text: text.replace("abs.f32", "mov.b32")),
    "a scale is taken from the next token": (WIDE, shift_scale),
}


@pytest.mark.parametrize("recipe", [RINGS, WIDE, TIES], ids=lambda recipe: recipe.name)
@pytest.mark.parametrize("order", ["eager", "lazy", "random"])
def test_the_kernel_as_it_is_passes(recipe: Recipe, order: str) -> None:
    report = run(recipe, orders=[order])
    assert (report.status, report.mismatched, report.findings) == ("pass", 0, 0)


@pytest.mark.parametrize("name", list(EDITS))
def test_a_wrong_value(name: str) -> None:
    recipe, edit = EDITS[name]
    report = run(recipe, edit)
    assert report.status == "fail"
    assert report.mismatched > 0


@pytest.mark.parametrize("bits", [24, 26])
def test_another_width_of_the_tensor_core(bits: int) -> None:
    """The reference with F = 24 or 26 fraction bits is not what the emulated SM100 computes."""
    report = run(WIDE, machine=replace(MACHINES["sm100"], fraction_bits=bits))
    assert report.status == "fail"
    assert report.mismatched > 0


def test_the_other_generation_of_the_relu() -> None:
    overflow = Recipe("overflow", "the folded half overflows", (129,), 1, data="overflow")
    assert run(overflow).status == "pass"
    assert run(overflow, generation="max").mismatched > 0


WAITS = 8
SYNCHRONISATION = {
    "mbarrier.try_wait": (WAITS, "setp.eq.u32 P1, 0, 0;"),
    "mbarrier.arrive": (5, ""),
    "tcgen05.commit": (1, ""),
    "tcgen05.wait::ld": (1, ""),
    "bar.sync": (2, ""),
    "fence.mbarrier_init": (1, ""),
    "griddepcontrol.wait": (1, ""),
    "tcgen05.dealloc": (1, ""),
}
CASES = [(opcode, number) for opcode, (count, _) in SYNCHRONISATION.items() for number in range(count)]


def without(text: str, opcode: str, number: int) -> str:
    """The PTX without one of the statements with this opcode."""
    count, instead = SYNCHRONISATION[opcode]
    found = list(re.finditer(rf"^\s*{re.escape(opcode)}[^;]*;", text, re.MULTILINE))
    assert len(found) == count, f"{len(found)} {opcode} in the kernel: extend the table"
    start, end = found[number].span()
    return text[:start] + instead + text[end:]


@pytest.mark.parametrize(("opcode", "number"), CASES, ids=[f"{o}-{n}" for o, n in CASES])
def test_one_synchronising_instruction_less(opcode: str, number: int) -> None:
    report = run(RINGS, lambda text: without(text, opcode, number))
    assert report.status == "fail"
    assert report.findings > 0 or report.mismatched > 0


# Nothing but the ISA asks for these: every bit stays right, every barrier is in its place. The fence before the free
# and, with all weights in registers, the other bar.warp.sync order nothing (docs/equivalent-mutants.toml).
SPARSE = {"max_w_in_reg": 16}
ORDERED = [
    ("tcgen05.fence::before_thread_sync", 0, {}, "tmem_not_fenced"),
    ("tcgen05.fence::after_thread_sync", 0, {}, "tmem_not_fenced"),
    ("tcgen05.fence::after_thread_sync", 1, {}, "tmem_not_fenced"),
    ("bar.warp.sync", 0, {}, "lanes_not_gathered"),
    ("bar.warp.sync", 1, SPARSE, "lanes_not_gathered"),
]


@pytest.mark.parametrize(("opcode", "number", "options", "kind"), ORDERED)
def test_one_fence_or_gathering_of_lanes_less(
    opcode: str, number: int, options: dict[str, object], kind: str
) -> None:
    def edit(text: str) -> str:
        start, end = list(re.finditer(rf"{re.escape(opcode)}[^;]*;", text))[number].span()
        return text[:start] + text[end:]

    report = run(RINGS, edit, options=options, orders=["eager"])
    assert (report.status, report.mismatched) == ("fail", 0)
    found = {one.kind for case in report.case_list for one in case.findings if one.severity == "error"}
    assert found == {kind}
