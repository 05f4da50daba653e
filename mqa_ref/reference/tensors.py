"""The reference's bits as torch tensors, for those who hold them against a kernel's output in torch; computed on the
GPU where the tensors are to be on one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mqa_ref.errors import NotAvailable
from mqa_ref.flow import Flow
from mqa_ref.numerics import MachineModel
from mqa_ref.problem import Problem
from mqa_ref.reference.epilogue import Generation
from mqa_ref.reference.logits import reference_logits


def reference_logits_torch(
    problem: Problem,
    flow: Flow,
    machine: str | MachineModel = "sm100",
    *,
    generation: Generation = "folded",
    device: Any = "cpu",
) -> tuple[Any, Any]:
    """``reference_logits`` as torch tensors on ``device``: the logits [rows, max_context_len] in the flow's output
    dtype (float32, float16 or bfloat16), bit for bit, and the bool mask of the valid ones.

    On any device but the CPU the arithmetic is done there, by torch (``reference.on_torch``), to the same bits. Raises
    NotAvailable without torch, and what ``reference_logits`` raises.
    """
    try:
        import torch
    except ImportError as error:
        raise NotAvailable("torch is not installed; the extra `gpu` brings it") from error
    if torch.device(device).type != "cpu":
        from mqa_ref.reference.on_torch import device_logits

        return device_logits(problem, flow, machine, generation, device)
    bits, mask = reference_logits(problem, flow, machine, generation=generation)
    # torch has few operations on unsigned words, so the bits travel as signed ones.
    signed = torch.from_numpy(bits.view(np.int32 if flow.out == "fp32" else np.int16))
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[flow.out]
    return signed.view(dtype).to(device), torch.from_numpy(mask).to(device)
