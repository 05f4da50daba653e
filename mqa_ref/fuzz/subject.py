"""One launch as it is looked at: inputs, flow, options of the kernel, interleaving, and which places of it are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.flow import Flow
from mqa_ref.problem import Problem
from mqa_ref.schedule import describe


@dataclass(frozen=True, eq=False)
class Subject:
    """One launch: inputs, flow, options of the kernel, interleaving."""

    problem: Problem
    flow: Flow
    options: Mapping[str, Any]
    order: str = "eager"
    seed: int = 0

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The context lengths."""
        return self.problem.context_lens.astype(np.int64)

    @cached_property
    def needed(self) -> NDArray[np.int64]:
        """Table entries that each sequence needs."""
        return -(-self.lengths // self.problem.page)

    @cached_property
    def entries(self) -> NDArray[np.bool_]:
        """Which table entries are needed, [B, width]."""
        return np.arange(self.problem.block_table.shape[1]) < self.needed[:, None]

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Which tokens of the pool some sequence holds, [pages, page]."""
        problem = self.problem
        used = np.zeros((problem.num_pages, problem.page), np.bool_)
        for row, length in enumerate(self.lengths.tolist()):
            token = np.arange(length)
            used[problem.block_table[row, token // problem.page], token % problem.page] = True
        return used

    @cached_property
    def keys(self) -> NDArray[np.uint8]:
        """Codes of the used keys."""
        return self.problem.key_codes[self.used]

    @cached_property
    def scales(self) -> NDArray[np.float32]:
        """Used scales."""
        return self.problem.scale_bits[self.used].view(np.float32)

    @cached_property
    def table(self) -> NDArray[np.int32]:
        """The needed entries, row by row."""
        return self.problem.block_table[self.entries]

    @cached_property
    def work(self) -> Any:
        """What ``schedule.describe`` says of the schedule."""
        return describe(self.problem.schedule, self.lengths)
