"""The self-check: what it runs, that it is repeatable, and that it sees a planted fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.numerics import FP16, FP32, MACHINES, ops16, ops32, samples, selfcheck, tensorcore


def test_everything_agrees(tried: Any) -> None:
    counts = selfcheck.run(seed=3, count=400)
    names = [
        "fma_f32",
        "add_f32",
        "mul_f32",
        "abs_f32",
        "max_f32",
        "max_nan_f32",
        "fma_f16",
        "add_f16",
        "mul_f16",
        "max_f16",
    ]
    names += ["cvt_f16_f32", "cvt_bf16_f32", "cvt_f32_f16"]
    names += [f"mma/{machine}/{acc}" for machine in MACHINES for acc in ("fp32", "fp16")]
    assert list(counts) == names
    assert {name: count.differing for name, count in counts.items() if count.differing} == {}
    assert min(count.tried for count in counts.values()) >= 96
    tried(sum(count.tried for count in counts.values()))


def through_float64(a: Any, b: Any, c: Any) -> Any:
    """The wrong fma.rn.f32: two roundings."""
    x, y, z = (v.view(np.float32).astype(np.float64) for v in (a, b, c))
    return ops32.add_f32((x * y + z).astype(np.float32).view(np.uint32), np.uint32(0x80000000))


def fmax_alone(a: Any, b: Any) -> Any:
    """The wrong max.f16: NaN wins."""
    return ops16.add_f16(np.maximum(a.view(np.float16), b.view(np.float16)).view(np.uint16), 0x8000)


@pytest.mark.parametrize(("name", "wrong"), [("fma_f32", through_float64), ("max_f16", fmax_alone)])
def test_planted_faults_are_seen(name: str, wrong: Any) -> None:
    operation = selfcheck.OPERATIONS[name]._replace(vector=wrong)
    with np.errstate(all="ignore"):
        count = selfcheck.check_operation(operation, samples.Source(0), 4000)
    assert 0 < count.differing < count.tried // 2


def test_a_planted_machine_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectorised step asked for another machine than the scalar one."""
    right = tensorcore.mma
    monkeypatch.setattr(tensorcore, "mma", lambda a, b, **rest: right(a, b, **{**rest, "machine": "sm90"}))
    assert selfcheck.check_mma(MACHINES["sm100"], "fp32", samples.Source(0), 1).differing > 0


def test_the_same_seed_draws_the_same_operands() -> None:
    first, second, other = samples.Source(1), samples.Source(1), samples.Source(2)
    drawn = [source.mixed(FP32, 50).tolist() for source in (first, second, other)]
    assert drawn[0] == drawn[1] != drawn[2]
    # Fixed for all time: raw Philox words, not NumPy's distributions.
    assert [hex(int(word)) for word in samples.Source(0).words(2)] == [
        "0x2f4ba6408e4d89b",
        "0x3dd62b0b9ca8c5b2",
    ]


@pytest.mark.parametrize("fmt", [FP16, FP32], ids=lambda f: f.name)
def test_draws_cover_what_they_promise(fmt: Any) -> None:
    source = samples.Source(4)
    codes = source.mixed(fmt, 20_000).tolist()
    assert all(any(question(c) for c in codes) for question in (fmt.is_nan, fmt.is_inf, fmt.is_zero))
    assert any(0 < c & ~fmt.sign_mask < 1 << fmt.fraction_bits for c in codes), "subnormals"
    centred = source.centred(fmt, 5000, 3).tolist()
    assert not any(fmt.is_nan(c) or fmt.is_inf(c) for c in centred)
    assert {fmt.exponent(c) for c in centred} == set(range(-3, 4))
    specials = samples.specials(fmt)
    assert len(set(specials)) == len(specials) == 30
    least, one = 1 << fmt.fraction_bits, fmt.encode(1)
    quiet = fmt.exponent_mask | fmt.fraction_mask + 1 >> 1
    positive = {0, 1, 2, least - 1, least, least + 1, one - 1, one, one + 1, fmt.max_finite_code - 1}
    positive |= {fmt.max_finite_code, fmt.exponent_mask, fmt.exponent_mask + 1, quiet, fmt.canonical_nan}
    assert set(specials) == positive | {code | fmt.sign_mask for code in positive}
    assert {0, fmt.sign_mask, 1, fmt.max_finite_code, fmt.inf(0), fmt.inf(1), fmt.canonical_nan} <= set(
        specials
    )


def test_wrong_arguments() -> None:
    with pytest.raises(InputError) as caught:
        selfcheck.run(seed=-1, count=0)
    assert [fault.argument for fault in caught.value.faults] == ["seed", "count"]
    with pytest.raises(ValueError, match="kind 'odd'"):
        samples.e4m3_codes(samples.Source(0), "odd", 1, 32)
