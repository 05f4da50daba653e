"""What a backend saw go wrong during a launch, apart from wrong values: hazards, hangs, stray accesses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "info"]
_SHOWN = 120


@dataclass(frozen=True)
class Finding:
    """One hazard.

    ``kind`` is a stable identifier (see ``mqa_ref.emulator`` for the list), ``severity`` says whether it
    fails a run ("error") or is worth knowing ("info"), ``message`` says what happened, in one sentence.
    ``cta``, ``warp``, ``ptx_line`` (1-based line of the PTX text that was executed), ``ptx_text`` and
    ``source`` ("file:line" of the kernel's own source, where the compiler keeps it) say where; None where it
    does not apply. ``count`` is how often the same finding was seen at the same place. ``known`` is the id of the
    entry in a ledger of known findings that this one is covered by: it then fails nothing.
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
    known: str | None = None

    @property
    def id(self) -> str:
        """A name that is the same in every run, case and interleaving: the kind, and where it is known the line of the
        kernel's source, else the PTX opcode: ``tmem_freed_in_use@kernel.py:1180``, ``race_shared@st.shared.b32``."""
        words = [word for word in (self.ptx_text or "").split() if not word.startswith("@")]
        place = self.source or (words[0].rstrip(";") if words else None)
        return self.kind if place is None else f"{self.kind}@{place}"

    @property
    def fails(self) -> bool:
        """Whether it fails the run: of severity "error" and not known."""
        return self.severity == "error" and self.known is None

    def as_dict(self) -> dict[str, object]:
        """The finding as plain JSON values."""
        return {"id": self.id, **asdict(self)}

    def __str__(self) -> str:
        place = [
            f"CTA {self.cta}" if self.cta is not None else "",
            f"warp {self.warp}" if self.warp is not None else "",
        ]
        if self.ptx_line is not None:
            text = " ".join((self.ptx_text or "").split())
            text = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
            place.append(f"PTX line {self.ptx_line}: {text}".removesuffix(": "))
        where = ", ".join(part for part in place if part)
        return f"{self.id}: {self.message}" + (f" ({where})" if where else "")
