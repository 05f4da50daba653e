"""One kernel on one backend for many calls: what the pytest plugin keeps open while tests come and go."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from mqa_ref.cuda.launch import Settings
from mqa_ref.kernel.targets import CONTRACT_OPTIONS, resolve
from mqa_ref.problem import Problem
from mqa_ref.report import Report
from mqa_ref.report.text import make_console, render
from mqa_ref.verification.ledger import read_ledger
from mqa_ref.verification.problems import NamedProblem
from mqa_ref.verification.request import check_request, of_level
from mqa_ref.verification.runner import Launcher, launcher
from mqa_ref.verification.verify import verify


def problems(kernel: str, level: str, flow: str) -> tuple[NamedProblem, ...]:
    """The named problems of a level for a kernel and a flow, or "all". Raises InputError for any of them that is none,
    NotAvailable for a kernel that is not installed."""
    check_request(
        kernel=kernel,
        on="emulator",
        flow=flow,
        problems=(),
        level=level,
        machine=None,
        generation=None,
        edit_ptx=None,
        orders=None,
        seed=0,
    )
    return of_level(level, flow, resolve(kernel).options or CONTRACT_OPTIONS)


class Session(AbstractContextManager["Session"]):
    """Opens the kernel's process at the first problem and ends it with the context.

    ``known``: a ledger of known findings. Other arguments as for ``verify``, which says what it raises.
    """

    def __init__(
        self,
        kernel: str,
        on: str,
        flow: str,
        level: str,
        seed: int = 0,
        known: Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.kernel, self.on, self.flow, self.level, self.seed = kernel, on, flow, level, seed
        self.known = None if known is None else read_ledger(known)
        self.options = dict(options or {})
        self._stack = ExitStack()
        self._launch: Launcher | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._launch = None

    def verify(self, *chosen: Problem | NamedProblem, **rest: Any) -> Report:
        """The report of these problems. ``rest``: as for ``verify``."""
        if self._launch is None:
            settings = Settings() if self.on == "cuda" else None
            self._launch = self._stack.enter_context(launcher(resolve(self.kernel), native=settings))
        return verify(
            self.kernel,
            self.on,
            self.flow,
            chosen,
            seed=self.seed,
            known=self.known,
            options=self.options,
            launch=self._launch,
            **rest,
        )

    def text(self, report: Report) -> str:
        """The report as ``mqa-ref verify`` prints it."""
        file = io.StringIO()
        render(report, make_console(file))
        return file.getvalue()
