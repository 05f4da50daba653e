"""DeepGEMM's launch as data: sizes worked out by hand from its headers, what is refused, what it is given."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mqa_ref.errors import InputError, NotAvailable, Unsupported
from mqa_ref.flow import Flow
from mqa_ref.kernel import resolve
from mqa_ref.kernel.deepgemm import package, target
from mqa_ref.kernel.deepgemm.description import describe_launch
from mqa_ref.kernel.deepgemm.metadata import lengths_2d
from mqa_ref.kernel.deepgemm.shape import Arch, Shape
from mqa_ref.kernel.raw_launch import Pointer, Scalar, TensorMap
from mqa_ref.kernel.targets import with_arch
from mqa_ref.problem import Problem
from mqa_ref.verification.problems import Recipe, make

FLOW = Flow.parse("fp32-fp32-fp32")


def absent() -> str:
    try:
        target.check_installed()
    except NotAvailable as error:
        return str(error)
    return ""


needs_wheel = pytest.mark.skipif(bool(absent()), reason=absent())


def problem(next_n: int = 2, heads: int = 32, **told: Any) -> Problem:
    return make(Recipe("description", "", (300, 0, 1), 4, heads=heads, next_n=next_n, **told)).problem


@pytest.mark.parametrize(
    ("arch", "next_n", "heads", "threads", "shared"),
    [
        # 3 * (rows * 128 + 1024) + 1024 for queries, 4 * (3 * (8192 + 1024) + 1024) for keys, 68 for nothing
        ("sm_90a", 1, 32, 640, 3 * (4096 + 1024) + 1024 + 4 * 28672 + 68),
        ("sm_90a", 2, 64, 640, 3 * (16384 + 1024) + 1024 + 4 * 28672 + 68),
        # queries, keys; then at the next 512 scales, weights, 22 barriers, a pointer; up to the next 512
        ("sm_100a", 1, 64, 384, 220672),
        ("sm_100a", 2, 32, 384, 220672),
    ],
)
def test_sizes(arch: Arch, next_n: int, heads: int, threads: int, shared: int) -> None:
    """The compiled text of SM100 asserts its number, too."""
    made = describe_launch(problem(next_n, heads), FLOW, arch)
    assert (made.grid, made.block, made.shared_bytes) == ((4, 1, 1), (threads, 1, 1), shared)
    assert not made.overlaps


def test_parameters_of_sm90() -> None:
    given = problem()
    made = describe_launch(given, FLOW, "sm_90a")
    pages = given.num_pages
    assert made.parameters == (
        *(Scalar(3), Scalar(512), Scalar(given.block_table.shape[1])),
        *(Pointer("context_lens"), Pointer("logits"), Pointer("block_table"), Pointer(None)),
        Pointer("schedule_meta"),
        TensorMap("q", "uint8", (128, 6 * 32), (128,), (128, 2 * 32), 128),
        TensorMap("kv_fused", "uint8", (128, 64, pages), (128, 8448), (128, 64, 1), 128),
        TensorMap("kv_fused", "float32", (64, pages), (8448,), (64, 1), offset=8192),
        TensorMap("weights", "float32", (32, 6), (128,), (32, 2)),
    )
    assert made.buffer("kv_fused").data.tobytes() == given.kv_fused.tobytes()
    assert made.buffer("logits").data.size == 6 * 512 * 4


def test_parameters_of_sm100() -> None:
    """A block of queries is 128 rows; the fifth map is the one of scales again, which is not loaded from."""
    given = problem()
    made = describe_launch(given, FLOW, "sm_100a")
    maps = [one for one in made.parameters if isinstance(one, TensorMap)]
    assert made.parameters[0] == Scalar(6)
    assert [one.buffer for one in maps] == ["q", "kv_fused", "kv_fused", "kv_fused", "weights"]
    assert (maps[0].box, maps[4].box, maps[1]) == ((128, 128), (32, 4), maps[3])


def test_lengths_of_the_query_tokens() -> None:
    """Token t sees what was there before it and itself: of 300 tokens, 299 and 300; nothing is below zero."""
    assert lengths_2d(problem()).tolist() == [[299, 300], [0, 0], [0, 1]]


def test_everything_that_is_not_served_is_told_at_once() -> None:
    told: Any = SimpleNamespace(page=32, heads=16, head_dim=64, next_n=3)
    with pytest.raises(Unsupported) as caught:
        Shape.of(told, Flow.parse("fp16-fp16-fp16"), "sm_90a")
    for words in (
        "page = 32",
        "heads = 16",
        "head_dim = 64",
        "next_n = 3",
        "accumulator",
        "epilogue",
        "output",
    ):
        assert words in str(caught.value)


@needs_wheel
def test_a_forced_schedule_is_refused() -> None:
    found = resolve("deepgemm")
    given = problem()
    own = found.scheduled(given)
    assert not own.schedule_faults
    assert own.schedule.tolist() == [[0, 0], [0, 0], [0, 1], [2, 0], [3, 0]]
    with pytest.raises(Unsupported, match="takes no other"):
        found.scheduled(given.forced(np.zeros_like(given.schedule)))


@needs_wheel
def test_names() -> None:
    declared = resolve("deepgemm").declared
    assert (declared.generation, declared.order, declared.machine) == ("max", "deepgemm_sm90", "sm90")
    declared = resolve(with_arch("deepgemm", "sm_100a")).declared
    assert (declared.generation, declared.order, declared.machine) == ("folded", "deepgemm_sm100", "sm100")
    for name in ("deepgemm@", "deepgemm@sm_80"):
        with pytest.raises(InputError):
            resolve(name)
    with pytest.raises(InputError, match="only with the kernel deepgemm"):
        with_arch("builtin", "sm_90a")
    assert with_arch("builtin", None) == "builtin"


def test_no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise PackageNotFoundError(name)

    for found, expected in (
        (absent, "pip install --no-deps sgl-deep-gemm==0.1.5"),
        (lambda name: SimpleNamespace(version="0.2.5"), "0.2.5 is not served"),
    ):
        package.headers.cache_clear()
        monkeypatch.setattr(package, "distribution", found)
        with pytest.raises(NotAvailable, match=expected):
            resolve("deepgemm")
    package.headers.cache_clear()
