"""The ledger of mutants that no test can tell from the code: every entry still speaks of code that is there."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ENTRIES: list[dict[str, Any]] = tomllib.loads((ROOT / "docs" / "mutmut-survivors.toml").read_text())["entry"]


def functions(module: str) -> dict[str, str]:
    """The text of every function of a module and of its classes by qualified name."""
    text = (ROOT / module).read_text(encoding="utf-8")
    found: dict[str, str] = {}

    def look(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                found[prefix + node.name] = ast.get_source_segment(text, node) or ""
            elif isinstance(node, ast.ClassDef):
                look(node.body, f"{prefix}{node.name}.")

    look(ast.parse(text).body, "")
    return found | {"": text}


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def names_of(entry: dict[str, Any]) -> str:
    return f"{entry['module']}:{entry['function']}"


@pytest.mark.parametrize("entry", ENTRIES, ids=names_of)
def test_an_entry_names_code_that_is_there(entry: dict[str, Any]) -> None:
    assert set(entry) == {"module", "function", "reason", "mutants"}
    known = functions(entry["module"])
    assert entry["function"] in known
    assert len(entry["reason"].split()) > 3
    for before, after in entry["mutants"]:
        assert squeezed(before) in squeezed(known[entry["function"]]), before
        assert squeezed(before) != squeezed(after)


def test_no_mutant_has_two_entries() -> None:
    told = [(names_of(entry), *mutant) for entry in ENTRIES for mutant in entry["mutants"]]
    assert len(set(told)) == len(told) > 0


def test_the_tool_reads_the_ledger(tmp_path: Path) -> None:
    """A survivor with an entry is equivalent, one without is open, one that a test failed on is killed."""
    place = ROOT / "tools" / "mutate_python" / "outcomes.py"
    spec = importlib.util.spec_from_file_location("mutate_python_outcomes", place)
    assert spec is not None
    assert spec.loader is not None
    outcomes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(outcomes)
    entry = ENTRIES[0]
    before, after = entry["mutants"][0]
    one = {"module": entry["module"], "functions": [entry["function"]] if entry["function"] else []}
    lines = [
        one | {"id": "a", "before": before, "after": after, "outcome": "survived", "tests": 1, "of": 1},
        one | {"id": "b", "before": before, "after": "no such thing", "outcome": "survived"},
        one | {"id": "c", "before": before, "after": "pass", "outcome": "tests/x.py::test_y"},
        one | {"id": "d", "before": before, "after": "while True: pass", "outcome": "time-out"},
        one | {"id": "e", "before": before, "after": "no such thing", "outcome": "unreached"},
    ]
    found = tmp_path / "found.jsonl"
    found.write_text("".join(f"{outcomes.json.dumps(line)}\n" for line in lines))
    told, open_ones = outcomes.table([found], ROOT / "docs" / "mutmut-survivors.toml")
    assert [mutant["id"] for mutant in open_ones] == ["b", "e"]
    assert told.splitlines()[-1] == "| all | 5 | 1 | 1 | 1 | 1 | 1 |"
