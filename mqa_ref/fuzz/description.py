"""A launch in a few words: named patterns, a seed and a handful of overrides, which expand into all its arrays.

Hypothesis cannot draw large arrays; it draws this, and shrinking this gives the smallest launch. The arrays come from
``mqa_ref.verification`` (``Recipe`` and ``make``), so a description stands for the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.policy import ORDERS
from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow
from mqa_ref.fuzz.shapes import Shape, option_faults
from mqa_ref.problem import Problem
from mqa_ref.schedule import Form
from mqa_ref.verification.data import KINDS
from mqa_ref.verification.pages import Order, Rest
from mqa_ref.verification.problems import Recipe, make

Role = Literal["query", "key", "scale", "weight"]
SPECIAL_CODES: Mapping[str, int] = {
    "nan": 0x7F,
    "-nan": 0xFF,
    "448": 0x7E,
    "-448": 0xFE,
    "1": 0x38,
    "-1": 0xB8,
    "subnormal": 0x01,
    "-subnormal": 0x87,
    "0": 0x00,
    "-0": 0x80,
}
"""e4m3fn codes by name, for queries and keys."""
SPECIAL_WORDS: Mapping[str, int] = {
    "nan": 0x7FC00000,
    "-nan": 0xFFC00001,
    "inf": 0x7F800000,
    "-inf": 0xFF800000,
    "0": 0x00000000,
    "-0": 0x80000000,
    "max": 0x7F7FFFFF,
    "-max": 0xFF7FFFFF,
    "-1": 0xBF800000,
    "subnormal": 0x00000001,
    "-subnormal": 0x807FFFFF,
    "tiny": 0x00800000,
    "huge": 0x71800000,
    "half max": 0x477FE000,
    "half inf": 0x477FF000,
    "half subnormal": 0x33800000,
    "half zero": 0x33000000,
}
"""fp32 words by name, for scales and weights; those of "half" are at the edges of fp16."""
ROLES: tuple[Role, ...] = ("query", "key", "scale", "weight")


@dataclass(frozen=True)
class Override:
    """One value in one place that is used. ``at``: the sequence; ``which``: the token (of keys and scales) or the row
    (of queries and weights); ``element``: the head and the element, counted together. All are taken modulo what there
    is. ``value``: a name of ``SPECIAL_CODES`` or ``SPECIAL_WORDS``."""

    role: Role
    value: str
    at: int = 0
    which: int = 0
    element: int = 0


@dataclass(frozen=True)
class Description:
    """One launch and what is tried with it.

    ``lengths``: tokens of each sequence. ``data``: a name of ``KINDS``; ``seed``: of everything random in the arrays.
    ``order``, ``rest``, ``poison``, ``form``, ``cuts``, ``columns``: see ``Recipe``. ``interleaving``,
    ``interleaving_seed``: the order of warps. ``check``: the property that is tried besides those of every launch, ""
    for none; ``check_seed``: its variant.
    """

    lengths: tuple[int, ...] = (1,)
    shape: Shape = field(default_factory=Shape)
    data: str = "counting"
    seed: int = 0
    order: Order = "in_order"
    rest: Rest = "tight"
    form: Form = "forward"
    cuts: tuple[int, ...] = ()
    columns: int = 0
    poison: bool = False
    overrides: tuple[Override, ...] = ()
    interleaving: str = "eager"
    interleaving_seed: int = 0
    check: str = ""
    check_seed: int = 0

    def __post_init__(self) -> None:
        faults = [*option_faults(dict(self.shape.options), self.shape.heads)]
        if self.data not in KINDS:
            faults.append(Fault("data", repr(self.data), "one of " + ", ".join(KINDS)))
        if self.interleaving not in ORDERS:
            faults.append(Fault("interleaving", repr(self.interleaving), "one of " + ", ".join(ORDERS)))
        for override in self.overrides:
            values = SPECIAL_CODES if override.role in ("query", "key") else SPECIAL_WORDS
            if override.role not in ROLES or override.value not in values:
                faults.append(Fault("overrides", str(override), f"a role and one of {', '.join(values)}"))
        if faults:
            raise InputError(faults)

    @property
    def flow(self) -> Flow:
        """The dtype flow."""
        return Flow.parse(self.shape.flow)

    @property
    def splits(self) -> int:
        """Splits of all rows."""
        return sum(-(-length // 256) for length in self.lengths)

    @property
    def tiles(self) -> int:
        """Tiles that hold a token."""
        return sum(-(-length // 128) for length in self.lengths)

    def as_plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Description:
        """What ``as_plain`` made, after JSON too. Raises TypeError or InputError for anything else."""
        given = dict(plain)
        shape = dict(given.pop("shape"))
        shape["options"] = tuple((str(name), value) for name, value in shape["options"])
        overrides = tuple(Override(**one) for one in given.pop("overrides"))
        for name in ("lengths", "cuts"):
            given[name] = tuple(given[name])
        return cls(shape=Shape(**shape), overrides=overrides, **given)


def expand(description: Description) -> Problem:
    """The launch. Raises InputError for a description that is none (lengths, cuts, shape)."""
    shape = description.shape
    recipe = Recipe(
        f"fuzz/{description.seed}",
        "",
        description.lengths,
        shape.num_sms,
        page=shape.page,
        heads=shape.heads,
        next_n=shape.next_n,
        data=description.data,
        order=description.order,
        rest=description.rest,
        form=description.form,
        poison=description.poison,
        cuts=description.cuts,
        columns=description.columns,
    )
    problem = make(recipe).problem
    return _overridden(problem, description.overrides) if description.overrides else problem


def rebuilt(problem: Problem, **changes: Any) -> Problem:
    """``problem`` with other arrays or numbers; everything not named stays, the schedule too unless lengths or CTAs
    change."""
    names = ("q", "kv_fused", "weights", "block_table", "context_lens", "page", "num_sms", "max_context_len")
    given: dict[str, Any] = {name: getattr(problem, name) for name in names}
    if not {"context_lens", "num_sms"} & set(changes):
        given["schedule"] = problem.schedule
    return Problem(**(given | changes))


def token_place(problem: Problem, sequence: int, token: int) -> tuple[int, int]:
    """Page and slot of a token."""
    return int(problem.block_table[sequence, token // problem.page]), token % problem.page


def _overridden(problem: Problem, overrides: tuple[Override, ...]) -> Problem:
    q, weights, pool = problem.q.copy(), problem.weights.copy(), problem.kv_fused.copy()
    codes = problem.page * problem.head_dim
    for one in overrides:
        sequence = one.at % problem.batch
        length = int(problem.context_lens[sequence])
        if one.role in ("key", "scale"):
            if length == 0:
                continue
            page, slot = token_place(problem, sequence, one.which % length)
            if one.role == "key":
                pool[page, slot * problem.head_dim + one.element % problem.head_dim] = SPECIAL_CODES[
                    one.value
                ]
            else:
                _scales(pool, codes)[page, slot] = SPECIAL_WORDS[one.value]
            continue
        row, head = one.which % problem.next_n, one.element % problem.heads
        if one.role == "query":
            q[sequence, row, head, one.element % problem.head_dim] = SPECIAL_CODES[one.value]
        else:
            weights.view(np.uint32)[sequence * problem.next_n + row, head] = SPECIAL_WORDS[one.value]
    return rebuilt(problem, q=q, weights=weights, kv_fused=pool)


def _scales(pool: NDArray[np.uint8], codes: int) -> NDArray[np.uint32]:
    """The scale words of a page pool, a view that can be written."""
    view: NDArray[np.uint32] = pool[:, codes:].view("<u4")
    return view
