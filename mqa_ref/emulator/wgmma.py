"""wgmma: the asynchronous products of warp groups, their accumulators in registers, and waiting for them.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". Four consecutive warps issue a product together; it
starts when the last of them has issued it, and reads its operands from shared memory through the async proxy. From
the issue until a wgmma.wait_group has seen the product complete, its accumulator registers are not the thread's:
reading or writing one is a finding, and so is a product that the warps of the group do not issue alike. Standing: doc;
arithmetic: hw (an H200, see docs/numerics.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from mqa_ref import numerics
from mqa_ref.emulator.clocks import Clock, tick
from mqa_ref.emulator.descriptors import decode_matrix_sm90
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.warp import LANES, Lanes, Warp

if TYPE_CHECKING:
    from mqa_ref.emulator.cta import Cta

GROUP_WARPS, ROWS, K_BYTES = 4, 64, 32
"""Warps of a warp group, M of a product, and K of one with operands of eight bits."""
_ROWS_PER_WARP = ROWS // GROUP_WARPS
_SIGNS = np.uint8(0x80)


@dataclass(frozen=True)
class Form:
    """What the text of a wgmma.mma_async says. ``accumulator``: "fp32", or "fp16", two of them in each register.
    ``unfenced``: a path leads to it on which one of its registers is used after the last wgmma.fence.
    """

    instruction: Instruction
    n: int
    accumulator: str
    registers: tuple[int, ...]
    negate_a: bool = False
    negate_b: bool = False
    unfenced: bool = False


@dataclass
class Product:
    """One product of a warp group. ``clocks`` are those of the warps at their issue; ``start`` the accumulators
    [16, n] of each warp that begins from its registers; ``tick`` the time of the group's pipe at which it was executed.
    """

    form: Form
    a: int
    b: int
    accumulate: bool
    before: Product | None = None
    start: dict[int, NDArray[np.uint32]] = field(default_factory=dict)
    clocks: list[Clock] = field(default_factory=list)
    result: NDArray[np.uint32] | None = None
    tick: int = 0


@dataclass
class WarpGroup:
    """The products of one warp group: those that not all warps have issued, and for each warp those that it has not
    committed, and the groups that it has not waited for.
    """

    first: int
    issued: dict[int, int] = field(default_factory=dict)
    partial: dict[int, Product] = field(default_factory=dict)
    open: dict[int, list[Product]] = field(default_factory=dict)
    committed: dict[int, list[list[Product]]] = field(default_factory=dict)


def group_of(warp: Warp) -> WarpGroup:
    """The warp group of a warp."""
    first = warp.index - warp.index % GROUP_WARPS
    return warp.cta.groups.setdefault(first, WarpGroup(first))


def issue(warp: Warp, form: Form, a: int, b: int, accumulate: bool) -> None:
    """One warp issues a product; the last of the group starts it."""
    cta, group = warp.cta, group_of(warp)
    if group.first + GROUP_WARPS > len(cta.warps):
        cta.report("wgmma_misuse", "a product of fewer than four warps", warp, form.instruction)
        return
    if form.unfenced:
        message = "registers of this product may be in use: no wgmma.fence lies between their last use and it"
        cta.report("wgmma_not_fenced", message, warp, form.instruction)
    number = group.issued.get(warp.index, 0)
    group.issued[warp.index] = number + 1
    product = group.partial.get(number)
    if product is None:
        product = group.partial[number] = Product(form, a, b, accumulate)
    elif (product.form.instruction, product.a, product.b, product.accumulate) != (
        form.instruction,
        a,
        b,
        accumulate,
    ):
        message = f"the warps of warp group {group.first // GROUP_WARPS} issue different products"
        cta.report("wgmma_misuse", message, warp, form.instruction)
    _take_registers(warp, product, form, accumulate)
    group.open.setdefault(warp.index, []).append(product)
    product.clocks.append(warp.handed())
    warp.released()
    if len(product.clocks) == GROUP_WARPS:
        del group.partial[number]
        cta.start_async(group.first, lambda: _execute(cta, group, product))


def _take_registers(warp: Warp, product: Product, form: Form, accumulate: bool) -> None:
    """Read the accumulators, unless a product in flight of the same shape and registers gives them, and own them."""
    owners = {id(owner): owner for index in form.registers if (owner := warp.owned.get(index)) is not None}
    for owner in owners.values():
        if isinstance(owner, Product) and _shape(owner.form) != _shape(form):
            message = "accumulators of a product of another shape or order of registers are still in flight"
            warp.cta.report("wgmma_not_waited", message, warp, form.instruction)
    if accumulate:
        before = next(iter(owners.values()), None)
        if isinstance(before, Product) and before.form.registers == form.registers:
            product.before = before
        else:
            product.start[warp.index] = _rows(
                form, [_register(warp, i, form.instruction) for i in form.registers]
            )
    warp.owned.update(dict.fromkeys(form.registers, product))
    warp.watched.update(dict.fromkeys(form.registers))


def _register(warp: Warp, index: int, instruction: Instruction) -> Lanes:
    found = warp.regs[index]
    if index in warp.owned:
        return np.zeros(LANES, np.uint32) if found is None else found
    if found is None or index in warp.watched:
        return warp.cta.watched_register(warp, index, instruction)
    return found


def _places(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row (of the warp's 16) and column of value v of lane l, [n / 2, 32] (PTX ISA, "Register Fragments for
    wgmma.mma_async.m64nNk32", D).
    """
    value, lane = np.meshgrid(np.arange(n // 2), np.arange(LANES), indexing="ij")
    return lane // 4 + 8 * (value // 2 % 2), 8 * (value // 4) + 2 * (lane % 4) + value % 2


def _shape(form: Form) -> tuple[int, str, tuple[int, ...]]:
    return form.n, form.accumulator, form.registers


def _rows(form: Form, registers: list[Lanes]) -> NDArray[np.uint32]:
    """Accumulators of a warp as a matrix [16, n]; of a register with two the lower half is the first."""
    values = np.array(registers, np.uint32)
    if form.accumulator == "fp16":
        values = np.stack([values & np.uint32(0xFFFF), values >> np.uint32(16)], axis=1).reshape(-1, LANES)
    out = np.empty((_ROWS_PER_WARP, form.n), np.uint32)
    out[_places(form.n)] = values
    return out


def _execute(cta: Cta, group: WarpGroup, product: Product) -> None:
    """Read the operands, multiply, and put the accumulators into the registers of the four warps."""
    form = product.form
    warps = cta.warps[group.first : group.first + GROUP_WARPS]
    pipe = cta.pipe(warps[0])
    product.tick = int(pipe.clock[pipe.agent]) + 1
    tick(pipe.clock, pipe.agent, product.tick)
    seen: Clock = np.minimum.reduce(product.clocks)  # what every warp of the group knows to have happened
    tick(seen, pipe.agent, product.tick)
    operands = []
    for bits, rows, negate in ((product.a, ROWS, form.negate_a), (product.b, form.n, form.negate_b)):
        place = cta.operand_place(decode_matrix_sm90(bits), rows, K_BYTES)
        if place is None:
            message = f"an operand of {rows} rows lies out of the CTA's shared memory"
            cta.report("shared_out_of_bounds", message, warps[0], form.instruction)
            operands.append(np.zeros((rows, K_BYTES), np.uint8))
            continue
        offsets, granules = place
        cta.read_shared_shadow(granules, pipe.agent, seen, warps[0], form.instruction)
        cta.check_proxy(granules, seen, warps[0], form.instruction)
        codes = cta.shared.data[offsets]
        operands.append(codes ^ _SIGNS if negate else codes)
    before = None
    if product.accumulate:
        if product.before is not None and product.before.result is not None:
            before = product.before.result
        else:
            empty = np.zeros((_ROWS_PER_WARP, form.n), np.uint32)
            before = np.concatenate([product.start.get(warp.index, empty) for warp in warps])
    machine = machine_of(cta)
    acc: Literal["fp32", "fp16"] = "fp16" if form.accumulator == "fp16" else "fp32"
    if before is not None and acc == "fp16":
        before = before.astype(np.uint16)
    result = numerics.mma(operands[0], operands[1], machine=machine, acc=acc, c=before)
    product.result = result.astype(np.uint32)
    product.before = None
    row, column = _places(form.n)
    for number, warp in enumerate(warps):
        values = product.result[number * _ROWS_PER_WARP + row, column]
        if acc == "fp16":
            values = values[0::2] | values[1::2] << np.uint32(16)
        for index, lanes in zip(form.registers, values, strict=True):
            if warp.owned.get(index) is product:
                warp.regs[index] = np.ascontiguousarray(lanes)


def machine_of(cta: Cta) -> numerics.MachineModel | str:
    """wgmma exists on sm_90 only: the launch's machine counts unless it is the one of sm_100."""
    given = cta.machine
    name = given if isinstance(given, str) else given.name
    return "sm90" if name == "sm100" and given in ("sm100", numerics.MACHINES["sm100"]) else given


def commit(warp: Warp) -> None:
    """wgmma.commit_group: the products since the last one become a group of this warp."""
    group = group_of(warp)
    group.committed.setdefault(warp.index, []).append(group.open.pop(warp.index, []))


def complete(warp: Warp, pending: int) -> bool:
    """Are all but the ``pending`` newest groups of the warp complete?"""
    groups = group_of(warp).committed.get(warp.index, [])
    return all(product.result is not None for each in groups[: len(groups) - pending] for product in each)


def retire(warp: Warp, pending: int) -> None:
    """After wgmma.wait_group: give back the registers of the complete groups, and take what they did as seen."""
    group = group_of(warp)
    groups = group.committed.get(warp.index, [])
    keep = max(0, len(groups) - pending)
    for product in (product for each in groups[:keep] for product in each):
        agent = warp.cta.pipe(warp.cta.warps[group.first]).agent
        tick(warp.clock, agent, max(int(warp.clock[agent]), product.tick))
        for index in product.form.registers:
            if warp.owned.get(index) is product:
                del warp.owned[index]
                warp.watched.pop(index, None)
    del groups[:keep]


def check_exit(cta: Cta) -> None:
    """At the end of a CTA: products that only some warps of a group issued."""
    for group in cta.groups.values():
        for product in group.partial.values():
            message = f"only {len(product.clocks)} of four warps of a warp group issue this product"
            cta.report("wgmma_misuse", message, cta.warps[group.first], product.form.instruction)
