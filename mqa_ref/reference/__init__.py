"""The bits a launch must produce: vectorised (``reference_logits``), and one at a time, slow (``scalar_logit``)."""

from mqa_ref.reference.epilogue import GENERATIONS, SUPPORTED_FLOWS, Generation
from mqa_ref.reference.logits import reference_logits
from mqa_ref.reference.scalar import scalar_logit
from mqa_ref.reference.tensors import reference_logits_torch

__all__ = [
    "GENERATIONS",
    "SUPPORTED_FLOWS",
    "Generation",
    "reference_logits",
    "reference_logits_torch",
    "scalar_logit",
]
