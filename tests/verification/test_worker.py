"""Kernels that misbehave as programs, one file each: every one ends in its own status, and the next one is served."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mqa_ref.errors import (
    InputError,
    KernelDied,
    KernelError,
    KernelOutOfMemory,
    KernelTimeout,
    MqaRefError,
)
from mqa_ref.flow import Flow
from mqa_ref.kernel.contract import CALL, CONSTRUCTOR
from mqa_ref.kernel.targets import resolve
from mqa_ref.problem import Problem
from mqa_ref.verification.given import given
from mqa_ref.verification.launch import launch
from mqa_ref.verification.worker import MOST_TIMEOUTS, Limits, Worker

FLOW = Flow.parse("fp32-fp32-fp32")
GIB = 1 << 30
GOOD = """
from mqa_ref.kernel.sm100 import PagedMqaLogitsSm100

class Kernel(PagedMqaLogitsSm100):
    pass
"""
Write = Callable[[str], str]


def keeps(constructor: str) -> str:
    """A class that keeps the contract's signatures and does something else in its constructor."""
    return (
        f"class Kernel:\n    def __init__(self, {', '.join(CONSTRUCTOR)}):\n        {constructor}\n"
        f"    def __call__(self, {', '.join(CALL)}):\n        pass\n"
    )


@pytest.fixture(scope="module")
def problem() -> Problem:
    return given([5], num_sms=1, heads=32).problem


