"""The check of the floating-point unit's state, and that what relies on it asks."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Iterator

import pytest
import torch

from mqa_ref.errors import OracleError
from mqa_ref.numerics.environment import check_environment
from mqa_ref.reference.epilogue import checked_request

NEAREST, DOWNWARD, UPWARD, TOWARD_ZERO = 0, 0x400, 0x800, 0xC00
"""FE_TONEAREST, FE_DOWNWARD, FE_UPWARD and FE_TOWARDZERO of x86-64's fenv.h."""


@pytest.fixture
def flushing() -> Iterator[None]:
    if not torch.set_flush_denormal(True):
        raise AssertionError("this CPU cannot flush subnormals, so the check cannot be tried")
    yield
    torch.set_flush_denormal(False)


@pytest.fixture
def rounding() -> Iterator[Callable[[int], None]]:
    libm = ctypes.CDLL(ctypes.util.find_library("m"))

    def turn(direction: int) -> None:
        assert libm.fesetround(direction) == 0

    yield turn
    turn(NEAREST)


@pytest.fixture
def control() -> Iterator[Callable[[int], None]]:
    """Sets bits of MXCSR, which fenv_t of x86-64 holds at byte 28."""
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    kept, changed = ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)
    assert libm.fegetenv(kept) == 0

    def turn(bits: int) -> None:
        ctypes.memmove(changed, kept, 32)
        register = ctypes.c_uint32.from_buffer(changed, 28)
        register.value |= bits
        assert libm.fesetenv(changed) == 0

    yield turn
    assert libm.fesetenv(kept) == 0


def test_an_ordinary_thread_is_fit() -> None:
    check_environment()


@pytest.mark.usefixtures("flushing")
def test_flushing_is_seen() -> None:
    with pytest.raises(OracleError, match="flushes subnormal"):
        check_environment()


@pytest.mark.parametrize("bits", [0x8000, 0x0040])
def test_flushing_of_results_and_of_operands_is_seen_each_alone(
    control: Callable[[int], None], bits: int
) -> None:
    """Flush-to-zero makes a result zero, denormals-are-zero an operand."""
    control(bits)
    with pytest.raises(OracleError) as caught:
        check_environment()
    assert str(caught.value) == (
        "this thread flushes subnormal numbers to zero (torch.set_flush_denormal, -ffast-math?)"
    )


@pytest.mark.parametrize("direction", [DOWNWARD, UPWARD, TOWARD_ZERO])
def test_another_rounding_is_seen(rounding: Callable[[int], None], direction: int) -> None:
    """Toward zero 1 + 2**-24 is 1 as it should be; it shows where 1 + 1.5 * 2**-24 goes."""
    rounding(direction)
    with pytest.raises(OracleError) as caught:
        check_environment()
    assert str(caught.value) == "this thread does not round to nearest even"


@pytest.mark.usefixtures("flushing")
def test_the_reference_refuses() -> None:
    with pytest.raises(OracleError):
        checked_request("sm100", "folded")
