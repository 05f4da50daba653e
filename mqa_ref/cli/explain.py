"""``mqa-ref explain``: one logit, every step of the reference and of the kernel side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mqa_ref.cli.selectors import KERNEL_HELP, limit_options, limits_of

if TYPE_CHECKING:
    from mqa_ref.verification.problems import NamedProblem


@click.command("explain")
@click.argument("case_file", type=click.Path(path_type=Path), required=False)
@click.option("--case", "name", metavar="NAME", help="A named problem, in place of a case file.")
@click.option(
    "--row", type=click.IntRange(min=0), help="Row of the logit; by default that of the first wrong one."
)
@click.option("--column", type=click.IntRange(min=0), help="Its column.")
@click.option("--head", type=click.IntRange(min=0), help="Also tell the products of this head term by term.")
@click.option("--terms", is_flag=True, help="The same for the head where the two part.")
@click.option("--all", "everything", is_flag=True, help="Show all steps, not only those around that place.")
@click.option(
    "--kernel", help=f"{KERNEL_HELP} The one of the case file if it has a name here; builtin for --case."
)
@click.option("--flow", help="As the case file says if not given, else fp32-fp32-fp32.")
@click.option(
    "--machine", help="Tensor core of the reference; by default that of the case file or the kernel."
)
@click.option("--generation", help="ReLU of the reference; by default that of the case file or the kernel.")
@click.option("--order", help="Interleaving of the warps; by default that of the case file, else eager.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the interleaving.")
@limit_options
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write all steps as JSON."
)
def explain_command(
    case_file: Path | None,
    name: str | None,
    row: int | None,
    column: int | None,
    head: int | None,
    terms: bool,
    everything: bool,
    timeout: float,
    memory: float,
    json_file: Path | None,
    **given: Any,
) -> int:
    """Run the launch in CASE_FILE, or a named problem, and explain one logit of it step by step: exit code 1 when the
    kernel parts from the reference.

    By default the first wrong logit is explained, and where none is wrong the first one.
    """
    from mqa_ref.cli.output import check_writable, write_whole
    from mqa_ref.errors import Fault, InputError
    from mqa_ref.explain.run import explain_problem
    from mqa_ref.explain.text import render
    from mqa_ref.report.text import make_console

    check_writable("--json", json_file)
    if (case_file is None) == (name is None):
        told = "neither" if name is None else "both"
        raise InputError([Fault("CASE_FILE or --case", told, "one of the two")])
    problem, stored = _of_file(case_file, given["kernel"]) if case_file is not None else _named(str(name))
    chosen = {key: value for key, value in given.items() if value is not None}
    asked: dict[str, Any] = {"kernel": "builtin", "flow": "fp32-fp32-fp32"} | stored | chosen
    found = explain_problem(
        asked.pop("kernel"),
        problem,
        asked.pop("flow"),
        row=row,
        column=column,
        head=head,
        limits=limits_of(timeout, memory),
        **asked,
    )
    if json_file is not None:
        write_whole(json_file, found.to_json())
    render(found, make_console(), everything=everything, terms=terms or head is not None)
    return found.exit_code


def _named(name: str) -> tuple[NamedProblem, dict[str, Any]]:
    from mqa_ref.verification.request import by_name

    (problem,) = by_name([name])
    return problem, {"flow": str(problem.flow)} if problem.flow is not None else {}


def _of_file(file: Path, kernel: Any) -> tuple[NamedProblem, dict[str, Any]]:
    """The launch in a case file, and what the file says of flow, kernel, machine and interleaving."""
    from mqa_ref.fuzz.casefile import kernel_of, read_case
    from mqa_ref.verification.problems import NamedProblem

    case = read_case(file)
    subject = case.subject
    problem = NamedProblem(file.name, subject.problem, case.message, options=dict(subject.options) or None)
    stored = {"flow": subject.flow, "order": subject.order, "seed": subject.seed}
    stored |= {"kernel": kernel_of(case, kernel), "machine": case.machine, "generation": case.generation}
    return problem, stored
