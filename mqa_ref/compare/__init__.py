"""Compares one launch with the reference, bits first: which class of difference, where, and what the wrong
elements share."""

from mqa_ref.compare.classes import KINDS, Kind
from mqa_ref.compare.comparison import Comparison, Mismatch, compare
from mqa_ref.compare.place import Place

__all__ = ["KINDS", "Comparison", "Kind", "Mismatch", "Place", "compare"]
