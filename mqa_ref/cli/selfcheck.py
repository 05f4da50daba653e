"""``mqa-ref selfcheck``: the oracles against each other."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("selfcheck")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the operands and places.")
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Logits per problem and generation.",
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the result."
)
def selfcheck_command(seed: int, samples: int, json_file: Path | None) -> int:
    """Compare the vectorised arithmetic and reference with their slow scalar twins; exit code 3 when they
    differ."""
    from mqa_ref.cli.output import check_writable, progress_bar, write_whole
    from mqa_ref.verification.selfcheck import selfcheck

    check_writable("--json", json_file)
    with progress_bar("selfcheck") as progress:
        result = selfcheck(seed=seed, samples=samples, progress=progress)
    if json_file is not None:
        write_whole(json_file, result.to_json())
    for check in result.checks:
        told = "equal" if check.differing == 0 else f"{check.differing} DIFFER: {check.first}"
        click.echo(f"{check.name:40} {check.tried:8} tried, {told}")
    click.echo(f"{result.status}: {result.tried} results compared, {result.differing} differ")
    return result.exit_code
