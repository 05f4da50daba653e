"""Named conditions of a launch that a campaign should meet: each boundary, each special value in each role, each kind
of schedule, table, flow and option.

They are judged on the launch alone, however it was drawn, so that a campaign, a recording and a user's own problem are
measured alike. ``reachable`` says which of them a campaign can meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.policy import ORDERS
from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import FLOWS
from mqa_ref.fuzz.shapes import HEADS
from mqa_ref.fuzz.subject import Subject
from mqa_ref.problem_rules import PAGES
from mqa_ref.verification.full import SWITCHES

Condition = Callable[[Subject], Any]


def _any_row(rule: Callable[[Subject], NDArray[np.bool_]]) -> Condition:
    return lambda subject: np.any(rule(subject) & (subject.lengths > 0))


def _lengths() -> dict[str, Condition]:
    points: dict[str, Condition] = {
        "length.0": lambda s: np.any(s.lengths == 0),
        "length.1": lambda s: np.any(s.lengths == 1),
        "length.all-zero": lambda s: not s.lengths.any(),
        "length.zero-first": lambda s: s.lengths[0] == 0 and s.lengths.any(),
        "length.zero-inside": lambda s: np.any(
            (s.lengths == 0) & (np.cumsum(s.lengths) > 0) & (np.cumsum(s.lengths[::-1])[::-1] > 0)
        ),
        "length.zero-last": lambda s: s.lengths[-1] == 0 and s.lengths.any(),
        "length.below-next_n": _any_row(lambda s: s.lengths < s.problem.next_n),
        "length.second-tile-missing": _any_row(lambda s: (s.lengths - 1) % 256 < 128),
        "length.table-window-end": _any_row(lambda s: s.lengths == 64 * s.problem.page),
        "length.table-window-passed": _any_row(lambda s: s.lengths > 64 * s.problem.page),
    }
    for name, size in (("page", None), ("tile", 128), ("split", 256)):
        for shift, word in ((-1, "before"), (0, "at"), (1, "after")):

            def rule(s: Subject, size: int | None = size, shift: int = shift) -> NDArray[np.bool_]:
                step = s.problem.page if size is None else size
                return np.asarray((s.lengths - shift) % step == 0) & (s.lengths > 1)

            points[f"length.{word}-{name}"] = _any_row(rule)
    return points


def _batch() -> dict[str, Condition]:
    return {
        "batch.1": lambda s: s.problem.batch == 1,
        "batch.2+": lambda s: 2 <= s.problem.batch < 32,
        "batch.32": lambda s: s.problem.batch % 32 == 0,
        "batch.33+": lambda s: s.problem.batch > 32,
    }


def _tables() -> dict[str, Condition]:
    def steps(s: Subject) -> NDArray[np.int64]:
        width = s.problem.block_table.shape[1]
        both = s.entries[:, : width - 1] & s.entries[:, 1:]
        table = s.problem.block_table.astype(np.int64)
        return np.asarray((table[:, 1:] - table[:, :-1])[both])

    def repeated_inside(s: Subject) -> bool:
        rows = zip(s.problem.block_table, s.needed.tolist(), strict=True)
        return any(len(set(row[:count].tolist())) < count for row, count in rows)

    def shared(s: Subject) -> bool:
        rows = [
            set(row[:n].tolist()) for row, n in zip(s.problem.block_table, s.needed.tolist(), strict=True)
        ]
        seen: Counter[int] = Counter(page for row in rows for page in row)
        return any(count > 1 for count in seen.values())

    def prefix(s: Subject) -> bool:
        busy = np.flatnonzero(s.needed > 0)
        first = s.problem.block_table[busy, 0].tolist()
        return len(set(first)) < len(first)

    def idle_entries(s: Subject) -> NDArray[np.int32]:
        return s.problem.block_table[~s.entries]

    return {
        "table.ascending": lambda s: steps(s).size and np.all(steps(s) == 1),
        "table.descending": lambda s: steps(s).size and np.all(steps(s) == -1),
        "table.mixed": lambda s: np.any(steps(s) > 1) and np.any(steps(s) < 0),
        "table.page-twice-in-a-row": repeated_inside,
        "table.page-of-two-rows": shared,
        "table.shared-prefix": prefix,
        "table.width-1": lambda s: s.problem.block_table.shape[1] == 1,
        "table.tight": lambda s: np.any(s.needed == s.problem.block_table.shape[1]),
        "table.tight-last-row": lambda s: s.needed[-1] == s.problem.block_table.shape[1],
        "table.idle-negative": lambda s: np.any(idle_entries(s) < 0),
        "table.idle-past-the-pool": lambda s: np.any(idle_entries(s) >= s.problem.num_pages),
        "table.page-0-unused": lambda s: not s.used[0].any(),
    }


def _schedules() -> dict[str, Condition]:
    def spread(s: Subject) -> int:
        return int(s.work.most - s.work.least)

    def form(name: str) -> Condition:
        return lambda s: s.work.form == name and spread(s) and s.lengths.any()

    def lone(s: Subject) -> bool:
        total = int((-(-s.lengths // 256)).sum())
        return s.problem.num_sms > 1 and total > 1 and s.work.most == total

    def many_rows(s: Subject) -> Any:
        begin, end = s.problem.schedule[:-1, 0], s.problem.schedule[1:, 0]
        return np.any(end - begin > 2)

    return {
        "schedule.forward": form("forward"),
        "schedule.reversed": form("reversed"),
        "schedule.foreign": lambda s: s.work.form is None,
        "schedule.one-cta": lambda s: s.problem.num_sms == 1,
        "schedule.100-ctas": lambda s: s.problem.num_sms >= 100,
        "schedule.idle-cta": lambda s: bool(s.work.zero_work) and s.lengths.any(),
        "schedule.idle-first-cta": lambda s: 0 in s.work.zero_work and s.lengths.any(),
        "schedule.zero-row-in-range": lambda s: bool(s.work.zero_length_executed),
        "schedule.row-of-two-ctas": lambda s: np.any(s.problem.schedule[1:-1, 1] > 0),
        "schedule.three-rows-one-cta": many_rows,
        "schedule.all-work-in-one-cta": lone,
    }


def _nan_codes(codes: NDArray[Any]) -> Any:
    return np.any((codes & 0x7F) == 0x7F)


def _of(values: Callable[[Subject], NDArray[Any]], rule: Callable[[NDArray[Any]], Any]) -> Condition:
    return lambda subject: rule(values(subject))


_CODES: Mapping[str, Callable[[NDArray[Any]], Any]] = {
    "nan": _nan_codes,
    "448": lambda codes: np.any((codes & 0x7F) == 0x7E),
    "high-bit": lambda codes: np.any(codes >= 0x80),
    "subnormal": lambda codes: np.any(((codes & 0x78) == 0) & (codes & 7 != 0)),
}
_WORDS: Mapping[str, Callable[[NDArray[Any]], Any]] = {
    "nan": lambda numbers: np.any(np.isnan(numbers)),
    "inf": lambda numbers: np.any(np.isinf(numbers)),
    "zero": lambda numbers: np.any(numbers == 0),
    "negative": lambda numbers: np.any(numbers < 0),
    "subnormal": lambda numbers: np.any((numbers != 0) & (np.abs(numbers) < 2.0**-126)),
    "huge": lambda numbers: np.any(np.isfinite(numbers) & (np.abs(numbers) > 2.0**100)),
    "half-overflow": lambda numbers: np.any(np.isfinite(numbers) & (np.abs(numbers) >= 65520)),
    "half-subnormal": lambda numbers: np.any((numbers != 0) & (np.abs(numbers) < 2.0**-14)),
}


def _values() -> dict[str, Condition]:
    def idle_scales(s: Subject) -> NDArray[np.float32]:
        return s.problem.scale_bits[~s.used].view(np.float32)

    points: dict[str, Condition] = {}
    for role, codes in (("query", lambda s: s.problem.q), ("key", lambda s: s.keys)):
        points |= {f"{role}.{name}": _of(codes, rule) for name, rule in _CODES.items()}
    for role, words in (("scale", lambda s: s.scales), ("weight", lambda s: s.problem.weights)):
        points |= {f"{role}.{name}": _of(words, rule) for name, rule in _WORDS.items()}
    return points | {
        "idle.nan-key": lambda s: _nan_codes(s.problem.key_codes[~s.used]),
        "idle.nan-scale": lambda s: np.any(np.isnan(idle_scales(s))),
        "weight.max": lambda s: np.any(np.abs(s.problem.weights) == np.finfo(np.float32).max),
    }


def _equal(value: Callable[[Subject], Any], wanted: Any) -> Condition:
    return lambda subject: value(subject) == wanted


def _switched(name: str) -> Condition:
    return lambda subject: bool(subject.options.get(name))


def _shapes() -> dict[str, Condition]:
    points = {f"page.{page}": _equal(lambda s: s.problem.page, page) for page in PAGES}
    points |= {
        "next_n.1": lambda s: s.problem.next_n == 1,
        "next_n.2": lambda s: s.problem.next_n == 2,
        "next_n.4+": lambda s: s.problem.next_n >= 4,
        "next_n.odd": lambda s: s.problem.next_n % 2 == 1 and s.problem.next_n > 1,
        "heads.32": lambda s: s.problem.heads == 32,
        "heads.64": lambda s: s.problem.heads == 64,
        "heads.other": lambda s: s.problem.heads not in (32, 64),
        "columns.more-than-longest": lambda s: (
            s.problem.row_stride > -(-max(1, int(s.lengths.max())) // 256) * 256
        ),
    }
    points |= {f"flow.{flow}": _equal(lambda s: str(s.flow), flow) for flow in FLOWS}
    points |= {f"order.{order}": _equal(lambda s: s.order, order) for order in ORDERS}
    points |= {f"option.{name}": _switched(name) for name in SWITCHES}
    points |= {
        "option.default": lambda s: not s.options,
        "option.max_w_in_reg": lambda s: s.options.get("max_w_in_reg", 0) > 0,
        "option.num_epi_subtiles": lambda s: s.options.get("num_epi_subtiles", 1) > 1,
    }
    return points


COVERPOINTS: Mapping[str, Condition] = {
    **_lengths(),
    **_batch(),
    **_tables(),
    **_schedules(),
    **_values(),
    **_shapes(),
}
"""All conditions by id."""


def hits(subject: Subject) -> tuple[str, ...]:
    """The ids of the coverpoints that a launch meets."""
    return tuple(name for name, condition in COVERPOINTS.items() if condition(subject))


def check_ids(names: Iterable[str]) -> None:
    """Raise InputError for ids that are none."""
    unknown = sorted(set(names) - set(COVERPOINTS))
    if unknown:
        raise InputError(
            Fault("coverpoint", repr(one), "one of " + ", ".join(COVERPOINTS)) for one in unknown
        )


_OF_THE_SCHEDULE = (
    "schedule.forward",
    "schedule.reversed",
    "schedule.foreign",
    "schedule.all-work-in-one-cta",
)


def reachable(
    flows: Iterable[str],
    orders: Iterable[str],
    *,
    options: bool,
    pages: Iterable[int] = PAGES,
    heads: Iterable[tuple[int, int]] = HEADS,
    own_schedule: bool = False,
) -> tuple[str, ...]:
    """The coverpoints that a campaign can meet with these flows, interleavings, pages and pairs (heads, next_n), with
    or without options, and of a kernel that computes its schedule those that do not ask for another one."""
    pairs = tuple(heads)
    able = {*(f"flow.{flow}" for flow in flows), *(f"order.{order}" for order in orders)}
    able |= {f"page.{page}" for page in pages}
    able |= {f"heads.{count}" if count in (32, 64) else "heads.other" for count, _ in pairs}
    able |= {f"next_n.{next_n}" for _, next_n in pairs}
    able |= {"next_n.4+" for _, next_n in pairs if next_n >= 4}
    able |= {"next_n.odd" for _, next_n in pairs if next_n % 2 and next_n > 1}
    return tuple(
        name
        for name in COVERPOINTS
        if (not name.startswith(("flow.", "order.", "page.", "heads.", "next_n.")) or name in able)
        and (options or not name.startswith("option.") or name == "option.default")
        and not (own_schedule and name in _OF_THE_SCHEDULE)
    )
