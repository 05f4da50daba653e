"""Scalar twins of the instructions that take patterns apart: shifts, fields, counts, permutations, masks. Each loop or
expression is that of the PTX ISA's own description, on Python's integers.
"""

from __future__ import annotations

from collections.abc import Callable

Twin = Callable[..., int]
ONES = 0xFFFFFFFF


def _signed(a: int, width: int) -> int:
    return a - (1 << width) if a >> (width - 1) else a


def field(a: int, position: int, length: int, width: int, *, signed: bool) -> int:
    """PTX ISA, "bfe"."""
    top = width - 1
    at, count = position & 255, length & 255
    sign = 0 if not signed or count == 0 else a >> min(at + count - 1, top) & 1
    return sum((a >> (at + i) & 1 if i < count and at + i <= top else sign) << i for i in range(width))


def insert(a: int, b: int, position: int, length: int, width: int) -> int:
    """PTX ISA, "bfi"."""
    at, count = position & 255, length & 255
    for i in range(count):
        if at + i < width:
            b = b & ~(1 << (at + i)) | (a >> i & 1) << (at + i)
    return b


def funnel(a: int, b: int, by: int, *, left: bool) -> int:
    """PTX ISA, "shf", ``by`` from 0 to 32."""
    return (b << by | a >> (32 - by)) & ONES if left else (b << (32 - by) | a >> by) & ONES


def permute(a: int, b: int, control: int) -> int:
    """PTX ISA, "prmt", the generic mode."""
    octets = (b << 32 | a).to_bytes(8, "little")
    out = []
    for place in range(4):
        nibble = control >> (4 * place) & 15
        octet = octets[nibble & 7]
        out.append((255 if octet & 128 else 0) if nibble & 8 else octet)
    return int.from_bytes(bytes(out), "little")


def _mode(name: str) -> Twin:
    """PTX ISA, "prmt", the other modes in words: forward and backward extract, replicate, edge clamps."""

    def chosen(place: int, at: int) -> int:
        return {
            "f4e": (at + place) & 7,
            "b4e": (at - place) & 7,
            "rc8": at,
            "ecl": max(place, at),
            "ecr": min(place, at),
            "rc16": (at & 1) * 2 + (place & 1),
        }[name]

    return lambda a, b, c: permute(a, b, sum(chosen(place, c & 3) << (4 * place) for place in range(4)))


def logic(a: int, b: int, c: int, table: int) -> int:
    """PTX ISA, "lop3": bit by bit a look-up."""
    return sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32))


def find(a: int, width: int, *, signed: bool, distance: bool) -> int:
    """PTX ISA, "bfind"."""
    if signed and a >> (width - 1):
        a = ~a & ((1 << width) - 1)
    if not a:
        return ONES
    return width - a.bit_length() if distance else a.bit_length() - 1


def mask(a: int, b: int, *, clamp: bool) -> int:
    """PTX ISA, "bmsk"."""
    if clamp and a >= 32:
        return 0
    start, length = a & 31, b & 31
    count = 32 if clamp and b >= 32 else length
    return sum(1 << i for i in range(start, min(32, start + count)))


def extend(a: int, b: int, *, signed: bool, clamp: bool) -> int:
    """PTX ISA, "szext"."""
    if clamp and b >= 32:
        return a
    length = b & 31
    low = a & ((1 << length) - 1)
    return (low | ONES << length) & ONES if signed and length and low >> (length - 1) else low


def nth_set(bits: int, base: int, offset: int) -> int:
    """PTX ISA, "fns"."""
    wanted = _signed(offset, 32)
    if wanted == 0:
        return base if bits >> base & 1 else ONES
    step = 1 if wanted > 0 else -1
    place, count = base, 0
    while 0 <= place < 32:
        count += bits >> place & 1
        if count == abs(wanted):
            return place
        place += step
    return ONES


def _shifts(width: int) -> dict[str, Twin]:
    ones = (1 << width) - 1
    found: dict[str, Twin] = {
        f"shl.b{width}": lambda a, b: a << min(b, width) & ones,
        f"shr.s{width}": lambda a, b: _signed(a, width) >> min(b, width) & ones,
    }
    return found | dict.fromkeys((f"shr.u{width}", f"shr.b{width}"), lambda a, b: a >> min(b, width))


def _counts(width: int) -> dict[str, Twin]:
    found: dict[str, Twin] = {
        f"popc.b{width}": int.bit_count,
        f"clz.b{width}": lambda a: width - a.bit_length(),
        f"brev.b{width}": lambda a: int(f"{a:0{width}b}"[::-1], 2),
        f"bfi.b{width}": lambda a, b, c, d: insert(a, b, c, d, width),
    }
    for sign in "su":
        signed = sign == "s"
        found[f"bfe.{sign}{width}"] = lambda a, b, c, s=signed: field(a, b, c, width, signed=s)
        found[f"bfind.{sign}{width}"] = lambda a, s=signed: find(a, width, signed=s, distance=False)
        found[f"bfind.shiftamt.{sign}{width}"] = lambda a, s=signed: find(a, width, signed=s, distance=True)
    return found


def _words() -> dict[str, Twin]:
    found: dict[str, Twin] = {
        "prmt.b32": permute,
        "fns.b32": nth_set,
        "lop3.b32": lambda a, b, c: logic(a, b, c, 0xB1),
    }
    found |= {f"prmt.b32.{mode}": _mode(mode) for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")}
    for side in "lr":
        left = side == "l"
        found[f"shf.{side}.wrap.b32"] = lambda a, b, c, s=left: funnel(a, b, c & 31, left=s)
        found[f"shf.{side}.clamp.b32"] = lambda a, b, c, s=left: funnel(a, b, min(c, 32), left=s)
    for mode in ("clamp", "wrap"):
        clamp = mode == "clamp"
        found[f"bmsk.{mode}.b32"] = lambda a, b, c=clamp: mask(a, b, clamp=c)
        for kind in ("s32", "u32"):
            signed = kind == "s32"
            found[f"szext.{mode}.{kind}"] = lambda a, b, s=signed, c=clamp: extend(a, b, signed=s, clamp=c)
    return found


BITS: dict[str, Twin] = _words()
for _width in (16, 32, 64):
    BITS |= _shifts(_width)
for _width in (32, 64):
    BITS |= _counts(_width)
