"""The output of tools/record/record.py, as the files of the package.

python -m mqa_ref.golden.silicon.pack RECORDING.npz
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.golden.silicon.operands import OPERATIONS
from mqa_ref.golden.silicon.programs import PROGRAMS
from mqa_ref.golden.silicon.store import RECORDINGS, SUFFIX, Recording, encode
from mqa_ref.golden.silicon.values import tensors_of


def recordings(raw: dict[str, NDArray[Any]]) -> list[Recording]:
    """One recording for each operation, one for the products, one for the programs, one for single instructions."""
    facts = json.loads(raw["facts"].tobytes())
    made = [
        Recording(name.replace("_", "-"), {"result": raw[f"operation.{name}"]}, facts) for name in OPERATIONS
    ]
    tiles = {acc: raw[f"products.{acc}"].reshape(len(raw[f"products.{acc}"]), -1) for acc in ("fp32", "fp16")}
    made.append(Recording("products", tiles, facts))
    programs = {}
    for program in PROGRAMS:
        programs[f"{program.name}.out"] = raw[f"program.{program.name}"]
        if program.tile is not None:
            programs[f"{program.name}.map"] = raw[f"map.{program.name}"]
    made.append(Recording("programs", programs, facts))
    words = {name.removeprefix("value."): raw[name] for name in sorted(raw) if name.startswith("value.")}
    made.append(Recording("values", tensors_of(words), facts))
    return made


def main(source: str) -> None:
    """Write every recording to a temporary name first."""
    with np.load(source, allow_pickle=False) as file:
        raw = {name: file[name] for name in file.files}
    RECORDINGS.mkdir(exist_ok=True)
    for recording in recordings(raw):
        target = RECORDINGS / f"{recording.name}{SUFFIX}"
        temporary = target.with_suffix(".new")
        temporary.write_bytes(encode(recording))
        temporary.replace(target)


if __name__ == "__main__":
    main(sys.argv[1])
