"""``mqa-ref verify``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mqa_ref.cli.reporting import check_reporting, hashes, report_options, tell_github, write_report
from mqa_ref.cli.selectors import (
    KERNEL_HELP,
    given_problem,
    kernel_options,
    limit_options,
    limits_of,
    options_of,
    shape_options,
)

if TYPE_CHECKING:
    from mqa_ref.verification.evidence import Seen


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
@click.option(
    "--level",
    default="quick",
    show_default=True,
    help="How much is run: quick, full, or ab, the smallest launches in which two kernels can differ.",
)
@click.option("--case", "cases", multiple=True, metavar="NAME", help="Only this problem; may be repeated.")
@kernel_options
@shape_options
@click.option("--force", is_flag=True, help="Launch even with a schedule that may never end.")
@click.option(
    "--machine",
    help="Tensor core of the reference: sm100, sm90 or exact. Without it the kernel's.",
)
@click.option("--arch", help="Of the kernel deepgemm: sm_90a or sm_100a; sm_90a without it.")
@click.option(
    "--expect",
    help="bits: those of the order in which the kernel declares to add; a kernel from a file is taken to add in the"
    " builtin kernel's. bound: within the error bound for any order.",
)
@click.option(
    "--generation",
    help="ReLU of the reference: folded, max or max_nan. Without it that which the kernel declares.",
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
@click.option(
    "--reruns",
    type=click.IntRange(2, 10_000),
    default=3,
    show_default=True,
    help="With --on cuda: launches of each problem whose bits must be equal.",
)
@click.option(
    "--engine",
    type=click.Choice(("compiled", "interpreter")),
    default="compiled",
    show_default=True,
    help="Of the emulator: machine code, or the interpreter that it is held against; both find the same.",
)
@click.option(
    "--sanitizer",
    type=click.Choice(("on", "off")),
    default="on",
    show_default=True,
    help="off: faster, but no races and no reads of what was never written in shared and tensor memory are seen.",
)
@limit_options
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report as one JSON object.",
)
@report_options
def verify_command(
    kernel: str,
    baseline: str | None,
    backend: str,
    flow: str,
    level: str,
    cases: tuple[str, ...],
    option_words: tuple[str, ...],
    context_lens: str | None,
    schedule_for: str | None,
    num_sms: int,
    page: int,
    heads: int,
    next_n: int,
    force: bool,
    machine: str | None,
    arch: str | None,
    expect: str | None,
    generation: str | None,
    orders: tuple[str, ...],
    seed: int,
    ledger_file: Path | None,
    reruns: int,
    engine: str,
    sanitizer: str,
    timeout: float,
    memory: float,
    json_file: Path | None,
    report_folder: Path | None,
    github: bool,
) -> int:
    """Run a kernel over named problems and compare every valid logit with the reference, bit for bit."""
    from mqa_ref.cli.output import check_writable, progress_bar, write_whole
    from mqa_ref.cuda.launch import Settings
    from mqa_ref.emulator.engines import Emulation
    from mqa_ref.errors import Fault, InputError
    from mqa_ref.explain.case import explainer
    from mqa_ref.fuzz.kept import Keeper
    from mqa_ref.kernel.targets import with_arch
    from mqa_ref.report.text import make_console, render
    from mqa_ref.verification.evidence import Collector
    from mqa_ref.verification.ledger import read_ledger
    from mqa_ref.verification.request import by_name
    from mqa_ref.verification.verify import verify

    check_writable("--json", json_file)
    check_reporting(report_folder, github)
    kernel = with_arch(kernel, arch)
    problems = given_problem(
        context_lens, schedule_for, num_sms=num_sms, page=page, heads=heads, next_n=next_n
    )
    if problems is not None and cases:
        raise InputError([Fault("--case", ", ".join(cases), "not beside --context-lens")])
    problems = by_name(cases, level, flow, kernel) if cases else problems
    known = read_ledger(ledger_file) if ledger_file is not None else None
    collector = Collector(explainer, limits_of(timeout, memory))
    keeper = None if report_folder is None else Keeper(report_folder / "cases")

    def watch(seen: Seen) -> None:
        collector(seen)
        if keeper is not None:
            keeper(seen)

    with collector, progress_bar("verify") as progress:
        report = verify(
            kernel,
            backend,
            flow,
            problems,
            level=level,
            machine=machine,
            generation=generation,
            expect=expect,
            options=options_of(option_words),
            orders=orders or None,
            seed=seed,
            baseline=baseline,
            known=known,
            force=force,
            limits=limits_of(timeout, memory),
            native=Settings(reruns=reruns),
            emulation=Emulation(engine, sanitizer == "on"),
            progress=progress,
            watch=None if keeper is None else watch,
        )
    if json_file is not None:
        write_whole(json_file, report.to_json())
    if report_folder is not None:
        write_report(report_folder, report, collector.evidence(hashes()))
    render(report, make_console())
    for line in keeper.lines() if keeper is not None else ():
        click.echo(line)
    if github:
        tell_github(report, kernel)
    return report.exit_code
