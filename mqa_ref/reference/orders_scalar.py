"""The slow twin of ``orders``: one logit's lanes, registers and shuffles, one number at a time."""

from __future__ import annotations

from mqa_ref.numerics import scalar

_HALF = 0x3F000000
_LANES = 4


def sm90_logit(x: list[int], weights: list[int], scale: int, halved: bool) -> int:
    """One logit of the order "deepgemm_sm90", as fp32 bits, from scores after the ReLU, weights and scale.

    A lane's registers are those of one row of a wgmma accumulator: two neighbouring heads of every eight.
    """
    values = []
    for lane in range(_LANES):
        registers = [head for head in range(len(x)) if head % 8 // 2 == lane]
        sums = []
        for parity in (0, 1):
            first, second, *others = registers[parity::2]
            total = scalar.mul_f32(x[second], weights[second])
            total = scalar.fma_f32(x[first], weights[first], total)
            for head in others:
                total = scalar.fma_f32(x[head], weights[head], total)
            sums.append(total)
        joined = scalar.add_f32(sums[0], sums[1])
        values.append(scalar.mul_f32(scalar.mul_f32(joined, _HALF) if halved else joined, scale))
    for distance in (1, 2):
        values = [scalar.add_f32(values[lane], values[lane ^ distance]) for lane in range(_LANES)]
    return values[0]


def sm100_logit(x: list[int], weights: list[int], scale: int, halved: bool) -> int:
    """One logit of the order "deepgemm_sm100", as fp32 bits."""
    first, second = [0, 0], [0, 0]
    for head in range(0, len(x), 4):
        for pair, at in ((first, head), (second, head + 2)):
            for half in (0, 1):
                pair[half] = scalar.fma_f32(x[at + half], weights[at + half], pair[half])
    low, high = (scalar.add_f32(first[half], second[half]) for half in (0, 1))
    total = scalar.add_f32(low, high)
    return scalar.mul_f32(scalar.mul_f32(total, _HALF) if halved else total, scale)
