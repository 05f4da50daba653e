"""One spelling only: what is not canonical is refused, with the reason, before anything deep is parsed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqa_ref.golden import strictjson

values = st.recursive(
    st.integers(-(2**70), 2**70) | st.text(max_size=8) | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(values)
@settings(deadline=None)
def test_canonical_text_comes_back_and_other_spellings_do_not(value: object) -> None:
    text = strictjson.dumps(value)
    if max_depth(value) > strictjson.MAX_DEPTH:
        with pytest.raises(ValueError, match="nested deeper"):
            strictjson.loads(text.encode())
        return
    assert strictjson.loads(text.encode()) == value
    spaced = json.dumps(value, indent=1)
    if spaced != text:
        with pytest.raises(ValueError, match="not canonical"):
            strictjson.loads(spaced.encode())


def max_depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(max_depth, value.values()), default=0)
    return 1 + max(map(max_depth, value), default=0) if isinstance(value, list) else 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a":1,"a":1}', "'a' twice"),
        (b'{"a":{"b":1,"b":2}}', "'b' twice"),
        (b'{"b":1,"a":1}', "not canonical"),
        (b'{"a": 1}', "not canonical"),
        (b'{"a":1} ', "not canonical"),
        (b'"\\u0041"', "not canonical"),
        (b"1.0", "no integer"),
        (b"1e3", "no integer"),
        (b"NaN", "no integer"),
        (b"-Infinity", "no integer"),
        (b"-0", "not canonical"),
        (b'"\xc3\xa4"', "not ASCII"),
        (b'"a', "no JSON"),
        (b"", "no JSON"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 60_000, "nested deeper"),
        (b"9" * 5000, "digits"),
    ],
)
def test_refused(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        strictjson.loads(text)


def test_brackets_in_strings_do_not_nest() -> None:
    assert strictjson.loads(b'"[[[[[[[[\\"[[[[[["') == '[[[[[[[["[[[[[['
