"""Reports of receivers: a line for people, and a file for Prometheus."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trouter.spool.receiver import Progress

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_THOUSAND: Final = 1000

#: Name, kind and help of each metric, and its field of `Progress`.
_METRICS: Final = (
    ("messages_total", "counter", "Messages made safe on the disk.", "messages"),
    ("octets_total", "counter", "Bytes of the messages made safe on the disk.", "octets"),
    ("accepted_total", "counter", "Messages settled as accepted because they are safe on the disk.", "accepted"),
    ("presettled_total", "counter", "Messages that came pre-settled.", "presettled"),
    ("refused_total", "counter", "Messages rejected because they were too large.", "refused"),
    ("aborted_total", "counter", "Messages that the sender aborted.", "aborted"),
    ("groups_total", "counter", "Groups of messages written and synced together.", "groups"),
    ("sync_seconds_total", "counter", "Time that writing and syncing took.", "sync_s"),
    ("links_total", "counter", "Links that were attached.", "links"),
    ("next_sequence", "gauge", "Sequence number of the next message.", "next"),
    ("durable_sequence", "gauge", "First sequence number that is not safe on the disk yet.", "durable"),
    ("consumed_sequence", "gauge", "First sequence number that no consumer has finished.", "consumed"),
    ("backlog_bytes", "gauge", "Bytes on the disk that are not consumed.", "backlog_bytes"),
    (
        "credit_stopped",
        "gauge",
        "1 while the receiver gives no credit because the spool has reached its limit of bytes not consumed.",
        "full",
    ),
    (
        "last_message_timestamp_seconds",
        "gauge",
        "Time at which the last message was made safe, 0 for never.",
        "last_message_at",
    ),
    ("start_timestamp_seconds", "gauge", "Time at which the receiver started.", "began_at"),
)


@dataclass(slots=True)
class Shard:
    """A receiver in the reports. ``restarts`` counts the restarts of its process."""

    number: int
    address: str
    progress: Progress
    running: bool = True
    restarts: int = 0

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


def amount_of(octets: float) -> str:
    """Return bytes with two digits or more and a unit, such as ``12 kB``."""
    unit = 0
    while octets >= _THOUSAND and unit < len(_UNITS) - 1:
        octets /= _THOUSAND
        unit += 1
    return f"{octets:.0f} {_UNITS[unit]}" if octets >= 100 or unit == 0 else f"{octets:.1f} {_UNITS[unit]}"


def metrics_of(shards: Iterable[Shard]) -> str:
    """Return the metrics in the text format of Prometheus."""
    shards = list(shards)
    lines: list[str] = []
    for name, kind, help_text, field in _METRICS:
        values = [(shard, getattr(shard.progress, field) + 0) for shard in shards]
        lines += _metric(name, kind, help_text, values)
    up = [(shard, int(shard.running and shard.progress.state not in {"failed", "ended", "down"})) for shard in shards]
    lines += _metric("up", "gauge", "1 while the process runs and tries to receive.", up)
    linked = [(shard, int(bool(shard.running and shard.progress.server))) for shard in shards]
    lines += _metric("linked", "gauge", "1 while there is a link to a server.", linked)
    restarts = [(shard, shard.restarts) for shard in shards]
    lines += _metric("restarts_total", "counter", "Restarts of the shard's process.", restarts)
    again = [(shard, max(0, shard.progress.links - 1)) for shard in shards]
    lines += _metric("reconnects_total", "counter", "Links that were attached after the first one.", again)
    failed = [shard for shard in shards if shard.progress.fault]
    faults = [(shard, shard.progress.fault_at) for shard in failed]
    kinds = [f'kind="{shard.progress.fault}"' for shard in failed]
    lines += _metric("last_error_timestamp_seconds", "gauge", "Time of the last fault.", faults, kinds)
    return "\n".join(lines) + "\n"


def _metric(
    name: str, kind: str, help_text: str, values: Sequence[tuple[Shard, float]], labels: Sequence[str] = ()
) -> list[str]:
    """Return the lines of one metric; ``labels`` has one more label for each value."""
    full = f"trouter_spool_{name}"
    lines = [f"# HELP {full} {help_text}", f"# TYPE {full} {kind}"]
    for (shard, value), more in zip(values, labels or [""] * len(values), strict=True):
        own = f'address="{_escaped(shard.address)}",shard="{shard.number}"'
        lines.append(f"{full}{{{own}{',' if more else ''}{more}}} {value!r}")
    return lines


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def write_metrics(path: Path, shards: Iterable[Shard]) -> None:
    """Replace the file atomically, so that readers never see half of it; OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(metrics_of(shards), encoding="utf-8")
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
