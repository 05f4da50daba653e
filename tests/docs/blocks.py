"""The fenced blocks of a Markdown page, and how a console block is run and compared.

A console block is a row of commands after ``$ ``, each followed by what it prints. Of the output, ``...`` stands for
anything: a whole line for any number of lines, else a part of a line. Times (``12.3 s``), dates and runs of blanks may
differ. Without output only the exit code is judged: 0, unless the next command is ``echo $?``, which prints it.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mqa_ref.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)
_FENCE = re.compile(r"^(\s*)```(\S*)\s*$")
_UNRUN = re.compile(r"^<!-- not run: (.+) -->$")
_SHELL = ("sed", "ls", "cat", "grep", "mkdir", "cp", "diff")
"""Programs that a block may call beside mqa-ref."""
_SECONDS = re.compile(r"\b\d+\.\d+ s\b")


def name(page: Path) -> str:
    """A page's name in the repository."""
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """One block. ``unrun``: why it is not run, "" if it is."""

    page: Path
    line: int
    language: str
    text: str
    unrun: str = ""

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.page.name}:{self.line}"


@dataclass
class Command:
    """One line of a console block and the lines it should print."""

    line: str
    output: list[str] = field(default_factory=list)


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page, in order. Raises ValueError for one that does not end."""
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            at += 1
            continue
        end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == "```"), None)
        if end is None:
            raise ValueError(f"{page.name}:{at + 1}: a block that does not end")
        before = lines[at - 1].strip() if at else ""
        told = _UNRUN.match(before)
        text = "\n".join(line.removeprefix(fence[1]) for line in lines[at + 1 : end])
        yield Block(page, at + 1, fence[2], text, told[1] if told else "")
        at = end + 1


def indented(page: Path) -> list[int]:
    """Lines (from 1) at which an indented block of code begins, which no test would see."""
    found, inside, before = [], False, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if _FENCE.match(line):
            inside = not inside
        if not inside and line.startswith("    ") and not before.strip():
            found.append(number)
        before = line
    return found


def commands(text: str) -> list[Command]:
    """The commands of a console block; a line that ends in a backslash goes on in the next."""
    found: list[Command] = []
    joined = re.sub(r"\\\n\s*", "", text)
    for line in joined.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:].strip()))
        elif found:
            found[-1].output.append(line)
        else:
            raise ValueError(f"output before the first command: {line!r}")
    return found


def execute(line: str, last: int) -> tuple[int, str]:
    """Exit code and standard output, with standard error behind it. Raises ValueError for a program that no block may
    call."""
    if line == "echo $?":
        return 0, f"{last}\n"
    words = shlex.split(line, comments=True)
    if words[0] == "mqa-ref":
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words[1:])
        return code, out.getvalue() + err.getvalue()
    if words[0] not in _SHELL:
        raise ValueError(f"a block may not call {words[0]}")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def run_page(page: Path, folder: Path) -> list[str]:
    """Run all blocks of a page in order, in ``folder``, which is made the current one by the caller; beside it lies
    docs/. Every difference in words."""
    (folder / "docs").symlink_to(ROOT / "docs")
    faults: list[str] = []
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        if block.language == "console" and not block.unrun:
            faults += run_console(block)
        elif block.language == "python" and not block.unrun:
            exec(compile(block.text, block.where, "exec"), names)  # as a reader would
    return faults


def run_console(block: Block) -> list[str]:
    """Run a block in the current folder; every difference in words, none when all is as the page says."""
    found, faults, last = commands(block.text), [], 0
    for number, command in enumerate(found):
        told_next = number + 1 < len(found) and found[number + 1].line == "echo $?"
        last, output = execute(command.line, last)
        if last and not told_next:
            faults.append(f"{block.where}: {command.line}: exit code {last}\n{output}")
        if command.output and not matches(command.output, output):
            wanted = "\n".join(command.output)
            faults.append(f"{block.where}: {command.line}: printed\n{output}\nwhere the page has\n{wanted}")
    return faults


def matches(wanted: list[str], output: str) -> bool:
    """Whether the output is what a page says it is."""
    parts, gap = [], ""
    for line in wanted:
        if line.strip() == "...":
            gap = r"(?:.*\n)*?"
            continue
        parts.append(gap + _line(line) + r"\n")
        gap = ""
    text = "".join(f"{_plain(line)}\n" for line in output.splitlines())
    return re.fullmatch("".join(parts) + (gap or ""), text) is not None


def _plain(line: str) -> str:
    return re.sub(r"\s+", " ", _SECONDS.sub("0.0 s", line)).strip()


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in _plain(line).split("..."))
