"""What the doctor says of the cache folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqa_ref import cachedir
from mqa_ref.cli.doctor import _cache


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MQA_REF_CACHE", str(folder))
    assert _cache() == f"{folder}: 0 files, 0.0 MiB"
    assert not folder.exists()
    cachedir.store("things", cachedir.key_of("a"), cachedir.Entry(None, {"b": bytes(3 << 20)}))
    assert _cache() == f"{folder}: 1 files, 3.0 MiB"
    folder.chmod(0o777)
    assert _cache() == f"{folder} is not used: others may write to it"
    monkeypatch.setenv("MQA_REF_CACHE", "off")
    assert _cache() == "off (MQA_REF_CACHE)"
