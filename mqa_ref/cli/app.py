"""The group of commands and the exit codes: 0 all right; 1 a mismatch or a finding; 2 bad arguments or input;
3 an oracle disagrees with itself; 4 something asked for is not on this machine; 5 nothing ran.

A command's module imports nothing heavy before the command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from mqa_ref import __version__
from mqa_ref.cli.bench import bench_command
from mqa_ref.cli.calibrate import calibrate_command
from mqa_ref.cli.compile import compile_command
from mqa_ref.cli.completion import completion_command
from mqa_ref.cli.doctor import doctor_command
from mqa_ref.cli.explain import explain_command
from mqa_ref.cli.fuzz import fuzz_command
from mqa_ref.cli.golden import golden_command
from mqa_ref.cli.mutate import mutate_command
from mqa_ref.cli.replay import replay_command
from mqa_ref.cli.schedule import schedule_command
from mqa_ref.cli.selfcheck import selfcheck_command
from mqa_ref.cli.tolerances import tolerances_command
from mqa_ref.cli.verify import verify_command
from mqa_ref.errors import InputError, MqaRefError, NotAvailable, OracleError, Unsupported

_CODES: tuple[tuple[type[MqaRefError], int], ...] = (
    (InputError, 2),
    (OracleError, 3),
    (NotAvailable, 4),
    (Unsupported, 5),
    (MqaRefError, 1),
)
_USAGE = 2
_INTERRUPTED = 130
_EPILOG = (
    "Exit codes: 0 all right; 1 a mismatch or a finding; 2 bad arguments or input; 3 an oracle disagrees with itself;"
    " 4 the asked device or package is not there; 5 nothing ran."
)


@click.group(
    epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="mqa-ref")
def cli() -> None:
    """Compile the SM100 FP8 paged MQA logits kernel, run it on a CPU, and say bit by bit whether it is
    right."""


_COMMANDS = (
    verify_command,
    fuzz_command,
    replay_command,
    mutate_command,
    explain_command,
    compile_command,
    schedule_command,
    golden_command,
    tolerances_command,
    selfcheck_command,
    calibrate_command,
    bench_command,
    doctor_command,
    completion_command,
)
for command in _COMMANDS:
    cli.add_command(command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; what went wrong is on stderr, one fault a line."""
    try:
        code = cli.main(
            args=None if arguments is None else list(arguments), prog_name="mqa-ref", standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        return _USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    except InputError as error:
        for fault in error.faults:
            click.echo(f"error: {fault}", err=True)
        return _USAGE
    except MqaRefError as error:
        click.echo(f"error: {error}", err=True)
        return next(number for kind, number in _CODES if isinstance(error, kind))
    return code if isinstance(code, int) else 0


def main() -> NoReturn:
    """The entry point of the command."""
    sys.exit(run())
