"""The PTX: what must be in it, how often, and in which order. Numbers follow from the shape, worked out on paper."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from mqa_ref.kernel import CompiledKernel
from mqa_ref.kernel.resources import ptx_epilogue

Compile = Callable[..., CompiledKernel]
SHAPES = [(page, next_n, heads) for page in (64, 128) for next_n in (1, 2) for heads in (64, 32)]

every_shape = pytest.mark.parametrize(("page", "next_n", "heads"), SHAPES)


def opcodes(ptx: str) -> list[str]:
    """The opcodes in the order of the text, predicates and operands taken off."""
    lines = (re.match(r"\s*(?:@!?%?\w+\s+)?([a-z][\w.:]*).*;\s*$", line) for line in ptx.splitlines())
    return [line[1] for line in lines if line]


@every_shape
def test_one_trace_serves_both_groups(compiled: Compile, page: int, next_n: int, heads: int) -> None:
    """One loop issues the MMAs (K = 128 in steps of 32), one loads (a page's codes and its scales, q and weights)."""
    found = opcodes(compiled(page=page, next_n=next_n, heads=heads).ptx)
    assert sum(name.startswith("tcgen05.mma.") for name in found) == 4
    assert sum(name.startswith("tcgen05.commit.") for name in found) == 1
    assert sum(name.startswith("tcgen05.ld.") for name in found) == next_n
    tiles = [name for name in found if name.startswith("cp.async.bulk.tensor.")]
    assert len(tiles) == 2 * (128 // page) + 2
    assert not any("multicast" in name for name in tiles)


@every_shape
def test_epilogue_arithmetic(compiled: Compile, page: int, next_n: int, heads: int) -> None:
    """Two heads an instruction; three adds and two products a logit, all of them rounded by name."""
    loop = ptx_epilogue(compiled(page=page, next_n=next_n, heads=heads).ptx)
    assert loop["add.rn.f32x2"] == loop["fma.rn.f32x2"] == next_n * heads // 2
    assert loop["abs.f32"] == next_n * heads
    assert loop["add.rn.f32"] == 3 * next_n
    assert loop["mul.rn.f32"] == 2 * next_n
    assert loop["st.global.b32"] == next_n
    floats = {name for name in loop if ".f32" in name}
    assert floats == {"add.rn.f32x2", "fma.rn.f32x2", "abs.f32", "add.rn.f32", "mul.rn.f32"}


@every_shape
def test_global_memory_is_read_after_the_grid_before(
    compiled: Compile, page: int, next_n: int, heads: int
) -> None:
    """Role code follows the prologue, and the wait stands in the prologue's straight line."""
    ptx = compiled(page=page, next_n=next_n, heads=heads).ptx
    before, after = ptx.split("griddepcontrol.wait;")
    assert "ld.global" not in before
    assert "cp.async" not in before
    assert before.count("bar.sync") == 1
    assert "ld.global" in after
    assert after.count("griddepcontrol.launch_dependents;") == 1


def test_without_pdl_there_is_no_wait(compiled: Compile) -> None:
    assert "griddepcontrol" not in compiled(heads=32, enable_pdl=False).ptx


@every_shape
def test_tensor_memory_is_freed_after_a_barrier_of_the_whole_cta(
    compiled: Compile, page: int, next_n: int, heads: int
) -> None:
    ptx = compiled(page=page, next_n=next_n, heads=heads).ptx
    assert ".reqntid 384, 1, 1" in ptx
    found = opcodes(ptx)
    (freed,) = [at for at, name in enumerate(found) if name.startswith("tcgen05.dealloc.")]
    barrier = max(at for at, name in enumerate(found[:freed]) if name == "bar.sync")
    assert re.findall(r"bar\.sync\s+(.*);", ptx) == ["0", "0"]  # no thread count: all threads of the CTA
    uses = [at for at, name in enumerate(found) if re.match(r"tcgen05\.(ld|wait|mma|commit)\b", name)]
    assert max(uses) < barrier
    assert not any(
        name in ("ret", "exit") for name in found[:barrier]
    )  # no thread leaves without the barrier


@every_shape
def test_barriers_announce_the_bytes_that_arrive(
    compiled: Compile, page: int, next_n: int, heads: int
) -> None:
    ptx = compiled(page=page, next_n=next_n, heads=heads).ptx
    n = next_n * heads
    registers = re.findall(r"mbarrier\.arrive\.expect_tx\S* %\w+, \[%\w+[^]]*\], (%\w+);", ptx)
    values = [re.findall(rf"mov\.b32\s+{register}, (\d+);", ptx) for register in registers]
    assert sorted(int(value) for (value,) in values) == sorted([128 * 128 + 128 * 4, n * 128 + n * 4])


def test_registers_are_moved_from_loading_to_math_warps(compiled: Compile) -> None:
    """Each warpgroup executes one setmaxnreg, and together they have what the launch gave them: 384 * 168."""
    ptx = compiled().ptx
    (more,) = re.findall(r"setmaxnreg\.inc\.sync\.aligned\.u32\s+(\d+);", ptx)
    (fewer,) = re.findall(r"setmaxnreg\.dec\.sync\.aligned\.u32\s+(\d+);", ptx)
    assert 256 * int(more) + 128 * int(fewer) == 384 * 168


@pytest.mark.parametrize(
    ("flow", "store"),
    [
        ("fp32-fp16-fp32", "st.global.b32"),
        ("fp16-fp16-fp16", "st.global.b16"),
        ("fp32-fp16-bf16", "st.global.b16"),
    ],
)
def test_fp16_epilogues(compiled: Compile, flow: str, store: str) -> None:
    loop = ptx_epilogue(compiled(heads=32, flow=flow).ptx)
    assert loop["max.f16x2"] == loop["fma.rn.f16x2"] == 16
    assert loop["add.rn.f16x2"] == 1
    assert loop[store] == 1
    packs = any("pack::16b" in name for name in loop)
    assert packs == flow.startswith("fp16")
