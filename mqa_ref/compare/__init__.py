"""Compares one launch with what it had to give, bits first: which class of difference, where, and what gives the wrong
elements.

``compare``: the same flow on the same machine, equality of bits. ``compare_within``: another order or machine, every
element within its own error bound. ``tolerances`` holds the factors on the bounds, from tolerances.toml.
"""

from mqa_ref.compare.classes import KINDS, Kind
from mqa_ref.compare.comparison import Comparison, Extreme, Mismatch
from mqa_ref.compare.place import Place
from mqa_ref.compare.same_bits import compare
from mqa_ref.compare.within import compare_within

__all__ = ["KINDS", "Comparison", "Extreme", "Kind", "Mismatch", "Place", "compare", "compare_within"]
