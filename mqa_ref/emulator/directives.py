"""Directives: the module's, those before the body of a kernel, and declarations of registers and variables.

Source: PTX ISA, chapters "Directives", "State Spaces, Types, and Variables". What carries no meaning for execution is
read to its end and dropped, by name; an unknown directive is an error. Standing: doc.
"""

from __future__ import annotations

from mqa_ref.emulator.operands import OperandParser
from mqa_ref.emulator.ptx import Parameter, Reg, Variable

TYPE_BYTES = {
    **dict.fromkeys(("b8", "u8", "s8"), 1),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), 2),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2"), 4),
    **dict.fromkeys(("b64", "u64", "s64", "f64", "f32x2"), 8),
}
_DESCRIBING = frozenset((".version", ".target", ".address_size", ".file", ".section", ".loc"))
_LINKING = (".visible", ".weak")
_SPACES = (".shared", ".global", ".const")


class DirectiveParser(OperandParser):
    """Reads directives; what they declare gathers in its fields."""

    def __init__(self, ptx: str) -> None:
        super().__init__(ptx)
        self.registers: list[str] = []
        self.parameters: list[Parameter] = []
        self.shared: dict[str, int] = {}
        self.externs: list[tuple[str, int]] = []
        self.shared_bytes = 0
        self.variables: list[Variable] = []
        self.required_threads: int | None = None
        self.max_threads: int | None = None
        self.files: dict[int, str] = {}
        self.location: tuple[int, int] | None = None
        self.target = ""

    def type_name(self) -> str:
        """Take a type, such as .b32; its name without the dot."""
        token = self.next()
        kind = token.text.removeprefix(".")
        if kind not in TYPE_BYTES or kind == token.text:
            raise self.error(token.line, f"type {token.text!r} is not modelled")
        return kind

    # the module

    def header(self) -> bool:
        """Take one directive that only describes the text; False when none comes next."""
        token = self.peek()
        if token is None or token.text not in _DESCRIBING:
            return False
        self.at += 1
        if token.text == ".target":
            self.target = self.next().text
            while self.accept(","):
                self.next()
        elif token.text == ".file":
            self.file()
        elif token.text == ".loc":
            self.loc()
        elif token.text == ".section":
            while self.next().text != "{":
                pass
            while self.next().text != "}":
                pass
        elif token.text == ".address_size" and (size := self.integer()) != 64:
            raise self.error(token.line, f"addresses of {size} bits are not modelled")
        elif token.text == ".version":
            self.next()
        return True

    def file(self) -> None:
        """.file number "path" [, time, size]: the number that .loc names."""
        number = self.integer()
        self.files[number] = self.next().text.strip('"')
        while self.accept(","):
            self.integer()

    def loc(self) -> None:
        """.loc file line column [, function_name label [+ n], inlined_at file line column]."""
        self.location = (self.integer(), self.integer())
        self.accept_integer()
        while self.accept(","):
            word = self.next()
            if word.text == "function_name":
                self.simple()
            elif word.text == "inlined_at":
                self.integer()
                self.integer()
                self.accept_integer()
            else:
                raise self.error(word.line, f"{word.text!r} is not modelled here")

    def pragma(self) -> None:
        """.pragma "string", ...; says how to compile, not what to compute."""
        self.next()
        while self.accept(","):
            self.next()
        self.expect(";")

    # variables

    def starts_variable(self) -> bool:
        """Does the declaration of a variable come next?"""
        token = self.peek()
        return token is not None and token.text in (".extern", ".visible", ".weak", *_SPACES)

    def variable(self) -> None:
        """[.extern] .shared / .global / .const [.align n] .type name [[count]] [= values];"""
        extern = False
        while (token := self.peek()) is not None and token.text in (".extern", *_LINKING):
            extern |= token.text == ".extern"
            self.at += 1
        space = self.next()
        if space.text not in _SPACES:
            raise self.error(space.line, f"variables of {space.text!r} are not modelled")
        align = self.integer() if self.accept(".align") else 0
        kind = self.type_name()
        while True:
            self.declarator(space.text, extern, align, kind)
            if not self.accept(","):
                break
        self.expect(";")

    def declarator(self, space: str, extern: bool, align: int, kind: str) -> None:
        """One name of a declaration, its array size and its values; ``align`` 0 stands for the type's own."""
        name = self.next()
        step = TYPE_BYTES[kind]
        align = align or step
        count: int | None = 1
        if self.accept("["):
            count = None if self.accept("]") else self.integer()
            if count is not None:
                self.expect("]")
        values = self.initialiser() if self.accept("=") else []
        if count is None:
            count = len(values)
        size = count * step
        if space != ".shared":
            if extern:
                raise self.error(name.line, f"{name.text!r} is defined in another module")
            data = b"".join((value & ((1 << 8 * step) - 1)).to_bytes(step, "little") for value in values)
            self.variables.append(Variable(name.text, data.ljust(size, b"\0"), align, space == ".global"))
        elif extern:
            self.externs.append((name.text, align))
        else:
            self.shared_bytes = -(-self.shared_bytes // align) * align
            self.shared[name.text] = self.shared_bytes
            self.shared_bytes += size

    def initialiser(self) -> list[int]:
        """The values of a variable: constants, in braces for an array."""
        if not self.accept("{"):
            return [self.value()]
        values = [self.value()]
        while self.accept(","):
            values.append(self.value())
        self.expect("}")
        return values

    def value(self) -> int:
        """One constant: an integer or the bits of a 0f / 0d constant."""
        token = self.peek()
        if token is not None and token.kind == "float":
            self.at += 1
            return int(token.text[2:], 16)
        return -self.integer() if self.accept("-") else self.integer()

    # kernels

    def parameter(self, offset: int) -> int:
        """One kernel parameter at the next aligned offset; returns the end of it."""
        self.expect(".param")
        align = self.integer() if self.accept(".align") else 0
        kind = self.type_name()
        if self.accept(".ptr"):  # where a pointer points to and how it is aligned: a promise of the caller
            while (token := self.peek()) is not None and token.text in (
                ".global",
                ".const",
                ".shared",
                ".local",
            ):
                self.at += 1
            if self.accept(".align"):
                self.integer()
        size = TYPE_BYTES[kind]
        align = align or size
        name = self.next().text
        if self.accept("["):
            size *= self.integer()
            self.expect("]")
        offset = -(-offset // align) * align
        self.parameters.append(Parameter(name, size, offset))
        return offset + size

    def performance(self) -> None:
        """The directives between the parameters and the body."""
        while (token := self.next()).text != "{":
            if token.text in (".reqntid", ".maxntid", ".reqnctapercluster"):
                threads = self.integer()
                while self.accept(","):
                    threads *= self.integer()
                if token.text == ".reqntid":
                    self.required_threads = threads
                elif token.text == ".maxntid":
                    self.max_threads = threads
                elif threads != 1:
                    raise self.error(token.line, f"clusters of {threads} CTAs are not modelled")
            elif token.text in (".minnctapersm", ".maxnctapersm", ".maxnreg", ".maxclusterrank"):
                self.integer()
            elif token.text == ".pragma":
                self.pragma()
            elif token.text != ".explicitcluster":
                raise self.error(token.line, f"directive {token.text!r} is not modelled")

    def declare_registers(self) -> None:
        """.reg .type name, name<count>, ...; in the innermost scope."""
        token = self.peek()
        kind = "pred" if self.accept(".pred") else ""
        if not kind and token is not None and token.text.removeprefix(".") not in TYPE_BYTES:
            raise self.error(token.line, f"register type {token.text!r} is not modelled")
        kind = kind or self.type_name()
        scope = self.scopes[-1]
        self.meanings.clear()
        while True:
            name = self.next().text
            if self.accept("<"):
                count = self.integer()
                self.expect(">")
                scope.families[name] = (len(self.registers), count, kind)
                self.registers.extend([kind] * count)
            else:
                scope.registers[name] = Reg(len(self.registers), kind, name)
                self.registers.append(kind)
            if not self.accept(","):
                break
        self.expect(";")
