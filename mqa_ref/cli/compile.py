"""``mqa-ref compile``: what the compiler makes of a kernel, and what it costs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mqa_ref.cli.selectors import KERNEL_HELP, limit_options, limits_of


@click.command("compile")
@click.option("--kernel", default="builtin", show_default=True, help=KERNEL_HELP)
@click.option(
    "--flow", default="fp32-fp32-fp32", show_default=True, help="Accumulator, epilogue and output format."
)
@click.option("--page", type=int, default=64, show_default=True, help="Tokens of a page.")
@click.option("--heads", type=int, default=64, show_default=True, help="Heads of a query token.")
@click.option("--next-n", type=int, default=1, show_default=True, help="Query tokens of a sequence.")
@click.option("--num-sms", type=int, default=148, show_default=True, help="CTAs of a launch.")
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Where the files go.",
)
@limit_options
def compile_command(
    kernel: str,
    flow: str,
    page: int,
    heads: int,
    next_n: int,
    num_sms: int,
    folder: Path,
    timeout: float,
    memory: float,
) -> int:
    """Compile a kernel without a GPU; write PTX and cubin, print registers, spills and instruction counts."""
    from mqa_ref.cli.output import write_whole
    from mqa_ref.errors import Fault, InputError, NotAvailable
    from mqa_ref.flow import Flow
    from mqa_ref.kernel.cubin import registers_and_frame
    from mqa_ref.kernel.resources import measure, ptx_epilogue
    from mqa_ref.verification.runner import compile_target

    if folder.exists() and not folder.is_dir():
        raise InputError([Fault("--out", str(folder), "a folder")])
    shape = {"page": page, "heads": heads, "head_dim": 128, "next_n": next_n, "num_sms": num_sms}
    compiled = compile_target(kernel, shape, Flow.parse(flow), limits_of(timeout, memory))
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{re.sub(r'[^A-Za-z0-9]+', '-', kernel).strip('-')}-{flow}-page{page}-heads{heads}-next{next_n}"
    for suffix, content in (("ptx", compiled.ptx), ("cubin", compiled.cubin)):
        path = folder / f"{stem}.{suffix}"
        write_whole(path, content)
        click.echo(f"wrote {path}")
    registers, frame = registers_and_frame(compiled.cubin)
    click.echo(f"registers a thread         {registers}")
    click.echo(f"stack frame a thread       {frame} bytes")
    click.echo(f"PTX lines                  {len(compiled.ptx.splitlines())}")
    _echo_counts("PTX epilogue loop", ptx_epilogue(compiled.ptx))
    try:
        cost = measure(compiled)
    except NotAvailable as error:
        click.echo(f"no machine code counts: {error}")
        return 0
    click.echo(f"spill loads and stores     {cost.spill_instructions}")
    click.echo(f"machine instructions       {cost.instructions}")
    _echo_counts("machine epilogue loop", cost.epilogue_sass)
    return 0


def _echo_counts(name: str, counts: Mapping[str, Any], shown: int = 8) -> None:
    """The total and the most frequent opcodes."""
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:shown]
    told = ", ".join(f"{opcode} {count}" for opcode, count in top)
    click.echo(f"{name:26} {sum(counts.values())} instructions: {told}")
