"""One mutant: a kernel broken in one place, and the words for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mutant:
    """``kind``: the class it is counted in. ``operator``: what was done to the place, ``detail``: exactly what.
    ``line``: the line of the PTX or of the source (0: none). ``before``, ``after``: the text there. ``near``: what
    stands around it. ``edits``: lines of the PTX and their new text; empty for a mutant that is no PTX.
    """

    kind: str
    operator: str
    detail: str
    line: int
    before: str
    after: str
    source: str = ""
    near: str = field(default="", repr=False)
    edits: Mapping[int, str] = field(default_factory=dict, repr=False)

    @property
    def id(self) -> str:
        """``class:line:operator:detail``, the same in every run on the same PTX."""
        return f"{self.kind}:{self.line}:{self.operator}" + (f":{self.detail}" if self.detail else "")

    @property
    def change(self) -> str:
        """One line that shows the change."""
        place = f" ({self.source})" if self.source else ""
        return f"{self.before} -> {self.after or 'nothing'}{place}"
