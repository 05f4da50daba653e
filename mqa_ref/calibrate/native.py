"""The tensor core of a GPU as a device to calibrate: programs launched through the driver in a process of their own.

A program that hangs or faults takes its process with it, and the caller gets an error. Standing: the wgmma program ran
on an H200; the tcgen05 program has run in the emulator and was assembled by ptxas, on hardware it has not run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mqa_ref.calibrate.programs import ENTRY, PROGRAMS, THREADS
from mqa_ref.calibrate.tiles import Tiles, Words, images, results
from mqa_ref.cuda.driver import Bound, Gpu
from mqa_ref.cuda.probe import require
from mqa_ref.errors import KernelDied, KernelError, KernelTimeout, MqaRefError, NotAvailable
from mqa_ref.verification import wire
from mqa_ref.verification.wire import Message, WireError

SECONDS = 120.0
"""What the process may take; on an H200 it needs about two seconds."""
_GUARD = 4096
_GUARD_BYTE = 0xA5
_SHOWN = 600


def run_here(gpu: Gpu, program_of: str, tiles: Tiles, acc: str) -> Words:
    """One launch on an opened GPU: a CTA for each tile. Raises KernelError when something was stored out of place."""
    program = PROGRAMS[program_of](acc)
    size = tiles.c.size * program.word_bytes
    out = np.full(size + 2 * _GUARD, _GUARD_BYTE, np.uint8)
    arrays = [*images(tiles, program), out]
    places = [gpu.allocate(array.size) for array in arrays]
    try:
        for place, array in zip(places, arrays, strict=True):
            gpu.upload(place, array)
        words = [*places[:3], places[3] + _GUARD]
        parameters = tuple(word.to_bytes(8, "little") for word in words)
        function = gpu.function(program.ptx.encode(), ENTRY, program.shared_bytes)
        gpu.launch(function, Bound((len(tiles.a), 1, 1), (THREADS, 1, 1), program.shared_bytes, parameters))
        back = gpu.download(places[3], out.size)
    finally:
        for place in places:
            gpu.free(place)
    if (back[:_GUARD] != _GUARD_BYTE).any() or (back[-_GUARD:] != _GUARD_BYTE).any():
        raise KernelError("the calibration program stored out of place")
    return results(back[_GUARD:-_GUARD], tiles, program, acc)


def run_apart(program_of: str, given: Mapping[str, Tiles], seconds: float = SECONDS) -> dict[str, Words]:
    """The results of tiles by accumulator format, from a process that is stopped after ``seconds``.

    Raises NotAvailable without a GPU that runs the program, KernelTimeout, KernelDied and KernelError.
    """
    with tempfile.TemporaryDirectory(prefix="mqa-ref-") as name:
        folder = Path(name)
        arrays: dict[str, NDArray[np.generic]] = {}
        for acc, tiles in given.items():
            arrays |= {f"{acc}.a": tiles.a, f"{acc}.b": tiles.b, f"{acc}.c": tiles.c}
        wire.write(folder / "request", Message({"program": program_of, "formats": list(given)}, arrays))
        command = [sys.executable, "-B", "-m", __name__, name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired as error:
            raise KernelTimeout(f"the calibration program was stopped after {seconds:g} seconds") from error
        try:
            answer = wire.read(folder / "answer")
        except WireError as error:
            told = (done.stdout + done.stderr)[-_SHOWN:].strip()
            raise KernelDied(f"the calibration ended with exit code {done.returncode}: {told}") from error
    if "error" in answer.plain:
        kind = NotAvailable if answer.plain["error"] == "NotAvailable" else KernelError
        raise kind(str(answer.plain["text"]))
    return {acc: answer.arrays[acc] for acc in given}


def serve(folder: Path) -> None:
    """The other side of ``run_apart``."""
    request = wire.read(folder / "request")
    try:
        found = {}
        gpu = Gpu(require().index)
        for acc in request.plain["formats"]:
            tiles = Tiles(*(request.arrays[f"{acc}.{name}"] for name in "abc"))
            found[acc] = run_here(gpu, request.plain["program"], tiles, acc)
        wire.write(folder / "answer", Message({}, found))
    except MqaRefError as error:
        wire.write(folder / "answer", Message({"error": type(error).__name__, "text": str(error)}))


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
