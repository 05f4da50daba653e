"""``mqa-ref calibrate``: which arithmetic a tensor core follows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mqa_ref.calibrate.analysis import Verdict

_MOST = 3


@click.command("calibrate")
@click.option(
    "--on", "backend", default="cuda", show_default=True, help="Whose tensor core: cuda or emulator."
)
@click.option(
    "--machine", default="sm100", show_default=True, help="With --on emulator: the arithmetic it has."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=120.0,
    show_default=True,
    metavar="S",
    help="Seconds after which the program on a GPU is stopped.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report: every verdict, the vectors that decide it, and all that was observed.",
)
def calibrate_command(backend: str, machine: str, timeout: float, json_file: Path | None) -> int:
    """Run crafted vectors on a tensor core and decide each published rule of its arithmetic; exit code 1 when one is
    refuted."""
    from mqa_ref.calibrate import calibrate
    from mqa_ref.cli.output import check_writable, write_whole

    check_writable("--json", json_file)
    found = calibrate(backend, machine, seconds=timeout)
    if json_file is not None:
        write_whole(json_file, found.to_json())
    click.echo(f"{found.device}; {found.program} program; held against {found.published.name}")
    for verdict in found.verdicts:
        click.echo(_line(verdict))
        for one in verdict.deciders if verdict.status == "refuted" else ():
            click.echo(
                f"    {one.name}: {one.observed:#x}; {', '.join(one.agreeing[:_MOST]) or 'no answer says so'}"
            )
    for model in found.models:
        bits = "all bits" if model.fraction_bits is None else f"F = {model.fraction_bits}"
        click.echo(f"explained by: {bits}, into fp32 {model.final32}, into fp16 to nearest even")
    if not found.models:
        click.echo("explained by no machine model of this package")
    click.echo(
        f"{found.status}: {len(found.verdicts)} rules, {found.refuted} refuted; {found.predicted} results predicted,"
        f" {found.differing} differ; {found.seconds:.1f} s"
    )
    return found.exit_code


def _line(verdict: Verdict) -> str:
    answers = list(verdict.answers)
    if verdict.published in answers:
        answers = [verdict.published, *(one for one in answers if one != verdict.published)]
    told = answers[0] if answers else f"NONE of the answers; published: {verdict.published}"
    if len(answers) > 1:
        told += (
            f" (or {', '.join(answers[1:_MOST])}{', ...' if len(answers) > _MOST else ''}: not told apart)"
        )
    count = f"{verdict.deciding} of {verdict.tried} vectors decide"
    return f"{verdict.status:10} {verdict.acc}  {verdict.text}: {told} [{count}]"
