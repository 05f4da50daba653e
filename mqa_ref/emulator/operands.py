"""The operands of an instruction: registers found through the scopes, literals, vectors, pairs and addresses."""

from __future__ import annotations

from dataclasses import replace

from mqa_ref.emulator.lexer import TokenStream, integer_of
from mqa_ref.emulator.ptx import Addr, Imm, Operand, Pair, Reg, Special, Symbol, Vec


class Scope:
    """Names of one brace-enclosed block: registers, register families (first index, count, type), labels, and the
    branches whose label is not known yet (instruction, label, line).
    """

    def __init__(self) -> None:
        self.registers: dict[str, Reg] = {}
        self.families: dict[str, tuple[int, int, str]] = {}
        self.labels: dict[str, int] = {}
        self.fixups: list[tuple[int, str, int]] = []


class OperandParser(TokenStream):
    """Reads operands; ``scopes`` is the stack of open blocks, innermost last."""

    def __init__(self, ptx: str) -> None:
        super().__init__(ptx)
        self.scopes: list[Scope] = []
        self.meanings: dict[str, Reg | None] = {}
        """What names meant in the open blocks; whoever opens or closes one or declares a register clears it."""

    def register(self, name: str) -> Reg | None:
        """The register a name means here, or None."""
        if name not in self.meanings:
            self.meanings[name] = self._meaning(name)
        return self.meanings[name]

    def _meaning(self, name: str) -> Reg | None:
        for scope in reversed(self.scopes):
            if name in scope.registers:
                return scope.registers[name]
            stem = name.rstrip("0123456789")
            if stem in scope.families and stem != name:
                first, count, kind = scope.families[stem]
                number = int(name[len(stem) :])
                if number < count:
                    return Reg(first + number, kind, name)
        return None

    def operand(self) -> Operand:
        """One operand, or a pair d|p."""
        operand = self.simple()
        if self.accept("|"):
            return Pair(operand, self.simple())
        return operand

    def simple(self) -> Operand:
        """One operand that is no pair."""
        token = self.next()
        if token.text == "{":
            items = [self.simple()]
            while self.accept(","):
                items.append(self.simple())
            self.expect("}")
            return Vec(tuple(items))
        if token.text == "[":
            return self.address()
        if token.text == "!":
            inner = self.simple()
            if not isinstance(inner, Reg) or inner.type != "pred":
                raise self.error(token.line, "'!' applies to predicates only")
            return replace(inner, negated=True)
        if token.text == "-":
            return Imm(-self.integer())
        if token.kind == "float":
            return Imm(int(token.text[2:], 16), is_bits=True)
        if token.kind == "number":
            value = integer_of(token.text)
            if value is None:
                raise self.error(token.line, f"the decimal constant {token.text} is not modelled")
            return Imm(value)
        if token.kind != "name":
            raise self.error(token.line, f"{token.text!r} is not an operand")
        found = self.register(token.text)
        if found is not None:
            return found
        if token.text.startswith("%"):
            return Special(token.text)
        return Symbol(token.text, self.signed() if self.followed_by_sign() else 0)

    def followed_by_sign(self) -> bool:
        """Does a constant that is added or subtracted come next?"""
        token = self.peek()
        return token is not None and token.text in ("+", "-")

    def signed(self) -> int:
        """Take +constant, -constant or +-constant."""
        negative = not self.accept("+")
        if negative:
            self.expect("-")
        elif self.accept("-"):
            negative = True
        return -self.integer() if negative else self.integer()

    def address(self) -> Addr:
        """The rest of an address, its bracket already taken."""
        base = self.simple()
        offset = 0
        coordinates: Vec | None = None
        if isinstance(base, Symbol):
            base, offset = Symbol(base.name), base.offset
        elif self.followed_by_sign():
            offset = self.signed()
        if self.accept(","):
            vector = self.simple()
            if not isinstance(vector, Vec):
                raise self.error(self.tokens[self.at - 1].line, "tensor coordinates are expected in braces")
            coordinates = vector
        self.expect("]")
        return Addr(base, offset, coordinates)
