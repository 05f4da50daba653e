"""tolerances.toml: for every flow, what a result may differ from what it is held against, and how that was measured.

``read`` gives the typed file, ``factor`` one number of it; ``derive`` measures anew; ``check`` holds the file against a
fresh measurement. docs/tolerances.md explains the columns.
"""

from mqa_ref.compare.tolerances.check import CheckReport, Fault, check
from mqa_ref.compare.tolerances.derive import MACHINES, derive
from mqa_ref.compare.tolerances.file import factor, read, source, to_toml
from mqa_ref.compare.tolerances.model import KINDS, BoundRow, FlowTolerances, Kind, SameModelRow, Tolerances

__all__ = [
    "KINDS",
    "MACHINES",
    "BoundRow",
    "CheckReport",
    "Fault",
    "FlowTolerances",
    "Kind",
    "SameModelRow",
    "Tolerances",
    "check",
    "derive",
    "factor",
    "read",
    "source",
    "to_toml",
]
