"""What the metadata may say: with the right digest and a wrong statement, a file is refused all the same."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from mqa_ref.golden.entry import Entry
from mqa_ref.golden.metadata import check_metadata, is_name, metadata_of


def signed(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with the digest a forger would compute."""
    rest = {name: value for name, value in facts.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return rest | {"digest": hashlib.sha256(text.encode()).hexdigest()}


def test_what_is_written_passes(entry: Entry) -> None:
    facts = metadata_of(entry)
    assert signed(facts) == facts
    check_metadata(facts, entry.tensors)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"more": 1}, "metadata other than"),
        ({"format": 2}, "unknown format"),
        ({"format": True}, "unknown format"),
        ({"name": "../x"}, "case name"),
        ({"kind": "other"}, "unknown kind"),
        ({"case_id": "0123"}, "case_id"),
        ({"case_id": None}, "case_id"),
        ({"sha256": {}}, "sha256 of other tensors"),
        ({"sha256": []}, "sha256 that is no table"),
        ({"views": {"a.sm90": "bits.none"}}, "a view of a tensor"),
        ({"views": {"a.sm90": ["bits.a"]}}, "a view of a tensor"),
        ({"views": {"A": "bits.a"}}, "views that is no table"),
        ({"whole": {"bits.a": {"elements": 1}}}, "no digest"),
        ({"whole": {"bits.a": {"elements": -1, "sha256": "ab" * 32}}}, "no digest"),
        ({"whole": {"bits.a": {"elements": True, "sha256": "ab" * 32}}}, "no digest"),
        ({"tiles": ["0"]}, "bad tiles"),
        ({"tiles": {}}, "bad tiles"),
        ({"faults": [1]}, "bad faults"),
    ],
)
def test_refused(entry: Entry, changed: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_metadata(signed(metadata_of(entry) | changed), entry.tensors)


def test_refused_without_its_digest(entry: Entry) -> None:
    with pytest.raises(ValueError, match="another SHA-256"):
        check_metadata(metadata_of(entry) | {"name": "other"}, entry.tensors)
    with pytest.raises(ValueError, match="metadata other than"):
        check_metadata([], entry.tensors)


@pytest.mark.parametrize("name", ["a", "context-8193", "fp32-fp32-bf16.sm90.max", "0"])
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a..b", "a/b", "/a", "a\\b", "A", "a b", "-a", "a-", "a\n", "ä", None, 3]
)
def test_no_names(name: object) -> None:
    assert not is_name(name)
