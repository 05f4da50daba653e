"""Addresses and launches at the edge of what machine code can be given: it reads nothing that is not the program's, and
the findings are the interpreter's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqa_ref.emulator.compiled import native
from mqa_ref.errors import EmulatorError

pytestmark = pytest.mark.skipif(not native.available(), reason="the CPU lacks what machine code needs")

ENGINES = ["interpreter", "compiled"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("kind", "size"), [("b8", 1), ("b32", 4), ("b64", 8), ("v2.b64", 16)])
def test_the_last_bytes_of_the_address_space(
    bench: Callable[..., Any], engine: str, kind: str, size: int
) -> None:
    """The end of such an access is address 0; the first lane names a buffer."""
    register = {"b8": "%r1", "b32": "%r1", "b64": "%d3", "v2.b64": "{%d3, %d4}"}[kind]
    body = f"""
    setp.eq.u32 %p1, %r60, 0;
    mov.b64 %d1, {(1 << 64) - size};
    selp.b64 %d2, %d60, %d1, %p1;
    ld.global.{kind} {register}, [%d2];
    """
    data = np.zeros(16, np.uint8)
    assert bench(body, data, engine=engine).kinds == {"global_out_of_bounds"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("address", [(1 << 63) + 1020, 1 << 63, (1 << 64) - 4, 1020, 1024 + 4096])
def test_shared_addresses_out_of_bounds_in_a_wide_register(
    bench: Callable[..., Any], engine: str, address: int
) -> None:
    """Behind the first of these the offset is the highest that has a sign, and the end of the access none."""
    body = f"mov.b64 %d1, {address};\nld.shared.b32 %r1, [%d1];"
    assert bench(body, engine=engine).kinds == {"shared_out_of_bounds"}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_carry_of_one_cta_is_not_that_of_the_next(bench: Callable[..., Any], engine: str) -> None:
    body = """
    addc.u32 %r1, 0, 0;
    mov.b32 %r2, 0xFFFFFFFF;
    add.cc.u32 %r2, %r2, 1;
    mov.u32 %r3, %ctaid.z;
    mul.wide.u32 %d1, %r3, 256;
    add.s64 %d62, %d62, %d1;
    st.global.b32 [%d62], %r1;
    """
    ran = bench(body, ctas=3, out_bytes=3 * 256, engine=engine)
    assert not ran.findings
    assert not ran.out.any()


@pytest.mark.parametrize(
    "instruction", ["mov.b64 %d1, %laneid;", "st.global.b64 [%d62], %laneid;", "add.u64 %d1, %laneid, 0;"]
)
def test_a_special_register_in_place_of_a_wider_one(bench: Callable[..., Any], instruction: str) -> None:
    """ptxas refuses these, too."""
    with pytest.raises(EmulatorError, match="%laneid has 32 bits, expected 64"):
        bench(instruction)


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_of_a_cta_are_bounded(bench: Callable[..., Any], engine: str) -> None:
    assert not bench("bar.sync 0;", warps=32, engine=engine).findings
    with pytest.raises(EmulatorError, match="at most 1024"):
        bench("bar.sync 0;", warps=33, engine=engine)
