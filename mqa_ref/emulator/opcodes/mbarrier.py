"""mbarrier instructions on objects in the CTA's own shared memory.

Source: PTX ISA, "mbarrier.init", ".inval", ".arrive", ".expect_tx", ".test_wait / .try_wait". Standing: doc.
try_wait may give up after a time limit; here it waits as long as anything else can still happen, but for every other
one in the order "random", which gives up at once. A wait that nothing can end is reported as a hang.
"""

from __future__ import annotations

import numpy as np

from mqa_ref.emulator.barriers import MAX_COUNT, MBarrier
from mqa_ref.emulator.decode import Builder, Decoder, Operation
from mqa_ref.emulator.opcodes.arith import value
from mqa_ref.emulator.opcodes.memory import address_operand
from mqa_ref.emulator.opcodes.table import Row, add
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.warp import BLOCKED, LANES, Wait, Warp
from mqa_ref.errors import EmulatorError


def addresses_of(warp: Warp, base: int, offset: int, instruction: Instruction) -> dict[int, int]:
    """Address -> how many active lanes name it."""
    active = value(warp, base, instruction)[warp.mask].astype(np.int64) + offset
    found, counts = np.unique(active, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _init(decoder: Decoder, instruction: Instruction) -> Operation:
    base, offset = address_operand(decoder, instruction, instruction.operands[0], 32)
    count_slot = decoder.src(instruction, instruction.operands[1], 32)

    def run(warp: Warp) -> None:
        counts = value(warp, count_slot, instruction)[warp.mask]
        count = int(counts[0])
        for address in addresses_of(warp, base, offset, instruction):
            if not 1 <= count <= MAX_COUNT:
                warp.cta.report("mbarrier_misuse", f"mbarrier.init with count {count}", warp, instruction)
                count = 1
            warp.cta.init_barrier(warp, address, count, instruction)

    return run


def _inval(decoder: Decoder, instruction: Instruction) -> Operation:
    base, offset = address_operand(decoder, instruction, instruction.operands[0], 32)

    def run(warp: Warp) -> None:
        for address in addresses_of(warp, base, offset, instruction):
            if warp.cta.barrier(warp, address, instruction) is not None:
                warp.cta.drop_barrier(address)

    return run


def arrive(warp: Warp, barrier: MBarrier, count: int, instruction: Instruction) -> None:
    """Arrive with the warp's clock; too many arrivals are a finding."""
    if not barrier.arrive(warp.handed(), count):
        name = warp.cta.barrier_name(barrier)
        message = f"{count} arrivals at {name}, which expects {barrier.pending} more in phase {barrier.phase}"
        warp.cta.report("mbarrier_over_arrival", message, warp, instruction)


def _arrive(*, expect_tx: bool) -> Builder:
    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        operands = instruction.operands
        base, offset = address_operand(decoder, instruction, operands[1], 32)
        state = decoder.dst(instruction, operands[0], 64)
        extra = decoder.src(instruction, operands[2], 32) if len(operands) > 2 else None
        if expect_tx and extra is None:
            raise decoder.fail(instruction, "expected a tx-count")

        def run(warp: Warp) -> None:
            argument = int(value(warp, extra, instruction)[warp.mask][0]) if extra is not None else 1
            for address, lanes in addresses_of(warp, base, offset, instruction).items():
                barrier = warp.cta.barrier(warp, address, instruction)
                if barrier is None:
                    continue
                if expect_tx and not barrier.expect(argument * lanes):
                    message = f"tx-count of {warp.cta.barrier_name(barrier)} is {barrier.tx}"
                    warp.cta.report("mbarrier_tx_range", message, warp, instruction)
                arrive(warp, barrier, lanes if expect_tx else lanes * argument, instruction)
            if state >= 0:
                warp.put(state, np.zeros(LANES, np.uint64))
            warp.released()

        return run

    return build


def _expect(decoder: Decoder, instruction: Instruction) -> Operation:
    base, offset = address_operand(decoder, instruction, instruction.operands[0], 32)
    size = decoder.src(instruction, instruction.operands[1], 32)

    def run(warp: Warp) -> None:
        amount = int(value(warp, size, instruction)[warp.mask][0])
        for address, lanes in addresses_of(warp, base, offset, instruction).items():
            barrier = warp.cta.barrier(warp, address, instruction)
            if barrier is not None and not barrier.expect(amount * lanes):
                message = f"tx-count of {warp.cta.barrier_name(barrier)} is {barrier.tx}"
                warp.cta.report("mbarrier_tx_range", message, warp, instruction)

    return run


def _wait(*, blocking: bool) -> Builder:
    def build(decoder: Decoder, instruction: Instruction) -> Operation:
        predicate = decoder.dst(instruction, instruction.operands[0], 1)
        base, offset = address_operand(decoder, instruction, instruction.operands[1], 32)
        parity_slot = decoder.src(instruction, instruction.operands[2], 32)

        def run(warp: Warp) -> int | None:
            found = addresses_of(warp, base, offset, instruction)
            parities = np.unique(value(warp, parity_slot, instruction)[warp.mask] & 1)
            if len(found) != 1 or len(parities) != 1:
                raise EmulatorError(
                    f"PTX line {instruction.line}: lanes of one warp wait for different phases or barriers"
                )
            (address,) = found
            parity = int(parities[0])
            cta = warp.cta
            barrier = cta.barrier(warp, address, instruction)
            if barrier is None or barrier.passed(parity):
                if barrier is not None:
                    warp.acquire(barrier.released)
                warp.put(predicate, np.ones(LANES, np.bool_))
                return None
            if not blocking or warp.gives_up():
                warp.put(predicate, np.zeros(LANES, np.bool_))
                return None
            wanted = barrier
            warp.waiting = Wait(
                lambda: wanted.passed(parity), None, cta.describe(wanted, parity), instruction
            )
            return BLOCKED

        return run

    return build


def _row(
    stem: str, suffix: str, result: str, sources: tuple[str, ...], build: Builder, semantics: str = ""
) -> None:
    """Rows for each way to write the shared space and the default order."""
    for order in ("", *((f".{semantics}",) if semantics else ())):
        for space in ("shared", "shared::cta"):
            optional = f"[.{semantics}]" if semantics else ""
            family = f"{stem}{optional}.shared[::cta]{suffix}"
            name = f"{stem}{order}.{space}{suffix}"
            add(Row(name, result, sources, build, _SECTION, "doc", family), build)


_SECTION = "Parallel Synchronization and Communication Instructions: mbarrier"
_row("mbarrier.init", ".b64", "", ("address", "u32"), _init)
_row("mbarrier.inval", ".b64", "", ("address",), _inval)
_row("mbarrier.arrive", ".b64", "b64", ("address", "[u32]"), _arrive(expect_tx=False), "release.cta")
_row("mbarrier.arrive.expect_tx", ".b64", "b64", ("address", "u32"), _arrive(expect_tx=True), "release.cta")
_row("mbarrier.expect_tx.relaxed.cta", ".b64", "", ("address", "u32"), _expect)
_PHASE = ("address", "u32", "[u32]")
_row("mbarrier.try_wait.parity", ".b64", "pred", _PHASE, _wait(blocking=True), "acquire.cta")
_row("mbarrier.test_wait.parity", ".b64", "pred", _PHASE, _wait(blocking=False), "acquire.cta")
