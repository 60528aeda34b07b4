"""Find the neighbours of each router over time, by reading the records one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from trouter.records import TopologyChange

SECOND = 1_000_000


class Span(NamedTuple):
    """The fields of a row that are compared."""

    router: str
    peer: str
    up_us: int
    down_us: int | None
    cost: int | None
    flap: bool


def history(news: Iterable[tuple[str, int, int, TopologyChange]], flaps: int, window_s: int) -> list[Span]:
    """Return the spans of neighbours from records with router, boot and number; a restart ends them all."""
    unique = {(router, boot, n): record for router, boot, n, record in news}
    changes = defaultdict(list)
    boots = defaultdict(set)
    for (router, boot, n), record in unique.items():
        boots[router].add(boot)
        if record.peer is not None and record.what in {"neighbour-up", "neighbour-down"}:
            changes[router, record.peer].append((record.t, boot, n, record))
    spans = []
    for (router, peer), events in changes.items():
        events.sort(key=lambda event: event[:3])
        downs = [t for t, _, _, record in events if record.what == "neighbour-down"]
        windows = [[each for each in downs if t - window_s * SECOND <= each <= t] for t in downs]
        flapping = {t for window in windows if len(window) >= flaps for t in window}
        for index, (t, boot, _, record) in enumerate(events):
            if record.what != "neighbour-up":
                continue
            after = events[index + 1] if index + 1 < len(events) else None
            if after is not None and after[1] == boot:
                down: int | None = after[0]
                flap = after[3].what == "neighbour-down" and after[0] in flapping
            else:
                later = [each for each in boots[router] if each > boot]
                down, flap = (max(min(later) * SECOND, t) if later else None), False
            spans.append(Span(router, peer, t, down, record.cost_new, flap))
    return sorted(spans)
