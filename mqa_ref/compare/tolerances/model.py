"""What tolerances.toml holds, typed: nothing unknown is accepted, nothing is converted."""

from __future__ import annotations

import datetime as dt
import math
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from mqa_ref.flow import FLOWS
from mqa_ref.numerics.machines import MACHINES, Standing

Kind = Literal["same_model", "exact", "foreign_order"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The rows of every flow."""

_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


def _known_machine(name: str) -> str:
    if name not in MACHINES:
        raise ValueError(f"unknown machine, expected one of {', '.join(MACHINES)}")
    return name


def _known_flow(name: str) -> str:
    if name not in FLOWS:
        raise ValueError(f"unknown flow, expected one of {', '.join(FLOWS)}")
    return name


Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Row(BaseModel):
    """What all rows say. ``compared``: what is held against what. ``samples``: logits measured, over all machines.
    ``standing``: by machine measured, how well its model is known (docs/limits.md)."""

    model_config = _STRICT

    compared: Annotated[str, Field(min_length=1)]
    samples: Annotated[int, Field(gt=0)]
    date: dt.date
    standing: Annotated[dict[Annotated[str, AfterValidator(_known_machine)], Standing], Field(min_length=1)]


class SameModelRow(Row):
    """Bits, NaN as one class. ``bits``: how many may differ in a logit; ``observed``: the most that did; ``margin``:
    ``bits - observed``."""

    bits: Annotated[int, Field(ge=0)]
    observed: Annotated[int, Field(ge=0)]
    margin: int

    @model_validator(mode="after")
    def _margin(self) -> SameModelRow:
        if self.margin != self.bits - self.observed:
            raise ValueError(f"margin must be bits - observed, {self.bits - self.observed}")
        return self


class BoundRow(Row):
    """The error of a logit as a share of its own bound. ``factor``: what it may be; ``observed``: the greatest seen;
    ``plain``: the greatest seen on data where nothing underflows and no input is rounded; ``margin``: factor / plain.
    """

    factor: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    observed: Share
    plain: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    margin: Share

    @model_validator(mode="after")
    def _margin(self) -> BoundRow:
        if not math.isclose(self.margin, self.factor / self.plain, rel_tol=0.001):
            raise ValueError(f"margin must be factor / plain, {self.factor / self.plain:.4g}")
        return self


class FlowTolerances(BaseModel):
    """The rows of one flow. A row can be missing in the file; ``check`` says so."""

    model_config = _STRICT

    same_model: SameModelRow | None = None
    exact: BoundRow | None = None
    foreign_order: BoundRow | None = None


class Tolerances(BaseModel):
    """The whole file. ``seed``, ``elements``: what ``derive`` was given."""

    model_config = _STRICT

    version: Literal[1]
    seed: Annotated[int, Field(ge=0)]
    elements: Annotated[int, Field(gt=0)]
    flows: dict[Annotated[str, AfterValidator(_known_flow)], FlowTolerances]

    def rows(self, flow: str) -> dict[Kind, SameModelRow | BoundRow | None]:
        """The rows of a flow by kind, None for those that are missing."""
        found = self.flows.get(flow, FlowTolerances())
        return {
            "same_model": found.same_model,
            "exact": found.exact,
            "foreign_order": found.foreign_order,
        }
