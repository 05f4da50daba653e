"""``mqa-ref schedule``: who works on what."""

from __future__ import annotations

from pathlib import Path

import click


def parse_lengths(text: str) -> list[int]:
    """Context lengths from a comma-separated list; InputError names every part that is no number."""
    from mqa_ref.errors import Fault, InputError

    parts = [part.strip() for part in text.split(",")]
    bad = [part for part in parts if not part.removeprefix("-").isdecimal()]
    if bad:
        raise InputError(Fault("--context-lens", repr(part), "an integer") for part in bad)
    return [int(part) for part in parts]


@click.command("schedule")
@click.option("--context-lens", required=True, metavar="N,N,...", help="Tokens of each sequence.")
@click.option("--num-sms", type=int, default=148, show_default=True, help="CTAs of the launch.")
@click.option(
    "--form", default="forward", show_default=True, help="Who takes the remainder: forward or reversed."
)
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Also draw it.")
def schedule_command(context_lens: str, num_sms: int, form: str, svg: Path | None) -> int:
    """Show which CTA executes which splits, for the lengths of one launch."""
    from mqa_ref.cli.output import check_writable, write_whole
    from mqa_ref.schedule import build, render_svg, render_text

    check_writable("--svg", svg)
    lengths = parse_lengths(context_lens)
    schedule = build(lengths, num_sms, form)  # type: ignore[arg-type]  # build refuses unknown forms
    click.echo(render_text(schedule, lengths))
    if svg is not None:
        write_whole(svg, render_svg(schedule, lengths))
        click.echo(f"wrote {svg}")
    return 0
