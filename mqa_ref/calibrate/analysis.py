"""From what a device gave for the vectors to a verdict for each rule, and to the machine models that give the same.

A rule is decided by those vectors of its family whose results differ between its answers, all other rules being as
they were decided before. An answer stands when every vector of the family came out as it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mqa_ref.calibrate.arithmetic import Arithmetic, of_model, step
from mqa_ref.calibrate.rules import EXACT, RULES, Rule
from mqa_ref.calibrate.vectors import Vector, vectors
from mqa_ref.numerics import MachineModel
from mqa_ref.numerics.machines import ACCUMULATORS, Final32

_MOST_SHOWN = 8


@dataclass(frozen=True)
class Decider:
    """A vector that tells answers apart: what came out, and which of the answers say so; and one other expectation."""

    name: str
    observed: int
    agreeing: tuple[str, ...]
    others: Mapping[str, int]


@dataclass(frozen=True)
class Verdict:
    """``answers``: those that stand, the preferred one first; none when no answer explains what was seen.

    ``published``: the answer of the model that it is held against. ``tried``: vectors of the family; ``deciding``:
    those whose results tell the answers apart, some of them in ``deciders``. ``unexplained``: vectors that the
    published answer gets wrong.
    """

    rule: str
    text: str
    acc: str
    answers: tuple[str, ...]
    published: str
    tried: int
    deciding: int
    deciders: tuple[Decider, ...]
    unexplained: tuple[str, ...]

    @property
    def status(self) -> str:
        """ "confirmed": the published answer alone stands. "compatible": it stands with others that these vectors, on
        this machine, cannot tell from it. "refuted": it does not stand."""
        if not self.published and self.answers:
            return "compatible"  # it refines an answer that was refuted already
        if self.published not in self.answers:
            return "refuted"
        return "confirmed" if len(self.answers) == 1 else "compatible"


def published_answer(rule: Rule, model: Arithmetic) -> str:
    """The first answer of a rule that leaves the model as it is; "" when none of them does."""
    return next((text for text, change in rule.answers.items() if change(model) == model), "")


def decide(observed: Sequence[int], acc: str, model: MachineModel) -> tuple[list[Verdict], Arithmetic]:
    """The verdicts on a device, and its rules as far as they were found (the published ones in place of the others).

    ``observed``: the results of ``vectors(acc)``, in their order. ``model``: what is published for the device.
    """
    published = of_model(model, acc)
    found = published
    verdicts: list[Verdict] = []
    results = list(zip(vectors(acc), observed, strict=True))
    for rule in RULES:
        if acc not in rule.accumulators:
            continue
        open_ones = next((one.answers for one in verdicts if one.rule == rule.refines), ())
        if rule.refines and len(open_ones) < 2:
            continue
        if rule.refines:
            rule = replace(rule, answers={text: rule.answers[text] for text in open_ones})
        family = [(vector, code) for vector, code in results if vector.rule == rule.name]
        verdict = _verdict(rule, family, found, published_answer(rule, published), acc)
        verdicts.append(verdict)
        if verdict.answers:
            keep = verdict.published if verdict.published in verdict.answers else verdict.answers[0]
            found = rule.answers[keep](found)
    return verdicts, found


def _verdict(
    rule: Rule, family: Sequence[tuple[Vector, int]], found: Arithmetic, published: str, acc: str
) -> Verdict:
    standing = {text: change(found) for text, change in rule.answers.items()}
    expected = {text: _results(rules, rule.name, acc) for text, rules in standing.items()}
    seen = [code for _, code in family]
    answers = [text for text, codes in expected.items() if codes == seen]
    deciding = [i for i in range(len(family)) if len({codes[i] for codes in expected.values()}) > 1]
    shown = [_decider(i, family, expected) for i in _closest(deciding, expected, answers)]
    wrong = tuple(
        family[i][0].name for i in range(len(family)) if published and expected[published][i] != seen[i]
    )
    return Verdict(
        *(rule.name, rule.text, acc, tuple(answers), published, len(family), len(deciding)),
        deciders=tuple(shown),
        unexplained=wrong,
    )


@lru_cache(maxsize=4096)
def _results(rules: Arithmetic, family: str, acc: str) -> list[int]:
    """What the vectors of a rule give."""
    return [step(rules, one.a, one.b, one.c, acc) for one in vectors(acc) if one.rule == family]


def _closest(deciding: list[int], expected: Mapping[str, list[int]], answers: list[str]) -> list[int]:
    """A few vectors which together rule out every answer that does not stand."""
    if not answers:
        return deciding[:_MOST_SHOWN]
    kept: list[int] = []
    right = expected[answers[0]]
    open_ones = {text for text, codes in expected.items() if codes != right}
    # From the end: the vectors nearest to what the machine can still hold rule out least each, and say most.
    while open_ones and len(kept) < _MOST_SHOWN:
        best = max(deciding, key=lambda i: sum(expected[text][i] != right[i] for text in open_ones))
        kept.append(best)
        open_ones = {text for text in open_ones if expected[text][best] == right[best]}
    return kept


def _decider(i: int, family: Sequence[tuple[Vector, int]], expected: Mapping[str, list[int]]) -> Decider:
    vector, observed = family[i]
    agreeing = tuple(text for text, codes in expected.items() if codes[i] == observed)
    others = {text: codes[i] for text, codes in expected.items() if codes[i] != observed}
    return Decider(vector.name, observed, agreeing, dict(list(others.items())[:_MOST_SHOWN]))


def models_of(found: Mapping[str, Sequence[Verdict]]) -> tuple[MachineModel, ...]:
    """The machine models that every verdict, of both accumulator formats, leaves standing; none when a rule that no
    model can have came out.

    ``found``: the verdicts by accumulator format.
    """
    by_rule = {(verdict.acc, verdict.rule): verdict.answers for told in found.values() for verdict in told}
    for (acc, rule), answers in by_rule.items():
        if rule not in ("fraction_bits", "fraction_bits_deep", "final") and _default(rule) not in answers:
            return ()
        if rule == "final" and acc == "fp16" and "to nearest even" not in answers:
            return ()
    bits = [set(by_rule.get((acc, "fraction_bits_deep"), by_rule[acc, "fraction_bits"])) for acc in found]
    finals = by_rule["fp32", "final"]
    names: dict[Final32, str] = {
        "rz": "toward zero to 23 bits",
        "rz13": "toward zero to 13 bits",
        "rne": "to nearest even to 23 bits",
    }
    made = []
    for told in sorted(set.intersection(*bits), key=lambda text: (text == EXACT, text.zfill(3))):
        number = None if told == EXACT else int(told)
        for final, text in names.items():
            if text in finals:
                made.append(
                    MachineModel(
                        f"f{told.replace(' ', '-')}-{final}", number, final, "hw", "hw", "calibration"
                    )
                )
    return tuple(made)


def _default(rule: str) -> str:
    """The answer that all machine models have in common."""
    return next(iter(next(one for one in RULES if one.name == rule).answers))


def observe_with(rules: Mapping[str, Arithmetic]) -> dict[str, list[int]]:
    """What a machine with these rules gives for the vectors, by accumulator format."""
    return {
        acc: [step(rules[acc], vector.a, vector.b, vector.c, acc) for vector in vectors(acc)]
        for acc in ACCUMULATORS
    }
