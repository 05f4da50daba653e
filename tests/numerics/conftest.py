"""The outside judges of the arithmetic: MPFR through gmpy2, and the MMA-Sim models of the tensor cores."""

from __future__ import annotations

import os
import sysconfig
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray

from mqa_ref.numerics import FP16, FP32, Format

Codes = NDArray[Any]
Tried = Callable[[int], None]


@pytest.fixture
def tried(record_property: Callable[[str, object], None]) -> Tried:
    """Call it with the number of values a test compared: listed at the end of the run. Zero is an error."""

    def note(count: int) -> None:
        assert count > 0, "nothing was compared"
        record_property("tried", count)

    return note


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = terminalreporter.stats.get("passed", [])
    noted = [
        (report.nodeid, value)
        for report in reports
        for key, value in report.user_properties
        if key == "tried"
    ]
    if noted:
        terminalreporter.section("values compared")
        for nodeid, value in noted:
            terminalreporter.write_line(f"{value:>12,} {nodeid}")
        terminalreporter.write_line(f"{sum(value for _, value in noted):>12,} in all")


@dataclass(frozen=True)
class Mpfr:
    """IEEE 754 arithmetic of one format by MPFR: correctly rounded to nearest even, subnormals included."""

    fmt: Format

    def __call__(self, operation: str, *operands: Codes) -> Codes:
        """The codes of ``operation`` ("fma", "add", "mul" or "convert", whose operand is fp32) over 1-D code arrays."""
        import gmpy2

        bias, precision = self.fmt.bias, self.fmt.fraction_bits + 1
        compute: Callable[..., Any] = {
            "fma": gmpy2.fma,
            "add": gmpy2.add,
            "mul": gmpy2.mul,
            "convert": lambda x: gmpy2.mpfr(x, precision),
        }[operation]
        kind = np.float16 if self.fmt is FP16 and operation != "convert" else np.float32
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # signalling NaN operands
            values = [codes.view(kind).astype(np.float64).tolist() for codes in operands]
        exact = [[gmpy2.mpfr(x, 53) for x in column] for column in values]
        limits = gmpy2.context(
            precision=precision, emax=bias + 1, emin=1 - bias - self.fmt.fraction_bits + 1, subnormalize=True
        )
        with limits:
            results = [float(compute(*row)) for row in zip(*exact, strict=True)]
        return encode_floats(np.array(results), self.fmt)


def encode_floats(values: NDArray[np.float64], fmt: Format) -> Codes:
    """The codes of numbers that fp32 or fp16 holds exactly (checked), NaN as the canonical one."""
    narrow = values.astype(np.float16 if fmt is FP16 else np.float32)
    nan = np.isnan(values)
    assert np.array_equal(narrow.astype(np.float64)[~nan], values[~nan])
    codes = narrow.view(np.uint16 if fmt is FP16 else np.uint32)
    codes[nan] = fmt.canonical_nan
    return codes


@pytest.fixture(scope="session")
def mpfr32() -> Mpfr:
    return Mpfr(FP32)


@pytest.fixture(scope="session")
def mpfr16() -> Mpfr:
    return Mpfr(FP16)


class TensorCore(Protocol):
    """The MMA-Sim model of one instruction: codes a [M, K], b [N, K], accumulators c [M, N] to result codes [M, N]."""

    def __call__(self, machine: str, acc: str, a: Codes, b: Codes, c: Codes) -> Codes: ...


@pytest.fixture(scope="session")
def mmasim() -> TensorCore:
    """MMA-Sim's wgmma (sm90) and tcgen05 (sm100) models; its import compiles C++ once and keeps the result."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        # Its build looks for ninja on the path, where a virtual environment that is not activated does not put it.
        patch.setenv("PATH", sysconfig.get_path("scripts") + os.pathsep + os.environ.get("PATH", ""))
        import torch
        from mmasim import nv_ptx

    torch.set_num_threads(1)  # its threads cost more than they bring on arrays of this size
    models = {}
    for acc, name in (("fp32", "f32"), ("fp16", "f16")):
        models["sm90", acc] = nv_ptx.WGMMA("Hopper", f"m64n8k32.{name}.e4m3.e4m3")
        models["sm100", acc] = nv_ptx.TCGen05MMA("Blackwell", f"m64n8k32.kind::f8f6f4.{name}.e4m3.e4m3")

    def run(machine: str, acc: str, a: Codes, b: Codes, c: Codes) -> Codes:
        left, right = (torch.from_numpy(codes.copy()).view(torch.float8_e4m3fn) for codes in (a, b))
        start = torch.from_numpy(c.copy()).view(torch.float32 if acc == "fp32" else torch.float16)
        result = models[machine, acc](left, right.T, start)
        codes: Codes = result.view(torch.int32 if acc == "fp32" else torch.int16).numpy().view(c.dtype)
        return codes

    return run
