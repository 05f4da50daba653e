"""The report for people: one line per case, then every failure with its place and the command that repeats
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mqa_ref.report.model import CaseResult, Report
from mqa_ref.report.shown import one_line, plain
from mqa_ref.report.values import baseline_values, finding_ids

_STYLES = {"pass": "green", "fail": "bold red", "error": "bold red", "unsupported": "yellow"}
_SHOWN = 3
_PIPE_WIDTH = 1000


def make_console(file: IO[str] | None = None) -> Console:
    """A console that is plain, and as wide as a line needs, when it does not write to a terminal."""
    console = Console(file=file, highlight=False)
    return (
        console
        if console.is_terminal
        else Console(file=file, highlight=False, width=_PIPE_WIDTH, no_color=True)
    )


def render(report: Report, console: Console) -> None:
    """Write the whole report."""
    console.print(Text(plain(heading(report))))
    console.print(Text(plain(", ".join(f"{name} {value}" for name, value in report.environment.items()))))
    console.print()
    if report.case_list:
        console.print(_cases(report, console.is_terminal))
    for case in report.case_list:
        if case.status != "pass":
            console.print()
            for line in failure_lines(report, case):
                console.print(Text(plain(line)))
    for part in (_baseline(report), _finding_ids(report), _unseen(report)):
        lines = list(part)
        if lines:
            console.print()
        for line in lines:
            console.print(Text(plain(line)))
    console.print()
    console.print(Text(summary(report), style=_STYLES[report.status]))


def summary(report: Report) -> str:
    """The verdict in one line."""
    kinds = ("fail", "error", "unsupported")
    told = [f"{n} {kind}" for kind in kinds if (n := sum(case.status == kind for case in report.case_list))]
    cases = f"{report.cases} cases" + (f" ({', '.join(told)})" if told else "")
    if report.executed == 0:
        return f"error: nothing ran; {cases}"
    counts = f"{report.logits} logits compared, {report.mismatched} mismatched, {report.findings} findings"
    tried = f"{report.interleavings} interleavings"
    return f"{report.status}: {cases}, {tried}, {report.ctas} CTAs, {counts}, {report.seconds:.1f} s"


def heading(report: Report) -> str:
    """What was asked, in one line."""
    baseline = f", baseline {report.baseline}" if report.baseline else ""
    return (
        f"kernel {report.kernel}{baseline}, backend {report.backend}, flow {report.flow}, machine {report.machine},"
        f" generation {report.generation}, seed {report.seed}"
    )


def _cases(report: Report, terminal: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    table.add_column("lengths", overflow="fold")
    for name in ("page", "heads", "next_n", "CTAs", "logits", "wrong", "findings", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    several = len({case.order for case in report.case_list}) > 1
    for case in report.case_list:
        compared = case.comparison
        table.add_row(
            Text(one_line(f"{case.name} [{case.order}]" if several else case.name)),
            ",".join(str(length) for length in case.shape["lengths"]),
            *(str(case.shape[name]) for name in ("page", "heads", "next_n", "num_sms")),
            str(compared.compared) if compared else "-",
            str(compared.mismatched) if compared else "-",
            str(len(case.errors)),
            f"{case.seconds:.1f}",
            Text(case.status, style=_STYLES[case.status]),
        )
    return table


def failure_lines(report: Report, case: CaseResult) -> Iterator[str]:
    """Everything about one case that did not pass."""
    yield f"{case.status.upper()} {case.name} (case id {case.case_id}): {case.why}"
    if case.message:
        yield f"  {case.error}: {case.message.replace(chr(10), chr(10) + '    ')}"
    compared = case.comparison
    if compared is not None and not compared.equal:
        classes = ", ".join(f"{kind} {count}" for kind, count in compared.counts.items() if count)
        yield f"  {compared.mismatched} of {compared.compared} logits are wrong: {classes}"
        if compared.max_ulp is not None:
            yield f"  greatest distance {compared.max_ulp} ULP, greatest difference {compared.max_abs!r}"
        yield from (f"  where: {sentence}" for sentence in compared.where)
        yield from (f"  suspect: the wrong bits are those of {name}" for name in compared.suspects)
        yield from (f"  {extreme}" for extreme in compared.worst)
        yield from (f"  {mismatch}" for mismatch in compared.first[:_SHOWN])
        besides = f"{compared.tail_written} past the valid columns (they mean nothing)"
        yield f"  also written: {besides}, {compared.stray_written} out of place, in splits without a token"
        scores = f"calc_diff {compared.calc_diff:.3g}, cosine {compared.cosine:.9g}"
        yield f"  ({scores}: for information, they decide nothing)"
    for finding in case.errors[:_SHOWN]:
        yield f"  finding {finding}" + (f", seen {finding.count} times" if finding.count > 1 else "")
    if len(case.errors) > _SHOWN:
        yield f"  and {len(case.errors) - _SHOWN} findings more"
    yield f"  REPRO: {report.repro(case)}"


def _finding_ids(report: Report) -> Iterator[str]:
    """Every finding once, with its id: those that fail, those that are known, and those that are worth a note."""
    for told in finding_ids(report):
        word = "note:" if told["severity"] == "info" else "finding:"
        word = f"known ({told['known']}):" if told["known"] else word
        cases = told["cases"]
        more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
        yield f"{word} {told['id']}: {told['message']} [{cases[0]}{more}]"


def _unseen(report: Report) -> Iterator[str]:
    for name, expected in report.unseen:
        yield f"known finding {name} was expected and not seen ({expected}): take it off the ledger if it is mended"


def _baseline(report: Report) -> Iterator[str]:
    """The two kernels against each other: case by case where they differ, then over all."""
    if not report.baseline:
        return
    for case in report.case_list:
        told = case.baseline
        if told is None or told.verdict == "bit-identical":
            continue
        yield f"baseline {case.name} [{case.order}]: {told.verdict}"
        if told.message:
            yield f"  baseline's own {told.error}: {told.message}"
        if told.difference is not None:
            yield f"  {told.difference.mismatched} of {told.difference.compared} logits differ from the baseline's"
            yield from (f"  where: {sentence}" for sentence in told.difference.where)
            yield from (f"  {mismatch}" for mismatch in told.difference.first[:_SHOWN])
    over = baseline_values(report)
    own = f"{over['mismatched']} of its logits are wrong, {over['findings']} findings"
    yield (
        f"baseline {report.baseline}: {over['verdict']} on valid logits, {over['differing']} of {over['logits']}"
        f" differ; against the reference {own}"
    )
    yield from _kinds(over["kinds"])


def _kinds(kinds: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Kind by kind, and for each that differs the smallest case and the command that shows it."""
    for kind in kinds:
        if not kind["compared"]:
            continue
        counts = (
            f"{kind['differing']} of {kind['compared']} differ"
            if kind["differing"]
            else f"{kind['compared']}"
        )
        alone = f", {kind['alone']} written by one kernel alone" if kind["alone"] else ""
        yield f"  {kind['kind'] + ':':37} {kind['verdict']}, {counts}{alone}"
        if kind["smallest"] is not None:
            yield f"    smallest: {kind['smallest']['case']}, {kind['smallest']['first']}"
            yield f"    REPRO: {kind['smallest']['repro']}"
