"""``mqa-ref golden``: the stored bits of the named cases."""

from __future__ import annotations

import os
from pathlib import Path

import click

_MOST_MESSAGES = 6

_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Another folder of golden files than the package's.",
)


@click.group("golden")
def golden_command() -> None:
    """List, check and regenerate the golden files."""


@golden_command.command("list")
def list_command() -> int:
    """Name every case, its kind, and why it is there."""
    from mqa_ref.golden import CASES

    for case in CASES:
        click.echo(f"{case.name:38} {case.kind:9} {case.why}")
    click.echo(f"{len(CASES)} cases")
    return 0


@golden_command.command("check")
@click.option("--case", "names", multiple=True, metavar="NAME", help="Only this case; may be repeated.")
@_folder
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the result."
)
def check_command(names: tuple[str, ...], folder: Path | None, json_file: Path | None) -> int:
    """Compute every case and compare it with its file; exit code 1 for one that is missing, differs or has no
    case, 2 for one that is no golden file."""
    _one_thread()
    from mqa_ref.cli.output import check_writable, progress_bar, write_whole
    from mqa_ref.golden import DATA, by_name, check

    check_writable("--json", json_file)
    cases = by_name(names)
    with progress_bar("golden check") as progress:
        report = check(cases, folder=folder or DATA, progress=progress)
    if json_file is not None:
        write_whole(json_file, report.to_json())
    for one in report.outcomes:
        if one.status != "pass":
            click.echo(f"{one.name}: {one.status}")
            _echo_messages(one.messages)
    for name in report.unused:
        click.echo(f"{name}: unused, no case has this name")
    wrong = sum(one.status != "pass" for one in report.outcomes)
    logits = sum(one.logits for one in report.outcomes)
    told = f"{len(report.outcomes)} cases, {logits} logits, {wrong} cases differ, {len(report.unused)} files unused"
    click.echo(f"{report.status}: {told}, {report.seconds:.1f} s")
    return report.exit_code


@golden_command.command("regen")
@click.option("--reason", required=True, metavar="TEXT", help="Why, in one line; it goes into the history.")
@_folder
def regen_command(reason: str, folder: Path | None) -> int:
    """Compute every case anew and write the files that change; refused under CI and with uncommitted changes."""
    _one_thread()
    from mqa_ref.cli.output import progress_bar
    from mqa_ref.golden import DATA, regen

    with progress_bar("golden regen") as progress:
        done = regen(reason, folder=folder or DATA, progress=progress)
    for change in done.changes:
        click.echo(f"{change.file}: {change.changed} elements changed")
        _echo_messages(change.messages)
    if not done.changes:
        click.echo(f"nothing changed: all {done.cases} files are as they were, nothing written")
    else:
        click.echo(f"wrote {len(done.changes)} of {done.cases} files and one line of history")
    return 0


def _one_thread() -> None:
    """Thousands of small products: threads of NumPy's BLAS only wait for each other, three times as long on a
    busy machine. Heeded when NumPy is not loaded yet, as on a command line; a choice the user made stays."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _echo_messages(messages: tuple[str, ...]) -> None:
    for text in messages[:_MOST_MESSAGES]:
        click.echo(f"  {text}")
    if len(messages) > _MOST_MESSAGES:
        click.echo(f"  and {len(messages) - _MOST_MESSAGES} more")
