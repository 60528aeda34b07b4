"""Reports of receivers: a line for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from trouter_pipeline.spool.cursors import Lag
from trouter_pipeline.spool.receiver import Progress

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_THOUSAND: Final = 1000


@dataclass(slots=True)
class Shard:
    """A receiver in the reports. ``restarts`` counts the restarts of its process."""

    number: int
    address: str
    progress: Progress
    running: bool = True
    restarts: int = 0
    #: How far its cursors are behind, as last looked at.
    lags: Sequence[Lag] = ()

    @property
    def receives(self) -> bool:
        """Whether the receiver takes messages now."""
        return self.running and self.progress.state == "receiving"


def line_of(shards: Sequence[Shard], per_second: float, octets_per_second: float) -> str:
    """Return rates, counts and states in one line."""
    progresses = [shard.progress for shard in shards]
    backlog = sum(each.backlog_bytes for each in progresses)
    groups = sum(each.groups for each in progresses)
    sync_ms = 1000 * sum(each.sync_s for each in progresses) / groups if groups else 0.0
    parts = [
        f"{per_second:,.0f} messages/s ({amount_of(octets_per_second)}/s)",
        f"{sum(each.messages for each in progresses):,} kept",
        f"{amount_of(backlog)} not consumed",
        f"sync {sync_ms:.1f} ms",
        _states(shards),
    ]
    if refused := sum(each.refused for each in progresses):
        parts.insert(2, f"{refused:,} too large")
    if len(shards) > 1:
        parts.insert(0, f"{len(shards)} shards")
    return ", ".join(parts)


def _states(shards: Sequence[Shard]) -> str:
    states = [shard.progress.state if shard.running else "down" for shard in shards]
    if len(set(states)) == 1:
        return states[0]
    return " ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))


def stalled(lag: Lag, now_s: float, limit_s: float) -> str:
    """Return what to tell of a cursor whose oldest message came longer ago than the limit; "" for nothing.

    ``now_s`` is in seconds since 1970.
    """
    age_s = now_s - lag.oldest_us / 10**6
    if not lag.messages or age_s <= limit_s:
        return ""
    return (
        f"cursor {lag.cursor} keeps {lag.messages:,} messages ({amount_of(lag.octets)}), the oldest for "
        f"{age_s / 3600:.1f} h: run its consumer, or remove it with `trouter pipeline cursors`"
    )


def amount_of(octets: float) -> str:
    """Return bytes with two digits or more and a unit, such as ``12 kB``."""
    unit = 0
    while octets >= _THOUSAND and unit < len(_UNITS) - 1:
        octets /= _THOUSAND
        unit += 1
    return f"{octets:.0f} {_UNITS[unit]}" if octets >= 100 or unit == 0 else f"{octets:.1f} {_UNITS[unit]}"
