"""Vectorised against scalar tensor-core steps over the same operands, and the fast path at the edges of its bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.numerics import FP16, FP32, MACHINES, MachineModel, mma, samples, scalar

FORMAT = {"fp32": FP32, "fp16": FP16}
VARIANTS = [
    *MACHINES.values(),
    *[replace(MACHINES["sm100"], name=f"F={bits}", fraction_bits=bits) for bits in (1, 19, 20, 24, 26, 40)],
    replace(MACHINES["sm100"], name="F=19/rz13", fraction_bits=19, final32="rz13"),
    replace(MACHINES["sm100"], name="F=25/rne", final32="rne"),
    replace(MACHINES["sm90"], name="F=13/rz", final32="rz"),
]


def accumulators(source: samples.Source, acc: str, shape: tuple[int, int]) -> Iterator[Any]:
    """None, anything at all, numbers of common size, and numbers on the grid of the products."""
    fmt, count = FORMAT[acc], shape[0] * shape[1]
    yield None
    yield source.mixed(fmt, count).reshape(shape)
    yield source.centred(fmt, count, 10).reshape(shape)
    kind = np.float16 if acc == "fp16" else np.float32
    on_grid = np.ldexp((source.words(count) >> np.uint64(42)).astype(np.float64) - 2.0**21, -18)
    yield on_grid.astype(kind).view(samples.code_type(fmt)).reshape(shape)


@pytest.mark.parametrize("acc", ["fp32", "fp16"])
@pytest.mark.parametrize("machine", VARIANTS, ids=lambda m: m.name)
def test_twins(machine: MachineModel, acc: Any, tried: Any) -> None:
    source, count = samples.Source(90), 0
    for kind in samples.E4M3_KINDS:
        for depth in (32, 96):
            a = samples.e4m3_codes(source, kind, 3, depth)
            b = samples.e4m3_codes(source, kind, 5, depth)
            for c in accumulators(source, acc, (3, 5)):
                got = mma(a, b, machine=machine, acc=acc, c=c)
                for i, j in np.ndindex(3, 5):
                    start = 0 if c is None else int(c[i, j])
                    expected = scalar.mma(a[i].tolist(), b[j].tolist(), start, machine=machine, acc=acc)
                    assert int(got[i, j]) == expected, (kind, depth, i, j, start)
                count += got.size
    tried(count)


@pytest.mark.parametrize("machine", [m for m in VARIANTS if m.fraction_bits], ids=lambda m: m.name)
def test_twins_where_the_fast_path_ends(machine: MachineModel, tried: Any) -> None:
    """Dot products whose sum |a*b| is around 2**(F-17) and 2**6, with subnormal factors against large ones.

    A subnormal times 448 is small but counts with a large exponent; below F = 20 the bound would let it pass.
    """
    assert machine.fraction_bits is not None
    source, count = samples.Source(91), 0
    limit = 2.0 ** min(machine.fraction_bits - 17, 17)
    scales = [limit / 4, limit / 2, limit, 32.0, 64.0]
    fine = np.array([0x01, 0x02, 0x03, 0x81, 0x09, 0x8A], np.uint8)  # subnormals and the smallest normals
    for scale in scales:
        a, b = (samples.e4m3_codes(source, "small", rows, 64) for rows in (6, 7))
        values = 2.0 ** np.clip(np.round(np.log2(scale) / 2), -6, 8)
        large = np.uint8(((int(np.log2(values)) + 7) << 3) | 1)
        a[:, 3], b[:, 3] = large, large
        a[:, 4], b[:, 4] = large | np.uint8(0x80), large
        a[:, 5:11], b[:, 5:11] = fine, 0x7E
        a[:, 40:46], b[:, 40:46] = 0x78, fine
        for part in (slice(0, 32), slice(0, 64), slice(32, 64)):
            got = mma(a[:, part].copy(), b[:, part].copy(), machine=machine, acc="fp32")
            for i, j in np.ndindex(6, 7):
                expected = scalar.mma(a[i, part].tolist(), b[j, part].tolist(), machine=machine, acc="fp32")
                assert int(got[i, j]) == expected, (scale, part, i, j)
            count += got.size
    tried(count)


def test_blocks_do_not_show() -> None:
    """Rows are computed in blocks of 65,536 elements: one big call gives what small ones give."""
    source = samples.Source(92)
    a, b = samples.e4m3_codes(source, "finite", 700, 64), samples.e4m3_codes(source, "finite", 200, 64)
    c = source.centred(FP32, 700 * 200, 9).reshape(700, 200)
    whole = mma(a, b, machine="sm100", acc="fp32", c=c)
    rows = [mma(a[i : i + 7], b, machine="sm100", acc="fp32", c=c[i : i + 7]) for i in range(0, 700, 7)]
    assert np.array_equal(whole, np.concatenate(rows))


def test_an_element_depends_on_its_row_and_column_only() -> None:
    """Whether neighbours are exact, cut or NaN decides the way taken, never the bits."""
    source = samples.Source(93)
    a, b = samples.e4m3_codes(source, "uniform", 40, 128), samples.e4m3_codes(source, "small", 40, 128)
    a[::3] = samples.e4m3_codes(source, "small", 14, 128)
    for acc in ("fp32", "fp16"):
        kind: Any = acc
        whole = mma(a, b, machine="sm100", acc=kind)
        assert all(
            mma(a[i : i + 1], b[j : j + 1], machine="sm100", acc=kind)[0, 0] == whole[i, j]
            for i in range(0, 40, 3)
            for j in range(0, 40, 7)
        )


def test_chain_equals_steps() -> None:
    source = samples.Source(94)
    a, b = samples.e4m3_codes(source, "finite", 20, 128), samples.e4m3_codes(source, "finite", 24, 128)
    for name in ("sm90", "sm100"):
        c: Any = None
        for k in range(0, 128, 32):
            c = mma(a[:, k : k + 32], b[:, k : k + 32], machine=name, acc="fp32", c=c)
        assert np.array_equal(c, mma(a, b, machine=name, acc="fp32"))


def test_inputs_are_not_changed_and_empty_sides_work() -> None:
    source = samples.Source(95)
    a, b = samples.e4m3_codes(source, "uniform", 4, 64), samples.e4m3_codes(source, "uniform", 3, 64)
    c = source.mixed(FP32, 12).reshape(4, 3)
    kept = [x.copy() for x in (a, b, c)]
    mma(a, b, machine="sm100", acc="fp32", c=c)
    assert all(np.array_equal(x, y) for x, y in zip((a, b, c), kept, strict=True))
    assert mma(a[:0], b, machine="sm90", acc="fp16").shape == (0, 3)
    assert mma(a, b[:0], machine="sm100", acc="fp32").shape == (4, 0)
