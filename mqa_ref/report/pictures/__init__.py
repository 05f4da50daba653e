"""Pictures of a run as self-contained SVG, in the reader's light or dark scheme; no script, no request."""

from mqa_ref.report.pictures.bars import render_classes, render_counts, render_histogram
from mqa_ref.report.pictures.matrix import render_matrix
from mqa_ref.report.pictures.timeline import render_timeline

__all__ = ["render_classes", "render_counts", "render_histogram", "render_matrix", "render_timeline"]
