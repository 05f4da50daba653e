"""The kernel under test. This one is mqa-ref's own, so that the example runs as it is: put yours in its place."""

from mqa_ref.kernel.sm100 import PagedMqaLogitsSm100


class MyKernel(PagedMqaLogitsSm100):
    """Scores the pages of a batch for the sparse attention indexer."""
