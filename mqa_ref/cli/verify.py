"""``mqa-ref verify``: the main job."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("verify")
@click.option("--kernel", default="builtin", show_default=True, help="The kernel under test.")
@click.option(
    "--on", "backend", default="emulator", show_default=True, help="Where it runs: emulator or cuda."
)
@click.option(
    "--flow", default="fp32-fp32-fp32", show_default=True, help="Accumulator, epilogue and output format."
)
@click.option("--level", default="quick", show_default=True, help="How much is run: quick or full.")
@click.option("--case", "cases", multiple=True, metavar="NAME", help="Only this problem; may be repeated.")
@click.option(
    "--machine",
    default="sm100",
    show_default=True,
    help="Tensor core of the reference: sm100, sm90 or exact.",
)
@click.option(
    "--generation", default="folded", show_default=True, help="ReLU of the reference: folded or max."
)
@click.option(
    "--order",
    "orders",
    multiple=True,
    default=("eager",),
    show_default=True,
    help="Interleaving of the warps: eager, lazy or random; may be repeated.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the order random.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report as one JSON object.",
)
def verify_command(
    kernel: str,
    backend: str,
    flow: str,
    level: str,
    cases: tuple[str, ...],
    machine: str,
    generation: str,
    orders: tuple[str, ...],
    seed: int,
    json_file: Path | None,
) -> int:
    """Run a kernel over named problems and compare every valid logit with the reference, bit for bit."""
    from mqa_ref.cli.output import check_writable, progress_bar, write_whole
    from mqa_ref.report.text import make_console, render
    from mqa_ref.verification.request import by_name
    from mqa_ref.verification.verify import verify

    check_writable("--json", json_file)
    problems = by_name(cases) if cases else None
    with progress_bar("verify") as progress:
        report = verify(
            kernel,
            backend,
            flow,
            problems,
            level=level,
            machine=machine,
            generation=generation,
            orders=orders,
            seed=seed,
            progress=progress,
        )
    if json_file is not None:
        write_whole(json_file, report.to_json())
    render(report, make_console())
    return report.exit_code
