"""The tests as a judge: collected once, run on one mutant after the other, each in a child process of its own."""

from __future__ import annotations

import argparse
import gc
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

from mutants import live, mutants_of
from outcomes import is_caught, outcomes

SLACK, TIMES = 5.0, 10.0
"""A test may take this many seconds more than this many times its own time."""
OPTIONS = [
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:timeout",
    "-p",
    "no:randomly",
    "--assert=plain",
    "--tb=line",
]


class Judge:
    """A pytest plugin: in place of running the tests it runs them on mutants."""

    def __init__(self, given: argparse.Namespace, only: list[str] | None = None) -> None:
        self.given, self.only = given, only
        self.failed: list[str] = []
        self.reached: dict[str, set[str]] = defaultdict(set)
        self.imported: set[str] = set()
        # From here on modules are imported, by conftest files first: note what is called then.
        sys.settrace(self.tracer(self.imported))

    def pytest_configure(self) -> None:
        """Hypothesis with a fixed seed, without shrinking."""
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "judge",
            settings(
                derandomize=True,
                database=None,
                deadline=None,
                phases=(Phase.explicit, Phase.generate),
                suppress_health_check=list(HealthCheck),
            ),
        )
        settings.load_profile("judge")

    def tracer(self, into: set[str]) -> Any:
        """A trace function that notes which functions of the modules are called."""
        seen: set[int] = set()

        def note(frame: Any, *_: object) -> None:
            code = frame.f_code
            if id(code) not in seen:
                seen.add(id(code))
                if code.co_filename.startswith(self.given.roots):
                    name = code.co_qualname.partition(".<locals>")[0]
                    into.add(f"{Path(code.co_filename).relative_to(Path.cwd())}:{name}")

        return note

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """The tests asked for, in that order."""
        sys.settrace(None)
        if self.only is not None:
            place = {name: at for at, name in enumerate(self.only)}
            items[:] = [item for item in items if item.nodeid in place]
            items.sort(key=lambda item: place[item.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note what failed."""
        if report.failed:
            self.failed.append(report.nodeid)

    def one(self, item: Any, following: Any) -> bool:
        """Whether anything has failed after this test."""
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        return bool(self.failed)

    def run(self, items: list[Any], seconds: dict[str, float]) -> str | None:
        """The name of the first test that fails, None when all pass."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            signal.setitimer(signal.ITIMER_REAL, SLACK + TIMES * seconds.get(item.nodeid, 20.0))
            if self.one(item, following):
                return str(item.nodeid)
        return None

    def pytest_runtestloop(self, session: Any) -> bool:
        """Judge one mutant, or all of them."""
        items = {item.nodeid: item for item in session.items}
        if self.only is not None:
            profile = json.loads(self.given.profile.read_text())
            name = self.run(list(items.values()), profile["seconds"])
            os.write(self.given.pipe, (name or "survived").encode())
            os._exit(0)
        if not self.given.profile.exists():
            self.measure(items)
        profile = json.loads(self.given.profile.read_text())
        campaign(self.given, self, items, profile)
        return True

    def measure(self, items: dict[str, Any]) -> None:
        """Time and reach of every test, in a child: nothing has run yet in the process that is forked for mutants."""
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        hush()
        seconds: dict[str, float] = {}
        ordered = list(items.values())
        for item, following in zip(ordered, [*ordered[1:], None], strict=True):
            names: set[str] = set()
            sys.settrace(self.tracer(names))
            begin = time.monotonic()
            self.one(item, following)
            sys.settrace(None)
            seconds[item.nodeid] = time.monotonic() - begin
            for name in names:
                self.reached[name].add(item.nodeid)
        reached = {name: sorted(tests) for name, tests in self.reached.items()}
        told = {"seconds": seconds, "reached": reached, "failed": self.failed}
        told |= {"imported": sorted(self.imported)}
        self.given.profile.write_text(json.dumps(told))
        os._exit(0)


def hush() -> None:
    """Sends what the child prints nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def campaign(given: argparse.Namespace, judge: Judge, items: dict[str, Any], profile: dict[str, Any]) -> None:
    """All mutants of all files."""
    gc.collect()
    gc.freeze()
    bad, seconds = set(profile["failed"]), profile["seconds"]
    done = {mutant["id"] for mutant in outcomes(given.out)}
    done |= {mutant["id"] for file in given.but for mutant in outcomes(file) if is_caught(mutant["outcome"])}
    successes: dict[str, Counter[str]] = defaultdict(Counter)
    controls: dict[Path, str] = {}  # what an import anew gives without a mutant
    for path in given.files:
        dotted = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        for mutant in mutants_of(path):
            text, theirs = mutant.pop("text"), mutant.pop("codes")
            keys = [f"{path}:{name}" for name in mutant["functions"]]
            anew = mutant["outside"] or any(key in profile["imported"] for key in keys)
            if mutant["id"] in done or (given.quick and anew):
                continue
            tests = {name for key in keys for name in profile["reached"].get(key, ())}
            if anew:
                tests = set(seconds)  # who reads a module's data calls none of its functions
            tests -= bad
            scope = keys[0] if keys else str(path)
            order = chosen(tests, seconds, successes[scope], given.budget)
            begin = time.monotonic()
            if not order:
                outcome = "unreached"
            elif anew:
                if path not in controls:
                    controls[path] = forked(partial(afresh, given, order, dotted, path.read_text()), given)
                outcome = forked(partial(afresh, given, order, dotted, text), given)
                if controls[path] != "survived":
                    outcome = f"raised without a mutant: {controls[path]}"
            else:
                outcome = forked(partial(swapped, judge, items, order, seconds, dotted, theirs), given)
            if outcome in seconds:
                successes[scope][outcome] += 1
            mutant |= {"module": str(path), "outcome": outcome, "tests": len(order), "of": len(tests)}
            mutant |= {"seconds": round(time.monotonic() - begin, 2)}
            with given.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(mutant) + "\n")


def chosen(tests: set[str], seconds: dict[str, float], caught: Counter[str], budget: float) -> list[str]:
    """Those that caught something there before, then of each test function the quickest set of parameters, then the
    second, up to so many seconds."""
    rank: dict[str, int] = {}
    uses: Counter[str] = Counter()
    for name in sorted(tests, key=lambda name: seconds[name]):
        rank[name] = uses[name.partition("[")[0]]
        uses[name.partition("[")[0]] += 1
    order: list[str] = []
    spent = 0.0
    for name in sorted(tests, key=lambda name: (-caught[name], rank[name], seconds[name])):
        if not order or spent + seconds[name] <= budget:
            order.append(name)
            spent += seconds[name]
    return order


def forked(work: Callable[[], str | None], given: argparse.Namespace) -> str:
    """What a child writes into the pipe: the test that failed, or "survived"; "time-out" or "died" when it writes
    nothing."""
    reader, given.pipe = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        gc.disable()
        hush()
        try:
            os.write(given.pipe, str(work() or "survived").encode())
        except BaseException as error:  # noqa: BLE001 (whatever a mutant raises)
            os.write(given.pipe, f"raised {type(error).__name__}".encode())
        os._exit(0)
    os.close(given.pipe)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if told:
        return told
    return (
        "time-out" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM else f"died {status}"
    )


def swapped(
    judge: Judge,
    items: dict[str, Any],
    order: list[str],
    seconds: dict[str, float],
    dotted: str,
    theirs: dict[str, CodeType],
) -> str | None:
    """In a child: the functions' code replaced."""
    for name, code in theirs.items():
        function = live(sys.modules[dotted], name)
        if function is None:
            return "not replaced"
        function.__code__ = code
    return judge.run([items[name] for name in order], seconds)


def afresh(given: argparse.Namespace, order: list[str], dotted: str, text: str) -> str | None:
    """In a child: the package forgotten, imported with the mutant in it, and the tests collected anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mqa_ref", "tests", "conftest")]:
        del sys.modules[name]

    class Loader(importlib.machinery.SourceFileLoader):
        def get_code(self, _: str) -> CodeType:
            return compile(text, self.path, "exec", dont_inherit=True)

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
            if fullname != dotted:
                return None
            spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
            if spec is not None and spec.origin is not None:
                spec.loader = Loader(fullname, spec.origin)
            return spec

    import pytest

    sys.meta_path.insert(0, Finder())
    signal.setitimer(signal.ITIMER_REAL, 120.0)
    files = list(dict.fromkeys(name.partition("::")[0] for name in order))
    judge = Judge(given, order)
    pytest.main([*OPTIONS, *files], plugins=[judge])
    return "import"  # an error of collection: the tests themselves end the process
