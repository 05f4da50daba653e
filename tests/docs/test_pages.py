"""Which blocks the pages have, what they are, and that the runner of blocks can fail; test_code runs them."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from mqa_ref.verification.ledger import read_ledger
from tests.docs.blocks import PAGES, Block, blocks, commands, indented, matches, name, run_console

LANGUAGES = ("console", "python", "toml", "yaml", "text")
UNRUN = 11
"""Blocks that no test runs; whoever adds one changes this number and says why in the page."""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_other_blocks(page: Path, tmp_path: Path) -> None:
    """Data are well formed, a ledger is one, and nothing that looks like a command hides where no test runs it."""
    assert indented(page) == [], "an indented block; fence it and say its language"
    for block in blocks(page):
        assert block.language in LANGUAGES, block.where
        if block.language == "toml":
            told = tomllib.loads(block.text)
            if "known" in told:
                file = tmp_path / "ledger.toml"
                file.write_text(block.text)
                assert read_ledger(file).known, block.where
        elif block.language == "yaml":
            assert yaml.safe_load(block.text), block.where
        elif block.language == "text":
            hidden = [line for line in block.text.splitlines() if line.startswith(("$ ", "mqa-ref ", "pip "))]
            assert not hidden, f"{block.where}: commands in a block of text"


def test_what_is_not_run_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    unrun = [block for page in PAGES for block in blocks(page) if block.unrun]
    with capsys.disabled():
        for block in unrun:
            sys.stdout.write(f"\nnot run: {block.where}: {block.unrun}")
    assert len(unrun) == UNRUN
    assert all(block.language in ("console", "python") for block in unrun)


def block(text: str) -> Block:
    return Block(Path("page.md"), 1, "console", text)


def test_the_runner_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong line, a wrong exit code and a missing line are each told."""
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("one\ntwo 3.5 s\nthree\n")
    good = (
        "$ cat a\none\ntwo 9.1 s\nthree",
        "$ cat a\n...\nthree",
        "$ cat a\no...\n...",
        "$ cat b\n...\n$ echo $?\n1",
    )
    bad = (
        "$ cat a\none",
        "$ cat a\none\n...\ntwo",
        "$ cat a\n...\nfour\n...",
        "$ cat b",
        "$ cat b\n...\n$ echo $?\n0",
    )
    assert [run_console(block(text)) for text in good] == [[]] * len(good)
    assert all(run_console(block(text)) for text in bad)
    with pytest.raises(ValueError, match="may not call rm"):
        run_console(block("$ rm a"))


def test_how_blocks_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("x\n\n<!-- not run: why -->\n```console\n$ a \\\n    b\nout\n```\n\n    code\n")
    (found,) = blocks(page)
    assert (found.language, found.line, found.unrun) == ("console", 4, "why")
    assert [(one.line, one.output) for one in commands(found.text)] == [("a b", ["out"])]
    assert indented(page) == [10]
    assert not matches(["a"], "b\n")
    page.write_text("```text\n")
    with pytest.raises(ValueError, match="does not end"):
        list(blocks(page))
