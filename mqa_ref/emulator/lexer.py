"""PTX text to tokens: comments are dropped, every token keeps the line it stands on.

Source of the lexical rules: PTX ISA, chapter "Syntax" (source format, comments, identifiers, integer and
floating-point constants). Standing: doc.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from mqa_ref.errors import EmulatorError

_TOKEN = re.compile(
    r"""
    (?:[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)*+
    (?:
        (?P<name>[A-Za-z_$%.][\w$%.]*+(?:::[\w$.]+)*)
      | (?P<punct>[@!{}\[\],;:+\-|()<>=*])
      | (?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16})
      | (?P<number>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+\.\d*(?:[eE][+-]?\d+)?|\d+U?)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
    )?
    """,
    re.VERBOSE | re.DOTALL,
)
"""What is skipped, and one token; no token at the end of the text and before what is none."""
_END = "end"


@dataclass(slots=True)
class Token:
    """One token: ``kind`` is "name", "number", "float", "string" or "punct"; ``line`` is 1-based, ``start`` and ``end``
    are places in the text.
    """

    kind: str
    text: str
    line: int
    start: int = 0
    end: int = 0


def tokenize(ptx: str) -> list[Token]:
    """All tokens of ``ptx``. Raises EmulatorError at the first character that is no PTX token."""
    ends = [match.start() for match in re.finditer("\n", ptx)]
    last = len(ends)
    ends.append(len(ptx))
    tokens: list[Token] = []
    line = 0
    for match in _TOKEN.finditer(ptx):
        kind = match.lastgroup
        if kind is None:
            place = match.end()
            if place < len(ptx):
                line = bisect_right(ends, place, 0, last) + 1
                raise EmulatorError(f"PTX line {line}: {ptx[place : place + 20]!r} is not a PTX token")
            break
        start, end = match.span(kind)
        while ends[line] < start:
            line += 1
        tokens.append(Token(kind, match[kind], line + 1, start, end))
    return tokens


class TokenStream:
    """The tokens of a PTX text, taken one by one. ``tokens`` ends with one that is not of the text."""

    def __init__(self, ptx: str) -> None:
        self.ptx = ptx
        self.lines = ptx.split("\n")
        self.tokens = tokenize(ptx)
        self.tokens.append(Token(_END, "", len(self.lines), len(ptx), len(ptx)))
        self.at = 0

    def peek(self) -> Token | None:
        """The next token, not taken."""
        token = self.tokens[self.at]
        return None if token.kind is _END else token

    def next(self) -> Token:
        """Take the next token."""
        token = self.tokens[self.at]
        if token.kind is _END:
            raise EmulatorError("PTX ends in the middle of a statement")
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        """Take the next token if it is ``text``."""
        if self.tokens[self.at].text != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> Token:
        """Take the next token, which must be ``text``."""
        token = self.next()
        if token.text != text:
            raise self.error(token.line, f"{token.text!r} stands where {text!r} is expected")
        return token

    def error(self, line: int, what: str) -> EmulatorError:
        """An error that shows the line."""
        return EmulatorError(f"PTX line {line}: {what} in: {self.lines[line - 1].strip()}")

    def accept_integer(self) -> bool:
        """Drop the next token if it is an integer constant."""
        token = self.peek()
        if token is None or token.kind != "number":
            return False
        self.at += 1
        return True

    def integer(self) -> int:
        """Take an integer constant."""
        token = self.next()
        value = integer_of(token.text) if token.kind == "number" else None
        if value is None:
            raise self.error(token.line, f"{token.text!r} is no integer constant")
        return value


def integer_of(text: str) -> int | None:
    """The value of an integer constant: decimal, 0x hexadecimal, 0b binary or 0 octal, with or without U (PTX ISA,
    "Integer Constants"); None for any other text.
    """
    digits = text.rstrip("U")
    try:
        return int(digits, 8 if len(digits) > 1 and digits.isdigit() and digits[0] == "0" else 0)
    except ValueError:
        return None
