"""A calibration finds the machine it is run on: any model in the emulator, by the tcgen05 program, and machines that no
model describes, made by the arithmetic itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mqa_ref.calibrate import calibrate, calibration
from mqa_ref.calibrate.analysis import decide, models_of, observe_with
from mqa_ref.calibrate.arithmetic import Arithmetic, of_model
from mqa_ref.calibrate.emulated import emulated
from mqa_ref.calibrate.programs import PROGRAMS
from mqa_ref.calibrate.rules import EXACT
from mqa_ref.calibrate.tiles import deal, diagonals, random_tiles
from mqa_ref.calibrate.vectors import vectors
from mqa_ref.cli.app import run
from mqa_ref.errors import InputError, NotAvailable
from mqa_ref.numerics import MACHINES, MachineModel, mma

SM100 = MACHINES["sm100"]
EMULATED = [(13, "rz13"), (24, "rz"), (25, "rz"), (26, "rne")]
WORKED = [*EMULATED, (13, "rz"), (20, "rz"), (24, "rne"), (25, "rz13"), (26, "rz"), (34, "rz"), (None, "rne")]


def model(bits: int | None, final: Any) -> MachineModel:
    return replace(SM100, name="device", fraction_bits=bits, final32=final)


def found(rules: dict[str, Arithmetic], published: MachineModel = SM100) -> dict[str, Any]:
    return {acc: decide(codes, acc, published)[0] for acc, codes in observe_with(rules).items()}


@pytest.mark.parametrize(
    ("bits", "final"),
    [pytest.param(*one, marks=[pytest.mark.slow] if one[0] in (24, 26) else []) for one in EMULATED],
)
def test_an_emulated_device_is_found_out(bits: int, final: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "RANDOM_TILES", 1)
    told = calibrate("emulator", model(bits, final))
    assert [(one.fraction_bits, one.final32) for one in told.models] == [(bits, final)]
    assert (told.status, told.refuted, told.differing) == ("pass", 0, 0)
    assert told.predicted == 128 * 64 * (-(-len(vectors("fp32")) // 64) - (-len(vectors("fp16")) // 64) + 2)


@pytest.mark.parametrize(("bits", "final"), WORKED)
def test_every_model_that_is_left_gives_the_same_bits(bits: int | None, final: str) -> None:
    true = model(bits, final)
    left = models_of(found({acc: of_model(true, acc) for acc in ("fp32", "fp16")}))
    assert (bits, final) in [(one.fraction_bits, one.final32) for one in left]
    tiles = random_tiles(1, 64, "fp32", 3)
    expected = mma(tiles.a[0], tiles.b[0], machine=true, acc="fp32", c=tiles.c[0])
    for one in left:
        assert np.array_equal(mma(tiles.a[0], tiles.b[0], machine=one, acc="fp32", c=tiles.c[0]), expected)


OTHER = [
    ("group", {"group": 16}, "16"),
    ("accumulator", {"accumulator_is_term": False}, "added to their sum"),
    ("cut", {"cut": "nearest"}, "to nearest even"),
    ("product_exponent", {"normalised": True}, "that of its value"),
    ("subnormal_exponent", {"operands_normalised": True}, "that of its value"),
    ("zero_terms", {"zeros_count": True}, "yes"),
    ("subnormal_operands", {"operands_flushed": True}, "taken for zero"),
    ("subnormal_accumulators", {"accumulators_flushed": True}, "taken for zero"),
    ("zero_sign", {"zero": "ieee"}, "minus when all terms are -0"),
    ("nan", {"nan": "quiet"}, "0x7fc00000, in fp16 0x7e00"),
    ("infinity", {"infinity_stays": False}, "becomes NaN"),
]


UNSETTLED = {"zero_terms": {"subnormal_accumulators"}, "subnormal_accumulators": {"subnormal_operands"}}
"""Rules that such a machine makes look broken as well: an accumulator alone stands beside zeros, and a small product is
a small result."""


@pytest.mark.parametrize(("rule", "fields", "answer"), OTHER)
def test_a_rule_that_no_model_has_is_found_and_refuted(
    rule: str, fields: dict[str, Any], answer: str
) -> None:
    rules = {acc: replace(of_model(SM100, acc), **fields) for acc in ("fp32", "fp16")}
    told = found(rules)
    for acc in ("fp32", "fp16"):
        (verdict,) = [one for one in told[acc] if one.rule == rule]
        assert verdict.answers == (answer,)
        assert verdict.status == "refuted"
        assert verdict.unexplained
        others = {one.rule for one in told[acc] if one.status == "refuted"} - {rule}
        assert others <= UNSETTLED.get(rule, set()), "the other rules are as published"
    assert models_of(told) == ()


def test_fp16_sums_that_saturate_or_go_through_fp32_are_found() -> None:
    for fields, rule, answer in (
        ({"overflow_saturates": True}, "overflow", "the largest number"),
        ({"through": 23}, "final", "toward zero to 23 bits, then to nearest even"),
    ):
        rules: Any = {"fp32": of_model(SM100, "fp32"), "fp16": replace(of_model(SM100, "fp16"), **fields)}
        (verdict,) = [one for one in found(rules)["fp16"] if one.rule == rule]
        assert verdict.answers == (answer,)


def test_noise_is_explained_by_nothing() -> None:
    codes = observe_with({acc: of_model(SM100, acc) for acc in ("fp32", "fp16")})
    codes["fp32"][0] ^= 1
    (verdict,) = [one for one in decide(codes["fp32"], "fp32", SM100)[0] if one.rule == "fraction_bits"]
    assert verdict.answers == ()
    assert verdict.status == "refuted"
    assert verdict.unexplained == ("a term 1 bits below the largest",)


def test_the_wgmma_program_in_the_emulator() -> None:
    tiles = deal(vectors("fp32")[:64], PROGRAMS["sm90"]("fp32").rows)
    words = emulated("sm90", MACHINES["sm90"])(tiles, "fp32")
    expected = mma(tiles.a[0], tiles.b[0], machine=MACHINES["sm90"], acc="fp32", c=tiles.c[0])
    assert np.array_equal(words[0], expected)
    assert diagonals(words, 64) == expected.diagonal().tolist()


def test_exact_is_an_answer() -> None:
    told = found({acc: of_model(MACHINES["exact"], acc) for acc in ("fp32", "fp16")})
    assert told["fp32"][0].answers == (*(str(bits) for bits in range(34, 41)), EXACT)
    deep = {acc: [one for one in told[acc] if one.rule == "fraction_bits_deep"] for acc in told}
    assert deep["fp32"][0].answers == (EXACT,)
    assert deep["fp16"][0].answers == ("40", EXACT), "fp16 shows nothing more than 40 bits down"


def test_bad_arguments_are_told_together() -> None:
    with pytest.raises(InputError) as caught:
        calibrate("tpu", "sm42")
    assert [fault.argument for fault in caught.value.faults] == ["on", "machine"]


def test_without_a_gpu_exit_code_4_names_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_library() -> Any:
        raise OSError("no such file")

    monkeypatch.setattr("mqa_ref.cuda.probe.load_driver", no_library)
    with pytest.raises(NotAvailable, match="cannot launch on a GPU"):
        calibrate("cuda")
    assert run(["calibrate"]) == 4
    assert run(["verify", "--on", "cuda"]) == 4
    assert capsys.readouterr().err.count("the NVIDIA driver library libcuda.so.1 is not here") == 2


@pytest.mark.gpu
def test_the_gpu_of_this_machine_confirms_its_model() -> None:
    told = calibrate("cuda")
    assert told.status == "pass", told.to_json()


def test_the_report_says_what_decided(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "RANDOM_TILES", 1)
    file = tmp_path / "calibration.json"
    assert run(["calibrate", "--on", "emulator", "--machine", "sm90", "--json", str(file)]) == 0
    plain = json.loads(file.read_text())
    assert (plain["command"], plain["status"], plain["mismatched"]) == ("calibrate", "pass", 0)
    first = plain["rules"][0]
    assert (first["rule"], first["answers"], first["standing"]) == ("fraction_bits", ["13"], "hw")
    assert any(
        "13 bits below" in one["vector"] or "14 bits below" in one["vector"] for one in first["deciders"]
    )
    assert len(plain["observed"]["fp32"]) == len(vectors("fp32"))
