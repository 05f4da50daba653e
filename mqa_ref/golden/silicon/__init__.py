"""What real GPUs answered: results of single instructions, tensor-core steps and small programs, with their
provenance.

``operands``, ``products`` and ``programs`` make what was given to the hardware, from labels; ``store`` reads
what came back; ``pack`` turns the output of tools/record/record.py into the files of the package.
"""

from mqa_ref.golden.silicon.operands import OPERATIONS, operand_sets
from mqa_ref.golden.silicon.products import half_accumulators, products
from mqa_ref.golden.silicon.programs import PROGRAMS, output_bytes
from mqa_ref.golden.silicon.store import RECORDINGS, Recording, load, names

__all__ = [
    "OPERATIONS",
    "PROGRAMS",
    "RECORDINGS",
    "Recording",
    "half_accumulators",
    "load",
    "names",
    "operand_sets",
    "output_bytes",
    "products",
]
