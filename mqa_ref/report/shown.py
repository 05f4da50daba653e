"""Text that comes from outside (names and messages of kernels and cases) made safe for where it is shown.

A kernel's message may hold anything: markup, escape sequences of terminals, commands to a CI service.
"""

from __future__ import annotations

import re
from html import escape

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_COMMAND = re.compile(r"^(\s*)(::|##\[)", re.MULTILINE)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|~>@:-])")


def plain(text: str) -> str:
    """For a terminal or a log: control characters as ``\\x1b``, and no line that a CI service takes for a command."""
    visible = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return _COMMAND.sub(r"\1| \2", visible)


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(plain(text).split())


def xml(text: str) -> str:
    """Without the characters that XML 1.0 cannot hold; escaping is the writer's."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def markdown(text: str) -> str:
    """On one line of GitHub's Markdown, in a table or not: every character stands for itself."""
    return _MARKDOWN.sub(r"\\\1", escape(one_line(text), quote=False))


def command_message(text: str) -> str:
    """The message of a workflow command of GitHub Actions."""
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def command_property(text: str) -> str:
    """A property of such a command."""
    return command_message(text).replace(":", "%3A").replace(",", "%2C")
