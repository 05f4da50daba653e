"""What the worker process does: limit itself, load one kernel, answer requests until there are none.

A request is a line with the number of a file in the private folder; the answer is a file too, and a line that repeats
the word and the number which the request held. The kernel's code may do what it likes to this process; whatever comes
of it, the process outside sees an answer, an end, or a silence that it ends.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqa_ref.verification.wire import Message

_PR_SET_PDEATHSIG = 1


def limit(memory_bytes: int) -> None:
    """No more private memory than that, no larger file, no core dump; and an end when the parent ends."""
    for what, most in (
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_FSIZE, memory_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def lines(handle: int) -> Iterator[str]:
    """Lines of a pipe until its end."""
    rest = b""
    while chunk := os.read(handle, 4096):
        rest += chunk
        while b"\n" in rest:
            line, _, rest = rest.partition(b"\n")
            yield line.decode()


def serve(requests: int, answers: int, memory_bytes: int) -> None:
    """Answer until the pipe of requests is closed."""
    os.set_inheritable(requests, False)
    os.set_inheritable(answers, False)
    limit(memory_bytes)
    # Imported now, with their names kept: the kernel may take modules away.
    from mqa_ref.verification import wire
    from mqa_ref.verification.service import Service

    write, folder = os.write, Path(os.environ["TMPDIR"]).parent
    answer: Callable[[Message], Message] = Service().answer
    send, read, refuse = wire.write, wire.read, wire.WireError
    write(answers, b"ready\n")
    for number in lines(requests):
        request = read(folder / f"request-{number}")
        told = answer(request)
        target = folder / f"answer-{number}"
        try:
            send(target, told)
        except (OSError, MemoryError, refuse):
            os._exit(70)
        write(answers, f"{request.plain['word']} {number}\n".encode())


def main(arguments: list[str]) -> Any:
    """The three numbers on the command line: pipe of requests, pipe of answers, bytes of memory."""
    requests, answers, memory_bytes = (int(argument) for argument in arguments)
    serve(requests, answers, memory_bytes)
    # Not the interpreter's own end: threads and exit handlers of the kernel have no say any more.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
