"""What must hold of a kernel besides the right bits of one launch: each property runs one more launch, or two, of a
variant, and compares. One variant is chosen for each example, by its label.

Source: op.md, "Consequences to model and to test" and "What a launch writes"; the exact rules for scaling and for a
head without weight are proved in ``variants``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from mqa_ref.emulator.policy import ORDERS
from mqa_ref.errors import EmulatorError, Fault, InputError, KernelError, Unsupported
from mqa_ref.fuzz import always, variants
from mqa_ref.fuzz.shapes import option_sets
from mqa_ref.fuzz.trial import Failure, Trial
from mqa_ref.numerics import FORMATS, to_float64
from mqa_ref.verification.words import below

Check = Callable[[Trial, str], list[Failure]]
STALE = "stale_schedule"
ENDLESS = ("hang", "runaway")


@dataclass(frozen=True)
class Property:
    """``check`` takes a trial whose own launch passed, and the label that chooses the variant. ``compiles``: the
    variant needs another compilation."""

    name: str
    promise: str
    check: Check
    compiles: bool = False


def _rerun(trial: Trial, _: str) -> list[Failure]:
    bits, mask = trial.valid_bits()
    again = trial.run(trial.problem)
    failures = trial.same("rerun", again, bits, mask, words="the same launch again")
    if not np.array_equal(again.written, trial.first.written):
        failures.append(Failure("rerun", "written", "the same launch again wrote other elements"))
    return failures


def _interleaving(trial: Trial, label: str) -> list[Failure]:
    others = [order for order in ORDERS if order != trial.subject.order]
    turn, seed = below(f"{label}/order", 2, 1 << 16).tolist()
    order = others[turn % len(others)]
    bits, mask = trial.valid_bits()
    launch = trial.run(trial.problem, order=order, seed=seed % 52)
    return trial.same("interleaving", launch, bits, mask, words=f"order {order}, seed {seed % 52}")


def _pages(trial: Trial, label: str) -> list[Failure]:
    bits, mask = trial.valid_bits()
    launch = trial.run(variants.permuted_pages(trial.problem, label))
    return trial.same("page_permutation", launch, bits, mask, words="the same tokens in other pages")


def _ctas(trial: Trial, label: str) -> list[Failure]:
    bits, mask = trial.valid_bits()
    other = variants.other_ctas(trial.problem, label)
    return trial.same("cta_count", trial.run(other), bits, mask, words=f"{other.num_sms} CTAs")


def _schedule(trial: Trial, label: str) -> list[Failure]:
    bits, mask = trial.valid_bits()
    other = variants.other_schedule(trial.problem, label)
    words = f"another cutting, {other.schedule.tolist()}"
    return trial.same("schedule", trial.run(other), bits, mask, words=words[:300])


def _batch_order(trial: Trial, label: str) -> list[Failure]:
    other, order = variants.reordered_batch(trial.problem, label)
    return _of_rows(trial, "batch_order", other, order, f"sequences in the order {order.tolist()}")


def _batch_part(trial: Trial, label: str) -> list[Failure]:
    other, chosen = variants.part_of_batch(trial.problem, label)
    return _of_rows(trial, "batch_part", other, chosen, f"only the sequences {chosen.tolist()}")


def _of_rows(trial: Trial, name: str, other: object, chosen: np.ndarray, words: str) -> list[Failure]:
    bits, mask = trial.valid_bits()
    rows = (chosen[:, None] * trial.problem.next_n + np.arange(trial.problem.next_n)).reshape(-1)
    return trial.same(name, trial.run(other), bits[rows], mask[rows], words=words[:300])  # type: ignore[arg-type]


def _options(trial: Trial, label: str) -> list[Failure]:
    now = tuple(sorted(trial.subject.options.items()))
    sets = [one for one in option_sets(trial.problem.heads) if one != now]
    chosen = sets[int(below(f"{label}/options", 1, len(sets))[0])]
    bits, mask = trial.valid_bits()
    launch = trial.run(trial.problem, options=dict(chosen))
    return trial.same("options", launch, bits, mask, words=f"options {dict(chosen)}")


def _poison(trial: Trial, label: str) -> list[Failure]:
    bits, mask = trial.valid_bits()
    launch = trial.run(variants.poisoned(trial.subject, label))
    return trial.same("unread_places", launch, bits, mask, words="other contents where no token is")


def _stale(trial: Trial, label: str) -> list[Failure]:
    """A schedule made for other lengths gives wrong values and must still end, inside its buffers. An entry of a ledger
    covers it by the case "stale_schedule"."""
    launch = trial.run(variants.stale_schedule(trial.problem, label))
    return [
        Failure(STALE, one.kind, f"with a schedule for other lengths: {one}")
        for one in trial.failing(launch.findings, STALE)
        if one.kind in (*ENDLESS, "global_out_of_bounds")
    ]


def _scaling(role: str) -> Check:
    def check(trial: Trial, label: str) -> list[Failure]:
        problem, flow = trial.problem, trial.flow
        mask = variants.scales_exactly(problem, flow, role)
        other, shift = variants.scaled(problem, label, role)
        bits, _ = trial.valid_bits()
        fmt = FORMATS[flow.out]
        values = to_float64(bits, fmt)
        mask &= variants.in_range(values, flow, shift)
        if not mask.any():
            return []
        launch = trial.run(other)
        got = to_float64(launch.logits[:, : mask.shape[1]], fmt)
        wrong = mask & ~(launch.written[:, : mask.shape[1]] & (got == np.ldexp(values, shift)))
        if not wrong.any():
            return trial.found(launch.findings)
        row, column = (int(place[0]) for place in np.nonzero(wrong))
        told = f"first [{row}, {column}]: {values[row, column]!r} became {got[row, column]!r}"
        message = f"{int(wrong.sum())} logits, {told}: {role} times 2^{shift}"
        return [*trial.found(launch.findings), Failure(f"scaled_{role}", "value", message)]

    return check


def _weightless(trial: Trial, label: str) -> list[Failure]:
    one, other = variants.with_weightless_head(trial.problem, trial.flow, label)
    first, mask = trial.run(one), trial.problem.valid_mask()
    bits = first.logits[:, : mask.shape[1]]
    words = "other queries in a head whose weight is 0"
    return trial.same(
        "weightless_head", trial.run(other), bits, mask & first.written[:, : mask.shape[1]], words=words
    )


PROPERTIES: Mapping[str, Property] = {
    one.name: one
    for one in (
        Property("rerun", "the same launch gives the same bits and writes the same elements", _rerun),
        Property("interleaving", "the order in which warps run changes nothing", _interleaving),
        Property("page_permutation", "which page holds which tokens changes nothing", _pages),
        Property("schedule", "how the work is cut over the CTAs changes nothing", _schedule),
        Property("batch_order", "a sequence's logits do not depend on its place in the batch", _batch_order),
        Property("batch_part", "a sequence's logits do not depend on the others in the batch", _batch_part),
        Property("unread_places", "what lies where no token is changes nothing", _poison),
        Property("scaled_scales", "scales times a power of two scale the logits exactly", _scaling("scales")),
        Property(
            "scaled_weights", "weights times a power of two scale the logits exactly", _scaling("weights")
        ),
        Property("weightless_head", "a head without weight changes nothing", _weightless),
        Property(STALE, "a schedule made for other lengths ends", _stale),
        Property("cta_count", "the number of CTAs changes nothing", _ctas, compiles=True),
        Property("options", "no option of the kernel changes a bit", _options, compiles=True),
    )
}
"""The properties of which one is tried with each example, by name."""

ALWAYS = ("bits", "finding", "written", "inputs", "bound", "schedule_builder")
"""Names of the promises that are checked on every launch (the last one on every block): see ``always``."""


@dataclass(frozen=True)
class Outcome:
    """What came of one example. ``unsupported``: why nothing ran, "" when it ran. ``ratio``: the greatest error as a
    share of its bound."""

    failures: tuple[Failure, ...] = ()
    unsupported: str = ""
    ratio: float = 0.0
    checked: str = ""
    """The property beside those of every launch that was judged, "" for none."""

    @property
    def names(self) -> frozenset[str]:
        """The classes of its failures."""
        return frozenset(one.name for one in self.failures)


def examine(trial: Trial, check: str = "", label: str = "", *, bounds: bool = True) -> Outcome:
    """Judge one launch: what holds always, then, if that holds, the property ``check`` in the variant of ``label``.

    ``bounds``: judge the error bounds too. An exception of the kernel or the backend is a failure of the property
    "error". Raises InputError for a name that is no property, NotAvailable and OracleError as they come.
    """
    if check and check not in PROPERTIES:
        raise InputError([Fault("check", repr(check), "one of " + ", ".join(PROPERTIES))])
    ratio = 0.0
    checked = ""
    try:
        failures = always.inputs_unchanged(trial)
        failures += always.bits_and_findings(trial)
        failures += always.written_where_promised(trial)
        if bounds and not failures:
            ratio, failures = always.bound_ratio(trial)
        if check and not failures:
            checked, failures = check, PROPERTIES[check].check(trial, label)
    except Unsupported as error:
        if trial.launches > 1:
            return Outcome(ratio=ratio)
        return Outcome(unsupported=str(error))
    except InputError as error:
        # What a foreign kernel's constructor does not take; a problem that is none is refused before.
        if trial.launches > 1:
            return Outcome(ratio=ratio)
        return Outcome(unsupported=str(error))
    except (KernelError, EmulatorError) as error:
        failures = [Failure("error", type(error).__name__, str(error)[:600])]
    return Outcome(tuple(failures), "", ratio, checked)
