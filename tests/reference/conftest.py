"""Problems made from plain tokens, and judges of the reference that share nothing with it: MPFR and MMA-Sim."""

from __future__ import annotations

import os
import sysconfig
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.problem import Problem

Codes = NDArray[np.uint8]
Array = NDArray[Any]


class Maker(Protocol):
    """``q`` codes [B, next_n, H, D], and for each sequence ``keys`` codes [tokens, D] and ``scales`` [tokens]."""

    def __call__(
        self,
        q: Codes,
        keys: list[Codes],
        *,
        scales: list[Array] | None = None,
        weights: Array | None = None,
        page: int = 32,
        seed: int = 0,
        spare: int = 2,
        **more: Any,
    ) -> Problem: ...


def _make(
    q: Codes,
    keys: list[Codes],
    *,
    scales: list[Array] | None = None,
    weights: Array | None = None,
    page: int = 32,
    seed: int = 0,
    spare: int = 2,
    **more: Any,
) -> Problem:
    """Deals the tokens out to shuffled pages; what no token uses is noise, in the pages, the pool and the table."""
    batch, next_n, heads, dim = q.shape
    rng = np.random.default_rng(seed)
    counts = [-(-len(tokens) // page) for tokens in keys]
    pool = rng.integers(0, 256, (sum(counts) + spare, page * (dim + 4)), dtype=np.uint8)
    order = rng.permutation(len(pool)).tolist()
    # An entry that is not needed is one no array has; -1 would go unnoticed as an index from the end.
    table = np.full((batch, max(counts) + 1), 2**31 - 1, np.int32)
    for b, tokens in enumerate(keys):
        for i in range(counts[b]):
            at, part = order.pop(), tokens[i * page : (i + 1) * page]
            table[b, i] = at
            pool[at, : part.size] = part.reshape(-1)
            factors = (
                np.ones(len(tokens), np.float32)
                if scales is None
                else scales[b].astype(np.float32, copy=False)
            )
            stored = factors[i * page : (i + 1) * page].view(np.uint8)
            pool[at, page * dim : page * dim + stored.size] = stored
    if weights is None:
        weights = np.ones((batch * next_n, heads), np.float32)
    lengths = np.array([len(tokens) for tokens in keys], np.int32)
    return Problem(q, pool, weights.astype(np.float32), table, lengths, page=page, num_sms=3, **more)


@pytest.fixture(scope="session")
def make() -> Maker:
    return _make


def _e4m3(code: int) -> float:
    """The value of an e4m3fn code, from its definition: bias 7, three fraction bits, all ones is NaN."""
    field, fraction = (code >> 3) & 15, code & 7
    if field == 15 and fraction == 7:
        return float("nan")
    size = fraction * 2.0**-9 if field == 0 else (8 + fraction) * 2.0 ** (field - 10)
    return -size if code & 128 else size


E4M3_VALUES = np.array([_e4m3(code) for code in range(256)])


@cache
def _mpfr() -> dict[str, Any]:
    """A context for each format: precision, exponents of the largest and the smallest number (0.1xxx * 2**exponent)."""
    import gmpy2

    return {
        "fp32": gmpy2.context(precision=24, emax=128, emin=-148, subnormalize=True),
        "fp16": gmpy2.context(precision=11, emax=16, emin=-23, subnormalize=True),
        "bf16": gmpy2.context(precision=8, emax=128, emin=-132, subnormalize=True),
    }


@pytest.fixture(scope="session")
def e4m3_values() -> Array:
    return E4M3_VALUES


@pytest.fixture(scope="session")
def mpfr_rounded() -> Callable[[str, Any], Any]:
    return _rounded


@pytest.fixture(scope="session")
def mpfr_contexts() -> Any:
    return _mpfr()


Epilogue = Callable[[Array, Array, Array, Flow, str], Array]


def _rounded(fmt: str, value: Any) -> Any:
    """A float or an mpfr after one rounding to the format."""
    import gmpy2

    exact = gmpy2.mpfr(value, 53)
    with _mpfr()[fmt]:
        return gmpy2.mul(exact, 1)


def _mpfr_epilogue(dots: Array, weights: Array, scales: Array, flow: Flow, generation: str) -> Array:
    """Accumulators [tokens, H] as float64, fp32 ``weights`` [H], ``scales`` [tokens] -> output codes [tokens], by MPFR.

    The orders are op.md's: head h to partial sum h % 4, heads ascending, one rounding each; then ((s0x+s0y)+s1x)+s1y
    in fp32, (s0x+s1x) + (s0y+s1y) in fp16.
    """
    import gmpy2

    results = []
    factor = [_rounded(flow.epi, float(w)) for w in weights]
    for row, scale in zip(dots, scales, strict=True):
        x = [_rounded(flow.epi, float(dot)) for dot in row]
        scale = _rounded(flow.epi, float(scale))
        with _mpfr()[flow.epi]:
            zero, sums = gmpy2.mpfr(0), [gmpy2.mpfr(0)] * 4
            folded = generation == "folded" and flow.epi == "fp32"
            for h, dot in enumerate(x):
                # max takes the other operand of a NaN, as the comparison does here; max.NaN takes the NaN.
                positive = dot + abs(dot) if folded else max(zero, dot)
                if flow.epi == "fp32" and generation == "max_nan" and gmpy2.is_nan(dot):
                    positive = dot
                sums[h % 4] = gmpy2.fma(positive, factor[h], sums[h % 4])
            if flow.epi == "fp32":
                total = ((sums[0] + sums[1]) + sums[2]) + sums[3]
            else:
                total = (sums[0] + sums[2]) + (sums[1] + sums[3])
            if folded:
                total = total * gmpy2.mpfr(0.5)
            total = total * scale
        results.append(float(_rounded(flow.out, total)))
    exact = np.array(results)
    if flow.out == "fp16":
        codes: Array = exact.astype(np.float16).view(np.uint16)
    else:
        codes = exact.astype(np.float32).view(np.uint32)
        if flow.out == "bf16":
            codes = (codes >> 16).astype(np.uint16)
    codes[np.isnan(exact)] = {"fp32": 0x7FFFFFFF, "fp16": 0x7FFF, "bf16": 0x7FFF}[flow.out]
    return codes


@pytest.fixture(scope="session")
def mpfr_epilogue() -> Epilogue:
    return _mpfr_epilogue


Dots = Callable[[Codes, Codes, str], Array]


def _exact_dots(keys: Codes, queries: Codes, acc: str) -> Array:
    """Dot products [tokens, H] of codes [tokens, D] and [H, D], summed as integers (times 2**-18), rounded by MPFR."""
    import gmpy2

    left, right = E4M3_VALUES[keys] * 512, E4M3_VALUES[queries] * 512
    out = np.full((len(keys), len(queries)), np.nan)
    for t, h in np.ndindex(*out.shape):
        if not (np.isnan(left[t]).any() or np.isnan(right[h]).any()):
            total = sum(int(x) * int(y) for x, y in zip(left[t], right[h], strict=True))
            out[t, h] = float(_rounded(acc, gmpy2.mpq(total, 1 << 18)))
    return out


@pytest.fixture(scope="session")
def exact_dots() -> Dots:
    return _exact_dots


@pytest.fixture(scope="session")
def mmasim_dots() -> Callable[[str, Codes, Codes, str], Array]:
    """MMA-Sim's wgmma ("sm90") and tcgen05 ("sm100"), 64 tokens and 8 heads at a time, as a chain of K = 32 steps."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        # Its import builds with ninja, which may lie beside an interpreter that is not on the path.
        patch.setenv("PATH", sysconfig.get_path("scripts") + os.pathsep + os.environ.get("PATH", ""))
        import torch
        from mmasim import nv_ptx

    models = {
        ("sm90", "fp32"): nv_ptx.WGMMA("Hopper", "m64n8k32.f32.e4m3.e4m3"),
        ("sm90", "fp16"): nv_ptx.WGMMA("Hopper", "m64n8k32.f16.e4m3.e4m3"),
        ("sm100", "fp32"): nv_ptx.TCGen05MMA("Blackwell", "m64n8k32.kind::f8f6f4.f32.e4m3.e4m3"),
        ("sm100", "fp16"): nv_ptx.TCGen05MMA("Blackwell", "m64n8k32.kind::f8f6f4.f16.e4m3.e4m3"),
    }

    def dots(machine: str, keys: Codes, queries: Codes, acc: str) -> Array:
        total = torch.zeros((64, 8), dtype=torch.float16 if acc == "fp16" else torch.float32)
        for k in range(0, keys.shape[1], 32):
            left, right = (
                torch.from_numpy(np.ascontiguousarray(codes[:, k : k + 32])).view(torch.float8_e4m3fn)
                for codes in (keys, queries)
            )
            total = models[machine, acc](left, right.T, total)
        result: Array = total.numpy().astype(np.float64)
        return result

    return dots
