"""What a golden case is made from: four kinds of recipe, and claims, values worked out on paper that the reference
must give.

A claim makes a golden more than a recording of the reference: regeneration refuses bits that contradict one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from mqa_ref.schedule import Form
from mqa_ref.verification.problems import Recipe

Kind = Literal["logits", "schedule", "stale", "refused"]


@dataclass(frozen=True)
class Claim:
    """Logit (``row``, ``column``) has this ``value`` in every view whose name matches ``where`` (shell pattern, see
    ``views``). ``value`` is rounded to the view's output format to nearest even; NaN, inf and -0.0 mean
    themselves."""

    row: int
    column: int
    value: float
    where: str = "*"


@dataclass(frozen=True)
class LogitsCase:
    """A launch and the bits of its valid logits.

    ``recipe``: what the problem is made from. ``edit``: a name in ``edits.EDITS`` that overwrites drawn data
    with crafted values. ``dim``: D; below 128 the drawn codes are cut. ``ctas``: CTA counts whose schedules are
    stored; the logits do not depend on them (op.md), the recipe's own ``num_sms`` is the first. ``peers``:
    reports of peers.md the case stands for. ``launch``: what a launch must add that a Problem cannot say.
    ``tiles``: for a large case, the tiles of 128 columns whose bits are stored, counted from the front, or from
    the back if negative; all bits are hashed anyway.
    """

    kind: ClassVar[Kind] = "logits"
    recipe: Recipe
    edit: str = ""
    dim: int = 128
    ctas: tuple[int, ...] = ()
    peers: tuple[int, ...] = ()
    launch: str = ""
    claims: tuple[Claim, ...] = ()
    tiles: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The recipe's name; all random words depend on it."""
        return self.recipe.name

    @property
    def why(self) -> str:
        """The recipe's reason."""
        return self.recipe.why


@dataclass(frozen=True)
class ScheduleCase:
    """Lengths and the partitions both builder forms give for every CTA count of ``ctas``.

    ``lengths``: the lengths; empty means ``batch`` lengths drawn below ``bound``. ``next_n``: above 1 the lengths are
    given as [B, next_n], of which only the last column counts. ``hashed``: only hashes are stored. ``runs``:
    the claim how many runs (pieces of one row) every forward partition has, None for no claim.
    """

    kind: ClassVar[Kind] = "schedule"
    name: str
    why: str
    ctas: tuple[int, ...]
    lengths: tuple[int, ...] = ()
    batch: int = 0
    bound: int = 0
    next_n: int = 1
    hashed: bool = False
    runs: int | None = None
    peers: tuple[int, ...] = ()


@dataclass(frozen=True)
class StaleCase:
    """A schedule built for lengths ``built`` and used with ``used``. ``faults``: the claim which kinds of fault the
    check finds, in any order."""

    kind: ClassVar[Kind] = "stale"
    name: str
    why: str
    built: tuple[int, ...]
    used: tuple[int, ...]
    num_sms: int
    faults: tuple[str, ...]
    form: Form = "forward"
    peers: tuple[int, ...] = ()


@dataclass(frozen=True)
class RefusedCase:
    """Bad input, a name in ``refusals.REFUSALS``, and the claim which arguments the error names, in its order."""

    kind: ClassVar[Kind] = "refused"
    name: str
    why: str
    attempt: str
    faults: tuple[str, ...]
    peers: tuple[int, ...] = ()


Case: TypeAlias = LogitsCase | ScheduleCase | StaleCase | RefusedCase
