"""Gathers what the machine sees, one entry per kind and place in the PTX.

Kinds of severity "error": ``race_shared``, ``race_tmem``, ``uninitialised_shared``, ``uninitialised_tmem``,
``uninitialised_register``, ``hang``, ``runaway``, ``mbarrier_misuse``, ``mbarrier_over_arrival``,
``mbarrier_tx_range``, ``global_out_of_bounds``, ``shared_out_of_bounds``, ``misaligned``, ``input_written``,
``global_write_conflict``, ``global_other_row``, ``read_before_griddepcontrol_wait``,
``async_in_flight_at_exit``, ``tmem_misuse``, ``tmem_freed_in_use``, ``tmem_leak``, ``tmem_load_not_waited``,
``wgmma_misuse``, ``wgmma_not_fenced``, ``wgmma_not_waited``, ``proxy_not_fenced``, ``race_global``, ``sync_misuse``,
``trap``, ``contracted_mul_add``, ``tmem_not_fenced``, ``lanes_not_gathered``. Of severity "info":
``tma_out_of_range_fill``, ``contractible_mul_add``, and ``tmem_not_fenced`` in a program with no tcgen05.fence (see
``tensor_order``).
"""

from __future__ import annotations

from dataclasses import replace

from mqa_ref.emulator.ptx import Instruction, Program
from mqa_ref.emulator.tensor_order import AFTER, BEFORE
from mqa_ref.findings import Finding, Severity

INFO_KINDS = frozenset({"tma_out_of_range_fill", "contractible_mul_add"})


class FindingLog:
    """All findings of one launch, in the order in which they were first seen."""

    def __init__(self, program: Program | None = None) -> None:
        self.program = program
        self._seen: dict[tuple[str, int | None], Finding] = {}
        self._informs = INFO_KINDS
        if program is not None and not any(i.opcode in (BEFORE, AFTER) for i in program.instructions):
            self._informs = INFO_KINDS | {"tmem_not_fenced"}

    def add(
        self,
        kind: str,
        message: str,
        *,
        cta: int | None = None,
        warp: int | None = None,
        instruction: Instruction | None = None,
    ) -> None:
        """Record one finding; a repetition at the same line only raises its count (warp and CTA are the first
        ones).
        """
        line = instruction.line if instruction else None
        key = (kind, line)
        if key in self._seen:
            self._seen[key] = replace(self._seen[key], count=self._seen[key].count + 1)
            return
        severity: Severity = "info" if kind in self._informs else "error"
        text = instruction.text if instruction else None
        source = self.program.source_of(instruction) if self.program and instruction else None
        self._seen[key] = Finding(kind, severity, message, cta, warp, line, text, source)

    def all(self) -> tuple[Finding, ...]:
        """The findings, errors first."""
        return tuple(sorted(self._seen.values(), key=lambda finding: finding.severity != "error"))
