"""What a backend saw go wrong during a launch, apart from wrong values: hazards, hangs, stray accesses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "info"]


@dataclass(frozen=True)
class Finding:
    """One hazard.

    ``kind`` is a stable identifier (see ``mqa_ref.emulator`` for the list), ``severity`` says whether it
    fails a run ("error") or is worth knowing ("info"), ``message`` says what happened, in one sentence.
    ``cta``, ``warp``, ``ptx_line`` (1-based line of the PTX text that was executed), ``ptx_text`` and
    ``source`` ("file:line" of the kernel's own source, where the compiler keeps it) say where; None where it
    does not apply. ``count`` is how often the same finding was seen at the same place.
    """

    kind: str
    severity: Severity
    message: str
    cta: int | None = None
    warp: int | None = None
    ptx_line: int | None = None
    ptx_text: str | None = None
    source: str | None = None
    count: int = 1

    def as_dict(self) -> dict[str, object]:
        """The finding as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        place = [
            f"CTA {self.cta}" if self.cta is not None else "",
            f"warp {self.warp}" if self.warp is not None else "",
        ]
        if self.ptx_line is not None:
            place.append(f"PTX line {self.ptx_line}: {self.ptx_text or ''}".rstrip())
        if self.source is not None:
            place.append(self.source)
        where = ", ".join(part for part in place if part)
        return f"{self.kind}: {self.message}" + (f" ({where})" if where else "")
