"""Which lanes of a warp a signal speaks for.

A lane that arrives at an mbarrier, commits, or issues a tile load or a product orders its own accesses, and those of
the other lanes only if a bar.warp.sync has gathered them before.

Source: PTX ISA 9.1, 9.7.13.2 (in 9.3: 9.7.15.2): bar.warp.sync guarantees memory ordering among the threads that take
part; of shfl, vote, match, redux, elect and the ``.sync.aligned`` of tcgen05 the ISA says that lanes wait for each
other, not that their accesses are ordered. A CTA barrier gathers the lanes, too, and so does an mbarrier at which all
lanes arrive, for whoever waits for it. Standing: doc.

How: the accesses of a warp with a time up to ``clock[GATHERED + warp]`` are ordered for all its lanes. A signal of all
lanes hands on the present time there, one of fewer lanes the time of the last gathering. An access that is ordered, but
not there, is looked up here: its lanes (all, unless it is noted), and the signals since. Where several signals of parts
of a warp come into question, all of them count: that may miss a fault, and accuses nobody. So does a history that was
cut off. Of the other direction nothing is kept: what one lane waited for, all lanes of its warp did.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ALL = 0xFFFFFFFF
KEPT = 512
"""Notes of a warp after which it begins anew."""
GATHERING = -1


@dataclass
class Lanes:
    """``accesses``: time -> lanes, of accesses by fewer than all. ``signals``: (time, lanes, PTX line) of what fewer
    than all lanes signalled, line ``GATHERING`` for a bar.warp.sync of theirs. Of what was before ``since`` nothing is
    known.
    """

    accesses: dict[int, int] = field(default_factory=dict)
    signals: list[tuple[int, int, int]] = field(default_factory=list)
    since: int = 0

    def access(self, time: int, lanes: int) -> None:
        """An access by some lanes, the only one at its time."""
        self._cut(time)
        self.accesses[time] = lanes

    def signal(self, time: int, lanes: int, line: int) -> None:
        """Some lanes hand on what they did, or meet."""
        self._cut(time)
        self.signals.append((time, lanes, line))

    def _cut(self, time: int) -> None:
        if len(self.accesses) + len(self.signals) >= KEPT:
            self.accesses.clear()
            self.signals.clear()
            self.since = time

    def left_out(self, time: int, seen: int) -> tuple[int, int] | None:
        """Lanes of the access at ``time`` for which no signal up to ``seen`` speaks, and the last signal's line."""
        if time < self.since:
            return None
        left = self.accesses.get(time, ALL)
        knows = {lane: 1 << lane for lane in range(32) if left >> lane & 1}
        line = None
        for when, lanes, place in self.signals:
            if not time <= when <= seen:
                continue
            for lane, known in knows.items():
                if known & lanes and place == GATHERING:
                    knows[lane] = known | lanes
                elif known & lanes:
                    left &= ~(1 << lane)
            line = line if place == GATHERING else place
        return None if not left or line is None else (left, line)
