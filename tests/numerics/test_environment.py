"""The check of the floating-point unit's state, and that what relies on it asks."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator

import pytest
import torch

from mqa_ref.errors import OracleError
from mqa_ref.numerics.environment import check_environment
from mqa_ref.reference.epilogue import checked_request

DOWNWARD, NEAREST = 0x400, 0
"""FE_DOWNWARD and FE_TONEAREST of x86-64's fenv.h."""


@pytest.fixture
def flushing() -> Iterator[None]:
    if not torch.set_flush_denormal(True):
        raise AssertionError("this CPU cannot flush subnormals, so the check cannot be tried")
    yield
    torch.set_flush_denormal(False)


@pytest.fixture
def downward() -> Iterator[None]:
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    assert libm.fesetround(DOWNWARD) == 0
    yield
    assert libm.fesetround(NEAREST) == 0


def test_an_ordinary_thread_is_fit() -> None:
    check_environment()


@pytest.mark.usefixtures("flushing")
def test_flushing_is_seen() -> None:
    with pytest.raises(OracleError, match="flushes subnormal"):
        check_environment()


@pytest.mark.usefixtures("downward")
def test_another_rounding_is_seen() -> None:
    with pytest.raises(OracleError, match="nearest even"):
        check_environment()


@pytest.mark.usefixtures("flushing")
def test_the_reference_refuses() -> None:
    with pytest.raises(OracleError):
        checked_request("sm100", "folded")
