"""Executes the PTX of a compiled kernel on a CPU, bit for bit, and watches it while it runs.

* ``parse`` and ``decode`` turn PTX into operations; an instruction that is not modelled is an error that
  names it.
* ``HostFunction`` runs the compiled host code and captures the launch, tensor maps included.
* ``run_grid`` executes every CTA: values are bit-exact under the machine model of ``mqa_ref.numerics``, and
  races, hangs, stray accesses and misuse of barriers or tensor memory come back as findings.
"""

from mqa_ref.emulator.decode import Code, decode
from mqa_ref.emulator.host import HostFunction, LaunchCall
from mqa_ref.emulator.machine import Outcome, run_grid
from mqa_ref.emulator.memory import Allocation, GlobalMemory
from mqa_ref.emulator.observe import Observer
from mqa_ref.emulator.parser import parse
from mqa_ref.emulator.policy import ORDERS
from mqa_ref.emulator.ptx import Program
from mqa_ref.emulator.tensormap import TensorMap

__all__ = [
    "ORDERS",
    "Allocation",
    "Code",
    "GlobalMemory",
    "HostFunction",
    "LaunchCall",
    "Observer",
    "Outcome",
    "Program",
    "TensorMap",
    "decode",
    "parse",
    "run_grid",
]
