"""The report of one process of a load."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from statistics import quantiles
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pump import LoadTally


@dataclass(frozen=True, slots=True)
class LoadReport:
    """A report: ``seconds`` from first transfer to last outcome, ``body_bytes`` of payload, ``wire_bytes_*`` of all."""

    role: str
    messages: int
    seconds: float
    outcomes: dict[str, int]
    body_bytes: int
    wire_bytes_out: int
    wire_bytes_in: int
    cpu_seconds: float
    latency_us: dict[str, float] = field(default_factory=dict)
    connections: int = 1

    @property
    def messages_per_second(self) -> float:
        """Messages per second; 0 if nothing moved."""
        return self.messages / self.seconds if self.seconds > 0 else 0.0

    def to_json(self) -> str:
        """Return the report as one line of JSON."""
        return json.dumps({**asdict(self), "messages_per_second": round(self.messages_per_second, 1)})

    @classmethod
    def from_json(cls, line: str) -> LoadReport:
        """Return the report that ``to_json`` wrote; ValueError."""
        return cls.from_map(json.loads(line))

    @classmethod
    def from_map(cls, written: dict[str, Any]) -> LoadReport:
        """Return the report of a parsed line."""
        return cls(**{name: value for name, value in written.items() if name != "messages_per_second"})


def report_of(role: str, tally: LoadTally, cpu_seconds: float, connections: int) -> LoadReport:
    """Return the report of a tally, with the CPU time in seconds."""
    outcomes = {
        "accepted": tally.accepted,
        "rejected": tally.rejected,
        "released": tally.released,
        "modified": tally.modified,
        "presettled": tally.presettled,
        "none": tally.no_outcome,
    }
    return LoadReport(
        role=role,
        messages=tally.messages,
        seconds=tally.last_s - tally.first_s,
        outcomes={kind: count for kind, count in outcomes.items() if count},
        body_bytes=tally.body_bytes,
        wire_bytes_out=tally.wire_out,
        wire_bytes_in=tally.wire_in,
        cpu_seconds=cpu_seconds,
        latency_us=_percentiles(list(tally.latencies_s)),
        connections=connections,
    )


def _percentiles(seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {}
    cuts = quantiles(seconds, n=1000, method="inclusive")
    named = {"min": min(seconds), "p50": cuts[499], "p90": cuts[899], "p99": cuts[989], "max": max(seconds)}
    return {name: round(value * 1e6, 2) for name, value in named.items()}
