"""The static configuration of one compiled kernel: checked once, all faults at once, and what follows from it.

Nothing here needs the compiler: dtypes are known by their names only, so that a bad argument is refused in no time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mqa_ref.errors import Fault, InputError, Unsupported
from mqa_ref.flow import Flow

TILE_TOKENS = 128
GROUPS = 2
SMEM_BYTES = (
    227 * 1024
)  # what one CTA may have on SM100 (CUDA C++ Programming Guide, compute capability 10.0)
SMEM_RESERVED = 2048  # barriers and the alignment of the first buffer
SMEM_HALF = 128 * 1024
TMEM_COLUMNS = 512
WEIGHT_REGISTERS = 104  # what a math thread has left for weights without spilling
PAGES = (32, 64, 128)
HEAD_DIMS = (32, 64, 128)
HEAD_DIM = 128  # the only one whose shared memory layout (128-byte swizzle) has been checked against anything

_FORMATS = {"Float32": "fp32", "Float16": "fp16", "BFloat16": "bf16"}
_SWITCHES = (
    "remove_kv_wait_in_epilogue",
    "early_tmem_copy",
    "smem_subpartition_opt",
    "max_kv_pipeline",
    "max_umma_pipeline",
    "enable_pdl",
)


@dataclass(frozen=True)
class KernelConfig:
    """Constructor arguments of ``PagedMqaLogitsSm100`` and the sizes that follow. Lengths are in tokens or bytes."""

    page: int
    heads: int
    head_dim: int
    next_n: int
    num_sms: int
    remove_kv_wait_in_epilogue: bool
    early_tmem_copy: bool
    smem_subpartition_opt: bool
    max_kv_pipeline: bool
    max_umma_pipeline: bool
    max_w_in_reg: int
    num_epi_subtiles: int
    enable_pdl: bool
    flow: Flow
    acc_type: Any = field(repr=False)
    weight_type: Any = field(repr=False)
    out_type: Any = field(repr=False)

    tile_tokens = TILE_TOKENS
    q_stages = 3

    @classmethod
    def checked(cls, **arguments: Any) -> KernelConfig:
        """The configuration of a constructor call.

        Raises InputError with every fault, or Unsupported for a well-formed shape that the tensor core of SM100 does
        not take or this version does not serve.
        """
        faults = _faults(arguments)
        if faults:
            raise InputError(faults)
        formats = [_FORMATS[arguments[name].__name__] for name in ("acc_dtype", "epi_dtype", "output_dtype")]
        flow = Flow.parse("-".join(formats))
        rows, head_dim = arguments["next_n"] * arguments["num_heads"], arguments["head_dim"]
        if rows % 16:
            raise Unsupported(
                f"next_n * num_heads = {rows}: tcgen05.mma with M = 128 takes N in steps of 16 "
                "(PTX ISA, tcgen05.mma matrix shapes)"
            )
        if head_dim != HEAD_DIM:
            raise Unsupported(f"head_dim = {head_dim}: this version computes with {HEAD_DIM} only")
        return cls(
            page=arguments["phys_block_kv"],
            heads=arguments["num_heads"],
            flow=flow,
            acc_type=arguments["acc_dtype"],
            weight_type=arguments["epi_dtype"],
            out_type=arguments["output_dtype"],
            **{
                name: arguments[name]
                for name in ("head_dim", "next_n", "num_sms", "max_w_in_reg", "num_epi_subtiles", *_SWITCHES)
            },
        )

    @property
    def n(self) -> int:
        """Query rows of one sequence: heads of all its tokens, the N of the MMA."""
        return self.heads * self.next_n

    @property
    def pages_per_tile(self) -> int:
        """Pages that hold the 128 tokens of a tile."""
        return TILE_TOKENS // self.page

    @property
    def sub_heads(self) -> int:
        """Heads that one TMEM load brings."""
        return self.heads // self.num_epi_subtiles

    @property
    def acc_stages(self) -> int:
        """Accumulators of one group."""
        return min(2, TMEM_COLUMNS // (GROUPS * self.n)) if self.max_umma_pipeline else 1

    @property
    def weight_stage_stride(self) -> int:
        """Weights from one stage to the next: a stage starts at a multiple of 128 bytes, as TMA wants it."""
        per_line = 128 // self._weight_bytes
        return -(-self.n // per_line) * per_line

    @property
    def q_stage_tx_bytes(self) -> int:
        """Bytes that TMA brings for one row: its queries and weights."""
        return self.n * (self.head_dim + self._weight_bytes)

    @property
    def kv_stage_tx_bytes(self) -> int:
        """Bytes that TMA brings for one tile: its codes and scales."""
        return TILE_TOKENS * (self.head_dim + 4)

    @property
    def kv_stages(self) -> int:
        """Tiles in flight of one group: three, or as many as shared memory holds."""
        if not self.max_kv_pipeline:
            return 3
        queries = self.q_stages * (self.n * self.head_dim + self.weight_stage_stride * self._weight_bytes)
        return (SMEM_BYTES - SMEM_RESERVED - queries) // (GROUPS * self.kv_stage_tx_bytes)

    @property
    def smem_pad_bytes(self) -> int:
        """Bytes left free before weights and scales so that they lie in the second half of shared memory."""
        operands = self.head_dim * (GROUPS * self.kv_stages * TILE_TOKENS + self.q_stages * self.n)
        return max(0, SMEM_HALF - operands) if self.smem_subpartition_opt else 0

    @property
    def weights_in_registers(self) -> int:
        """Weights of one query token that stay in registers, the rest being read from shared memory in every tile."""
        room = WEIGHT_REGISTERS * 4 // self._weight_bytes // self.next_n
        return min(self.max_w_in_reg or room // 4 * 4, self.heads)

    @property
    def _weight_bytes(self) -> int:
        return 2 if self.flow.epi == "fp16" else 4


def _faults(given: dict[str, Any]) -> list[Fault]:
    faults = []

    def want(good: bool, name: str, expected: str) -> bool:
        if not good:
            faults.append(Fault(name, repr(given[name]), expected))
        return good

    def whole(name: str, least: int) -> bool:
        value = given[name]
        return want(type(value) is int and value >= least, name, f"an int of {least} or more")

    def choice(name: str, choices: tuple[int, ...]) -> None:
        value = given[name]
        want(type(value) is int and value in choices, name, "one of " + ", ".join(map(str, choices)))

    choice("block_kv", (TILE_TOKENS,))
    choice("phys_block_kv", PAGES)
    choice("head_dim", HEAD_DIMS)
    whole("num_sms", 1)
    heads = whole("num_heads", 1) and want(given["num_heads"] % 4 == 0, "num_heads", "a multiple of 4")
    if whole("next_n", 1) and heads:
        rows = given["next_n"] * given["num_heads"]
        if not (8 <= rows <= 256 and rows % 8 == 0):
            faults.append(Fault("next_n * num_heads", str(rows), "a multiple of 8 in 8..256"))
    if whole("num_epi_subtiles", 1) and heads:
        parts = given["num_epi_subtiles"]
        whole_parts = given["num_heads"] % parts == 0 and given["num_heads"] // parts % 4 == 0
        want(whole_parts, "num_epi_subtiles", f"a divisor of {given['num_heads']} heads into multiples of 4")
    if whole("max_w_in_reg", 0):
        want(given["max_w_in_reg"] % 4 == 0, "max_w_in_reg", "a multiple of 4, 0 for the default")
    for name in _SWITCHES:
        want(type(given[name]) is bool, name, "a bool")
    names = {"acc_dtype": "Float32 or Float16", "epi_dtype": "Float32 or Float16"}
    names["output_dtype"] = "Float32, Float16 or BFloat16"
    for name, expected in names.items():
        known = getattr(given[name], "__name__", "") in expected.replace(",", "").split()
        want(known, name, f"cutlass dtype {expected}")
    return faults
