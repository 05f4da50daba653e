"""Attacks the error bounds of every flow, machine and generation, and writes what it saw as a table for docs/bounds.md.

    OPENBLAS_NUM_THREADS=1 python benchmarks/attack_bounds.py --elements 10000000

Of each it looks at as many logits of the general attacks as asked for, not counting those without a bound, then at a
hundredth of that of the plain ones, in which nothing underflows and no input is rounded. Exit status 1 when a bound is
exceeded. Takes some 40 minutes at ten million, on one core.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from itertools import product

from mqa_ref.flow import FLOWS, Flow
from mqa_ref.reference import GENERATIONS
from mqa_ref.reference.attacks import PLAIN_FLOATS
from mqa_ref.reference.observations import Observation, observe_flows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=10_000_000, help="logits with a bound, for each")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--machines", default="sm100,sm90,exact")
    return parser.parse_args()


def _row(machine: str, flow: Flow, generation: str, seen: Observation, plain: Observation) -> str:
    cells = [machine, str(flow), generation if flow.epi == "fp32" else "either", f"{seen.elements:,}"]
    cells += [f"{seen.bounded:,}", f"{seen.own_order:.7f}", f"{seen.any_order:.7f}", f"{plain.own_order:.3f}"]
    return f"| {' | '.join(cells)} |\n"


def main() -> int:
    """Run the attacks."""
    given, exceeded = _arguments(), False
    sys.stdout.write(f"{datetime.now(UTC):%Y-%m-%d}, seed {given.seed}\n\n")
    sys.stdout.write(
        "| machine | flow | generation | logits | with a bound | own order | any order | own, plain |\n"
    )
    sys.stdout.write("|---|---|---|---|---|---|---|---|\n")
    flows = [Flow.parse(name) for name in FLOWS]
    stages = {
        flow.acc + flow.epi: [f for f in flows if (f.acc, f.epi) == (flow.acc, flow.epi)] for flow in flows
    }
    for machine, group in product(given.machines.split(","), stages.values()):
        for generation in GENERATIONS if group[0].epi == "fp32" else GENERATIONS[:1]:
            seen = observe_flows(group, machine, given.seed, given.elements, generation)
            few = max(1, given.elements // 100)
            plain = observe_flows(group, machine, given.seed, few, generation, PLAIN_FLOATS)
            for flow in group:
                exceeded |= max(s.own_order for s in (seen[flow], plain[flow])) > 1
                exceeded |= max(s.any_order for s in (seen[flow], plain[flow])) > 1
                sys.stdout.write(_row(machine, flow, generation, seen[flow], plain[flow]))
            sys.stdout.flush()
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
