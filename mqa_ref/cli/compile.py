"""``mqa-ref compile``: what the compiler makes of a kernel, and what it costs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mqa_ref.cli.selectors import KERNEL_HELP, kernel_options, limit_options, limits_of, options_of

if TYPE_CHECKING:
    from mqa_ref.kernel.compile import CompiledKernel


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
    metavar="DIR",
    help="Where the files go; needed but with --compare and --source.",
)
@click.option(
    "--source",
    "source_folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Compile nothing; write the builtin kernel's source files there, to be changed and tested.",
)
@click.option(
    "--compare",
    "other",
    metavar="KERNEL",
    help="Write nothing; print what both kernels cost side by side. Here --flow may be all.",
)
@click.option(
    "--check-sass",
    is_flag=True,
    help="Hold the sums, products and fused multiply-adds of the machine code against those of the PTX.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --check-sass: write its result as one JSON object.",
)
@kernel_options
@limit_options
def compile_command(
    kernel: str,
    flow: str,
    page: int,
    heads: int,
    next_n: int,
    num_sms: int,
    folder: Path | None,
    source_folder: Path | None,
    other: str | None,
    check_sass: bool,
    json_file: Path | None,
    option_words: tuple[str, ...],
    timeout: float,
    memory: float,
) -> int:
    """Compile a kernel without a GPU; write PTX and cubin, print registers, spills and instruction counts."""
    from mqa_ref.cli.output import check_writable, write_whole
    from mqa_ref.errors import Fault, InputError, NotAvailable
    from mqa_ref.flow import Flow
    from mqa_ref.kernel.cubin import registers_and_frame
    from mqa_ref.kernel.resources import measure, ptx_epilogue
    from mqa_ref.verification.runner import compile_target

    if source_folder is not None:
        return _write_source(source_folder, kernel)
    if folder is None and other is None:
        raise InputError([Fault("--out", "nothing", "a folder")])
    if folder is not None and folder.exists() and not folder.is_dir():
        raise InputError([Fault("--out", str(folder), "a folder")])
    if json_file is not None and not check_sass:
        raise InputError([Fault("--json", str(json_file), "--check-sass beside it")])
    check_writable("--json", json_file)
    shape = {"page": page, "heads": heads, "head_dim": 128, "next_n": next_n, "num_sms": num_sms}
    options = options_of(option_words)
    if other is not None or folder is None:
        from mqa_ref.cli.compile_both import compile_both

        return compile_both((kernel, str(other)), flow, shape, limits_of(timeout, memory), options)
    compiled = compile_target(kernel, shape, Flow.parse(flow), limits_of(timeout, memory), options)
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
        if check_sass:
            raise
        click.echo(f"no machine code counts: {error}")
        return 0
    click.echo(f"spill loads and stores     {cost.spill_instructions}")
    click.echo(f"machine instructions       {cost.instructions}")
    _echo_counts("machine epilogue loop", cost.epilogue_sass)
    return _check_sass(compiled, kernel, flow, json_file) if check_sass else 0


def _write_source(folder: Path, kernel: str) -> int:
    """Copy the builtin kernel into a folder that holds nothing of these names yet."""
    from mqa_ref.cli.output import write_whole
    from mqa_ref.errors import Fault, InputError
    from mqa_ref.kernel.own_copy import CLASS, MAIN, own_copy

    faults = [] if kernel == "builtin" else [Fault("--kernel", kernel, "builtin, with --source")]
    if folder.exists() and not folder.is_dir():
        faults.append(Fault("--source", str(folder), "a folder"))
    found = own_copy()
    faults += [
        Fault("--source", str(folder / name), "no such file yet")
        for name in found
        if (folder / name).exists()
    ]
    if faults:
        raise InputError(faults)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in found.items():
        write_whole(folder / name, text)
        click.echo(f"wrote {folder / name}")
    click.echo(f"test it: mqa-ref verify --kernel {folder / MAIN}:{CLASS}")
    return 0


def _check_sass(compiled: CompiledKernel, kernel: str, flow: str, json_file: Path | None) -> int:
    """Print the table, write the object; 0 when machine code and PTX agree, else 1."""
    from dataclasses import asdict
    from time import perf_counter

    from mqa_ref.cli.output import write_whole
    from mqa_ref.result import result_json, result_values
    from mqa_ref.verification.assembly import check_assembly

    begun = perf_counter()
    found = check_assembly(compiled)
    wrong = [row for row in found.rows if row.verdict != "same"]
    click.echo("arithmetic                 PTX  machine code  nothing fused")
    for row in found.rows:
        apart = "-" if row.apart is None else str(row.apart)
        click.echo(f"  {row.opcode:20} {row.ptx:8} {row.sass:13} {apart:>14}  {row.verdict}")
    if found.missing:
        click.echo(f"  not assembled with fusing forbidden: {found.missing}")
    told = "every sum, product and fused multiply-add of the PTX is one in machine code"
    click.echo(f"fail: {len(wrong)} opcodes differ" if wrong else f"pass: {told}")
    if json_file is not None:
        values = result_values(
            "compile",
            status="fail" if wrong else "pass",
            exit_code=1 if wrong else 0,
            kernel=kernel,
            flow=flow,
            cases=1,
            logits=0,
            mismatched=0,
            findings=len(wrong),
            seconds=perf_counter() - begun,
            more={
                "rows": [{**asdict(row), "verdict": row.verdict} for row in found.rows],
                "missing": found.missing,
            },
        )
        write_whole(json_file, result_json(values))
    return 1 if wrong else 0


def _echo_counts(name: str, counts: Mapping[str, Any], shown: int = 8) -> None:
    """The total and the most frequent opcodes."""
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:shown]
    told = ", ".join(f"{opcode} {count}" for opcode, count in top)
    click.echo(f"{name:26} {sum(counts.values())} instructions: {told}")
