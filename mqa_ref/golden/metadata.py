"""The metadata of a golden file: what is written, and what is believed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from mqa_ref.golden import strictjson
from mqa_ref.golden.entry import FORMAT, KINDS, Digest, Entry, digest

KEY = "mqa_ref"
"""The one metadata key."""

_FIELDS = {"case_id", "digest", "faults", "format", "kind", "name", "sha256", "tiles", "views", "whole"}
_NAME = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
_SHA256, _CASE_ID = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{16}")
_MOST_CHARACTERS = 100


def is_name(text: object) -> bool:
    """Whether ``text`` can name a case, a tensor or a view: words of a-z and 0-9 joined by single '.' or '-'.
    No such name leads out of a folder."""
    return isinstance(text, str) and len(text) <= _MOST_CHARACTERS and _NAME.fullmatch(text) is not None


def metadata_of(entry: Entry) -> dict[str, Any]:
    """The metadata of an entry as JSON values, ``digest`` being the SHA-256 of the others."""
    facts: dict[str, Any] = {
        "format": FORMAT,
        "name": entry.name,
        "kind": entry.kind,
        "case_id": entry.case_id,
        "sha256": {name: digest(array).sha256 for name, array in entry.tensors.items()},
        "views": dict(entry.views),
        "whole": {
            name: {"elements": one.elements, "sha256": one.sha256} for name, one in entry.whole.items()
        },
        "tiles": list(entry.tiles),
        "faults": list(entry.faults),
    }
    return facts | {"digest": _digest_of(facts)}


def _digest_of(facts: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in facts.items() if name != "digest"}
    return hashlib.sha256(strictjson.dumps(rest).encode()).hexdigest()


def entry_of(facts: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> Entry:
    """The entry that checked metadata and tensors make."""
    whole = {name: Digest(one["elements"], one["sha256"]) for name, one in facts["whole"].items()}
    tiles, faults = tuple(facts["tiles"]), tuple(facts["faults"])
    return Entry(
        facts["name"], facts["kind"], facts["case_id"], tensors, facts["views"], whole, tiles, faults
    )


def check_metadata(facts: Any, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Raises ValueError, saying what is wrong, unless ``facts`` are the metadata of a golden file with
    ``tensors``."""
    if not isinstance(facts, dict) or set(facts) != _FIELDS:
        raise ValueError(f"metadata other than {', '.join(sorted(_FIELDS))}")
    _want(facts["digest"] == _digest_of(facts), "metadata with another SHA-256")
    _want(facts["format"] == FORMAT and type(facts["format"]) is int, "an unknown format")
    _want(is_name(facts["name"]), "a case name that is none")
    _want(facts["kind"] in KINDS, "an unknown kind")
    _want(_matches(_CASE_ID, facts["case_id"]), "a case_id that is none")
    for name in ("sha256", "views", "whole"):
        _want(
            isinstance(facts[name], dict) and all(map(is_name, facts[name])),
            f"{name} that is no table of names",
        )
    _want(set(facts["sha256"]) == set(tensors), "sha256 of other tensors than those in the file")
    _want(all(_matches(_SHA256, text) for text in facts["sha256"].values()), "a sha256 that is none")
    _want(
        all(isinstance(name, str) and name in tensors for name in facts["views"].values()),
        "a view of a tensor that is not in the file",
    )
    _want(all(map(_is_digest, facts["whole"].values())), "whole with something that is no digest")
    for name, kind in (("tiles", int), ("faults", str)):
        _want(isinstance(facts[name], list) and all(type(one) is kind for one in facts[name]), f"bad {name}")


def _want(good: bool, otherwise: str) -> None:
    if not good:
        raise ValueError(otherwise)


def _matches(pattern: re.Pattern[str], text: object) -> bool:
    return isinstance(text, str) and pattern.fullmatch(text) is not None


def _is_digest(one: object) -> bool:
    return (
        isinstance(one, dict)
        and set(one) == {"elements", "sha256"}
        and type(one["elements"]) is int
        and one["elements"] >= 0
        and _matches(_SHA256, one["sha256"])
    )
