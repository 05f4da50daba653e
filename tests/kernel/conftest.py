"""Compiled kernels for the tests of this part: each shape is compiled once a session, about a second each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from mqa_ref.flow import Flow
from mqa_ref.kernel import CompiledKernel, compile_kernel
from mqa_ref.kernel.compile import import_compiler

Compile = Callable[..., CompiledKernel]


@pytest.fixture(scope="session")
def compiled() -> Compile:
    """``compiled(page=64, heads=64, next_n=1, flow="fp32-fp32-fp32", num_sms=148, **options)`` of the own kernel."""

    @functools.cache
    def build(
        page: int = 64,
        heads: int = 64,
        next_n: int = 1,
        flow: str = "fp32-fp32-fp32",
        num_sms: int = 148,
        **options: Any,
    ) -> CompiledKernel:
        import_compiler()
        from mqa_ref.kernel.sm100 import PagedMqaLogitsSm100

        return compile_kernel(
            PagedMqaLogitsSm100,
            page=page,
            num_heads=heads,
            head_dim=128,
            next_n=next_n,
            num_sms=num_sms,
            flow=Flow.parse(flow),
            **options,
        )

    return build
