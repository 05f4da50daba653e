"""An operand of the wrong kind is refused by its name, whichever place it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.numerics import cvt_bf16_f32, cvt_f16_f32, cvt_f32_f16, ops16, ops32

PLACES: list[tuple[Callable[..., Any], int]] = [
    *((function, 2) for function in (ops16.add_f16, ops16.mul_f16, ops16.max_f16)),
    *((function, 2) for function in (ops32.add_f32, ops32.mul_f32, ops32.max_f32, ops32.max_nan_f32)),
    *((function, 1) for function in (cvt_f16_f32, cvt_bf16_f32, cvt_f32_f16)),
    *((ops16.fma_f16, 3), (ops32.fma_f32, 3), (ops32.abs_f32, 1)),
]
CASES = [(function, count, place) for function, count in PLACES for place in range(count)]


@pytest.mark.parametrize(("function", "count", "place"), CASES)
@pytest.mark.parametrize("wrong", [np.zeros(2, np.float64), 1 << 40, "1"])
def test_the_wrong_operand_is_named(
    function: Callable[..., Any], count: int, place: int, wrong: object
) -> None:
    operands: list[object] = [0] * count
    function(*operands)
    operands[place] = wrong
    with pytest.raises(InputError) as caught:
        function(*operands)
    assert [fault.argument for fault in caught.value.faults] == ["abc"[place]]


def test_what_is_said_of_an_operand() -> None:
    wrong: object
    for wrong, got in ((-1, "-1"), (1 << 32, "4294967296"), ("1", "'1'"), (True, "True"), (1.5, "1.5")):
        with pytest.raises(InputError) as caught:
            ops32.abs_f32(wrong)  # type: ignore[arg-type]
        (fault,) = caught.value.faults
        assert str(fault) == f"a: got {got}, expected an array of uint32 codes or one Python int of 32 bits"
    with pytest.raises(InputError) as caught:
        ops16.add_f16(0, np.zeros(1, np.uint32))
    (fault,) = caught.value.faults
    assert str(fault) == "b: got dtype uint32, expected an array of uint16 codes or one Python int of 16 bits"
