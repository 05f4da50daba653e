"""Run DeepGEMM's SM90 kernel on the GPU of this machine and write what came back.

Where the wheel and nvcc are (no GPU needed):

    PYTHONPATH=. python tools/record/deepgemm.py compile CUBINS

On a machine with a GPU of compute capability 9.0, numpy and cuda-python, with the folder CUBINS from before:

    PYTHONPATH=.:tools/record python tools/record/deepgemm.py run CUBINS OUT [FIRST LAST]

writes OUT/deepgemm-recorded.npz and OUT/deepgemm-fuzz-<n>.npz: valid logits, hashes of all that was given and of whole
output buffers, and what each launch was checked for: equal bits in every rerun, inputs unchanged, nothing written
around the output, equality with the reference's order, and the bound for any order. FIRST and LAST choose drawn
problems.
``python -m mqa_ref.golden.silicon.pack_deepgemm OUT`` turns it into recordings of the package.
"""

from __future__ import annotations

import datetime as dt
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mqa_ref.golden.silicon import deepgemm as cases
from mqa_ref.kernel.deepgemm.description import describe_launch, describe_metadata
from mqa_ref.kernel.deepgemm.shape import Shape
from mqa_ref.kernel.raw_launch import POISON_BYTE, RawLaunch
from mqa_ref.problem import Problem

RERUNS = 20
GUARD = 1 << 16
ARENA = 1 << 28
FILE_PROBLEMS = 512
METADATA_BATCHES = (32, 64)


def image_name(problem: Problem) -> str:
    return f"sm_90a-n{problem.next_n}-h{problem.heads}"


def compile_all(folder: Path) -> None:
    """One cubin and its entry's name for each shape, and the metadata kernels of 132 CTAs."""
    from mqa_ref.kernel.deepgemm.description import compile_shape
    from mqa_ref.kernel.deepgemm.package import headers
    from mqa_ref.kernel.nvcc import compile_kernel
    from mqa_ref.verification.given import given

    folder.mkdir(parents=True, exist_ok=True)
    about = {}
    for heads, next_n in cases.SHAPES:
        problem = given((1,), num_sms=132, page=64, heads=heads, next_n=next_n).problem
        kernel = compile_shape(Shape.of(problem, cases.FLOW, "sm_90a"))
        (folder / f"{image_name(problem)}.cubin").write_bytes(kernel.cubin)
        about[image_name(problem)] = {"entry": kernel.entry, "compiler": kernel.compiler}
    for batch in METADATA_BATCHES:
        problem = given((1,) * batch, num_sms=132, page=64, heads=32, next_n=1).problem
        text, _ = describe_metadata(problem, "sm_90a")
        found = headers()
        kernel = compile_kernel(text, "sm_90a", (found.include,), found.identity)
        (folder / f"metadata-{batch}.cubin").write_bytes(kernel.cubin)
        about[f"metadata-{batch}"] = {"entry": kernel.entry, "compiler": kernel.compiler}
    (folder / "about.json").write_text(json.dumps(about, indent=1))


