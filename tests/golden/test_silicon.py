"""The arithmetic and the emulator against what an H200 answered: no difference anywhere."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref import numerics
from mqa_ref.emulator import ORDERS, GlobalMemory, LaunchCall, decode, parse, run_grid
from mqa_ref.errors import InputError
from mqa_ref.golden import silicon
from mqa_ref.golden.silicon import (
    OPERATIONS,
    PROGRAMS,
    half_accumulators,
    operand_sets,
    output_bytes,
    products,
)
from mqa_ref.golden.silicon.programs import Program
from mqa_ref.golden.silicon.store import RECORDINGS, encode
from mqa_ref.verification.words import words

ENTRIES = {"fp32": 315_392, "fp16": 315_392}


def test_the_recordings_say_where_they_come_from() -> None:
    assert set(silicon.names()) == {name.replace("_", "-") for name in OPERATIONS} | {
        "products",
        "programs",
        "values",
        "deepgemm-sm90",
        "deepgemm-sm90-drawn",
    }
    for name in silicon.names():
        facts = silicon.load(name).facts
        assert (facts["gpu"], facts["compute_capability"]) == ("NVIDIA H200", "9.0")
        assert facts["date"] >= "2026-11-30"


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_an_operation(name: str) -> None:
    """Equal bits; NaN results too, since this package's NaN is the one the hardware gives."""
    operands = operand_sets(name)
    recorded = silicon.load(name.replace("_", "-")).tensors["result"]
    computed = getattr(numerics, name)(*operands)
    assert len(recorded) == len(operands[0]) >= (65_536 if name == "cvt_f32_f16" else 200_000)
    differing = np.flatnonzero(computed != recorded)
    shown = [
        ([hex(o[i]) for o in operands], hex(recorded[i]), hex(computed[i])) for i in differing[:5].tolist()
    ]
    assert not shown


def test_the_comparison_can_fail() -> None:
    """A product and a sum that are rounded one after the other are not what fma.rn.f32 gave."""
    a, b, c = operand_sets("fma_f32")
    recorded = silicon.load("fma-f32").tensors["result"]
    twice = numerics.add_f32(numerics.mul_f32(a, b), c)
    assert np.count_nonzero(twice != recorded) > 10_000


@pytest.mark.parametrize("acc", ["fp32", "fp16"])
def test_tensor_core_steps(acc: str) -> None:
    """Four chained K = 32 steps from a given accumulator, seven classes of data, NaN and infinities among them."""
    given = products()
    recorded = silicon.load("products").tensors[acc].reshape(given.c.shape)
    start: Any = given.c if acc == "fp32" else half_accumulators(given.c)
    differing: dict[str, int] = {}
    for tile, name in enumerate(given.names):
        computed = numerics.mma(given.a[tile], given.b[tile], machine="sm90", acc=acc, c=start[tile])  # type: ignore[arg-type]
        differing[name] = differing.get(name, 0) + int(np.count_nonzero(computed != recorded[tile]))
    assert recorded.size == ENTRIES[acc]
    assert set(differing.values()) == {0}, differing


@pytest.mark.parametrize("bits", [12, 14])
def test_another_width_is_not_what_the_hardware_does(bits: int) -> None:
    given = products()
    recorded = silicon.load("products").tensors["fp32"].reshape(given.c.shape)
    other = replace(numerics.MACHINES["sm90"], fraction_bits=bits)
    tile = given.names.index("wide")
    computed = numerics.mma(given.a[tile], given.b[tile], machine=other, acc="fp32", c=given.c[tile])
    assert np.count_nonzero(computed != recorded[tile]) > 500


def emulate(program: Program, map_bytes: bytes, order: str, seed: int) -> tuple[Any, set[str]]:
    memory = GlobalMemory()
    data = np.frombuffer(words(f"silicon/program/{program.name}", program.words).tobytes(), np.uint8).copy()
    source = memory.add("in", data, writable=False)
    out = np.zeros(output_bytes(program), np.uint8)
    target = memory.add("out", out, writable=True)
    if program.tile is not None:  # the recorded map, with this run's address in place of the GPU's
        map_bytes = struct.pack("<Q", source.address) + map_bytes[8:]
    parameters = struct.pack("<QQ", source.address, target.address) + bytes(48) + map_bytes
    call = LaunchCall((1, 1, 1), (program.threads, 1, 1), program.shared, parameters)
    outcome = run_grid(decode(parse(program.ptx)), call, memory, order=order, seed=seed, budget=100_000)
    return out, {finding.kind for finding in outcome.findings if finding.severity == "error"}


RECORDED = [program for program in PROGRAMS if f"{program.name}.out" in silicon.load("programs").tensors]


def test_every_program_is_recorded() -> None:
    assert [program.name for program in PROGRAMS if program not in RECORDED] == []


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("program", RECORDED, ids=lambda program: program.name)
def test_a_program_leaves_the_memory_that_the_gpu_left(program: Program, order: str) -> None:
    tensors = silicon.load("programs").tensors
    recorded = tensors[f"{program.name}.out"]
    map_bytes = tensors[f"{program.name}.map"].tobytes() if program.tile is not None else program.parameter
    assert recorded.any()
    for seed in (0, 7):
        out, errors = emulate(program, map_bytes, order, seed)
        assert not errors
        assert np.flatnonzero(out != recorded).tolist() == []


def test_a_tile_that_starts_inside_16_bytes_is_refused_as_the_gpu_does() -> None:
    """An H200 answers such a load with an illegal instruction."""
    (program,) = [p for p in PROGRAMS if p.name == "tile-floats"]
    shifted = replace(program, body=program.body.replace("mov.b32 %r10, 12;", "mov.b32 %r10, 13;"))
    assert shifted.body != program.body
    map_bytes = silicon.load("programs").tensors["tile-floats.map"].tobytes()
    assert emulate(shifted, map_bytes, "eager", 0)[1] == {"misaligned"}


def test_broken_recordings_are_refused(tmp_path: Any) -> None:
    good = (RECORDINGS / "programs.safetensors").read_bytes()
    assert encode(silicon.load("programs")) == good
    cases = {
        "programs": good[:-1],
        "renamed": good,
        "programs2": good[:-9] + bytes([good[-9] ^ 1]) + good[-8:],
    }
    for name, data in cases.items():
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(data)
        with pytest.raises(InputError, match=str(path)):
            silicon.load(name, tmp_path)
    with pytest.raises(InputError):
        silicon.load("nowhere", tmp_path)
