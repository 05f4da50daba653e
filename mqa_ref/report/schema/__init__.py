"""The JSON Schema of what commands write, and a check against it (which needs the package jsonschema: tests only)."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from mqa_ref.result import VERSION

PATH = Path(__file__).with_name(f"report-{VERSION}.json")


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The schema of the present version (JSON Schema, draft 2020-12)."""
    told: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return told


def faults_of_json(value: object) -> tuple[str, ...]:
    """What of a JSON value does not hold to the schema, one sentence each, with the place; empty when all does."""
    from jsonschema import Draft202012Validator

    found = Draft202012Validator(schema()).iter_errors(value)
    return tuple(sorted(f"{error.json_path}: {error.message}" for error in found))
