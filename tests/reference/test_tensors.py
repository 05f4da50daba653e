"""Problems from torch tensors, and the reference's bits as torch tensors: torch's own conversions are the judge."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from mqa_ref.errors import InputError, NotAvailable
from mqa_ref.flow import FLOWS, Flow
from mqa_ref.problem import Problem
from mqa_ref.reference import reference_logits_torch

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
PAGE, HEADS, DIM = 32, 8, 64


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    """Two sequences of 70 and 33 tokens, two query tokens each. Keys and queries are small integers, scales powers of
    two, weights integers: every logit is exact in fp32."""
    random = torch.Generator().manual_seed(seed)
    q = torch.randint(-3, 4, (2, 2, HEADS, DIM), generator=random).to(torch.float8_e4m3fn)
    pages = torch.zeros((5, PAGE * (DIM + 4)), dtype=torch.uint8)
    keys = torch.randint(-3, 4, (5, PAGE * DIM), generator=random).to(torch.float8_e4m3fn)
    scales = 2.0 ** torch.randint(-6, 3, (5, PAGE), generator=random)
    pages[:, : PAGE * DIM] = keys.view(torch.uint8)
    pages[:, PAGE * DIM :] = scales.to(torch.float32).view(torch.uint8)
    return {
        "q": q,
        "kv_fused": pages,
        "weights": torch.randint(-4, 5, (4, HEADS), generator=random).to(torch.float32),
        "block_table": torch.tensor([[4, 0, 2], [1, 3, 0]], dtype=torch.int32),
        "context_lens": torch.tensor([70, 33], dtype=torch.int32),
    }


def plain(given: dict[str, torch.Tensor], row: int, column: int) -> float:
    """One logit by torch in float64."""
    b, t = divmod(row, 2)
    page = given["kv_fused"][given["block_table"][b, column // PAGE]]
    key = page[: PAGE * DIM].view(torch.float8_e4m3fn).reshape(PAGE, DIM)[column % PAGE].double()
    scale = page[PAGE * DIM :].view(torch.float32)[column % PAGE].double()
    dots = given["q"][b, t].double() @ key
    return float((dots.relu() * given["weights"][row].double()).sum() * scale)


@pytest.mark.parametrize("name", FLOWS)
def test_exact_logits_come_back_in_the_output_dtype(name: str) -> None:
    given = tensors()
    logits, mask = reference_logits_torch(
        Problem.from_torch(**given, page=PAGE, num_sms=2), Flow.parse(name), device="cpu"
    )
    out = DTYPES[name.split("-")[2]]
    assert logits.dtype == out
    assert mask.dtype == torch.bool
    assert mask.sum(dim=1).tolist() == [69, 70, 32, 33]
    expected = torch.zeros(logits.shape, dtype=torch.float32)
    for row, column in mask.nonzero().tolist():
        expected[row, column] = plain(given, row, column)
    # The fp16 epilogue is exact as long as sums are integers below 2048 and the scaled ones normal.
    exact = mask if name.startswith("fp32-fp32") else mask & (expected.abs() < 16) & (expected.abs() > 0.01)
    assert exact.sum() > 20
    assert torch.equal(logits[exact], expected[exact].to(out))
    assert not logits[~mask].any()


def test_strides_bytes_and_gradients_do_not_matter() -> None:
    given = tensors(1)
    one = Problem.from_torch(**given, page=PAGE, num_sms=2)
    other = Problem.from_torch(
        q=given["q"].view(torch.uint8).permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
        kv_fused=given["kv_fused"].view(torch.float8_e4m3fn).repeat(2, 1)[:5],
        weights=given["weights"].T.contiguous().T.requires_grad_(),
        block_table=given["block_table"].repeat(1, 2)[:, :3],
        context_lens=np.array([70, 33], np.int32),
        page=PAGE,
        num_sms=2,
        schedule=torch.from_numpy(one.schedule.copy()),
    )
    assert other.case_id == one.case_id
    assert one.q.tolist() == given["q"].view(torch.uint8).tolist()


def test_the_problem_keeps_copies() -> None:
    given = tensors(2)
    problem = Problem.from_torch(**given, page=PAGE, num_sms=2)
    before = problem.weights.tolist()
    given["weights"] += 1
    assert problem.weights.tolist() == before


def test_every_fault_is_told_at_once() -> None:
    given: dict[str, Any] = tensors()
    given["q"] = given["q"].to(torch.float8_e5m2)
    given["weights"] = given["weights"].to(torch.bfloat16)
    given["context_lens"] = given["context_lens"].to(torch.int64)
    given["block_table"] = None
    with pytest.raises(InputError) as caught:
        Problem.from_torch(**given, page=PAGE, num_sms=2)
    assert [fault.argument for fault in caught.value.faults] == [
        "q",
        "weights",
        "block_table",
        "context_lens",
    ]


def test_without_torch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    given = tensors()
    problem = Problem.from_torch(**given, page=PAGE, num_sms=2)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(NotAvailable, match="torch"):
        Problem.from_torch(**given, page=PAGE, num_sms=2)
    with pytest.raises(NotAvailable, match="torch"):
        reference_logits_torch(problem, Flow.parse("fp32-fp32-fp32"))
