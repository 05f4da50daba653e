"""Named cases with the bits they must give, kept in files that an installed package can check.

``cases`` is the table of recipes; ``record`` computes what a case gives; ``container`` reads and writes one file and
trusts none; ``check`` compares files with the reference; ``regen`` writes them anew, under conditions. docs/goldens.md
describes the format and the rules.
"""

from mqa_ref.golden.cases import CASES, UNCOVERED, by_name
from mqa_ref.golden.check import GoldenReport, check
from mqa_ref.golden.model import Case, Claim, LogitsCase, RefusedCase, ScheduleCase, StaleCase
from mqa_ref.golden.regen import regen
from mqa_ref.golden.store import DATA, load

__all__ = [
    "CASES",
    "DATA",
    "UNCOVERED",
    "Case",
    "Claim",
    "GoldenReport",
    "LogitsCase",
    "RefusedCase",
    "ScheduleCase",
    "StaleCase",
    "by_name",
    "check",
    "load",
    "regen",
]
