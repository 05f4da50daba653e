"""The inputs of one launch, validated once: whoever holds a Problem need not check anything again.

Shapes are those of op.md ("Inputs of one launch"); ``mqa_ref.problem_rules`` holds the rules of the validation.
"""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref import schedule as sched
from mqa_ref.errors import Fault, InputError, NotAvailable
from mqa_ref.problem_rules import aligned_columns, find_faults


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem:
    """The inputs of one launch (op.md). B sequences, next_n query tokens each, H heads of D elements.

    ``q``: uint8 [B, next_n, H, D], e4m3fn codes. ``kv_fused``: uint8 [pages, page * (D + 4)]; a page holds ``page * D``
    e4m3fn codes, then ``page`` little-endian fp32 scales. ``weights``: float32 [B * next_n, H], row ``b * next_n + t``.
    ``block_table``: int32 [B, max_pages]; of row ``b`` only the first ``ceil(context_lens[b] / page)`` entries mean
    something, the others may hold anything. ``context_lens``: int32 [B], tokens, the next_n new ones counted.
    ``page``: tokens of a page, 32, 64 or 128. ``num_sms``: CTAs, 1..schedule.MAX_CTAS. ``max_context_len``: columns
    of the result, at least every length; None means the longest length (1 if all are 0). ``schedule``: int32
    [num_sms + 1, 2]; None means the forward builder's.

    H % 4 == 0; N = next_n * H in 8..256 and N % 8 == 0; D in 32, 64, 128. A length may be smaller than next_n, 0 too:
    the rows of the tokens before the context's begin have no valid column. A schedule must pass ``schedule.check``.

    Raises InputError with every fault at once. Arrays are kept as read-only C-contiguous copies.
    """

    q: NDArray[np.uint8]
    kv_fused: NDArray[np.uint8]
    weights: NDArray[np.float32]
    block_table: NDArray[np.int32]
    context_lens: NDArray[np.int32]
    page: int
    num_sms: int
    max_context_len: int
    schedule: NDArray[np.int32]

    def __init__(
        self,
        q: NDArray[np.uint8],
        kv_fused: NDArray[np.uint8],
        weights: NDArray[np.float32],
        block_table: NDArray[np.int32],
        context_lens: NDArray[np.int32],
        *,
        page: int,
        num_sms: int,
        max_context_len: int | None = None,
        schedule: NDArray[np.int32] | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "q": q,
            "kv_fused": kv_fused,
            "weights": weights,
            "block_table": block_table,
            "context_lens": context_lens,
            "schedule": schedule,
        }
        faults = find_faults(given, page=page, num_sms=num_sms, max_context_len=max_context_len)
        if faults:
            raise InputError(faults)
        if schedule is None:
            given["schedule"] = sched.build(context_lens, num_sms)
        if max_context_len is None:
            max_context_len = max(1, int(context_lens.max()))
        for name, array in given.items():
            kept = np.array(array, order="C", copy=True, subok=False)
            kept.setflags(write=False)
            object.__setattr__(self, name, kept)
        for name, number in (("page", page), ("num_sms", num_sms), ("max_context_len", max_context_len)):
            object.__setattr__(self, name, operator.index(number))

    def forced(self, schedule: NDArray[np.int32]) -> Problem:
        """The same launch with any ``schedule`` at all, int32 [num_sms + 1, 2], for seeing what a kernel does with it.

        ``schedule_faults`` tells what is wrong with it. Raises InputError for another dtype or shape only.
        """
        wanted = (self.num_sms + 1, 2)
        told = (getattr(schedule, "dtype", type(schedule).__name__), getattr(schedule, "shape", None))
        if told != (np.dtype(np.int32), wanted):
            expected = f"a numpy array, dtype int32, shape {list(wanted)}"
            raise InputError([Fault("schedule", f"{told[0]}, shape {told[1]}", expected)])
        other = object.__new__(type(self))
        for name in self.__dataclass_fields__:
            object.__setattr__(other, name, getattr(self, name))
        kept = np.array(schedule, order="C", copy=True, subok=False)
        kept.setflags(write=False)
        object.__setattr__(other, "schedule", kept)
        return other

    @classmethod
    def from_torch(
        cls,
        q: Any,
        kv_fused: Any,
        weights: Any,
        block_table: Any,
        context_lens: Any,
        *,
        page: int,
        num_sms: int,
        max_context_len: int | None = None,
        schedule: Any = None,
    ) -> Problem:
        """The same from torch tensors on any device, of any strides; what is no tensor goes through as it is.

        Shapes and dtypes are those of the class; ``q`` and ``kv_fused`` may be float8_e4m3fn as well as uint8: their
        bytes are the codes. Tensors are copied, detached, to the CPU; nothing refers to them afterwards. Raises
        InputError as the class does, and NotAvailable without torch.
        """
        given = {"q": q, "kv_fused": kv_fused, "weights": weights}
        given |= {"block_table": block_table, "context_lens": context_lens, "schedule": schedule}
        return cls(
            **{name: _to_numpy(value, codes=name in ("q", "kv_fused")) for name, value in given.items()},
            page=page,
            num_sms=num_sms,
            max_context_len=max_context_len,
        )

    @property
    def batch(self) -> int:
        """B, the number of sequences."""
        return int(self.q.shape[0])

    @property
    def next_n(self) -> int:
        """Query tokens of each sequence."""
        return int(self.q.shape[1])

    @property
    def heads(self) -> int:
        """H, heads of each query token."""
        return int(self.q.shape[2])

    @property
    def head_dim(self) -> int:
        """D, elements of each head."""
        return int(self.q.shape[3])

    @property
    def num_pages(self) -> int:
        """Pages of the cache, used or not."""
        return int(self.kv_fused.shape[0])

    @property
    def rows(self) -> int:
        """Rows of the result, B * next_n."""
        return self.batch * self.next_n

    @property
    def row_stride(self) -> int:
        """Elements from one row of the logits buffer to the next: max_context_len, rounded up to 256 (op.md)."""
        return aligned_columns(self.max_context_len)

    @property
    def key_codes(self) -> NDArray[np.uint8]:
        """The keys of every page, a view: uint8 [pages, page, D], e4m3fn codes."""
        return self.kv_fused[:, : self.page * self.head_dim].reshape(self.num_pages, self.page, self.head_dim)

    @property
    def scale_bits(self) -> NDArray[np.uint32]:
        """The scales of every page, a view: uint32 [pages, page], fp32 bit patterns."""
        return self.kv_fused[:, self.page * self.head_dim :].view("<u4")

    def valid_columns(self) -> NDArray[np.int64]:
        """How many columns, from 0 on, of each row are valid: int64 [rows]; max(0, ctx - next_n + t + 1) for (b, t)."""
        last = self.context_lens.astype(np.int64)[:, None] - self.next_n + np.arange(self.next_n)
        counts: NDArray[np.int64] = np.maximum(last + 1, 0)
        return counts.reshape(-1)

    def valid_mask(self) -> NDArray[np.bool_]:
        """bool [rows, max_context_len], True where p <= ctx[b] - next_n + t (op.md): what the consumer reads."""
        return np.arange(self.max_context_len) < self.valid_columns()[:, None]

    @cached_property
    def schedule_faults(self) -> tuple[sched.ScheduleFault, ...]:
        """What is wrong with the schedule over these lengths: nothing, but for a problem made by ``forced``."""
        return sched.check(self.schedule, self.context_lens)

    @cached_property
    def case_id(self) -> str:
        """16 hex digits of the SHA-256 of all arrays and numbers: the same content has the same id everywhere."""
        digest = hashlib.sha256(b"mqa-ref problem 1\n")
        for name in ("q", "kv_fused", "weights", "block_table", "context_lens", "schedule"):
            array: NDArray[Any] = getattr(self, name)
            plain = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(f"{name} {plain.dtype.str} {list(plain.shape)}\n".encode())
            digest.update(plain.data)
        digest.update(f"page {self.page} num_sms {self.num_sms} max {self.max_context_len}\n".encode())
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        sizes = f"B={self.batch}, next_n={self.next_n}, H={self.heads}, D={self.head_dim}, page={self.page}"
        return f"Problem({sizes}, num_sms={self.num_sms}, case_id={self.case_id})"


def _to_numpy(value: Any, *, codes: bool) -> Any:
    """A torch tensor as a NumPy array; anything else, and a tensor of a dtype that NumPy lacks, as it is, for the
    validation to name. ``codes``: whether float8_e4m3fn is taken, as bytes."""
    try:
        import torch
    except ImportError as error:
        raise NotAvailable("torch is not installed; the extra `gpu` brings it") from error
    if not isinstance(value, torch.Tensor):
        return value
    tensor = value.detach()
    if codes and tensor.dtype == torch.float8_e4m3fn:
        tensor = tensor.view(torch.uint8)
    try:
        return tensor.cpu().numpy()
    except TypeError:
        return value
