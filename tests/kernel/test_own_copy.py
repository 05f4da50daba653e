"""The copy of the builtin kernel: complete, alone, the same code, and never written over a file of the user's."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mqa_ref.cli.app import run
from mqa_ref.kernel import own_copy, sm100

FOLDER = Path(sm100.__file__).parent


def imports(text: str) -> set[str]:
    return {node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}


def test_it_imports_itself_and_nothing_of_the_package_but_the_description() -> None:
    files = own_copy.own_copy()
    for text in files.values():
        ours = {module for module in imports(text) if module.startswith("mqa_ref")}
        assert ours <= {"mqa_ref.kernel.config"}
        neighbours = {f"{module}.py" for module in imports(text) if module.startswith(own_copy.PREFIX)}
        assert neighbours <= set(files)
    reached = {own_copy.MAIN}
    while (
        more := {
            f"{module}.py" for name in reached for module in imports(files[name]) if f"{module}.py" in files
        }
        - reached
    ):
        reached |= more
    assert reached == set(files)
    assert f"class {own_copy.CLASS}:" in files[own_copy.MAIN]


def test_nothing_but_imports_differs() -> None:
    for name, text in own_copy.own_copy().items():
        original = (FOLDER / name.removeprefix(own_copy.PREFIX)).read_text()
        pairs = zip(original.splitlines(), text.splitlines(), strict=True)
        differing = [(old, new) for old, new in pairs if old != new]
        assert all(old.startswith("from mqa_ref.kernel.") for old, _ in differing)
        assert len(differing) == sum("from paged_mqa_" in line for line in text.splitlines())


def test_the_command_writes_over_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "mine"
    assert run(["compile", "--source", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == set(own_copy.own_copy())
    assert f"--kernel {folder / own_copy.MAIN}:{own_copy.CLASS}" in capsys.readouterr().out
    changed = folder / "paged_mqa_roles.py"
    changed.write_text("mine")
    (folder / "paged_mqa_walk.py").unlink()
    assert run(["compile", "--source", str(folder)]) == 2
    assert changed.read_text() == "mine"
    assert not (folder / "paged_mqa_walk.py").exists()
    assert run(["compile", "--source", str(tmp_path / "other"), "--kernel", "sglang"]) == 2
    assert not (tmp_path / "other").exists()
