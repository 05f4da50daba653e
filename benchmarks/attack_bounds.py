"""Attacks the error bounds of every flow, machine and generation, and writes what it saw as a table for docs/bounds.md.

    OPENBLAS_NUM_THREADS=1 python benchmarks/attack_bounds.py --elements 10000000

Of each it looks at as many logits of the general attacks as asked for, not counting those without a bound, then at a
hundredth of that of the plain ones, in which nothing underflows and no input is rounded. Exit status 1 when a bound is
exceeded. Takes one to three minutes for each of the 36 at ten million, on one core.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from itertools import product

from mqa_ref.flow import FLOWS, Flow
from mqa_ref.reference import GENERATIONS
from mqa_ref.reference.attacks import PLAIN_FLOATS
from mqa_ref.reference.observations import observe


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=10_000_000, help="logits with a bound, for each")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--machines", default="sm100,sm90,exact")
    parser.add_argument("--flows", default=",".join(FLOWS))
    return parser.parse_args()


def main() -> int:
    """Run the attacks."""
    given, exceeded = _arguments(), False
    sys.stdout.write(f"{datetime.now(UTC):%Y-%m-%d}, seed {given.seed}\n\n")
    sys.stdout.write(
        "| machine | flow | generation | logits | with a bound | own order | any order | own, plain |\n"
    )
    sys.stdout.write("|---|---|---|---|---|---|---|---|\n")
    for machine, name in product(given.machines.split(","), given.flows.split(",")):
        flow = Flow.parse(name)
        for generation in GENERATIONS if flow.epi == "fp32" else GENERATIONS[:1]:
            seen = observe(flow, machine, seed=given.seed, elements=given.elements, generation=generation)
            plain = observe(
                flow,
                machine,
                seed=given.seed,
                elements=max(1, given.elements // 100),
                generation=generation,
                floats=PLAIN_FLOATS,
            )
            exceeded |= max(seen.own_order, seen.any_order, plain.own_order, plain.any_order) > 1
            cells = [machine, name, generation if flow.epi == "fp32" else "either", f"{seen.elements:,}"]
            cells += [
                f"{seen.bounded:,}",
                f"{seen.own_order:.7f}",
                f"{seen.any_order:.7f}",
                f"{plain.own_order:.3f}",
            ]
            sys.stdout.write(f"| {' | '.join(cells)} |\n")
            sys.stdout.flush()
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
