"""``mqa-ref mutate``: how many broken kernels the checks notice, and which they do not."""

from __future__ import annotations

from pathlib import Path

import click

from mqa_ref.cli.selectors import flow_option, json_option, kernel_option, report_option

DEFAULT_COUNT = 300


@click.command("mutate")
@kernel_option
@flow_option("fp32-fp32-fp32", all_of_them=False)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=DEFAULT_COUNT,
    show_default=True,
    help="PTX mutants to draw.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of what is drawn."
)
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=120.0,
    show_default=True,
    metavar="S",
    help="For one launch.",
)
@click.option(
    "--only", multiple=True, metavar="ID", help="Only this mutant, or all of a class (CLASS:); repeatable."
)
@click.option("--list", "listed", is_flag=True, help="Say which mutants would run, and run none.")
@click.option(
    "--ledger", type=click.Path(path_type=Path), metavar="FILE", help="Reasons of survivors, a TOML file."
)
@json_option
@report_option("Write text, JSON and a picture here.")
def mutate_command(
    kernel: str,
    flow: str,
    count: int,
    seed: int,
    workers: int,
    timeout: float,
    only: tuple[str, ...],
    listed: bool,
    ledger: Path | None,
    json_file: Path | None,
    report_folder: Path | None,
) -> int:
    """Break a kernel in one place at a time, and count what the checks notice.

    PTX mutants are drawn, the same ones for the same seed; of the builtin kernel, mutants of its source and of the
    builder of schedules are run too. A survivor that the ledger does not explain fails the run.
    """
    from mqa_ref.cli.fuzz import need_hypothesis
    from mqa_ref.cli.output import check_writable, progress_bar, write_whole
    from mqa_ref.cli.reporting import check_reporting
    from mqa_ref.fuzz.mutants.report import lines
    from mqa_ref.fuzz.mutants.study import ask, study
    from mqa_ref.verification.worker import Limits

    check_writable("--json", json_file)
    if report_folder is not None:
        check_reporting(report_folder, github=False)
    asked = ask(kernel, flow, count, seed, only, ledger)
    if listed:
        for one in asked.chosen:
            click.echo(f"{one.id}  line {one.line}: {one.change}")
        return 0
    need_hypothesis()
    with progress_bar("mutants") as progress:
        report = study(asked, workers=workers, limits=Limits(seconds=timeout), progress=progress)
    text = "".join(f"{line}\n" for line in lines(report))
    if json_file is not None:
        write_whole(json_file, report.to_json())
    if report_folder is not None:
        from mqa_ref.report.pictures.bars import render_classes

        report_folder.mkdir(parents=True, exist_ok=True)
        rows = [(row.kind, row.caught, row.caught + row.missed) for row in report.rows]
        picture = render_classes("mutants", f"Mutants of {kernel} that are caught", rows)
        write_whole(report_folder / "mutants.svg", picture)
        write_whole(report_folder / "mutants.txt", text)
        write_whole(report_folder / "mutants.json", report.to_json())
    click.echo(text, nl=False)
    return report.exit_code
