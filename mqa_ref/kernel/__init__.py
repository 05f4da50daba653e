"""The kernel under test: this project's own SM100 kernel in CuTe DSL, its compilation without a GPU, what it costs.

Importing this package is cheap: the compiler (``cutlass``) is imported by the first compilation. ``sm100`` holds the
kernel class and, with ``walk``, ``ring``, ``roles``, ``score`` and ``epilogue``, all device code; ``config`` its static
shape, checked; ``compile`` and ``targets`` make a CompiledKernel of it or of any class that keeps its contract;
``resources`` counts registers, spills and instructions.
"""

from mqa_ref.kernel.compile import ArgumentLayout, CompiledKernel, compile_kernel
from mqa_ref.kernel.resources import Resources, measure
from mqa_ref.kernel.targets import Target, resolve

__all__ = ["ArgumentLayout", "CompiledKernel", "Resources", "Target", "compile_kernel", "measure", "resolve"]
