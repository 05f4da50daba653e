"""``mqa-ref fuzz``: launches that no one would write by hand, and every failure as one small case."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mqa_ref.cli.selectors import (
    flow_option,
    json_option,
    kernel_option,
    known_option,
    limit_options,
    limits_of,
    on_option,
    report_option,
)
from mqa_ref.errors import Fault, InputError

if TYPE_CHECKING:
    from mqa_ref.fuzz.campaign import Totals

DEFAULT_EXAMPLES = 200
DATABASE = Path(".mqa-ref") / "fuzz"
_TIME = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Duration(click.ParamType[float]):
    """A time such as 60s, 10m or 1h, in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        told = _TIME.fullmatch(str(value))
        if told is None or float(told[1]) <= 0:
            self.fail(f"{value!r} is no time such as 60s, 10m or 1h", param, ctx)
        return float(told[1]) * _UNITS[told[2]]


class Shard(click.ParamType[tuple[int, int]]):
    """A part of a campaign, I/N."""

    name = "shard"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """The two numbers."""
        told = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(value))
        if told is None or not 1 <= int(told[1]) <= int(told[2]):
            self.fail(f"{value!r} is no part such as 2/8", param, ctx)
        return int(told[1]), int(told[2])


@click.command("fuzz")
@kernel_option
@on_option
@flow_option("all", all_of_them=True)
@click.option("--machine", help="Tensor core of the reference; by default the one of the kernel.")
@click.option(
    "--generation", help="ReLU of the reference: folded, max or max_nan; by default the one of the kernel."
)
@click.option(
    "--order", "orders", multiple=True, help="Only this interleaving of the warps; may be repeated."
)
@click.option("--check", "checks", multiple=True, metavar="NAME", help="Only this property; may be repeated.")
@click.option(
    "--max-examples", type=click.IntRange(min=1), help=f"Examples; {DEFAULT_EXAMPLES} without --time."
)
@click.option("--time", "seconds", type=Duration(), metavar="TIME", help="How long to draw: 60s, 10m, 1h.")
@click.option(
    "--seed", type=click.IntRange(0, 2**64 - 1), default=0, show_default=True, help="Of what is drawn."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    help="Processes; as many as this machine has cores if not given, one with --on cuda.",
)
@click.option(
    "--cluster", metavar="ADDRESS", help="Run on the workers of this Dask scheduler (needs mqa-ref[cluster])."
)
@click.option("--shard", type=Shard(), default="1/1", metavar="I/N", help="Only this part of the campaign.")
@click.option(
    "--database",
    type=click.Path(path_type=Path),
    default=DATABASE,
    show_default=True,
    metavar="DIR",
    help="Where case files of failures are kept, and tried again first.",
)
@click.option("--require-coverage", "required", is_flag=True, help="Fail if a coverpoint was not met.")
@click.option("--stop-at-failure", is_flag=True, help="Draw no more blocks once something failed.")
@known_option
@limit_options
@json_option
@report_option("Write report and cases here.")
def fuzz_command(
    kernel: str,
    backend: str,
    flow: str,
    machine: str | None,
    generation: str | None,
    orders: tuple[str, ...],
    checks: tuple[str, ...],
    max_examples: int | None,
    seconds: float | None,
    seed: int,
    workers: int | None,
    cluster: str | None,
    shard: tuple[int, int],
    database: Path,
    required: bool,
    stop_at_failure: bool,
    ledger_file: Path | None,
    timeout: float,
    memory: float,
    json_file: Path | None,
    report_folder: Path | None,
) -> int:
    """Launch generated problems, check the bits and the properties of every one, and minimise what fails.

    The same seed draws the same examples, whatever the number of workers.
    """
    from mqa_ref.cli.output import check_writable, write_whole
    from mqa_ref.fuzz.campaign import check_campaign
    from mqa_ref.fuzz.files import open_folder
    from mqa_ref.fuzz.page import page, pictures
    from mqa_ref.fuzz.report import lines
    from mqa_ref.verification.ledger import read_ledger

    check_writable("--json", json_file)
    limits = limits_of(timeout, memory)
    campaign = check_campaign(
        kernel=kernel,
        on=backend,
        flow=flow,
        machine=machine,
        generation=generation,
        orders=orders or None,
        seed=seed,
        checks=checks or None,
        known=read_ledger(ledger_file).model_dump_json() if ledger_file is not None else "",
        seconds=limits.seconds,
        memory_bytes=limits.memory_bytes,
    )
    need_hypothesis()
    from mqa_ref.fuzz.runner import Runner, run_campaign

    folder = open_folder("--database", database)
    if report_folder is not None:
        open_folder("--report", report_folder)
    if max_examples is None and seconds is None:
        max_examples = DEFAULT_EXAMPLES
    if cluster is not None and workers is not None:
        raise InputError(
            [Fault("--workers", str(workers), "nothing beside --cluster, whose workers are used")]
        )
    runner: Runner | None = None
    if cluster is not None:
        from mqa_ref.fuzz.cluster import Cluster

        runner = Cluster(campaign, cluster, str(folder))
    with progress_line() as progress:
        report = run_campaign(
            campaign,
            max_examples=max_examples,
            seconds=seconds,
            workers=workers or usable_workers(backend, max_examples),
            shard=shard,
            folder=folder,
            required=required,
            stop_at_failure=stop_at_failure,
            progress=progress,
            runner=runner,
        )
    text = "".join(f"{line}\n" for line in lines(report))
    if json_file is not None:
        write_whole(json_file, report.to_json())
    if report_folder is not None:
        write_whole(report_folder / "fuzz.json", report.to_json())
        write_whole(report_folder / "fuzz.txt", text)
        for name, svg in pictures(report).items():
            write_whole(report_folder / name, svg)
        write_whole(report_folder / "fuzz.html", page(report))
        for one in report.reported:
            if one.path is not None:
                write_whole(report_folder / one.path.name, one.path.read_bytes())
    click.echo(text, nl=False)
    return report.exit_code


def usable_workers(backend: str, max_examples: int | None) -> int:
    """As many processes as there are cores for this one, and blocks for them; one for the GPU."""
    from mqa_ref.fuzz.campaign import BLOCK

    if backend == "cuda":
        return 1
    blocks = 1024 if max_examples is None else -(-max_examples // BLOCK)
    return min(len(os.sched_getaffinity(0)), blocks)


def need_hypothesis() -> None:
    """Raise NotAvailable when the extra is not installed."""
    from importlib.util import find_spec

    from mqa_ref.errors import NotAvailable

    if find_spec("hypothesis") is None:
        raise NotAvailable("hypothesis is not installed; the extra `fuzz` brings it")


@contextmanager
def progress_line() -> Iterator[Callable[[Totals, int], None] | None]:
    """A function that keeps one line on stderr up to date, or None when stderr is no terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status("fuzz") as status:

        def told(totals: Totals, points: int) -> None:
            words = f"{totals.examples} examples, {len(totals.coverage)} of {points} coverpoints"
            status.update(f"fuzz: {words}, {len(totals.failures)} classes of failure")

        yield told
