"""The output of tools/record/deepgemm.py, as the files of the package.

python -m mqa_ref.golden.silicon.pack_deepgemm FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.golden.silicon.deepgemm import digest_of
from mqa_ref.golden.silicon.store import RECORDINGS, SUFFIX, Recording, encode

RECORDED, FUZZED = "deepgemm-sm90", "deepgemm-sm90-drawn"


def recordings(folder: Path) -> list[Recording]:
    """One recording with the logits of the described problems, one with the hashes of the drawn ones.

    Raises ValueError for a run whose reruns, inputs or guard zones were not kept: that is a finding, not a recording.
    """
    described = _read(folder / "deepgemm-recorded.npz")
    drawn = [_read(path) for path in sorted(folder.glob("deepgemm-fuzz-*.npz"))]
    for one in (described, *drawn):
        if not one["kept"].all():
            raise ValueError("a launch was not deterministic, or wrote over its inputs or around its output")
    facts = json.loads(described["facts"].tobytes())
    hashes = {"logits-sha256": np.concatenate([_row_hashes(one) for one in drawn])}
    return [
        Recording(RECORDED, {"logits": described["logits"], **_launch_hashes([described])}, facts),
        Recording(FUZZED, {**hashes, **_launch_hashes(drawn)}, json.loads(drawn[0]["facts"].tobytes())),
    ]


def _launch_hashes(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Of what was given, and of the whole output."""
    names = ("given", "output")
    return {f"{name}-sha256": np.concatenate([one[f"{name}_sha256"] for one in parts]) for name in names}


def _read(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _row_hashes(one: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
    parts = np.split(one["logits"], np.cumsum(one["sizes"])[:-1])
    return np.stack([np.frombuffer(digest_of(part), np.uint8) for part in parts])


def main(source: str) -> None:
    """Write every recording to a temporary name first."""
    for recording in recordings(Path(source)):
        target = RECORDINGS / f"{recording.name}{SUFFIX}"
        temporary = target.with_suffix(".new")
        temporary.write_bytes(encode(recording))
        temporary.replace(target)


if __name__ == "__main__":
    main(sys.argv[1])
