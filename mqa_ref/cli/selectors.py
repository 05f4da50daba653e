"""Options that several commands share: which kernel, within which limits, and a problem from its lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from mqa_ref.verification.problems import NamedProblem
    from mqa_ref.verification.worker import Limits

Function = TypeVar("Function", bound=Callable[..., Any])

KERNEL_HELP = "The kernel under test: builtin, sglang, flashinfer, deepgemm, FILE.py:CLASS or MODULE:CLASS."


kernel_option = click.option("--kernel", default="builtin", show_default=True, help=KERNEL_HELP)
on_option = click.option(
    "--on", "backend", default="emulator", show_default=True, help="Where it runs: emulator or cuda."
)
known_option = click.option(
    "--known", "ledger_file", type=click.Path(path_type=Path), metavar="FILE", help="Ledger, as for verify."
)
json_option = click.option(
    "--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write a JSON object."
)


def flow_option(default: str, *, all_of_them: bool) -> Callable[[Function], Function]:
    """``--flow``; ``all_of_them``: whether the command takes "all"."""
    words = "Accumulator, epilogue and output format" + (", or all." if all_of_them else ".")
    return click.option("--flow", default=default, show_default=True, help=words)


def report_option(words: str) -> Callable[[Function], Function]:
    """``--report``, as ``report_folder``."""
    kind = click.Path(path_type=Path)
    return click.option("--report", "report_folder", type=kind, metavar="DIR", help=words)


def kernel_options(function: Function) -> Function:
    """``--option``, as ``option_words``, for ``options_of``."""
    option = click.option(
        "--option",
        "option_words",
        multiple=True,
        metavar="NAME=VALUE",
        help="A constructor argument of the kernel: an integer, true, false, none or a word; may be repeated.",
    )
    return option(function)


def options_of(words: Sequence[str]) -> dict[str, Any]:
    """The constructor arguments that ``--option`` names. Raises InputError with every word that is no NAME=VALUE."""
    from mqa_ref.errors import Fault, InputError

    pairs = [word.partition("=") for word in words]
    names = [name for name, _, _ in pairs]
    bad = [
        word
        for word, (name, sign, value) in zip(words, pairs, strict=True)
        if not (name.isidentifier() and sign and value)
    ]
    faults = [Fault("--option", repr(word), "NAME=VALUE") for word in bad]
    faults += [
        Fault("--option", name, "each name once") for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    if faults:
        raise InputError(faults)
    return {name: _value(value) for name, _, value in pairs}


def _value(text: str) -> Any:
    plain = {"true": True, "false": False, "none": None}
    if text.lower() in plain:
        return plain[text.lower()]
    try:
        return int(text)
    except ValueError:
        return text


def limit_options(function: Function) -> Function:
    """``--timeout`` and ``--memory``, as ``timeout`` and ``memory``."""
    for option in (
        click.option(
            "--memory",
            type=click.FloatRange(min=1),
            default=8.0,
            show_default=True,
            metavar="GIB",
            help="Memory of the process that a kernel other than builtin is executed in.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(min=1),
            default=300.0,
            show_default=True,
            metavar="S",
            help="Seconds for each case of a kernel other than builtin, compilation and launch together.",
        ),
    ):
        function = option(function)
    return function


def limits_of(timeout: float, memory: float) -> Limits:
    """The limits that the two options ask for."""
    from mqa_ref.verification.worker import Limits

    return Limits(timeout, int(memory * 2**30))


def shape_options(function: Function) -> Function:
    """``--context-lens``, ``--schedule-for`` and the numbers of a launch, for ``given_problem``."""
    for option in (
        click.option(
            "--next-n", type=click.IntRange(1, 256), default=1, help="Query tokens, with --context-lens."
        ),
        click.option("--heads", type=click.IntRange(4, 256), default=64, help="Heads, with --context-lens."),
        click.option(
            "--page", type=click.IntRange(32, 128), default=64, help="Page size, with --context-lens."
        ),
        click.option("--num-sms", type=int, default=4, help="CTAs, with --context-lens."),
        click.option(
            "--schedule-for",
            metavar="N,N,...",
            help="With --context-lens: a schedule that was made for these lengths.",
        ),
        click.option(
            "--context-lens", metavar="N,N,...", help="One problem with these lengths, not the named ones."
        ),
    ):
        function = option(function)
    return function


def given_problem(
    context_lens: str | None, schedule_for: str | None, **numbers: int
) -> tuple[NamedProblem, ...] | None:
    """The problem of ``--context-lens``, None without that option."""
    from mqa_ref.cli.schedule import parse_lengths
    from mqa_ref.errors import Fault, InputError
    from mqa_ref.verification.given import given

    if context_lens is None:
        if schedule_for is not None:
            raise InputError([Fault("--schedule-for", schedule_for, "--context-lens beside it")])
        return None
    stale = None if schedule_for is None else parse_lengths(schedule_for)
    return (given(parse_lengths(context_lens), schedule_for=stale, **numbers),)
