"""Every block of code in the README and the documentation does what the page says it does; the tutorial is in
test_tutorial, so that two processes share the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, blocks, name, run_page

WITH_CODE = [
    page
    for page in PAGES
    if page.name != "tutorial.md" and any(one.language in ("console", "python") for one in blocks(page))
]


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_the_code_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    faults = run_page(page, tmp_path)
    assert not faults, "\n\n".join(faults)
