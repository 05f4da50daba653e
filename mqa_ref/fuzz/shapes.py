"""The static shapes of launches: what a kernel is compiled for, and the few of them that one block of examples uses.

A compilation takes longer than many small launches, so a block draws from a *palette* of two shapes, and a shape serves
four blocks. Palettes follow from the seed, the number of the block and what the kernel serves; over many blocks they
reach every shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from mqa_ref.errors import Fault
from mqa_ref.flow import FLOWS
from mqa_ref.problem_rules import PAGES
from mqa_ref.verification.full import SHAPES, SWITCHES
from mqa_ref.verification.words import below, permutation

HEADS: tuple[tuple[int, int], ...] = (
    *((64, 1), (32, 1), (64, 2), (32, 2), (64, 4), (32, 8)),
    *(pair for pair in SHAPES if pair[0] not in (64, 32)),
)
"""(heads, next_n) that are drawn: those in use, then those at the edges of what is legal."""
FEW_SMS = (1, 2, 3, 4, 5, 8)
MANY_SMS = (33, 132, 148, 256)
CROWDED = 8
"""Of so many shapes one has many CTAs."""
_PLACES = (2, 3, 6, 7)
"""Where among them it may stand, so that of two shapes that serve a block together only one has many CTAs."""
WEIGHTS_IN_REGISTERS = (0, 4, 16, 32)
SUBTILES = (1, 2, 4)
LANES = 2
"""Blocks take turns in so many rows of shapes, so that as many processes keep to the shapes that they have compiled."""
STRETCH = 2
"""So many blocks of a row draw from the same two shapes; the next ones share the second of these."""

Options = tuple[tuple[str, Any], ...]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Shape:
    """What a kernel is compiled for. ``options``: further constructor arguments, sorted by name; none is the
    default."""

    page: int = 64
    heads: int = 64
    next_n: int = 1
    num_sms: int = 2
    flow: str = FLOWS[0]
    options: Options = ()


def option_faults(options: Mapping[str, Any], heads: int) -> list[Fault]:
    """What is wrong with options for a number of heads; those of a foreign kernel are taken as they are."""
    faults = [
        Fault(name, repr(options[name]), "a bool")
        for name in SWITCHES
        if name in options and not isinstance(options[name], bool)
    ]
    parts, kept = options.get("num_epi_subtiles", 1), options.get("max_w_in_reg", 0)
    if type(parts) is not int or parts < 1 or heads % parts or heads // parts % 4:
        faults.append(
            Fault("num_epi_subtiles", repr(parts), f"a divisor of {heads} heads into multiples of 4")
        )
    if type(kept) is not int or kept < 0 or kept % 4:
        faults.append(Fault("max_w_in_reg", repr(kept), "a multiple of 4, 0 for the default"))
    return faults


def option_sets(heads: int) -> tuple[Options, ...]:
    """Sets of options that are legal for a number of heads, the default (none) first, then one at a time."""
    singles: list[Options] = [(), *(((name, True),) for name in SWITCHES), (("enable_pdl", False),)]
    singles += [(("max_w_in_reg", value),) for value in WEIGHTS_IN_REGISTERS[1:]]
    singles += [(("num_epi_subtiles", value),) for value in SUBTILES[1:]]
    return tuple(one for one in dict.fromkeys(singles) if not option_faults(dict(one), heads))


def drawn_options(label: str, heads: int) -> Options:
    """Options by chance: none half of the time, else each switch on or off and the numbers from their lists."""
    numbers = below(f"{label}/options", len(SWITCHES) + 3, 1 << 16).tolist()
    if numbers[0] % 2:
        return ()
    chosen: dict[str, Any] = {
        name: bool(number % 2) for name, number in zip(SWITCHES, numbers[3:], strict=True)
    }
    chosen["max_w_in_reg"] = WEIGHTS_IN_REGISTERS[numbers[1] % len(WEIGHTS_IN_REGISTERS)]
    chosen["num_epi_subtiles"] = SUBTILES[numbers[2] % len(SUBTILES)]
    if option_faults(chosen, heads):
        del chosen["num_epi_subtiles"]
    return tuple(sorted(chosen.items()))


def palette(
    seed: int,
    block: int,
    flows: Sequence[str] = FLOWS,
    *,
    options: bool = True,
    pages: Sequence[int] = PAGES,
    heads: Sequence[tuple[int, int]] = HEADS,
) -> tuple[Shape, ...]:
    """The shapes of one block, the cheaper one first. ``flows``, ``pages``, ``heads``: those of the campaign.
    ``options``: whether the kernel's options are drawn too.

    Each shape serves four blocks, so that two blocks compile one shape anew. The values of each part of a shape take
    turns, those of all but the flow in an order that is drawn for each round of turns, so that a short campaign sees
    all of them; the rest is by chance.
    """
    first = block // LANES // STRETCH * LANES + block % LANES
    drawn = partial(_shape, seed, flows=flows, options=options, pages=pages, heads=heads)
    return tuple(sorted((drawn(first), drawn(first + LANES)), key=lambda shape: shape.num_sms))


def weighted(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """What a block draws shapes from: one of many CTAs, whose launches take as long as a dozen others, comes up one
    time in twelve."""
    few = [shape for shape in shapes if shape.num_sms <= max(FEW_SMS)]
    many = [shape for shape in shapes if shape.num_sms > max(FEW_SMS)]
    return (*few * (11 if many else 1), *many)


def _shape(
    seed: int,
    number: int,
    *,
    flows: Sequence[str],
    options: bool,
    pages: Sequence[int],
    heads: Sequence[tuple[int, int]],
) -> Shape:
    """The shape of a number."""
    pair = _turn(f"heads/{seed}", number, heads)
    # Of an even number of flows each row of blocks would keep to one half, and steered blocks are all of one row.
    shift = 0 if len(flows) % LANES else number // len(flows)
    round_, place = divmod(number, CROWDED)
    crowded = place == _PLACES[int(below(f"crowded/{seed}/{round_}", 1, len(_PLACES))[0])]
    sms = _turn(f"many/{seed}", round_, MANY_SMS) if crowded else _turn(f"few/{seed}", number, FEW_SMS)
    return Shape(
        page=_turn(f"page/{seed}", number, pages),
        heads=pair[0],
        next_n=pair[1],
        num_sms=sms,
        flow=flows[(number + shift) % len(flows)],
        options=drawn_options(f"shape/{seed}/{number}", pair[0]) if options else (),
    )


def _turn(label: str, number: int, values: Sequence[Value]) -> Value:
    """One of the values: in as many consecutive numbers as there are values each comes once."""
    round_, place = divmod(number, len(values))
    return values[int(permutation(f"turn/{label}/{round_}", len(values))[place])]
