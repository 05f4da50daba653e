"""What a launch must produce: its bits, flow by flow; the true values; how far from these a logit can rightly be.

Bits: ``reference_logits``, fast; ``plain_logits``, its NumPy twin; ``scalar_logit``, one at a time, slow;
``reference_logits_torch`` for torch.
Truth: ``exact_logits`` and ``scalar_exact_logit``. Bounds: ``own_order_bounds`` for a kernel that adds in the order of
the reference, ``any_order_bounds`` for others, such as ``reordered_logits``; ``observe`` measures how much of them real
errors take.
"""

from mqa_ref.reference.bounds import ErrorBounds, any_order_bounds, own_order_bounds
from mqa_ref.reference.epilogue import GENERATIONS, SUPPORTED_FLOWS, Generation
from mqa_ref.reference.exact import exact_logits
from mqa_ref.reference.logits import plain_logits, reference_logits
from mqa_ref.reference.observations import Observation, observe
from mqa_ref.reference.orders import SUM_ORDERS, SumOrder
from mqa_ref.reference.reordered import ORDERS, reordered_logits
from mqa_ref.reference.scalar import scalar_exact_logit, scalar_logit
from mqa_ref.reference.tensors import reference_logits_torch

__all__ = [
    "GENERATIONS",
    "ORDERS",
    "SUM_ORDERS",
    "SUPPORTED_FLOWS",
    "ErrorBounds",
    "Generation",
    "Observation",
    "SumOrder",
    "any_order_bounds",
    "exact_logits",
    "observe",
    "own_order_bounds",
    "plain_logits",
    "reference_logits",
    "reference_logits_torch",
    "reordered_logits",
    "scalar_exact_logit",
    "scalar_logit",
]
