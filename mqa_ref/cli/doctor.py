"""``mqa-ref doctor``: what can run on this machine, why the rest cannot, and what to install."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from time import perf_counter

import click


@click.command("doctor")
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the same as one JSON object.",
)
def doctor_command(json_file: Path | None) -> int:
    """Say for each target and backend whether it can run here, why not, and what to install."""
    from mqa_ref.cli.abilities import abilities
    from mqa_ref.cli.output import check_writable, write_whole
    from mqa_ref.report.environment import environment
    from mqa_ref.result import result_json, result_values

    check_writable("--json", json_file)
    begun = perf_counter()
    found, versions, cache, gpu = abilities(), environment(), _cache(), _gpu()
    click.echo("versions")
    for name, value in versions.items():
        click.echo(f"  {name:24} {value}")
    click.echo(f"  {'NVIDIA GPU':24} {gpu}")
    click.echo("cache")
    click.echo(f"  {cache}")
    for kind in ("target", "extra"):
        click.echo(f"{kind}s")
        for one in found:
            if one.kind == kind:
                version = f"  ({one.version})" if one.version and one.reason is None else ""
                told = "yes" if one.reason is None else f"no: {one.reason}"
                click.echo(f"  {one.name:44} {one.backend:9} {told}{version}".rstrip())
                if one.install is not None:
                    click.echo(f"  {'':44} {'':9} install: {one.install}")
    if json_file is not None:
        more = {
            "abilities": [asdict(one) for one in found],
            "environment": dict(versions),
            "cache": cache,
            "gpu": gpu,
        }
        values = result_values(
            "doctor",
            status="pass",
            exit_code=0,
            flow=None,
            cases=0,
            logits=0,
            mismatched=0,
            findings=0,
            seconds=perf_counter() - begun,
            more=more,
        )
        write_whole(json_file, result_json(values))
    return 0


def _gpu() -> str:
    from mqa_ref.cuda.probe import missing, require

    return missing() or require().told


def _cache() -> str:
    """Which folder holds compiled kernels and how large it is, or why none is used."""
    from mqa_ref.cachedir import VARIABLE, root, usage

    path, reason = root()
    if path is None:
        return f"off ({VARIABLE})"
    if reason is not None:
        return f"{path} is not used: {reason}"
    files, size = usage()
    return f"{path}: {files} files, {size / 2**20:.1f} MiB"
