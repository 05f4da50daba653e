"""Explains a logit of a case that ran, or of a named problem that is run for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqa_ref.explain.logit import Explanation, explain
from mqa_ref.verification.evidence import Place, Seen
from mqa_ref.verification.observe import Watcher


def explain_seen(
    watch: Watcher, seen: Seen, place: Place, cta: int | None, head: int | None = None
) -> Explanation:
    """The logit at ``place`` (row, column) of a case that ran. Raises what ``explain`` does."""
    own = seen.request.own
    return explain(
        *(watch, seen.problem, seen.flow, *place),
        machine=seen.request.machine or own.declared.machine,
        head=head,
        cta=cta,
        edit_ptx=own.edit_ptx,
        interleaving=seen.step.order,
        seed=seen.step.seed,
        options=own.options_for(seen.step.problem),
        emulated=own.target.declared.machine,
        reference={"generation": own.declared.generation, "order": own.declared.order},
    )


def explainer(watch: Watcher, seen: Seen, place: Place, cta: int) -> Mapping[str, Any]:
    """The same as plain values, for ``mqa_ref.verification.evidence.Collector``."""
    return explain_seen(watch, seen, place, cta).values()
