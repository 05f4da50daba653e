"""The static shapes of launches: what a kernel is compiled for, and the few of them that one block of examples uses.

A compilation takes longer than many small launches, so a block draws from a *palette* of two shapes, one of which an
earlier block has used. Palettes follow from the seed and the number of the block alone; over many blocks they reach
every shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqa_ref.errors import Fault
from mqa_ref.flow import FLOWS
from mqa_ref.problem_rules import PAGES
from mqa_ref.verification.full import SHAPES, SWITCHES
from mqa_ref.verification.words import below

HEADS: tuple[tuple[int, int], ...] = (
    *((64, 1), (32, 1), (64, 2), (32, 2), (64, 4), (32, 8)),
    *(pair for pair in SHAPES if pair[0] not in (64, 32)),
)
"""(heads, next_n) that are drawn: those in use, then those at the edges of what is legal."""
FEW_SMS = (1, 2, 3, 4, 5, 8)
MANY_SMS = (13, 33, 132, 148, 256)
WEIGHTS_IN_REGISTERS = (0, 4, 16, 32)
SUBTILES = (1, 2, 4)
APART = 2
"""A block draws from the shape of its own number and from the one that so many numbers are after it."""

Options = tuple[tuple[str, Any], ...]


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
    seed: int, block: int, flows: Sequence[str] = FLOWS, *, options: bool = True
) -> tuple[Shape, ...]:
    """The shapes of one block, the cheaper one first. ``flows``: those of the campaign. ``options``: whether the
    kernel's options are drawn too.

    Each shape serves two blocks, this one and the one ``APART`` before, so that a block compiles one shape anew. The
    flows take turns, so that as many blocks as flows see all of them; the rest is by chance.
    """
    chosen = [_shape(seed, number, flows, options) for number in (block, block + APART)]
    return tuple(sorted(chosen, key=lambda shape: shape.num_sms))


def weighted(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """What a block draws shapes from: one of many CTAs, whose launches take long, comes up one time in six."""
    few = [shape for shape in shapes if shape.num_sms <= max(FEW_SMS)]
    many = [shape for shape in shapes if shape.num_sms > max(FEW_SMS)]
    return (*few * (5 if many else 1), *many)


def _shape(seed: int, number: int, flows: Sequence[str], options: bool) -> Shape:
    """The shape of a number. Of two that serve a block together, one may have many CTAs."""
    label = f"shape/{seed}/{number}"
    numbers = below(label, 4, 1 << 16).tolist()
    heads, next_n = HEADS[numbers[0] % len(HEADS)]
    counts = MANY_SMS if number // APART % 2 and numbers[1] % 4 == 0 else FEW_SMS
    return Shape(
        page=PAGES[numbers[2] % len(PAGES)],
        heads=heads,
        next_n=next_n,
        num_sms=counts[numbers[3] % len(counts)],
        flow=flows[number % len(flows)],
        options=drawn_options(label, heads) if options else (),
    )
