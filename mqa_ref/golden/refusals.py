"""Bad inputs that must be refused, by name; each is a call that must raise InputError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mqa_ref.kernel.config import KernelConfig
from mqa_ref.problem import Problem
from mqa_ref.schedule import build


@dataclass(frozen=True)
class _Sizes:
    """The sizes of a launch of zeros: ``entries`` in the block table, ``columns`` of the logits, ``num_pages`` in the
    pool, ``built``: the lengths the schedule is for, None for the launch's own."""

    lengths: tuple[int, ...] = (257,)
    heads: int = 64
    next_n: int = 1
    dim: int = 128
    page: int = 64
    num_sms: int = 4
    entries: int = 8
    num_pages: int = 8
    first_page: int = 0
    columns: int | None = None
    built: tuple[int, ...] | None = None


def _launch(sizes: _Sizes) -> None:
    batch = len(sizes.lengths)
    table = np.zeros((batch, sizes.entries), np.int32)
    table[:, 0] = sizes.first_page
    Problem(
        np.zeros((batch, sizes.next_n, sizes.heads, sizes.dim), np.uint8),
        np.zeros((sizes.num_pages, sizes.page * (sizes.dim + 4)), np.uint8),
        np.zeros((batch * sizes.next_n, sizes.heads), np.float32),
        table,
        np.array(sizes.lengths, np.int32),
        page=sizes.page,
        num_sms=sizes.num_sms,
        max_context_len=sizes.columns,
        schedule=None if sizes.built is None else build(sizes.built, sizes.num_sms),
    )


def _named(name: str) -> type:
    """A stand-in for one of the compiler's dtypes, which the configuration knows by name."""
    return type(name, (), {})


def _kernel(**changed: Any) -> None:
    """The configuration of a kernel; none of it needs the compiler."""
    switches = ("remove_kv_wait_in_epilogue", "early_tmem_copy", "smem_subpartition_opt", "enable_pdl")
    arguments: dict[str, Any] = {
        "block_kv": 128,
        "phys_block_kv": 64,
        "num_heads": 64,
        "head_dim": 128,
        "next_n": 1,
        "num_sms": 148,
        "max_w_in_reg": 0,
        "num_epi_subtiles": 1,
        "max_kv_pipeline": False,
        "max_umma_pipeline": False,
        **dict.fromkeys(switches, False),
        **{name: _named("Float32") for name in ("acc_dtype", "epi_dtype", "output_dtype")},
    }
    KernelConfig.checked(**(arguments | changed))


_GOOD = _Sizes()

REFUSALS: Mapping[str, Callable[[], None]] = {
    "columns-256": lambda: _launch(replace(_GOOD, columns=256)),
    "heads-10": lambda: _launch(replace(_GOOD, heads=10, next_n=4)),
    "rows-320": lambda: _launch(replace(_GOOD, next_n=5)),
    "dim-96": lambda: _launch(replace(_GOOD, dim=96)),
    "page-16": lambda: _launch(replace(_GOOD, page=16, entries=32)),
    "entries-4": lambda: _launch(replace(_GOOD, entries=4)),
    "page-id-8": lambda: _launch(replace(_GOOD, first_page=8)),
    "page-id-minus-1": lambda: _launch(replace(_GOOD, first_page=-1)),
    "length-minus-1": lambda: _launch(replace(_GOOD, lengths=(5, -1))),
    "built-for-257": lambda: _launch(replace(_GOOD, lengths=(256,), built=(257,))),
    "all-at-once": lambda: _launch(replace(_GOOD, heads=10, next_n=4, num_sms=0, columns=256, entries=4)),
    "weights-in-registers-6": lambda: _kernel(max_w_in_reg=6),
    "kernel-heads-10": lambda: _kernel(num_heads=10, next_n=4),
}
"""The calls by name."""


def good_inputs_pass() -> None:
    """The unchanged launch and configuration, which must be accepted: else a refusal says nothing."""
    _launch(_GOOD)
    _kernel()
