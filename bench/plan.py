"""The extent of the bench: the whole one takes about a quarter of an hour, the quick one about two minutes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extent:
    """``seconds`` is the time of one run; ``addresses`` and ``connections`` are the large counts of their chapters."""

    name: str
    repetitions: int
    seconds: float
    addresses: int
    connections: int
    idle_seconds: float
    everything: bool


FULL = Extent(
    "full", repetitions=5, seconds=1.5, addresses=100_000, connections=5_000, idle_seconds=12.0, everything=True
)
QUICK = Extent(
    "quick", repetitions=3, seconds=0.4, addresses=10_000, connections=1_000, idle_seconds=4.0, everything=False
)
