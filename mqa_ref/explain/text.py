"""An explanation for a terminal: the verdict, the steps around the place where the two part, the terms of one head."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mqa_ref.explain.logit import Explanation, Terms
from mqa_ref.explain.run import Explained
from mqa_ref.explain.steps import Row, Value
from mqa_ref.report.shown import one_line, plain

_AROUND = 6


def render(told: Explained, console: Console, *, everything: bool = False, terms: bool = False) -> None:
    """Write it. ``everything``: all steps. ``terms``: the products of one head, one by one."""
    explanation = told.explanation
    case = told.report.case_list[0]
    console.print(Text(plain(f"{case.name}, kernel {told.report.kernel}, flow {told.report.flow}")))
    if explanation is None:
        console.print(Text(plain(f"nothing to explain: {case.error or case.status}: {case.message}")))
        return
    console.print(Text(plain(f"{explanation.place}: {told.chosen}")))
    got = explanation.actual or "nothing"
    console.print(Text(f"expected {explanation.expected}, the kernel stored {got}"))
    console.print()
    console.print(_steps(explanation, console.is_terminal, everything))
    if terms:
        for number, (reference, kernel) in enumerate(explanation.terms):
            console.print()
            console.print(
                Text(f"head {explanation.head}, K step {number + 1}: terms, with what is cut off them")
            )
            console.print(_terms(reference, kernel, console.is_terminal))
    console.print()
    style = "green" if explanation.parts_at is None else "bold red"
    console.print(Text(plain(explanation.verdict), style=style))


def shown_rows(explanation: Explanation, everything: bool) -> list[int | None]:
    """Numbers of the rows to show; None where some are left out."""
    rows, at = explanation.rows, explanation.parts_at
    if everything:
        return list(range(len(rows)))
    near = {len(rows) - 1}
    near |= set(range(4)) if at is None else set(range(max(0, at - _AROUND), min(len(rows), at + _AROUND)))
    near |= set(range(max(0, len(rows) - 6), len(rows))) if at is None else set()
    shown: list[int | None] = []
    last = -1
    for number in sorted(near):
        if number > last + 1:
            shown.append(None)
        shown.append(number)
        last = number
    return shown


def _steps(explanation: Explanation, terminal: bool, everything: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False)
    for name in ("", "step", "reference", "kernel", "PTX line", "source"):
        table.add_column(name, overflow="fold")
    for number in shown_rows(explanation, everything):
        if number is None:
            table.add_row("", "...", "", "", "", "")
            continue
        row = explanation.rows[number]
        mark = ">" if number == explanation.parts_at else "" if row.agrees else "*"
        table.add_row(
            mark, *(Text(one_line(cell)) for cell in _cells(row)), style="" if row.agrees else "red"
        )
    return table


def _cells(row: Row) -> Iterator[str]:
    yield row.name
    yield _side(row.reference)
    yield _side(row.kernel)
    kernel = row.kernel
    yield "" if kernel is None or kernel.ptx_line is None else str(kernel.ptx_line)
    yield "" if kernel is None or kernel.source is None else kernel.source


def _side(value: Value | None) -> str:
    return "-" if value is None else f"{value.word} = {value.number!r}  {value.how}"


def _terms(reference: Terms, kernel: Terms | None, terminal: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False)
    for name in ("k", "key", "query", "term", "kept", "kernel keeps"):
        table.add_column(name, justify="right")
    theirs = kernel[0] if kernel is not None else (None,) * len(reference[0])
    for one, other in zip(reference[0], theirs, strict=True):
        codes = ("acc", "", "") if one.k is None else (str(one.k), f"0x{one.key:02x}", f"0x{one.query:02x}")
        kept = "NaN or inf" if one.kept is None else f"{float(one.kept)!r}{' (cut)' if one.cut else ''}"
        value = "NaN or inf" if one.value is None else repr(float(one.value))
        mine = "-" if other is None else "NaN or inf" if other.kept is None else repr(float(other.kept))
        table.add_row(*codes, value, kept, mine)
    return table
