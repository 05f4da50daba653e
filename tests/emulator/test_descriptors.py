"""Descriptors of tcgen05.mma, bit by bit as the PTX ISA lays them out."""

from __future__ import annotations

import numpy as np
import pytest

from mqa_ref.emulator.descriptors import (
    MatrixDescriptor,
    MmaShape,
    decode_instruction,
    decode_matrix,
    decode_matrix_sm90,
    operand_addresses,
)
from mqa_ref.errors import EmulatorError


def test_matrix_descriptor() -> None:
    """0x4000404000010000 is what the compiler builds for 1024-byte groups of eight 128-byte rows (emulator.md)."""
    assert decode_matrix(0x4000404000010000 | 0xC400 >> 4) == MatrixDescriptor(0xC400, 1024, 3)
    assert decode_matrix(0x4000408000010000 | 0x3FFF) == MatrixDescriptor(0x3FFF0, 2048, 3)


@pytest.mark.parametrize(
    ("bits", "what"),
    [
        (0x4000004000010000, "version 0"),
        (0x4002404000010000, "base offset"),
        (0x4010404000010000, "leading offset"),
        (0x0000404000010000, "swizzle mode 0"),
        (0x8000404000010000, "swizzle mode 4"),
    ],
)
def test_matrix_descriptors_that_are_refused(bits: int, what: str) -> None:
    with pytest.raises(EmulatorError, match=what):
        decode_matrix(bits)


def test_operand_rows_on_paper() -> None:
    """Row 9 is row 1 of the second group; K step 1 starts 32 bytes in, which is chunk 2, found at chunk 2 xor 1 = 3."""
    descriptor = MatrixDescriptor(0x1000 + 32, 1024, 3)
    addresses = operand_addresses(descriptor, 16, 32)
    assert addresses.shape == (16, 32)
    assert addresses[0].tolist() == list(range(0x1020, 0x1040))
    row = 0x1000 + 1024 + 128
    assert addresses[9].tolist() == [*range(row + 48, row + 64), *range(row + 32, row + 48)]
    assert len(np.unique(addresses)) == addresses.size


@pytest.mark.parametrize(
    ("bits", "shape"),
    [
        (0x08100010, MmaShape(128, 64, "fp32")),
        (0x08100000, MmaShape(128, 64, "fp16")),
        (8 << 24 | 4 << 17 | 1 << 4, MmaShape(128, 32, "fp32")),
        (8 << 24 | 32 << 17 | 1 << 4, MmaShape(128, 256, "fp32")),
    ],
)
def test_instruction_descriptor(bits: int, shape: MmaShape) -> None:
    assert decode_instruction(bits) == shape


@pytest.mark.parametrize(
    "extra", [1 << 2, 1 << 3, 1 << 7, 1 << 10, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 23, 1 << 30, 2 << 4]
)
def test_instruction_descriptors_that_are_refused(extra: int) -> None:
    """Sparsity, saturation, other formats, negation, transposition, shifts: none is silently ignored."""
    with pytest.raises(EmulatorError, match=r"not modelled|is modelled"):
        decode_instruction(0x08100010 | extra)


def test_m_64_is_refused() -> None:
    with pytest.raises(EmulatorError, match="M 64"):
        decode_instruction(4 << 24 | 8 << 17 | 1 << 4)


@pytest.mark.parametrize("n", [0, 8, 24, 40, 264])
def test_n_that_is_no_multiple_of_16_is_refused(n: int) -> None:
    with pytest.raises(EmulatorError, match=f"N {n}"):
        decode_instruction(8 << 24 | n >> 3 << 17 | 1 << 4)


@pytest.mark.parametrize("offset", range(8))
def test_a_base_offset_lets_the_pattern_begin_at_the_matrix(offset: int) -> None:
    """An H200 gave the products of such operands for each offset: 16-byte piece c of row r lies at c XOR r mod 8,
    counted from the start of the matrix, which is 128 * offset bytes past a multiple of 1024.
    """
    start = 4096 + 128 * offset
    bits = start >> 4 | 1024 >> 4 << 32 | offset << 49 | 1 << 62
    found = operand_addresses(decode_matrix_sm90(bits), 24, 128)
    for row, column in ((0, 0), (1, 0), (3, 17), (7, 127), (9, 40), (23, 95)):
        line = start + row // 8 * 1024 + row % 8 * 128
        # The piece moves within its line of 128 bytes, which the start of the matrix need not divide.
        assert found[row, column] == line + (column // 16 ^ row % 8) * 16 + column % 16


@pytest.mark.parametrize(
    ("bits", "what"), [(1 << 49, "base offset"), (1 << 46, "no meaning"), (1 << 15, "no meaning")]
)
def test_descriptors_of_wgmma_that_are_refused(bits: int, what: str) -> None:
    with pytest.raises(EmulatorError, match=what):
        decode_matrix_sm90(bits)
