"""The process in which a kernel's own code is executed, seen from outside: start, one line in, one line out, end.

The process is the leader of a session and of a process group of its own; killing it kills the group. It gets three
things that the kernel's code does not know of: a pipe with requests, a pipe for answers, and a private folder. What
the kernel prints comes through another pipe, of which the end is kept.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

from mqa_ref.errors import KernelDied, KernelTimeout

MOST_LINE = 1024
KEPT_OUTPUT = 64 << 10
READY = "ready"
_STEP = 0.1


class Child:
    """A running worker process. ``folder`` is private to it and its parent, and goes away with it.

    Raises KernelDied when the process does not come up within ``start_seconds``.
    """

    def __init__(self, module: str, memory_bytes: int, start_seconds: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mqa-ref-", ignore_cleanup_errors=True)
        self.folder = Path(self._folder.name)
        (self.folder / "tmp").mkdir()
        requests_in, self._requests = os.pipe()
        self._answers, answers_out = os.pipe()
        # Beside this module, its dependencies and the kernel's, found as here; nothing is written beside a kernel.
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)  # noqa: PTH100 - "" is this folder
        environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(self.folder / "tmp")}
        numbers = [str(number) for number in (requests_in, answers_out, memory_bytes)]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-B", "-m", module, *numbers],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(requests_in, answers_out),
            env=environment,
            start_new_session=True,
        )
        os.close(requests_in)
        os.close(answers_out)
        self._line = b""
        self._tail = bytearray()
        self._lock = threading.Lock()
        output = self._process.stdout
        assert output is not None
        self._drain = threading.Thread(target=self._keep_tail, args=(output,), daemon=True)
        self._drain.start()
        try:
            told = self.receive(start_seconds)
            if told != READY:
                raise KernelDied(f"the worker process began with {told[:40]!r}")
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def send(self, line: str) -> None:
        """Send one short line. Raises KernelDied when nobody can read it."""
        try:
            os.write(self._requests, f"{line}\n".encode())
        except OSError as error:
            raise KernelDied(f"the process of the kernel ended before its next case{self._how()}") from error

    def receive(self, seconds: float) -> str:
        """The next line. Raises KernelTimeout when none comes in time, KernelDied when none can come."""
        limit = time.monotonic() + seconds
        while b"\n" not in self._line:
            left = limit - time.monotonic()
            if left <= 0:
                raise KernelTimeout(f"stopped after {seconds:g} seconds")
            readable, _, _ = select.select([self._answers], [], [], min(left, _STEP))
            if not readable:
                if not self.alive:
                    raise KernelDied(f"the process of the kernel ended{self._how()}")
                continue
            chunk = os.read(self._answers, 4096)
            self._line += chunk
            if not chunk:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_STEP)
                raise KernelDied(f"the process of the kernel ended{self._how()}")
            if len(self._line) > MOST_LINE:
                raise KernelDied("the kernel wrote into a pipe that is not its own")
        line, _, self._line = self._line.partition(b"\n")
        return line.decode("ascii", "replace")

    def output(self) -> str:
        """The end of what the kernel printed, with nothing in it that moves a cursor."""
        # What was printed just before an end may still be in the pipe.
        self._drain.join(0 if self.alive else 1.0)
        with self._lock:
            text = bytes(self._tail).decode("utf-8", "replace")
        return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text).strip()

    def close(self) -> None:
        """Kill the process and its group, and remove the folder."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for number in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                os.close(number)
        self._drain.join(1.0)
        self._folder.cleanup()

    def _how(self) -> str:
        code = self._process.poll()
        if code is None:
            return ""
        if code >= 0:
            return f", with exit code {code}"
        with contextlib.suppress(ValueError):
            return f", by signal {signal.Signals(-code).name}"
        return f", by signal {-code}"

    def _keep_tail(self, output: IO[bytes]) -> None:
        with output:
            while chunk := os.read(output.fileno(), 65536):
                with self._lock:
                    self._tail += chunk
                    del self._tail[:-KEPT_OUTPUT]
