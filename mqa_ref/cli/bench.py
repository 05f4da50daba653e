"""``mqa-ref bench``: how fast the parts are beside their peers, and whether the targets are met."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("bench")
@click.option("--only", multiple=True, metavar="LINE", help="Only this line; may be repeated.")
@click.option(
    "--rounds", type=int, default=5, show_default=True, help="How often the two sides of a line run."
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report as one JSON object.",
)
def bench_command(only: tuple[str, ...], rounds: int, json_file: Path | None) -> int:
    """Time reference, emulator, comparison and fuzzing, each beside a peer in the same run."""
    from mqa_ref.bench.report import bench, render
    from mqa_ref.cli.output import check_writable, progress_bar, write_whole

    check_writable("--json", json_file)
    with progress_bar("bench") as progress:
        report = bench(only, rounds, progress)
    if json_file is not None:
        write_whole(json_file, report.to_json())
    click.echo(render(report), nl=False)
    return report.exit_code
