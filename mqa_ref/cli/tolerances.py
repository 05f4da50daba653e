"""``mqa-ref tolerances``: what a result may differ from what it is held against."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mqa_ref.compare.tolerances import Tolerances

_CHECKED = 20_000
_DERIVED = 300_000

_file = click.option(
    "--file", type=click.Path(path_type=Path), metavar="FILE", help="Another file than this project's own."
)
_flows = click.option(
    "--flow", "flows", multiple=True, metavar="FLOW", help="Only this flow; may be repeated."
)
_json = click.option(
    "--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the result as JSON."
)


@click.group("tolerances")
def tolerances_command() -> None:
    """Show, derive and check tolerances.toml."""


@tolerances_command.command("show")
@_file
@_flows
@_json
def show_command(file: Path | None, flows: tuple[str, ...], json_file: Path | None) -> int:
    """Print every row: what is compared, what is allowed, what was observed."""
    from mqa_ref.cli.output import check_writable, write_whole
    from mqa_ref.compare.tolerances import read
    from mqa_ref.flow import Flow

    check_writable("--json", json_file)
    wanted = [str(Flow.parse(name)) for name in flows]
    told = read(file)
    if json_file is not None:
        write_whole(json_file, told.model_dump_json(indent=2) + "\n")
    _show(told, wanted or list(told.flows))
    return 0


@tolerances_command.command("derive")
@click.option(
    "--elements", type=click.IntRange(min=1), default=_DERIVED, show_default=True, help="Logits of each."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=20, show_default=True, help="Seed of the attacks."
)
@_flows
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the file, not only print it."
)
@_json
def derive_command(
    elements: int, seed: int, flows: tuple[str, ...], out: Path | None, json_file: Path | None
) -> int:
    """Measure anew on adversarial data, for every flow, machine and generation, and print the file."""
    _one_thread()
    from datetime import UTC, datetime

    from mqa_ref.cli.output import check_writable, progress_bar, write_whole
    from mqa_ref.compare.tolerances import derive, to_toml
    from mqa_ref.flow import Flow

    check_writable("--out", out)
    check_writable("--json", json_file)
    chosen = [Flow.parse(name) for name in flows] or None
    with progress_bar("tolerances derive") as progress:
        told = derive(
            elements=elements, seed=seed, date=datetime.now(UTC).date(), flows=chosen, progress=progress
        )
    if json_file is not None:
        write_whole(json_file, told.model_dump_json(indent=2) + "\n")
    if out is not None:
        write_whole(out, to_toml(told))
    click.echo(to_toml(told), nl=False)
    return 0


@tolerances_command.command("check")
@click.option(
    "--elements", type=click.IntRange(min=1), default=_CHECKED, show_default=True, help="Logits of each."
)
@click.option(
    "--seed", type=click.IntRange(min=0), help="Seed of the attacks; by default another than the file's."
)
@_file
@_flows
@_json
def check_command(
    elements: int, seed: int | None, file: Path | None, flows: tuple[str, ...], json_file: Path | None
) -> int:
    """Measure anew, less than derive does; exit code 1 for a row that is missing, exceeded or far too loose."""
    _one_thread()
    from mqa_ref.cli.output import check_writable, progress_bar, write_whole
    from mqa_ref.compare.tolerances import check, read
    from mqa_ref.flow import Flow

    check_writable("--json", json_file)
    chosen = [Flow.parse(name) for name in flows] or None
    told = read(file)
    with progress_bar("tolerances check") as progress:
        report = check(told, elements=elements, seed=seed, flows=chosen, progress=progress)
    if json_file is not None:
        write_whole(json_file, report.to_json())
    for fault in report.faults:
        click.echo(str(fault))
    click.echo(
        f"{report.status}: {report.rows} rows, {report.logits} logits measured, {len(report.faults)} faults,"
        f" seed {report.seed}, {report.seconds:.1f} s"
    )
    return report.exit_code


def _show(told: Tolerances, flows: list[str]) -> None:
    from mqa_ref.compare.tolerances import SameModelRow

    click.echo(
        f"{'flow':15} {'row':14} {'allowed':>8} {'observed':>9} {'plain':>9} {'margin':>7} {'samples':>9}  date"
    )
    for flow in flows:
        for kind, row in told.rows(flow).items():
            if row is None:
                click.echo(f"{flow:15} {kind:14}  missing")
                continue
            standing = ", ".join(f"{name} {one}" for name, one in row.standing.items())
            if isinstance(row, SameModelRow):
                numbers = f"{row.bits:>3} bits {row.observed:>9} {'-':>9} {row.margin:>7}"
            else:
                numbers = f"{row.factor:>8g} {row.observed:>9.6f} {row.plain:>9.6f} {row.margin:>7.3f}"
            click.echo(f"{flow:15} {kind:14} {numbers} {row.samples:>9}  {row.date}, {standing}")


def _one_thread() -> None:
    """As in ``golden``: threads of NumPy's BLAS only wait for each other over small products."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
