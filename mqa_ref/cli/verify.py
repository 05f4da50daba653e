"""``mqa-ref verify``: the main job."""

from __future__ import annotations

from pathlib import Path

import click

from mqa_ref.cli.selectors import KERNEL_HELP, given_problem, limit_options, limits_of, shape_options


@click.command("verify")
@click.option("--kernel", default="builtin", show_default=True, help=KERNEL_HELP)
@click.option(
    "--baseline", metavar="KERNEL", help="Run this kernel too, and hold the one under test against it."
)
@click.option(
    "--on", "backend", default="emulator", show_default=True, help="Where it runs: emulator or cuda."
)
@click.option(
    "--flow",
    default="fp32-fp32-fp32",
    show_default=True,
    help="Accumulator, epilogue and output format, or all.",
)
@click.option("--level", default="quick", show_default=True, help="How much is run: quick or full.")
@click.option("--case", "cases", multiple=True, metavar="NAME", help="Only this problem; may be repeated.")
@shape_options
@click.option("--force", is_flag=True, help="Launch even with a schedule that may never end.")
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
    help="Interleaving of the warps: eager, lazy, random or systematic; may be repeated. Without it every problem"
    " runs eager, and a small one in one of the others as well.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the orders random and systematic."
)
@click.option(
    "--known",
    "ledger_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Ledger of known findings, TOML: they fail nothing, but those that no longer appear do.",
)
@limit_options
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report as one JSON object.",
)
def verify_command(
    kernel: str,
    baseline: str | None,
    backend: str,
    flow: str,
    level: str,
    cases: tuple[str, ...],
    context_lens: str | None,
    schedule_for: str | None,
    num_sms: int,
    page: int,
    heads: int,
    next_n: int,
    force: bool,
    machine: str,
    generation: str,
    orders: tuple[str, ...],
    seed: int,
    ledger_file: Path | None,
    timeout: float,
    memory: float,
    json_file: Path | None,
) -> int:
    """Run a kernel over named problems and compare every valid logit with the reference, bit for bit."""
    from mqa_ref.cli.output import check_writable, progress_bar, write_whole
    from mqa_ref.errors import Fault, InputError
    from mqa_ref.report.text import make_console, render
    from mqa_ref.verification.ledger import read_ledger
    from mqa_ref.verification.request import by_name
    from mqa_ref.verification.verify import verify

    check_writable("--json", json_file)
    problems = given_problem(
        context_lens, schedule_for, num_sms=num_sms, page=page, heads=heads, next_n=next_n
    )
    if problems is not None and cases:
        raise InputError([Fault("--case", ", ".join(cases), "not beside --context-lens")])
    problems = by_name(cases, level, flow) if cases else problems
    known = read_ledger(ledger_file) if ledger_file is not None else None
    with progress_bar("verify") as progress:
        report = verify(
            kernel,
            backend,
            flow,
            problems,
            level=level,
            machine=machine,
            generation=generation,
            orders=orders or None,
            seed=seed,
            baseline=baseline,
            known=known,
            force=force,
            limits=limits_of(timeout, memory),
            progress=progress,
        )
    if json_file is not None:
        write_whole(json_file, report.to_json())
    render(report, make_console())
    return report.exit_code
