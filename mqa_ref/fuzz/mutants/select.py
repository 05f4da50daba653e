"""All PTX mutants of a kernel, and a choice among them that has every class and every operator in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mqa_ref.emulator.decode import OPCODES
from mqa_ref.emulator.opcodes import load
from mqa_ref.fuzz.mutants import arithmetic, machinery
from mqa_ref.fuzz.mutants.arithmetic import Operator
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.fuzz.mutants.statements import Listing, read, replaced
from mqa_ref.verification.words import permutation

OPERATORS: Mapping[str, Operator] = {
    "operation": arithmetic.swaps,
    "relation": arithmetic.relations,
    "constant": arithmetic.constants,
    "stage": arithmetic.stages,
    "parity": machinery.parities,
    "wait": machinery.waits,
    "arrival": machinery.arrivals,
    "bytes": machinery.byte_counts,
    "fence": machinery.fences,
    "register": arithmetic.registers,
    "predicate": arithmetic.predicates,
    "rounding": arithmetic.roundings,
    "order": arithmetic.orders,
    "relu": arithmetic.relus,
    "descriptor": machinery.descriptors,
    "tile load": machinery.tile_loads,
    "address": machinery.addresses,
    "store": machinery.stores,
    "vote": machinery.votes,
}
"""By class."""
HINTS = ("prefetch", "setmaxnreg")
"""Instructions that say nothing about values or order: no mutant is made of them."""


def pool(ptx: str) -> tuple[Mutant, ...]:
    """Every PTX mutant, each once, in the order of classes and lines. Raises EmulatorError for a text that the emulator
    does not know."""
    load()
    listing = read(ptx)
    made: dict[tuple[str, ...], Mutant] = {}
    for kind, operator in OPERATORS.items():
        for index, one in enumerate(listing.statements):
            if one.base in HINTS:
                continue
            for name, detail, change in operator(listing, index):
                edits = {one.line: change} if isinstance(change, str) else dict(change)
                mutant = _mutant(listing, index, kind, name, detail, edits)
                if mutant.before != mutant.after and _known(edits.values()):
                    made.setdefault(tuple(f"{line}{text}" for line, text in edits.items()), mutant)
    return tuple(made.values())


def _mutant(
    listing: Listing, index: int, kind: str, name: str, detail: str, edits: Mapping[int, str]
) -> Mutant:
    places = {one.line: one for one in listing.statements}
    before = " ".join(places[line].text for line in edits)
    after = " ".join("" if text == ";" else text for text in edits.values()).strip()
    one = listing.statements[index]
    return Mutant(kind, name, detail, min(edits), before, after, one.source, listing.near(index), dict(edits))


def _known(texts: Iterable[str]) -> bool:
    """Is every opcode of the new text in the table?"""
    for text in texts:
        for part in text.strip("{} ").split(";"):
            words = [word for word in part.strip(" {}").split() if not word.startswith("@")]
            if words and not words[0].startswith(".") and words[0] not in OPCODES:
                return False
    return True


def choose(mutants: Iterable[Mutant], count: int, seed: int) -> tuple[Mutant, ...]:
    """``count`` of them (all, if there are not as many): classes in turn, operators of a class in turn, places drawn
    from ``seed``. A larger count has those of a smaller one."""
    queues: dict[str, dict[str, list[Mutant]]] = {}
    for mutant in mutants:
        queues.setdefault(mutant.kind, {}).setdefault(f"{mutant.operator}/{mutant.detail}"[:24], []).append(
            mutant
        )
    lines = [_turns(list(kinds.values()), f"mutants/{seed}/{kind}") for kind, kinds in queues.items()]
    return tuple(_rounds(lines))[:count]


def _turns(groups: list[list[Mutant]], label: str) -> list[Mutant]:
    order = permutation(f"{label}/groups", len(groups))
    shuffled = [
        [groups[at][place] for place in permutation(f"{label}/{at}", len(groups[at]))]
        for at in order.tolist()
    ]
    return list(_rounds(shuffled))


def _rounds(lines: list[list[Mutant]]) -> Iterable[Mutant]:
    """One of each, then the second of each, as long as there are any."""
    for turn in range(max((len(line) for line in lines), default=0)):
        yield from (line[turn] for line in lines if turn < len(line))


def apply(mutant: Mutant, ptx: str) -> str:
    """The broken text. Raises ValueError for a text in which the place is another."""
    listing = {one.line: one.text for one in read(ptx).statements}
    if " ".join(listing.get(line, "") for line in mutant.edits) != mutant.before:
        raise ValueError(f"{mutant.id} is of another PTX")
    return replaced(ptx, mutant.edits)
