"""``--report DIR`` and ``--github``: what a run leaves for people and for CI services."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from mqa_ref.report import Report
    from mqa_ref.report.evidence import Evidence

Function = TypeVar("Function", bound=Callable[..., Any])
SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable that names the file of a step's summary (GitHub Docs, "Workflow commands for GitHub Actions")."""


def report_options(function: Function) -> Function:
    """``--report`` and ``--github``, as ``report_folder`` and ``github``."""
    for option in (
        click.option(
            "--github",
            is_flag=True,
            help=f"Append a summary to the file that {SUMMARY} names, and print annotations for GitHub Actions.",
        ),
        click.option(
            "--report",
            "report_folder",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Write report.html, report.json, junit.xml, summary.md and pictures there (needs mqa-ref[report]).",
        ),
    ):
        function = option(function)
    return function


def check_reporting(folder: Path | None, github: bool) -> None:
    """Refuse what could not be written in the end, before the work starts. Raises InputError, and NotAvailable when a
    package is missing."""
    from mqa_ref.errors import Fault, InputError

    faults = []
    if folder is not None:
        parent = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            faults.append(
                Fault("--report", str(folder), f"a folder that may be written to; {parent} is none")
            )
    if github and not os.environ.get(SUMMARY):
        faults.append(Fault("--github", f"{SUMMARY} is not set", "a step of GitHub Actions"))
    if faults:
        raise InputError(faults)
    if folder is not None:
        from mqa_ref.report.html import check_html

        check_html()


def write_report(folder: Path, report: Report, evidence: Evidence) -> None:
    """Every file of a report, each whole or not at all; report.html comes last."""
    from mqa_ref.cli.output import write_whole
    from mqa_ref.report.drawn import case_pictures, flow_pictures
    from mqa_ref.report.github import render_summary
    from mqa_ref.report.html import render_html
    from mqa_ref.report.junit import render_junit

    pictures = folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    drawn = [
        one for number, case in enumerate(evidence.cases) for one in case_pictures(case, f"case-{number}")
    ]
    drawn += [one for flow in evidence.flows for one in flow_pictures(flow)]
    for picture in drawn:
        write_whole(pictures / f"{picture.name}.svg", picture.svg)
    write_whole(folder / "report.json", report.to_json())
    write_whole(folder / "junit.xml", render_junit(report))
    write_whole(folder / "summary.md", render_summary(report))
    write_whole(folder / "report.html", render_html(report, evidence))


def tell_github(report: Report, kernel: str) -> None:
    """Append the summary of the step and print the annotations."""
    from mqa_ref.report.github import render_annotations, render_summary

    with Path(os.environ[SUMMARY]).open("a", encoding="utf-8") as file:
        file.write(render_summary(report))
    source = kernel.rpartition(":")[0]
    for line in render_annotations(report, source or None):
        click.echo(line)


def hashes() -> dict[str, str]:
    """SHA-256 of tolerances.toml, and one over the names and the bytes of all golden files."""
    from mqa_ref.compare.tolerances.file import source
    from mqa_ref.golden import DATA

    golden = hashlib.sha256()
    for file in sorted(one for one in DATA.rglob("*") if one.is_file()):
        golden.update(f"{file.relative_to(DATA).as_posix()}\0".encode())
        golden.update(hashlib.sha256(file.read_bytes()).digest())
    return {
        "golden files (SHA-256)": golden.hexdigest(),
        "tolerances.toml (SHA-256)": hashlib.sha256(source().read_bytes()).hexdigest(),
    }
