"""Bounds, alignment and ownership of global and shared memory, exact to the byte."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from mqa_ref.emulator import GlobalMemory, LaunchCall, decode, parse, run_grid
from mqa_ref.errors import EmulatorError

PTX = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry kernel(.param .u64 table)
{{
.reg .pred %p<4>;
.reg .b32 %r<4>;
.reg .b64 %d<64>;
ld.param.b64 %d60, [table];
{body}
ret;
}}
"""
INPUT = np.arange(32, dtype=np.uint32)
ADDRESS = "mul.wide.u32 %d1, %r60, 4;\nadd.s64 %d1, %d60, %d1;\n"


def test_a_load_one_element_past_the_end(bench: Any) -> None:
    """31 words for 32 lanes: the last lane reads past the buffer, by one word, and gets zero."""
    ran = bench(f"{ADDRESS}ld.global.b32 %r1, [%d1];\nst.global.b32 [%d62], %r1;", INPUT[1:])
    (finding,) = ran.findings
    assert finding.kind == "global_out_of_bounds"
    assert "byte 127 of in, which has 124 bytes" in finding.message
    assert ran.words().tolist() == [*range(1, 32), 0]


@pytest.mark.parametrize(
    ("offset", "inside"), [(0, True), (-4, False), (124, True), (128, False), (1 << 30, False)]
)
def test_one_lane(bench: Any, offset: int, inside: bool) -> None:
    ran = bench(f"setp.eq.u32 %p1, %r60, 0;\n@%p1 ld.global.b32 %r1, [%d60+{offset}];", INPUT)
    assert ran.kinds == (set() if inside else {"global_out_of_bounds"})


def test_lanes_that_are_off_do_not_count(bench: Any) -> None:
    ran = bench(f"{ADDRESS}setp.lt.u32 %p1, %r60, 31;\n@%p1 ld.global.b32 %r1, [%d1];", INPUT[1:])
    assert not ran.findings


def test_stores_past_the_end_and_to_inputs(bench: Any) -> None:
    past = bench("st.global.b64 [%d62], %d60;", out_bytes=31 * 8)
    assert past.kinds == {"global_out_of_bounds"}
    read_only = bench("st.global.b32 [%d60], %r60;", INPUT)
    assert read_only.kinds == {"input_written"}


def test_misaligned_accesses(bench: Any) -> None:
    assert bench("ld.global.b32 %r1, [%d60+2];", INPUT).kinds == {"misaligned"}
    assert bench("st.global.b64 [%d62+4], %d60;", out_bytes=512).kinds == {"misaligned"}
    assert not bench("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d60+16];", INPUT).findings
    assert bench("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d60+8];", INPUT).kinds == {"misaligned"}


def test_two_ctas_that_write_the_same_place(bench: Any) -> None:
    ran = bench("st.global.b32 [%d62], %r60;", ctas=2)
    assert ran.kinds == {"global_write_conflict"}


def test_narrow_loads_and_stores(bench: Any) -> None:
    data = np.array([0xFF, 0x80, 0x7F, 0x01], np.uint8)
    body = """
    ld.global.b8 %h1, [%d60+1];
    ld.global.s8 %h2, [%d60+1];
    ld.global.b16 %h3, [%d60+2];
    mov.b32 %r1, {%h1, %h2};
    mov.b32 %r2, {%h3, %h3};
    xor.b32 %r1, %r1, %r2;
    st.global.b16 [%d62], %h3;
    st.global.b32 [%d62+4], %r1;
    """
    out = bench(body, data).out.reshape(32, 8)
    assert out[3, :2].tolist() == [0x7F, 0x01]
    assert out[3, 4:].view(np.uint32)[0] == 0xFF800080 ^ 0x017F017F


def test_shared_memory_out_of_bounds_and_uninitialised(bench: Any) -> None:
    assert bench("st.shared.b32 [%r61+4092], %r60;").kinds == set()
    assert bench("st.shared.b32 [%r61+4096], %r60;").kinds == {"shared_out_of_bounds"}
    assert bench("ld.shared.b32 %r1, [%r61+-4];").kinds == {"shared_out_of_bounds"}
    assert bench("ld.shared.b32 %r1, [%r61+8];").kinds == {"uninitialised_shared"}
    assert bench("st.shared.b32 [%r61+8], %r60;\nld.shared.b32 %r1, [%r61+8];").kinds == set()


def test_reads_before_the_grid_wait(bench: Any) -> None:
    """Only in a launch that may overlap with the one before it, or in a kernel that has the wait at all."""
    load = "ld.global.b32 %r1, [%d60];\n"
    assert bench(load, INPUT).kinds == set()
    assert bench(load, INPUT, overlaps=True).kinds == {"read_before_griddepcontrol_wait"}
    assert bench(f"griddepcontrol.wait;\n{load}", INPUT, overlaps=True).kinds == set()
    assert bench(f"{load}griddepcontrol.wait;", INPUT).kinds == {"read_before_griddepcontrol_wait"}


@pytest.mark.parametrize(
    ("cta", "byte", "found"), [(0, 0, False), (0, 64, True), (1, 64, False), (1, 60, True)]
)
def test_a_part_of_an_input_that_is_another_ctas(cta: int, byte: int, found: bool) -> None:
    """CTA 0 owns the first 64 bytes, CTA 1 the rest; each reads one word."""
    body = f"mov.u32 %r1, %ctaid.z;\nsetp.eq.u32 %p1, %r1, {cta};\n@%p1 ld.global.b32 %r2, [%d60+{byte}];"
    code = decode(parse(PTX.format(body=body)))
    memory = GlobalMemory()
    halves = np.arange(128) < 64
    source = memory.add(
        "table", np.zeros(128, np.uint8), writable=False, share=lambda n: halves if n == 0 else ~halves
    )
    call = LaunchCall((1, 1, 2), (32, 1, 1), 0, struct.pack("<Q", source.address))
    outcome = run_grid(code, call, memory, budget=100)
    assert {finding.kind for finding in outcome.findings} == ({"global_other_row"} if found else set())


@pytest.mark.parametrize("engine", ["compiled", "interpreter"])
def test_a_launch_with_too_few_parameters_is_refused(engine: str) -> None:
    code = decode(parse(PTX.format(body="")))
    call = LaunchCall((1, 1, 1), (32, 1, 1), 0, bytes(4))
    with pytest.raises(EmulatorError, match="4 bytes of parameters, the PTX declares 8"):
        run_grid(code, call, GlobalMemory(), budget=100, engine=engine)


@pytest.mark.parametrize("last", ["@%p1 ret;", "@%p1 bra END;", "mov.u32 %r1, 2;"])
def test_a_program_that_runs_past_its_end_is_refused(last: str) -> None:
    text = f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry kernel()
{{
.reg .pred %p<2>;
.reg .b32 %r<2>;
END:
setp.eq.u32 %p1, 1, 1;
{last}
}}
"""
    with pytest.raises(EmulatorError, match="past this last instruction"):
        decode(parse(text))
    to_the_end = text.replace("END:", "").replace(last, "bra END;\nEND:")
    with pytest.raises(EmulatorError, match="past the last instruction"):
        decode(parse(to_the_end))
