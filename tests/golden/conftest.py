"""Small entries, a folder with the files of a few cheap cases, and a git checkout to regenerate in."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mqa_ref.golden import DATA, Case, by_name
from mqa_ref.golden.entry import Digest, Entry

NAMES = ("peer-10-relu-before-sum", "schedule-fewer-splits", "peer-07-stale-schedule", "peer-12-heads-10")
"""One cheap case of each kind."""


@pytest.fixture
def entry() -> Entry:
    """An entry with every kind of tensor, made up."""
    return Entry(
        "small-case",
        "logits",
        "0123456789abcdef",
        {
            "bits.a": np.array([0x3F800000, 0, 0x7FFFFFFF, 0x80000000], np.uint32),
            "bits.b": np.array([0x3C00, 0x7FFF, 1], np.uint16),
            "bits.c": np.zeros(0, np.uint16),
            "partition.forward.2": np.array([[0, 0, 0, 1], [1, 2, 0, 3]], np.int32),
        },
        {"a.sm90": "bits.a", "b.sm90": "bits.b"},
        {"bits.a": Digest(9, "ab" * 32)},
        (0, -1),
        ("nothing",),
    )


@pytest.fixture
def few() -> tuple[Case, ...]:
    """The cases of NAMES."""
    return by_name(NAMES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the package's files of NAMES."""
    made = tmp_path / "goldens"
    made.mkdir()
    for name in NAMES:
        shutil.copy(DATA / f"{name}.safetensors", made)
    return made


@pytest.fixture
def git() -> Callable[..., str]:
    """Runs git in a folder, with a name and an address of its own."""

    def run(folder: Path, *arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        line = ["git", "-C", str(folder), *identity, *arguments]
        return subprocess.run(line, check=True, capture_output=True, text=True).stdout

    return run


@pytest.fixture
def checkout(folder: Path, git: Callable[..., str]) -> Path:
    """The folder as a git checkout without uncommitted changes."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "goldens")
    return folder
