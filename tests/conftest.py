"""One cache folder for the whole run: its processes share compiled kernels, and nothing of the user's is read. Tests
that need a GPU are skipped, with the reason, where there is none."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

VARIABLE = "MQA_REF_CACHE"


def pytest_configure(config: pytest.Config) -> None:
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
