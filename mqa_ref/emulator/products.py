"""Issuing and executing tensor-core products and their completion signals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqa_ref.emulator.descriptors import decode_instruction, decode_matrix
from mqa_ref.emulator.ptx import Instruction
from mqa_ref.emulator.tensor_order import TensorOrder, before
from mqa_ref.emulator.tmem import COLUMNS, PARTS, TensorMemory
from mqa_ref.emulator.warp import Warp

K_BYTES = 32
"""K of one kind::f8f6f4 instruction (PTX ISA, "tcgen05: Matrix and data movement shape")."""


@dataclass(frozen=True)
class Product:
    """Operands of one tcgen05.mma as its thread gave them."""

    warp: Warp
    instruction: Instruction
    d: int
    a: int
    b: int
    shape: int
    accumulate: bool


def issue_product(product: Product) -> None:
    """Queue a product in the tensor pipe of its warp."""
    warp = product.warp
    issued = warp.handed()
    order = warp.order.of_product(warp.cta.pipe(warp).agent)
    warp.released()

    def execute() -> None:
        warp.cta.pipe(warp).begin(issued)
        _execute(product, order)

    warp.cta.start_async(warp.index, execute)


def issue_commit(warp: Warp, instruction: Instruction, address: int) -> None:
    """Queue the arrival at an mbarrier behind every earlier product of the warp."""
    cta = warp.cta
    barrier = cta.barrier(warp, address, instruction, asynchronous=True)
    if barrier is None:
        return
    issued = warp.handed()
    warp.released()

    def execute() -> None:
        pipe = cta.pipe(warp)
        pipe.begin(issued)
        before(pipe.clock, pipe.agent)
        if not barrier.arrive(pipe.clock):
            message = f"a commit arrives at {cta.barrier_name(barrier)}, which expects no more in phase {barrier.phase}"
            cta.report("mbarrier_over_arrival", message, warp, instruction)

    cta.start_async(warp.index, execute)


def _execute(product: Product, order: TensorOrder) -> None:
    warp, instruction = product.warp, product.instruction
    cta = warp.cta
    pipe = cta.pipe(warp)
    if cta.quick_product(product, pipe, order):
        return
    shape = decode_instruction(product.shape)
    places = []
    for bits, rows in ((product.a, shape.m), (product.b, shape.n)):
        place = cta.operand_place(decode_matrix(bits), rows, K_BYTES)
        if place is None:
            message = f"an operand of {rows} rows lies out of the CTA's shared memory"
            cta.report("shared_out_of_bounds", message, warp, instruction)
            return
        offsets, granules = place
        cta.read_shared_shadow(granules, pipe.agent, pipe.clock, warp, instruction)
        places.append(offsets)
    lane, start = product.d >> 16, product.d & 0xFFFF
    if lane or start + shape.n > COLUMNS:
        message = (
            f"the product goes to lane {lane}, columns {start} to {start + shape.n - 1}, which do not exist"
        )
        cta.report("tmem_misuse", message, warp, instruction)
        return
    if cta.check_tmem_owned(start, shape.n, warp, instruction):
        for part in range(PARTS):
            where = TensorMemory.granules(part, start, shape.n)
            if product.accumulate:
                seen = cta.tmem.shadow.read(where, pipe.agent, pipe.clock)
                cta.check_tmem(seen, pipe.clock, warp, instruction)
            cta.write_tmem(where, (pipe.agent, pipe.clock, order), warp, instruction)
    operands = cta.multiply(places, start, shape, accumulate=product.accumulate)
    if cta.grid.observer is not None:
        cta.grid.observer.product(product, start, operands, cta.tmem.data[:, start : start + shape.n])


def granules_of(offsets: NDArray[np.int64], granule: int) -> NDArray[np.int64]:
    """Granules that a set of byte offsets touches."""
    return np.unique(offsets // granule)
