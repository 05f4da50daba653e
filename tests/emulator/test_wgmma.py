"""wgmma: what a warp group multiplies, who owns the accumulators meanwhile, and each rule that a program can break.

Expected products are sums of small integers, exact in fp32. Layouts of operands and accumulators are written here from
the figures of the PTX ISA ("Shared Memory Matrix Layout", "Register Fragments for wgmma.mma_async.m64nNk32")."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mqa_ref.emulator import ORDERS, parse
from mqa_ref.emulator.fences import unfenced
from mqa_ref.golden.silicon.bodies_groups import Matrix, fill, product, store

K = 32
SIZE = 16384
CODES = np.array([0x00, 0x38, 0xB8, 0x40, 0xC0, 0x44, 0x48], np.uint8)
VALUES = np.array([0, 1, -1, 2, -2, 3, 4])
"""e4m3 codes of small integers: 1 is 2^0 (exponent 7), 3 is 1.5 * 2."""


def place(matrix: Matrix, row: int, column: int) -> int:
    """Where the ISA's figures put element (row, column) of a K-major operand whose start is aligned."""
    group, within = divmod(row, 8)
    chunk, byte = divmod(column, 16)
    if matrix.swizzle == 0:
        return matrix.at + group * matrix.stride + within * 16 + chunk * matrix.leading + byte
    turn = {128: within, 64: within // 2, 32: within // 4}[matrix.swizzle]
    return matrix.at + group * matrix.stride + within * matrix.swizzle + (chunk ^ turn) * 16 + byte


def operands(n: int, a: Matrix, b: Matrix) -> tuple[Any, Any, Any]:
    """The bytes of shared memory, and both operands as integers."""
    memory = np.zeros(SIZE, np.uint8)
    drawn = np.arange((64 + n) * K) * 2654435761 % 7919 % len(CODES)
    left, right = drawn[: 64 * K].reshape(64, K), drawn[64 * K :].reshape(n, K)
    for matrix, chosen in ((a, left), (b, right)):
        for (row, column), which in np.ndenumerate(chosen):
            memory[place(matrix, row, column)] = CODES[which]
    return memory, VALUES[left], VALUES[right]


def gathered(out: Any, n: int) -> Any:
    """D [64, n] from the registers that 128 threads stored, n / 2 each."""
    found = np.zeros((64, n), np.float32)
    values = out.view(np.float32).reshape(128, n // 2)
    for thread in range(128):
        for i in range(n // 2):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i % 4 // 2)
            found[row, i // 4 * 8 + thread % 4 * 2 + i % 2] = values[thread, i]
    return found


def program(n: int, a: Matrix, b: Matrix, scale: str = "!%p1", middle: str = "") -> str:
    return (
        f"mul.wide.u32 %d62, %r60, {2 * n};\nadd.s64 %d62, %d61, %d62;\n"
        + fill(SIZE)
        + f"{{\n.reg .f32 %f<{n // 2}>;\nsetp.ne.u32 %p1, %r61, 0;\n"
        + "\n".join(f"mov.f32 %f{i}, 0f40A00000;" for i in range(n // 2))
        + "\n"
        + a.descriptor("%d10", 0)
        + b.descriptor("%d11", 0)
        + "wgmma.fence.sync.aligned;\n"
        + product(n, 0, scale)
        + "wgmma.commit_group.sync.aligned;\n"
        + middle
        + "wgmma.wait_group.sync.aligned 0;\n"
        + store(n // 2)
        + "\n}"
    )


def run(bench: Any, text: str, memory: Any, n: int, warps: int = 4, **options: Any) -> Any:
    return bench(
        text, memory, warps=warps, shared=SIZE, target="sm_90a", out_bytes=max(warps, 4) * 64 * n, **options
    )


def in_halves(n: int, scale: str) -> str:
    """A product with two fp16 accumulators in each of n / 4 registers, 5.0 before it; K = 32 and again K = 32."""
    a, b = Matrix(0, 256, 32), Matrix(8192, 256, 32)
    registers = ", ".join(f"%x{i}" for i in range(n // 4))
    one = f"wgmma.mma_async.sync.aligned.m64n{n}k32.f16.e4m3.e4m3 {{{registers}}}, %d10, %d11, SCALE, 1, 1;\n"
    return (
        f"mul.wide.u32 %d62, %r60, {n};\nadd.s64 %d62, %d61, %d62;\n"
        + fill(SIZE)
        + f"{{\n.reg .b32 %x<{n // 4}>;\nsetp.ne.u32 %p1, %r61, 0;\n"
        + "".join(f"mov.b32 %x{i}, 0x45004500;\n" for i in range(n // 4))
        + a.descriptor("%d10", 0)
        + b.descriptor("%d11", 0)
        + "wgmma.fence.sync.aligned;\n"
        + one.replace("SCALE", scale)
        + one.replace("SCALE", "%p1")
        + "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        + "\n".join(f"st.global.b32 [%d62+{4 * i}], %x{i};" for i in range(n // 4))
        + "\n}"
    )


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
@pytest.mark.parametrize("n", [8, 64, 136])
@pytest.mark.parametrize(("scale", "start"), [("!%p1", 0), ("%p1", 5)])
def test_accumulators_of_halves(bench: Any, n: int, scale: str, start: int, engine: str) -> None:
    """Sums of small integers are exact in fp16 too. Value v of a thread is the lower half of register v / 2 where v is
    even (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk32", D of .f16)."""
    memory, left, right = operands(n, Matrix(0, 256, 32), Matrix(8192, 256, 32))
    ran = run(bench, in_halves(n, scale), memory, n, engine=engine)
    assert ran.findings == ()
    values = ran.out[: 128 * n].view(np.float16).astype(np.float32)
    assert np.array_equal(gathered(values, n), 2 * (left @ right.T) + start)


A, B = Matrix(0, 1024, 128), Matrix(8192, 1024, 128)
N = 16
LAYOUTS = {
    "128": (64, A, B),
    "64": (24, Matrix(0, 512, 64), Matrix(8192, 1024, 64)),
    "32": (8, Matrix(256, 256, 32), Matrix(8448, 512, 32)),
    "none": (40, Matrix(16, 128, 0, 1024), Matrix(8192, 256, 0, 128)),
    "widest": (256, Matrix(0, 256, 32), Matrix(8192, 256, 32)),
}


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_product_is_the_sum_of_the_products(bench: Any, name: str, engine: str) -> None:
    n, a, b = LAYOUTS[name]
    memory, left, right = operands(n, a, b)
    for scale, start in (("!%p1", 0), ("%p1", 5)):
        ran = run(bench, program(n, a, b, scale), memory, n, engine=engine)
        assert ran.findings == ()
        assert np.array_equal(gathered(ran.out[: 256 * n], n), left @ right.T + start)


@pytest.mark.parametrize("order", ORDERS)
def test_chained_products_negated_operands_and_groups_in_flight(bench: Any, order: str) -> None:
    memory, left, right = operands(N, A, B)
    middle = product(N, 0, "%p1", "-1, 1") + product(N, 0, "%p1", "-1, -1") + product(N, 0, "%p1")
    middle += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n"
    for seed in range(4):
        ran = run(bench, program(N, A, B, "%p1", middle), memory, N, order=order, seed=seed)
        assert ran.findings == ()
        assert np.array_equal(gathered(ran.out, N), 2 * (left @ right.T) + 5)


ADD = "add.f32 %f3, %f3, %f2;\n"
BROKEN = {
    "no fence": (("wgmma.fence.sync.aligned;\n", ""), {"wgmma_not_fenced"}),
    "use after the fence": (
        ("wgmma.fence.sync.aligned;\n", "wgmma.fence.sync.aligned;\nmov.f32 %f1, %f0;\n"),
        {"wgmma_not_fenced"},
    ),
    "no wait": (("wgmma.wait_group.sync.aligned 0;\n", ""), {"wgmma_not_waited", "async_in_flight_at_exit"}),
    "waits for the one before": (("aligned 0;\n", "aligned 1;\n"), {"wgmma_not_waited", "async_in_flight_at_exit"}),
    "no commit": (("wgmma.commit_group.sync.aligned;\n", ""), {"wgmma_not_waited", "async_in_flight_at_exit"}),
    "read in flight": (("wgmma.wait", "mov.f32 %f1, %f0;\nwgmma.wait"), {"wgmma_not_waited"}),
    "write in flight": (("wgmma.wait", "mov.f32 %f1, 0f00000000;\nwgmma.wait"), {"wgmma_not_waited"}),
    "no proxy fence": (("fence.proxy.async;\n", ""), {"proxy_not_fenced"}),
    "no barrier": (("bar.sync 0;\n", ""), {"race_shared", "proxy_not_fenced"}),
    "store while it reads": (
        ("wgmma.wait", "st.shared.b32 [%r61], %r60;\nwgmma.wait"),
        {"race_shared", "proxy_not_fenced"},
    ),
    "descriptors of warps differ": (("wgmma.mma", "mad.wide.u32 %d10, %r62, 2, %d10;\nwgmma.mma"), {"wgmma_misuse"}),
    "descriptors of lanes differ": (
        ("wgmma.mma", "cvt.u64.u32 %d9, %r60;\nor.b64 %d10, %d10, %d9;\nwgmma.mma"),
        {"wgmma_misuse"},
    ),
    "one warp stays away": (
        ("wgmma.fence", "setp.eq.u32 %p5, %r62, 2;\n@%p5 bra AWAY;\nwgmma.fence"),
        {"wgmma_misuse", "hang"},
    ),
    "scales of warps differ": (("wgmma.mma", "setp.eq.u32 %p1, %r62, 1;\nwgmma.mma"), {"wgmma_misuse"}),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_rule_is_found(bench: Any, name: str, engine: str) -> None:
    (old, new), expected = BROKEN[name]
    memory, *_ = operands(N, A, B)
    good = program(N, A, B).replace("\n}", "\nAWAY:\n}")
    assert good.count(old) >= 1
    text = good.replace(old, new)
    kinds = set().union(
        *(run(bench, text, memory, N, order=order, engine=engine).kinds for order in ("eager", "lazy"))
    )
    assert kinds & expected
    assert kinds <= expected | {"race_shared", "shared_out_of_bounds", "uninitialised_shared"}


def test_a_group_of_two_warps_cannot_multiply(bench: Any) -> None:
    memory, *_ = operands(N, A, B)
    assert (
        "wgmma_misuse"
        in run(bench, program(N, A, B).replace("20, 128;", "20, 64;"), memory, N, warps=2).kinds
    )


def test_another_shape_on_registers_in_use_needs_a_fence() -> None:
    head = ".version 8.6 .target sm_90a .address_size 64 .entry k() { .reg .f32 %f<8>; .reg .b64 %d<2>; .reg .pred %p; "
    small = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f0,%f1,%f2,%f3}, %d0, %d1, %p, 1, 1; "
    large = small.replace("n8k", "n16k").replace("%f3}", "%f3,%f4,%f5,%f6,%f7}")
    fence = "wgmma.fence.sync.aligned; "
    cases = {
        fence + small + small: set(),
        fence + small + large: {2},
        fence + small + fence + large: set(),
        small: {0},
        fence + small + "AGAIN: " + small + "add.f32 %f1, %f1, %f1; bra AGAIN; ": {2},
        fence + "@%p bra PAST; " + fence + "PAST: " + small: set(),
    }
    for body, expected in cases.items():
        assert unfenced(parse(head + body + "ret; }")) == frozenset(expected), body


USES = {
    "copied": "mov.f32 %f1, %f0;\n",
    "read": "add.f32 %f2, %f0, %f0;\n",
    "written by some lanes": "setp.lt.u32 %p4, %r60, 7;\n@%p4 mov.f32 %f0, 0f00000000;\n",
    "used by a product of another shape": product(8, 0, "%p1"),
}


@pytest.mark.parametrize("order", ["eager", "lazy"])
@pytest.mark.parametrize("name", USES)
def test_accumulators_that_nothing_was_written_to(bench: Any, name: str, order: str) -> None:
    """They belong to the product all the same. Those that a write takes from it before it runs stay without a result:
    zero here, in both engines."""
    memory, left, right = operands(N, A, B)
    middle = USES[name] + ("wgmma.commit_group.sync.aligned;\n" if "product" in name else "")
    text = program(N, A, B, "!%p1", middle).replace("mov.f32 %f", "// mov.f32 %f", N // 2)
    ran = [run(bench, text, memory, N, order=order, engine=engine) for engine in ("compiled", "interpreter")]
    assert ran[0].findings == ran[1].findings
    assert np.array_equal(ran[0].out, ran[1].out)
    assert "wgmma_not_waited" in ran[0].kinds <= {"wgmma_not_waited", "wgmma_not_fenced"}
    if name == "written by some lanes" and order == "lazy":
        found, expected = gathered(ran[0].out, N), left @ right.T
        taken = np.zeros((64, N), bool)
        taken[:8, 0:8:2] = True  # register 0 of warp 0, whose lanes did write
        assert not found[taken].any()
        assert np.array_equal(found[~taken], expected[~taken])
