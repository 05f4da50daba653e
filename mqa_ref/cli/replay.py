"""``mqa-ref replay``: a case file run again, on any kernel and backend."""

from __future__ import annotations

from pathlib import Path

import click

from mqa_ref.cli.selectors import KERNEL_HELP, json_option, known_option, limit_options, limits_of, on_option


@click.command("replay")
@click.argument("case_file", type=click.Path(path_type=Path))
@click.option("--kernel", help=f"{KERNEL_HELP} The one of the case if it has a name here.")
@on_option
@click.option("--flow", help="Another flow than the case's.")
@click.option("--machine", help="Another tensor core of the reference than the case's.")
@click.option("--generation", help="Another ReLU of the reference than the case's.")
@known_option
@limit_options
@json_option
def replay_command(
    case_file: Path,
    kernel: str | None,
    backend: str,
    flow: str | None,
    machine: str | None,
    generation: str | None,
    ledger_file: Path | None,
    timeout: float,
    memory: float,
    json_file: Path | None,
) -> int:
    """Run the launch in CASE_FILE and the property that it was kept for: exit code 1 while it fails, 0 when it passes.

    A case file is data: reading one executes nothing.
    """
    from mqa_ref.cli.output import check_writable, write_whole
    from mqa_ref.fuzz.replay import replay
    from mqa_ref.verification.ledger import read_ledger

    check_writable("--json", json_file)
    limits = limits_of(timeout, memory)
    report = replay(
        case_file,
        kernel=kernel,
        on=backend,
        flow=flow,
        machine=machine,
        generation=generation,
        known=read_ledger(ledger_file).model_dump_json() if ledger_file is not None else "",
        seconds=limits.seconds,
        memory_bytes=limits.memory_bytes,
    )
    if json_file is not None:
        write_whole(json_file, report.to_json())
    for line in report.lines():
        click.echo(line)
    return report.exit_code