class Device:
    """The GPU with one arena in which every launch places its buffers, far from each other."""

    def __init__(self, folder: Path) -> None:
        from gpu import Gpu, check

        self.gpu, self.check = Gpu(), check
        about = json.loads((folder / "about.json").read_text())
        self.compiler = sorted({one["compiler"] for one in about.values()})
        self.functions = {
            name: self.gpu.function((folder / f"{name}.cubin").read_bytes(), one["entry"])
            for name, one in about.items()
        }
        self.arena = self.gpu.upload(np.full(ARENA, POISON_BYTE, np.uint8))

    def run(self, name: str, launch: RawLaunch, reruns: int) -> tuple[np.ndarray, dict[str, bool]]:
        """The output buffer of the first run, and whether the runs kept what they must."""
        from cuda.bindings import driver

        check = self.check
        places, end = {}, GUARD
        for buffer in launch.buffers:
            places[buffer.name] = end
            end += -(-buffer.data.size // 1024) * 1024 + GUARD
        if end > ARENA:
            raise ValueError(f"{end} bytes of buffers in an arena of {ARENA}")
        image = np.full(end, POISON_BYTE, np.uint8)
        for buffer in launch.buffers:
            image[places[buffer.name] : places[buffer.name] + buffer.data.size] = buffer.data
        arguments = self.gpu.arguments(launch, {name: self.arena + at for name, at in places.items()})
        function = self.functions[name]
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(driver.cuFuncSetAttribute(function, attribute, launch.shared_bytes))
        out, kept = launch.buffer(launch.output), {"reruns": True, "inputs": True, "guards": True}
        first = places[out.name]
        wanted: Any = None
        after = np.empty_like(image)
        for _ in range(reruns):
            check(driver.cuMemcpyHtoD(self.arena, image.ctypes.data, image.nbytes))
            self.gpu.launch(function, launch.grid[0], launch.block[0], launch.shared_bytes, arguments)
            check(driver.cuMemcpyDtoH(after.ctypes.data, self.arena, after.nbytes))
            got = after[first : first + out.data.size].copy()
            wanted = got if wanted is None else wanted
            kept["reruns"] &= bool(np.array_equal(got, wanted))
            after[first : first + out.data.size] = image[first : first + out.data.size]
            if not np.array_equal(after, image):
                differing = np.flatnonzero(after != image)
                inside = any(
                    places[b.name] <= at < places[b.name] + b.data.size
                    for b in launch.buffers
                    for at in differing
                )
                kept["inputs" if inside else "guards"] = False
        return wanted, kept


def prepared(number: int) -> tuple[int, Problem, RawLaunch, bytes]:
    problem = cases.fuzzed(number).problem
    launch = describe_launch(problem, cases.FLOW, "sm_90a")
    return number, problem, launch, cases.given_digest(launch)


def judged(task: tuple[Problem, np.ndarray]) -> tuple[int, int]:
    """How many valid logits differ from the reference's order, and how many are outside the any-order bound."""
    from mqa_ref.compare import compare_within
    from mqa_ref.compare.tolerances import factor
    from mqa_ref.launch import Launch
    from mqa_ref.reference import any_order_bounds, reference_logits

    problem, output = task
    told: dict[str, Any] = {"generation": "max"}
    bits, valid = reference_logits(problem, cases.FLOW, "sm90", order="deepgemm_sm90", **told)
    logits = output.view("<u4").reshape(problem.rows, problem.row_stride)
    differing = int(np.count_nonzero(logits[:, : valid.shape[1]][valid] != bits[valid]))
    launch = Launch(logits, np.ones(logits.shape, np.bool_), (), 0, 0, 0.0)
    bounds = any_order_bounds(problem, cases.FLOW, "sm90", scaled="parts", **told)
    share = factor(cases.FLOW, "foreign_order")
    within = compare_within(launch, problem, cases.FLOW, bounds, share, machine="sm90", **told)
    return differing, within.mismatched


def record(
    device: Device, todo: Iterator[Any], pool: Any, target: Path, facts: dict[str, str], reruns: int
) -> None:
    """Launch every prepared problem and write one file."""
    logits, given, output, kept, tasks, metadata = [], [], [], [], [], []
    for _, problem, launch, digest in todo:
        got, checks = device.run(image_name(problem), launch, reruns)
        logits.append(cases.valid_logits(problem, got))
        given.append(np.frombuffer(digest, np.uint8))
        output.append(np.frombuffer(cases.digest_of(got), np.uint8))
        kept.append([checks["reruns"], checks["inputs"], checks["guards"]])
        tasks.append((problem, got))
        if problem.num_sms == 132 and problem.batch <= 32:
            _, made = describe_metadata(problem, "sm_90a")
            table, _ = device.run("metadata-32", made, 1)
            metadata.append([len(given) - 1, int(np.array_equal(table, launch.buffer("schedule_meta").data))])
    counts = np.array(pool.map(judged, tasks, chunksize=4), np.int64)
    bad = np.flatnonzero(counts.any(axis=1) | ~np.array(kept).all(axis=1))
    print(
        f"{target.name}: {len(given)} problems, {sum(map(len, logits))} logits, differ from the order "
        f"{counts[:, 0].sum()}, outside the bound {counts[:, 1].sum()}, kept {np.array(kept).all(axis=0).tolist()} "
        f"(reruns, inputs, guards), metadata equal {sum(m[1] for m in metadata)} of {len(metadata)}, "
        f"bad {bad[:20].tolist()}",
        flush=True,
    )
    np.savez(
        target,
        logits=np.concatenate(logits),
        sizes=np.array([len(one) for one in logits], np.int64),
        given_sha256=np.stack(given),
        output_sha256=np.stack(output),
        kept=np.array(kept, np.uint8),
        counts=counts,
        metadata=np.array(metadata, np.int32).reshape(-1, 2),
        facts=np.frombuffer(json.dumps(facts, sort_keys=True).encode(), np.uint8),
    )


def main(arguments: list[str]) -> None:
    command, folder = arguments[0], Path(arguments[1])
    if command == "compile":
        compile_all(folder)
        return
    target = Path(arguments[2])
    first, last = (int(arguments[3]), int(arguments[4])) if len(arguments) > 3 else (0, cases.FUZZED)
    target.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    with multiprocessing.Pool(
        max(1, (os.cpu_count() or 2) - 1)
    ) as pool:  # before the GPU's context: it forks
        device = Device(folder)
        facts = device.gpu.describe()
        program = f"tools/record/deepgemm.py, sgl-deep-gemm 0.1.5, {', '.join(device.compiler)}"
        facts |= {"date": dt.datetime.now(dt.UTC).date().isoformat(), "numpy": np.__version__}
        facts |= {"python": platform.python_version(), "program": program}
        driver = Path("driver.txt")
        facts["driver"] = driver.read_text().strip() if driver.exists() else ""
        ready = []
        for number, case in enumerate(cases.recorded()):
            launch = describe_launch(case.problem, cases.FLOW, "sm_90a")
            ready.append((number, case.problem, launch, cases.given_digest(launch)))
        record(device, iter(ready), pool, target / "deepgemm-recorded.npz", facts, RERUNS)
        print(f"{time.perf_counter() - begun:.1f} s", flush=True)
        for start in range(first, last, FILE_PROBLEMS):
            todo = pool.imap(prepared, range(start, min(start + FILE_PROBLEMS, last)), chunksize=4)
            name = f"deepgemm-fuzz-{start // FILE_PROBLEMS}.npz"
            record(device, todo, pool, target / name, facts, RERUNS)
            print(f"{time.perf_counter() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
