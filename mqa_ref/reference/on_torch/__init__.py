"""The reference's arithmetic as torch operations, so that a GPU can do it: the same bits as NumPy's, flow by flow.

torch has no fused multiply-add and converts float64 to fp16 by way of float32. So every number is held as float64,
exact results are made there, rounded to odd where float64 is too short, and rounded once (``operations``).
``tensorcore`` holds the steps of the tensor core, ``logits`` puts both together. Standing: proof from the rules of
``mqa_ref.numerics``, whose results they are held against.
"""

from mqa_ref.reference.on_torch.logits import device_logits

__all__ = ["device_logits"]
