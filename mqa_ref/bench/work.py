"""The standard work, and the peers that do it: what the tests of other projects compute in torch, and MMA-Sim."""

from __future__ import annotations

import os
import sysconfig
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mqa_ref.errors import NotAvailable
from mqa_ref.problem import Problem
from mqa_ref.reference.runs import runs
from mqa_ref.verification.problems import Recipe, make

Result = TypeVar("Result")

BATCH, CONTEXT, TILE = 4, 4096, 128
TILES = BATCH * CONTEXT // TILE
"""Tiles of the standard work: B 4, next_n 1, H 64, D 128, context 4096, page 64."""


@cache
def standard(data: str, batch: int = BATCH, context: int = CONTEXT, ctas: int = 148) -> Problem:
    """``batch`` sequences of ``context`` tokens. ``data``: "rms" (normally distributed) or "wide" (all exponents)."""
    return make(
        Recipe(f"bench-{data}", "benchmark", (context,) * batch, ctas, data=data, rest="tight")
    ).problem


@cache
def idle() -> Problem:
    """One token for 148 CTAs."""
    return make(Recipe("bench-idle", "benchmark", (1,), 148, rest="tight")).problem


def torch_logits(problem: Problem) -> Callable[[], Any]:
    """The plain fp32 reference: dequantise, matrix product, ReLU, weighted sum, row after row of the batch.

    Raises NotAvailable without torch.
    """
    try:
        import torch
    except ImportError as error:
        raise NotAvailable("the peer of the reference is torch; the extra `gpu` brings it") from error
    q = torch.from_numpy(problem.q.copy()).view(torch.float8_e4m3fn)
    pages, weights = torch.from_numpy(problem.kv_fused.copy()), torch.from_numpy(problem.weights.copy())
    table, split = torch.from_numpy(problem.block_table.copy()).long(), problem.page * problem.head_dim

    def run() -> Any:
        logits = torch.full((problem.rows, problem.max_context_len), float("-inf"))
        for sequence, length in enumerate(problem.context_lens.tolist()):
            used = pages[table[sequence, : -(-length // problem.page)]]
            keys = used[:, :split].reshape(-1, problem.head_dim).view(torch.float8_e4m3fn).float()
            scales = used[:, split:].contiguous().view(torch.float32).reshape(-1, 1)
            scores = torch.einsum("nhd,sd->nhs", q[sequence].float(), keys * scales).relu()
            rows = slice(sequence * problem.next_n, (sequence + 1) * problem.next_n)
            logits[rows, :length] = (scores * weights[rows, :, None]).sum(1)[:, :length]
        return logits

    return one_thread(run)


def mmasim_dots(problem: Problem) -> Callable[[], NDArray[np.uint32]]:
    """MMA-Sim's tcgen05 step by step, fp32: accumulators of the first sequence [next_n * H, tokens] as fp32 codes.

    The number of tokens must be a multiple of 128. Raises NotAvailable without mmasim or torch.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Its import builds with ninja, which may lie beside an interpreter that is not on the path.
        os.environ["PATH"] = sysconfig.get_path("scripts") + os.pathsep + os.environ.get("PATH", "")
        try:
            import torch
            from mmasim import nv_ptx
        except ImportError as error:
            raise NotAvailable(
                "the peer of the tensor-core step is mmasim; the extra `dev` brings it"
            ) from error
    heads = problem.next_n * problem.heads
    step = nv_ptx.TCGen05MMA("Blackwell", f"m128n{heads}k32.kind::f8f6f4.f32.e4m3.e4m3")
    run_of = [run for run in runs(problem) if run.rows.start == 0]
    keys = torch.from_numpy(np.concatenate([run.keys for run in run_of])).view(torch.float8_e4m3fn)
    queries = torch.from_numpy(run_of[0].queries.copy()).view(torch.float8_e4m3fn)

    def run() -> NDArray[np.uint32]:
        tiles = []
        for first in range(0, len(keys), TILE):
            total = torch.zeros((TILE, heads))
            for k in range(0, problem.head_dim, 32):
                total = step(keys[first : first + TILE, k : k + 32], queries[:, k : k + 32].T, total)
            tiles.append(total.T.contiguous().numpy().view(np.uint32))
        return np.concatenate(tiles, axis=1)

    return one_thread(run)


def one_thread(do: Callable[[], Result]) -> Callable[[], Result]:
    """The same with one thread of torch, as ours runs: more of them wait for each other on a machine that is shared."""

    def run() -> Result:
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return do()
        finally:
            torch.set_num_threads(before)

    return run