@pytest.fixture
def kernel(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        (tmp_path / "kernel.py").write_text(text)
        return f"{tmp_path}/kernel.py:Kernel"

    return write


def answer(name: str, problem: Problem, seconds: float = 60) -> MqaRefError:
    """The error of a first case."""
    with Worker(name, Limits(seconds, 4 * GIB)) as worker, pytest.raises(MqaRefError) as caught:
        worker.launch(problem, FLOW)
    return caught.value


def test_a_kernel_that_behaves_gives_what_it_gives_in_this_process(kernel: Write, problem: Problem) -> None:
    """Whatever it prints; and the process, started once, serves case after case and takes other PTX."""
    noise = (
        "import os, sys\nfor _ in range(9999): print('noise \\x1b[2J' * 9)\nos.write(1, bytes(range(256)))\n"
    )
    own = launch(resolve("builtin"), problem, FLOW)
    with Worker(kernel(noise + GOOD)) as worker:
        for _ in range(2):
            run = worker.launch(problem, FLOW)
            assert np.array_equal(run.logits, own.logits)
            assert np.array_equal(run.written, own.written)
            assert run.writer is not None
            assert np.array_equal(run.writer, np.where(own.written, 0, -1))
            assert run.findings == own.findings
        without = worker.launch(problem, FLOW, edit_ptx=lambda ptx: ptx.replace("abs.f32", "mov.b32"))
        assert not np.array_equal(without.logits, own.logits)
        assert worker.starts == 1


LOADING: dict[str, tuple[str, type[MqaRefError], str]] = {
    "raises": ("raise ValueError('no good')", KernelError, "ValueError: no good (in <module>, kernel.py:1)"),
    "is no Python": ("def (", KernelError, "SyntaxError"),
    "exits": ("import sys; sys.exit('out')", KernelError, "SystemExit: out"),
    "interrupts": ("raise KeyboardInterrupt", KernelError, "KeyboardInterrupt"),
    "text that raises": (
        "class E(BaseException):\n    def __str__(self): raise self\nraise E",
        KernelError,
        "E: (its text cannot be made)",
    ),
    "recurses": ("def f(): f()\nf()", KernelError, "RecursionError"),
    "_exit": (
        "import os; print('bye', flush=True); os._exit(7)",
        KernelDied,
        "with exit code 7\nit printed: bye",
    ),
    "_exit(0)": ("import os; os._exit(0)", KernelDied, "with exit code 0"),
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", KernelDied, "by signal SIGSEGV"),
    "kills itself": ("import os; os.kill(0, 9)", KernelDied, "by signal SIGKILL"),
    "closes every file": ("import os; os.closerange(0, 256)", KernelDied, "the process of the kernel ended"),
    "writes to every file": (
        "import os\nfor i in range(3, 99):\n    try: os.write(i, b'x\\n')\n    except OSError: pass",
        KernelDied,
        "wrote into a pipe that is not its own",
    ),
    "forges answers": (
        "import os, pathlib\n"
        "folder = pathlib.Path(os.environ['TMPDIR']).parent\n"
        "for i in range(9): (folder / f'answer-{i}').write_bytes(b'mqa-ref wire 01\\n')\n",
        KernelDied,
        "",
    ),
    "takes modules away": (
        "import sys\nfor name in list(sys.modules): del sys.modules[name]\nimport numpy",
        KernelError,
        "",
    ),
    "another signature": (
        "class Kernel:\n    def __init__(self, page): pass\n    def __call__(self, q): pass",
        InputError,
        "no argument block_kv",
    ),
    "no class": ("kernel = 1", InputError, "there is no Kernel"),
}


@pytest.mark.parametrize("name", LOADING)
def test_a_file_that_cannot_be_loaded(kernel: Write, problem: Problem, name: str) -> None:
    text, kind, told = LOADING[name]
    error = answer(kernel(text), problem)
    assert type(error) is kind
    assert told in str(error)


def test_a_file_that_cannot_be_loaded_is_not_loaded_again(kernel: Write, problem: Problem) -> None:
    with Worker(kernel("import os; os._exit(1)")) as worker:
        told = set()
        for _ in range(3):
            with pytest.raises(KernelDied) as caught:
                worker.launch(problem, FLOW)
            told.add(str(caught.value))
    assert (len(told), worker.starts) == (1, 1)


RUNNING: dict[str, tuple[str, type[KernelError], str]] = {
    "raises": ("raise ZeroDivisionError('zero')", KernelError, "ZeroDivisionError: zero"),
    "_exit": ("import os; os._exit(3)", KernelDied, "with exit code 3"),
    "memory": ("self.hoard = bytearray(1 << 34)", KernelOutOfMemory, "out of memory"),
    "aborts": ("import os; os.abort()", KernelDied, "by signal SIGABRT"),
}


@pytest.mark.parametrize("name", RUNNING)
def test_a_case_that_fails_and_the_next_one(
    kernel: Write, problem: Problem, name: str, tmp_path: Path
) -> None:
    """The first shape breaks it; the second is compiled by a new process, since the old one is not trusted."""
    bad, kind, told = RUNNING[name]
    text = keeps("pass").replace("        pass\n", f"        if num_sms == 1:\n            {bad}\n", 1)
    text = GOOD + text.replace("class Kernel:", "class Kernel(PagedMqaLogitsSm100):")
    text = text.split("    def __call__")[0] + (
        "        super().__init__(block_kv, phys_block_kv, num_heads, head_dim, next_n, num_sms,"
        " epi_dtype=epi_dtype, acc_dtype=acc_dtype, output_dtype=output_dtype)\n"
    )
    with Worker(kernel(text), Limits(60, 4 * GIB)) as worker:
        with pytest.raises(KernelError) as caught:
            worker.launch(problem, FLOW)
        assert type(caught.value) is kind
        assert told in str(caught.value)
        other = given([5], num_sms=2, heads=32).problem
        assert worker.launch(other, FLOW).written.sum() == 256
        assert worker.starts == 2


@pytest.mark.parametrize(
    "text",
    ["while True: pass", "import signal, time\nsignal.pthread_sigmask(0, range(1, 32))\ntime.sleep(99)"],
)
def test_a_file_that_never_ends(kernel: Write, problem: Problem, text: str) -> None:
    begun = time.monotonic()
    error = answer(kernel(text), problem, seconds=1)
    assert type(error) is KernelTimeout
    assert "stopped after 1 seconds" in str(error)
    assert time.monotonic() - begun < 30


def test_a_kernel_that_never_ends_is_given_up_after_some_cases(kernel: Write, problem: Problem) -> None:
    text = "print('still here', flush=True)\n" + keeps("while True: pass")
    with Worker(kernel(text), Limits(seconds=1)) as worker:
        told = []
        for _ in range(MOST_TIMEOUTS + 2):
            with pytest.raises(KernelTimeout) as caught:
                worker.launch(problem, FLOW)
            told.append(str(caught.value))
    assert worker.starts == MOST_TIMEOUTS
    assert "it printed: " in told[0]
    assert told[0].endswith("still here")
    assert told[-1].startswith("given up: 3 cases in a row")


def test_processes_that_a_kernel_starts_end_with_it(kernel: Write, problem: Problem, tmp_path: Path) -> None:
    text = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\nraise ValueError\n"
    )
    answer(kernel(text), problem)
    status = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    limit = time.monotonic() + 10
    while (
        status.exists()
        and status.read_text().rpartition(")")[2].split()[0] != "Z"
        and time.monotonic() < limit
    ):
        time.sleep(0.05)
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_nothing_is_left_behind(
    kernel: Write, problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    answer(kernel("import tempfile; tempfile.mkdtemp(); raise ValueError"), problem)
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kernel.py", "temporary"]
