"""Launching on a real GPU, through the CUDA driver alone.

``probe`` says what is missing, without importing anything heavy; ``driver`` is the few driver calls behind typed
errors; ``memory`` places buffers between guard zones and looks at them afterwards; ``writer`` is the kernel that brings
lengths and schedule just before the launch; ``launch`` runs one described launch with reruns, a dependent launch and a
replayed graph. Nothing here knows the operation: ``mqa_ref.verification.native`` does.
"""

from mqa_ref.cuda.probe import GpuFacts, missing, require

__all__ = ["GpuFacts", "missing", "require"]
