"""JSON in one spelling only: sorted keys, no spaces, ASCII, integers and strings; everything else is refused.

The same content has the same bytes, so files can be compared by bytes, and a reader of files from elsewhere has
little to go wrong.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

MAX_DEPTH = 5
"""How deep objects and lists may nest; golden files need 4."""


def dumps(value: object) -> str:
    """``value`` (dicts with string keys, lists, strings, integers) in the canonical spelling."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def loads(text: bytes) -> Any:
    """The value of a canonical JSON text. Raises ValueError, saying what is wrong, for any other text; the nesting is
    measured before anything is parsed."""
    if _depth(text) > MAX_DEPTH:
        raise ValueError(f"JSON nested deeper than {MAX_DEPTH}")
    try:
        value = json.loads(
            text.decode("ascii"),
            object_pairs_hook=_no_duplicates,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
        )
    except UnicodeDecodeError:
        raise ValueError("JSON with bytes that are not ASCII") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error}") from None
    if dumps(value).encode() != text:
        raise ValueError("JSON that is not canonical (sorted keys, no spaces)")
    return value


def _depth(text: bytes) -> int:
    """The deepest nesting of brackets outside strings."""
    deepest = depth = 0
    in_string = escaped = False
    for byte in text:
        if in_string:
            in_string = escaped or byte != 0x22
            escaped = not escaped and byte == 0x5C
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:64]!r} twice")
        found[key] = value
    return found


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"the number {text[:32]}, which is no integer")
