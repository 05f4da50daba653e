"""The problems that a mutant must survive: cheap ones first, then those of the quick set's kinds, then drawn ones.

All have one static shape, so that one broken PTX serves them all: pages of 32 tokens (four to a tile), two query tokens
of 32 heads. Only the number of CTAs varies, which is a constant of the host code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mqa_ref.flow import Flow
from mqa_ref.fuzz.subject import Subject
from mqa_ref.verification.problems import Recipe, make

PAGE, HEADS, NEXT_N = 32, 32, 2
STATIC = {"page": PAGE, "heads": HEADS, "head_dim": 128, "next_n": NEXT_N, "num_sms": 2}
DRAWN = 16
"""Examples of the fuzzer at the end of the ladder."""
CTAS = (1, 2, 5)
MANY = (1100, 0, 300, 129, 700, 600, 100)
"""Seven rows: on one CTA every slot of every ring is used more than twice."""


@dataclass(frozen=True)
class Rung:
    """One launch. ``why``: what it is there for."""

    name: str
    why: str
    subject: Subject


def _recipe(name: str, why: str, lengths: tuple[int, ...], num_sms: int, data: str, **rest: Any) -> Recipe:
    return Recipe(name, why, lengths, num_sms, page=PAGE, heads=HEADS, next_n=NEXT_N, data=data, **rest)


# fmt: off
STEPS: tuple[tuple[Recipe, tuple[tuple[str, int], ...]], ...] = (
    (_recipe("two rows", "a row without tokens between two with some", (300, 0, 33), 2, "wide", rest="garbage"),
     (("eager", 0),)),
    (_recipe("ties", "a sum that is rounded twice shows at every token", (140,), 1, "fma_ties", rest="tight"),
     (("lazy", 0),)),
    (_recipe("lonely", "a CTA without work, and nothing behind the one entry of the table", (1,), 2, "bits",
             rest="tight"), (("random", 1),)),
    (_recipe("rings", "every ring wraps", MANY, 1, "bits"), (("eager", 0), ("lazy", 0), ("random", 2))),
    (_recipe("overflow", "weights up to the greatest number", (129, 256), 2, "overflow"), (("random", 3),)),
    (_recipe("scales", "NaN, infinite, zero, subnormal scales", (257, 127), 2, "special_scales"), (("lazy", 0),)),
    (_recipe("nan query", "NaN in one row of queries", (129, 128), 2, "nan_query"), (("random", 4),)),
    (_recipe("nan keys", "NaN in every seventh key", (300, 256), 2, "nan_keys", order="repeated", rest="garbage"),
     (("random", 5),)),
    (_recipe("cuts", "CTAs start inside rows, at rows, and where there is nothing to do", (520, 0, 700, 0, 256), 5,
             "bits", cuts=(1, 1, 4, 6)), (("eager", 0), ("random", 6))),
    (_recipe("nothing", "no row has a token", (0, 0, 0), 2, "bits"), (("eager", 0),)),
    (_recipe("edges", "lengths at and around pages, tiles and splits", (31, 32, 33, 127, 128, 255, 256, 257, 512), 5,
             "amax", form="reversed", rest="tight", columns=300), (("random", 7),)),
    (_recipe("greatest", "codes of +448 and -448, sums that cancel", (384,), 1, "greatest_codes"), (("lazy", 0),)),
    (_recipe("subnormals", "products that vanish", (200,), 1, "subnormals"), (("random", 8),)),
    (_recipe("zeros", "zeros of either sign", (160,), 1, "all_zero"), (("eager", 0),)),
    (_recipe("weights", "NaN, infinite, zero, subnormal weights", (130, 40), 2, "special_weights"), (("random", 9),)),
    (_recipe("window", "table entries are fetched twice", (64 * PAGE + 300, 64), 1, "bits", rest="garbage"),
     (("eager", 0),)),
    (_recipe("held back", "one warp at a time is held back", (600, 300, 257, 700), 1, "bits"),
     tuple(("systematic", seed) for seed in range(26))),
)
# fmt: on


def ladder(flow: Flow, seed: int = 0, drawn: int = DRAWN) -> Iterator[Rung]:
    """The launches in their order; ``seed``: of the drawn ones, which need the extra ``fuzz``."""
    for recipe, orders in STEPS:
        problem = make(recipe).problem
        for order, number in orders:
            yield Rung(
                f"{recipe.name}/{order}-{number}", recipe.why, Subject(problem, flow, {}, order, number)
            )
    if drawn:
        yield from _drawn(flow, seed, drawn)


def _drawn(flow: Flow, seed: int, count: int) -> Iterator[Rung]:
    from hypothesis import strategies as st

    from mqa_ref.fuzz.description import Description
    from mqa_ref.fuzz.drive import drive
    from mqa_ref.fuzz.session import subject_of
    from mqa_ref.fuzz.shapes import Shape
    from mqa_ref.fuzz.strategies import descriptions

    shapes = st.sampled_from(CTAS).map(
        lambda ctas: Shape(page=PAGE, heads=HEADS, next_n=NEXT_N, num_sms=ctas, flow=str(flow))
    )
    found: list[Description] = []
    drive(descriptions(shape=shapes), found.append, seed=seed, examples=count)
    for number, description in enumerate(found[:count]):
        yield Rung(f"drawn {number}", "drawn by the fuzzer", subject_of(description))
