"""One cache folder for the whole run: its processes share compiled kernels, and nothing of the user's is read.

Tests that need a GPU are skipped, with the reason, where there is none. A machine with a GPU need not have what the
other tests need: `pytest -m gpu` imports no module without a test for it, and does without pytest-timeout.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

VARIABLE = "MQA_REF_CACHE"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if not pluginmanager.hasplugin("timeout"):
        parser.addini("timeout", "seconds, for pytest-timeout, which is not installed")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.option.markexpr == "gpu" and collection_path.match("test_*.py"):
        return "pytest.mark.gpu" not in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.hasplugin("timeout"):
        config.addinivalue_line("markers", "timeout: seconds, for pytest-timeout, which is not installed")
    if hasattr(config, "workerinput") or VARIABLE in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="mqa-ref-test-cache-")
    os.environ[VARIABLE] = folder

    def remove() -> None:
        del os.environ[VARIABLE]
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(remove)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    wanted = [item for item in items if item.get_closest_marker("gpu")]
    if not wanted:
        return
    from mqa_ref.cuda.probe import missing

    reason = missing()
    if reason is not None:
        for item in wanted:
            item.add_marker(pytest.mark.skip(reason=f"did not run: {reason}"))
