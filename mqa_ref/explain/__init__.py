"""One logit, step by step: what the reference computes beside what the kernel computed, up to where they part."""

from mqa_ref.explain.logit import Explanation, explain
from mqa_ref.explain.steps import Row, Value

__all__ = ["Explanation", "Row", "Value", "explain"]
