"""Case files: what is written is read, and what strangers wrote is refused before anything is allocated for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError
from mqa_ref.fuzz.casefile import Case, decode_case, encode_case, kernel_of, read_case, write_case
from mqa_ref.fuzz.description import Description, Override
from mqa_ref.fuzz.session import subject_of
from mqa_ref.fuzz.shapes import Shape
from mqa_ref.golden import strictjson

DESCRIPTION = Description(
    lengths=(129, 0, 65),
    shape=Shape(
        page=32, heads=16, next_n=5, num_sms=3, flow="fp32-fp16-bf16", options=(("max_w_in_reg", 4),)
    ),
    data="special_scales",
    order="repeated",
    rest="garbage",
    cuts=(0, 2),
    columns=1,
    overrides=(Override("weight", "nan"),),
    interleaving="random",
    interleaving_seed=7,
    check="rerun",
)
CASE = Case(
    subject_of(DESCRIPTION), "rerun", "check/0", "sm100", "folded", "builtin", "bits:value", "a message"
)
GOOD = encode_case(CASE)


def test_a_case_comes_back(tmp_path: Path) -> None:
    path = write_case(tmp_path, CASE)
    assert path.name == f"bits-value-{CASE.subject.problem.case_id}.case"
    read = read_case(path)
    assert read.subject.problem.case_id == CASE.subject.problem.case_id
    assert (read.subject.flow, read.subject.options) == (CASE.subject.flow, {"max_w_in_reg": 4})
    assert (read.subject.order, read.subject.seed, read.check, read.label) == (
        "random",
        7,
        "rerun",
        "check/0",
    )
    assert encode_case(read) == GOOD
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_description_comes_back_from_json() -> None:
    assert Description.from_plain(json.loads(json.dumps(DESCRIPTION.as_plain()))) == DESCRIPTION


@pytest.mark.parametrize("size", [0, 7, 8, 100, len(GOOD) // 2, len(GOOD) - 1])
def test_a_truncated_file(size: int) -> None:
    with pytest.raises(InputError, match=r"some\.case"):
        decode_case(GOOD[:size], "some.case")


def test_every_byte_of_the_data_counts() -> None:
    """A changed byte of the data is another SHA-256, wherever it is."""
    start = 8 + int.from_bytes(GOOD[:8], "little")
    for place in np.linspace(start, len(GOOD) - 1, 40).astype(int).tolist():
        spoiled = bytearray(GOOD)
        spoiled[place] ^= 1
        with pytest.raises(InputError, match="SHA-256"):
            decode_case(bytes(spoiled), "some.case")


def rewritten(change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
    """The file after ``change`` has changed header and facts; hashes as they were."""
    length = int.from_bytes(GOOD[:8], "little")
    header = json.loads(GOOD[8 : 8 + length])
    facts = json.loads(header["__metadata__"]["mqa_ref"])
    change(header, facts)
    header["__metadata__"]["mqa_ref"] = strictjson.dumps(facts)
    text = strictjson.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + GOOD[8 + length :]


def test_rewriting_nothing_changes_nothing() -> None:
    assert rewritten(lambda header, facts: None) == GOOD


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda h, f: h["q"].update(shape=[1 << 40, 1 << 40]), "dtype, shape and data_offsets"),
        (lambda h, f: h["q"].update(shape=[1 << 20, 128]), "bytes for its shape"),
        (lambda h, f: h["kv-fused"].update(dtype="F8"), "dtype, shape and data_offsets"),
        (lambda h, f: h["weights"].update(dtype="I32"), "tensor weights of dtype int32"),
        (lambda h, f: f.update(max_context_len=2**31 - 1), "logits"),
        (lambda h, f: f.update(max_context_len=10), "context_lens"),
        (lambda h, f: f.update(page=48), "page"),
        (lambda h, f: f.update(num_sms=2**40), "num_sms"),
        (lambda h, f: f.update(next_n=3), "queries of shape"),
        (lambda h, f: f.update(heads=-4), "a number that is none"),
        (lambda h, f: f.update(heads=True), "a number that is none"),
        (lambda h, f: f.update(case_id="0" * 16), "case id"),
        (lambda h, f: f.update(check="__import__"), "a property that is none"),
        (lambda h, f: f.update(flow="fp16-fp32-fp32"), "no kernel widens"),
        (lambda h, f: f.update(order="backwards"), "an order that is none"),
        (lambda h, f: f.update(machine="sm70"), "a machine that is none"),
        (lambda h, f: f.update(options={"x": [1]}), "options that are none"),
        (lambda h, f: f.update(failure="../../etc"), "a class of failure that is none"),
        (lambda h, f: f.update(message="x" * 5000), "a text of more than"),
        (lambda h, f: f.update(format=2), "an unknown format"),
        (lambda h, f: f.update(extra=1), "metadata other than"),
        (lambda h, f: f.pop("label"), "metadata other than"),
        (lambda h, f: f["sha256"].update(q="0" * 64), "another SHA-256"),
    ],
)
def test_a_lying_file(change: Any, told: str) -> None:
    with pytest.raises(InputError, match=r"some\.case") as caught:
        decode_case(rewritten(change), "some.case")
    assert told in str(caught.value)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no regular file"):
        read_case(tmp_path)
    link = tmp_path / "link.case"
    link.symlink_to(write_case(tmp_path, CASE))
    with pytest.raises(InputError, match="no regular file"):
        read_case(link)


def test_a_name_never_leaves_its_folder() -> None:
    for failure in ("finding:../../x@kernel.py:3", "error:/etc/passwd", "bits:" + "x" * 190):
        name = Case(CASE.subject, failure=failure).file_name
        assert "/" not in name
        assert ".." not in name
        assert len(name) < 100


@pytest.mark.parametrize("name", ["kernel.py:Kernel", "os.path:join", "deepgemmed:K", "builtin.x:K"])
def test_a_case_does_not_choose_which_code_is_executed(name: str) -> None:
    case = replace(CASE, kernel=name)
    with pytest.raises(InputError, match="--kernel"):
        kernel_of(case, None)
    assert kernel_of(case, "builtin") == "builtin"
    assert kernel_of(case, name) == name


@pytest.mark.parametrize("name", ["builtin", "sglang", "flashinfer", "deepgemm", "deepgemm@sm_100a"])
def test_kernels_with_a_name_are_taken_from_the_case(name: str) -> None:
    case = replace(CASE, kernel=name)
    assert kernel_of(case, None) == name
