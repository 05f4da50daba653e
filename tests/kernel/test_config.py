"""The checked configuration: what is refused and how, and the sizes that follow, worked out on paper."""

from __future__ import annotations

from typing import Any

import pytest

from mqa_ref.errors import InputError, Unsupported
from mqa_ref.kernel.config import KernelConfig


class Float32:
    """Stands for the compiler's dtype of the same name: the configuration knows dtypes by name only."""


class Float16:
    pass


class BFloat16:
    pass


DEFAULTS: dict[str, Any] = {
    "block_kv": 128,
    "phys_block_kv": 64,
    "num_heads": 64,
    "head_dim": 128,
    "next_n": 1,
    "num_sms": 148,
    "remove_kv_wait_in_epilogue": False,
    "early_tmem_copy": False,
    "smem_subpartition_opt": False,
    "max_kv_pipeline": False,
    "max_umma_pipeline": False,
    "max_w_in_reg": 0,
    "num_epi_subtiles": 1,
    "epi_dtype": Float32,
    "acc_dtype": Float32,
    "output_dtype": Float32,
    "enable_pdl": True,
}


def config(**changes: Any) -> KernelConfig:
    return KernelConfig.checked(**(DEFAULTS | changes))


@pytest.mark.parametrize(
    ("changes", "faulty"),
    [
        ({"block_kv": 64}, "block_kv"),
        ({"phys_block_kv": 16}, "phys_block_kv"),
        ({"phys_block_kv": 64.0}, "phys_block_kv"),
        ({"num_heads": 30}, "num_heads"),
        ({"num_heads": True}, "num_heads"),
        ({"num_heads": 4}, "next_n * num_heads"),
        ({"num_heads": 132, "next_n": 2}, "next_n * num_heads"),
        ({"num_heads": 12}, "next_n * num_heads"),
        ({"head_dim": 96}, "head_dim"),
        ({"next_n": 0}, "next_n"),
        ({"num_sms": 0}, "num_sms"),
        ({"num_epi_subtiles": 3}, "num_epi_subtiles"),
        ({"num_epi_subtiles": 32}, "num_epi_subtiles"),
        ({"num_epi_subtiles": 0}, "num_epi_subtiles"),
        ({"max_w_in_reg": 6}, "max_w_in_reg"),
        ({"max_w_in_reg": -4}, "max_w_in_reg"),
        ({"enable_pdl": 1}, "enable_pdl"),
        ({"epi_dtype": BFloat16}, "epi_dtype"),
        ({"acc_dtype": "Float32"}, "acc_dtype"),
        ({"output_dtype": None}, "output_dtype"),
    ],
)
def test_one_fault_is_named(changes: dict[str, Any], faulty: str) -> None:
    with pytest.raises(InputError) as caught:
        config(**changes)
    assert [fault.argument for fault in caught.value.faults] == [faulty]


def test_all_faults_come_at_once() -> None:
    wrong: dict[str, Any] = {
        "block_kv": 0,
        "phys_block_kv": 0,
        "num_heads": 63,
        "head_dim": 0,
        "next_n": -1,
        "num_sms": 1.5,
        "remove_kv_wait_in_epilogue": None,
        "early_tmem_copy": None,
        "smem_subpartition_opt": None,
        "max_kv_pipeline": None,
        "max_umma_pipeline": None,
        "max_w_in_reg": 1,
        "num_epi_subtiles": -1,
        "epi_dtype": int,
        "acc_dtype": BFloat16,
        "output_dtype": float,
        "enable_pdl": None,
    }
    assert wrong.keys() == DEFAULTS.keys()
    with pytest.raises(InputError) as caught:
        config(**wrong)
    assert {fault.argument for fault in caught.value.faults} == wrong.keys()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_heads": 24}, "steps of 16"),
        ({"num_heads": 8}, "steps of 16"),
        ({"head_dim": 64}, "head_dim = 64"),
        ({"acc_dtype": Float16}, "fp16-fp32-fp32"),
    ],
)
def test_well_formed_but_unsupported(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        config(**changes)


def test_bytes_a_stage_waits_for() -> None:
    one = config()
    assert one.kv_stage_tx_bytes == 128 * 128 + 128 * 4
    assert one.q_stage_tx_bytes == 64 * 128 + 64 * 4
    assert config(epi_dtype=Float16, next_n=2).q_stage_tx_bytes == 128 * 128 + 128 * 2


def test_weight_stages_start_at_multiples_of_128_bytes() -> None:
    assert config(num_heads=16).weight_stage_stride * 4 == 128
    assert config(num_heads=48).weight_stage_stride * 4 == 256
    assert config(num_heads=32, epi_dtype=Float16).weight_stage_stride * 2 == 128


def test_stages() -> None:
    assert (config().kv_stages, config().acc_stages) == (3, 1)
    assert config(max_umma_pipeline=True).acc_stages == 2
    assert (
        config(max_umma_pipeline=True, next_n=4).acc_stages == 1
    )  # 2 groups of 256 columns are all there are


@pytest.mark.parametrize(("heads", "next_n"), [(64, 1), (64, 2), (64, 4), (32, 8), (16, 1), (48, 5)])
@pytest.mark.parametrize("padded", [False, True])
def test_the_longest_pipeline_fits_shared_memory_and_no_longer_one_would(
    heads: int, next_n: int, padded: bool
) -> None:
    most = config(num_heads=heads, next_n=next_n, max_kv_pipeline=True, smem_subpartition_opt=padded)
    n = heads * next_n
    tile = 128 * 132
    rest = 3 * (n * 128 + most.weight_stage_stride * 4) + most.smem_pad_bytes + 2048
    assert 2 * most.kv_stages * tile + rest <= 232_448
    assert 2 * (most.kv_stages + 1) * tile + rest > 232_448
    assert most.kv_stages >= 3


def test_padding_moves_weights_into_the_upper_half_of_shared_memory() -> None:
    one = config(smem_subpartition_opt=True)
    assert one.smem_pad_bytes == 131_072 - (6 * 16_384 + 3 * 8_192)
    assert config(smem_subpartition_opt=True, next_n=4).smem_pad_bytes == 0
    assert config().smem_pad_bytes == 0


def test_weights_in_registers_never_exceed_the_heads_nor_the_wish() -> None:
    assert config().weights_in_registers == 64
    assert config(next_n=2).weights_in_registers == 52
    assert config(next_n=2, num_heads=32).weights_in_registers == 32
    assert config(max_w_in_reg=8).weights_in_registers == 8
    assert config(next_n=2, epi_dtype=Float16).weights_in_registers == 64
