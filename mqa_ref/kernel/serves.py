"""What a kernel says that it serves, so that launches are drawn for it that it does not refuse."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Serves:
    """The values that a kernel takes; () for any. ``flows``: names. ``own_schedule``: it computes its schedule from the
    lengths, and takes no other. What it refuses within these is a typed answer of its own."""

    page: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    next_n: tuple[int, ...] = ()
    flows: tuple[str, ...] = ()
    own_schedule: bool = False

    def takes(self, **sizes: int) -> bool:
        """Whether all of these sizes (page, heads, next_n) are served."""
        served = {name: getattr(self, name) for name in sizes}
        return all(not served[name] or size in served[name] for name, size in sizes.items())

    def takes_flow(self, name: str) -> bool:
        """Whether a flow is served."""
        return not self.flows or name in self.flows


ANYTHING = Serves()
"""Of a kernel of which nothing is said."""
