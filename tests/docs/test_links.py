"""Links between the project's pages lead somewhere, heading included; links to other places are listed, not followed.

``./dev docs`` checks those within docs/ too; the README and the pages beside it are no part of the site.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.docs.blocks import PAGES, ROOT, name

ALL = (*PAGES, ROOT / "CHANGELOG.md", ROOT / "examples" / "kernel-repository" / "README.md")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """The text without fenced blocks and code."""
    text = re.sub(r"(?ms)^\s*```.*?^\s*```$", "", page.read_text(encoding="utf-8"))
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in a link, as GitHub and the site call them."""
    text = re.sub(r"(?ms)^\s*```.*?^\s*```$", "", page.read_text(encoding="utf-8"))
    heads = re.findall(r"(?m)^#+ (.+)$", text)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", head.lower()).strip()) for head in heads}


def faults(page: Path) -> list[str]:
    found = []
    for link in _LINK.findall(prose(page)):
        if link.startswith(("https://", "http://")):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists():
            found.append(f"{name(page)}: {link} leads nowhere")
        elif anchor and anchor not in anchors(target):
            found.append(f"{name(page)}: {link} leads to no heading of {target.name}")
    return found


@pytest.mark.parametrize("page", ALL, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert faults(page) == []


def test_external_links_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    links = {link for page in ALL for link in _LINK.findall(prose(page)) if "://" in link}
    with capsys.disabled():
        sys.stdout.write(f"\nnot followed: {', '.join(sorted(links))}")
    assert all(link.startswith("https://") for link in links)


def test_every_page_is_in_the_navigation() -> None:
    told = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    text = repr(told["nav"])
    docs = ROOT / "docs"
    pages = [page.relative_to(docs).as_posix() for page in docs.rglob("*.md")]
    assert [page for page in pages if f"'{page}'" not in text] == []
    assert told["strict"] is True
    assert told["theme"]["font"] is False
    assert "docs" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize(
    ("text", "code"), [("[b](b.md#here)", 0), ("[b](b.md#gone)", 1), ("[c](c.md)", 1), ("[d](/d.md)", 1)]
)
def test_the_sites_own_check_can_fail(tmp_path: Path, text: str, code: int) -> None:
    """The command of ``./dev docs`` with the project's settings over two pages. (With --quiet it passed everything.)"""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text(f"# A\n\n{text}\n")
    (docs / "b.md").write_text("# B\n\n## Here\n")
    told = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    told |= {
        "nav": ["a.md", "b.md"],
        "plugins": [],
        "docs_dir": str(docs),
        "site_dir": str(tmp_path / "site"),
    }
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(told))
    found = re.search(
        r'^    "docs": \[\["env", "([A-Z0-9_]+)=1", "mkdocs", (.*)\]\],$',
        (ROOT / "dev").read_text(),
        re.MULTILINE,
    )
    assert found is not None
    words = re.findall(r'"([^"]+)"', found[2])
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *words, "--config-file", str(tmp_path / "mkdocs.yml")],
        env={**os.environ, found[1]: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr


def test_the_check_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.test_links.name", lambda page: page.name)
    page = tmp_path / "a.md"
    page.write_text(
        "# A head: line\n\n[x](b.md) [y](#a-head-line) [z](#none) [w](a.md#a-head-line)\n```text\n[v](c.md)\n```\n"
    )
    assert [fault.split(": ")[1] for fault in faults(page)] == [
        "b.md leads nowhere",
        "#none leads to no heading of a.md",
    ]
