"""The bodies of the recorded programs that load and store every type in every space: one for each few types.

In the slot of a thread each load has eight bytes, what it read folded into them, and each store the sixteen that it
may write. Loads read the input, or what was put into shared memory or the parameters.
"""

from __future__ import annotations

THREADS = 32
PARAMETER = bytes((37 * place + 11) & 255 for place in range(128))
"""What the parameter ``map`` holds in these programs."""
_KINDS = [f"{letter}{bits}" for bits in (8, 16, 32, 64) for letter in ("bus" if bits < 32 else "busf")]
TYPES: tuple[tuple[int, str], ...] = tuple(
    (count, kind) for count in (1, 2, 4) for kind in _KINDS if count * int(kind[1:]) <= 128
)
"""(elements, type) of every access that is not wider than 128 bits."""
LOADS = ("ld.global", "ld.global.nc", "ld.shared", "ld.shared::cta", "ld", "ld.param")
STORES = ("st.global", "st.shared", "st.shared::cta", "st")
SLOT = 8 * len(LOADS) + 16 * len(STORES)
"""Bytes of output of one type."""


def _register(kind: str, number: int) -> str:
    """Of the type's width; bytes in 16 bits."""
    letter = {"8": "h", "16": "h", "32": "r", "64": "d"}[kind[1:]]
    return f"%{letter}{10 + number}"


def _spelled(stem: str, count: int, kind: str) -> str:
    return f"{stem}{f'.v{count}' if count > 1 else ''}.{kind}"


def _operand(count: int, kind: str) -> str:
    names = [_register(kind, number) for number in range(count)]
    return names[0] if count == 1 else "{" + ", ".join(names) + "}"


def _folded(count: int, kind: str, at: int) -> list[str]:
    """Store what the registers hold, sign or zero extension of bytes included."""
    lines = ["mov.b64 %d9, 0;"]
    bits = {"8": 16, "16": 16, "32": 32, "64": 64}[kind[1:]]
    for number in range(count):
        register = _register(kind, number)
        if bits < 64:
            lines.append(f"cvt.u64.u{bits} %d8, {register};")
            register = "%d8"
        lines += ["mul.lo.s64 %d9, %d9, 31;", f"add.s64 %d9, %d9, {register};"]
    return [*lines, f"st.global.b64 [%d62+{at}], %d9;"]


def accesses(types: tuple[tuple[int, str], ...]) -> str:
    """Every load and store of these types. The input has 64 bytes for each thread."""
    lines = [
        "mul.wide.u32 %d1, %r60, 64;\nadd.s64 %d1, %d60, %d1;\nshl.b32 %r3, %r60, 6;\nadd.s32 %r3, %r3, %r61;",
        "cvt.u64.u32 %d2, %r3;\ncvta.shared.u64 %d2, %d2;",
        *(f"ld.global.b64 %d5, [%d1+{at}];\nst.shared.b64 [%r3+{at}], %d5;" for at in range(0, 32, 8)),
    ]
    at = 0
    for count, kind in types:
        operand = _operand(count, kind)
        for stem in LOADS:
            address = {"ld.shared": "%r3", "ld.shared::cta": "%r3", "ld.param": "map"}.get(stem, "%d1")
            lines += [f"{_spelled(stem, count, kind)} {operand}, [{address}+16];", *_folded(count, kind, at)]
            at += 8
        for stem in STORES:
            name = _spelled(stem, count, kind)
            if stem == "st.global":
                lines.append(f"{name} [%d62+{at}], {operand};")
            else:
                lines.append("mov.b64 %d5, 0;\nst.shared.v2.b64 [%r3+32], {%d5, %d5};")
                lines.append(f"{name} [{'%d2' if stem == 'st' else '%r3'}+32], {operand};")
                lines.append("ld.shared.v2.b64 {%d5, %d6}, [%r3+32];")
                lines.append(f"st.global.v2.b64 [%d62+{at}], {{%d5, %d6}};")
            at += 16
    return "\n".join(lines)
