"""A writer of LLVM IR: vectors of 8 lanes, loops, named storage. Only what the fused reference needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

LANES = 8
F32, F64, I32, I64, F16, BOOL = (
    f"<{LANES} x {element}>" for element in ("float", "double", "i32", "i64", "half", "i1")
)
"""The vector types, one lane a token."""

_DECLARED = f"""
declare {F32} @llvm.fma.v8f32({F32}, {F32}, {F32})
declare {F32} @llvm.fabs.v8f32({F32})
declare float @llvm.vector.reduce.fmax.v8f32({F32})
declare i1 @llvm.vector.reduce.or.v8i1({BOOL})
"""


class Code:
    """The text of one function. Values are names; a method that computes something returns the name of the result."""

    def __init__(self, signature: str) -> None:
        self._signature = signature
        self._storage: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._block = "start"

    def text(self) -> str:
        """The whole module."""
        body = "\n".join(["start0:", *self._storage, "  br label %start", "start:", *self._lines])
        return f"{_DECLARED}\ndefine void {self._signature} {{\n{body}\n  ret void\n}}\n"

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self._lines.append(f"  {text}")

    def new(self, text: str) -> str:
        """An instruction and the name of its result."""
        self._count += 1
        self.do(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def variable(self, kind: str) -> str:
        """Storage for one value; the optimiser makes registers of it."""
        self._count += 1
        self._storage.append(f"  %s{self._count} = alloca {kind}, align 32")
        return f"%s{self._count}"

    def at(self, base: str, element: str, *index: str) -> str:
        """The address of element ``index`` (a sum of i64 names and numbers) of an array."""
        total = index[0]
        for more in index[1:]:
            total = self.new(f"add i64 {total}, {more}")
        return self.new(f"getelementptr {element}, ptr {base}, i64 {total}")

    def load(self, kind: str, address: str) -> str:
        """A value from memory, aligned as its elements are."""
        return self.new(f"load {kind}, ptr {address}, align 4")

    def store(self, kind: str, value: str, address: str) -> None:
        """A value into memory."""
        self.do(f"store {kind} {value}, ptr {address}, align 4")

    def splat(self, element: str, value: str) -> str:
        """One number in all lanes."""
        kind = f"<{LANES} x {element}>"
        one = self.new(f"insertelement {kind} poison, {element} {value}, i64 0")
        return self.new(f"shufflevector {kind} {one}, {kind} poison, <{LANES} x i32> zeroinitializer")

    def call(self, name: str, kind: str, *values: str) -> str:
        """A vector operation of LLVM's."""
        return self.new(f"call {kind} @llvm.{name}({', '.join(f'{kind} {value}' for value in values)})")

    def binary(self, operation: str, kind: str, left: str, right: str) -> str:
        """``fadd``, ``and``, ... of two values."""
        return self.new(f"{operation} {kind} {left}, {right}")

    def cast(self, operation: str, kind: str, value: str, to: str) -> str:
        """``bitcast``, ``fptosi``, ... of one value."""
        return self.new(f"{operation} {kind} {value} to {to}")

    def select(self, condition: str, kind: str, yes: str, no: str) -> str:
        """Lane by lane one or the other."""
        return self.new(f"select {BOOL} {condition}, {kind} {yes}, {kind} {no}")

    def larger(self, left: str, right: str) -> str:
        """The larger of two fp32 vectors without NaN."""
        return self.select(self.new(f"fcmp ogt {F32} {left}, {right}"), F32, left, right)

    @contextmanager
    def loop(self, count: str) -> Iterator[str]:
        """Runs the body for 0..count-1; gives the name of the i64 index."""
        self._count += 1
        name = f"l{self._count}"
        before = self._block
        self.do(f"br label %{name}")
        self._label(name)
        at = len(self._lines)
        more = self.new(f"icmp slt i64 %{name}.i, {count}")
        self.do(f"br i1 {more}, label %{name}.body, label %{name}.end")
        self._label(f"{name}.body")
        yield f"%{name}.i"
        self.do(f"%{name}.next = add i64 %{name}.i, 1")
        self._lines.insert(at, f"  %{name}.i = phi i64 [ 0, %{before} ], [ %{name}.next, %{self._block} ]")
        self.do(f"br label %{name}")
        self._label(f"{name}.end")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Runs the body where an i1 is true."""
        self._count += 1
        name = f"w{self._count}"
        self.do(f"br i1 {condition}, label %{name}, label %{name}.end")
        self._label(name)
        yield
        self.do(f"br label %{name}.end")
        self._label(f"{name}.end")

    def _label(self, name: str) -> None:
        self._lines.append(f"{name}:")
        self._block = name


def number(element: str, text: str) -> str:
    """A constant vector: the same number in all lanes."""
    return "<" + ", ".join([f"{element} {text}"] * LANES) + ">"


def signature(name: str, arguments: Sequence[tuple[str, str]]) -> str:
    """``@name(type %argument, ...)``."""
    return f"@{name}({', '.join(f'{kind} %{argument}' for kind, argument in arguments)})"
