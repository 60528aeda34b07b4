"""The results of a bench, and the figures that the design requires."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from .measure import Sample, Spread


@dataclass(frozen=True, slots=True)
class Measurement:
    """One load on one subject."""

    row: str
    subject: str
    samples: list[Sample]

    @property
    def cpu_us(self) -> Spread:
        return Spread.of([sample.cpu_us for sample in self.samples])

    @property
    def per_second(self) -> Spread:
        return Spread.of([sample.per_second for sample in self.samples])

    @property
    def latency_us(self) -> Spread | None:
        known = [sample.latency_us for sample in self.samples if sample.latency_us is not None]
        return Spread.of(known) if known else None


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with a maximum ``target`` (or, with ``at_least``, a minimum); None is for information."""

    name: str
    value: Spread
    unit: str
    target: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Return whether the median meets the target; None without a target."""
        if self.target is None:
            return None
        return self.value.middle >= self.target if self.at_least else self.value.middle <= self.target


@dataclass(slots=True)
class Results:
    """All results of one run of the bench."""

    environment: dict[str, Any]
    measurements: list[Measurement] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    #: Measurements that were not possible, or not as requested, with the reason.
    remarks: list[str] = field(default_factory=list)

    def add(self, row: str, samples: dict[str, list[Sample]]) -> dict[str, list[Sample]]:
        """Store the samples of a row, by subject; return them."""
        self.measurements += [Measurement(row, subject, taken) for subject, taken in samples.items()]
        return samples

    def to_dict(self) -> dict[str, Any]:
        """Return the results for JSON."""
        return {
            "environment": self.environment,
            "figures": [{**asdict(figure), "met": figure.met} for figure in self.figures],
            "measurements": [
                {
                    "row": measurement.row,
                    "subject": measurement.subject,
                    "cpu_us_per_message": asdict(measurement.cpu_us),
                    "messages_per_second": asdict(measurement.per_second),
                    "latency_us_p50": asdict(measurement.latency_us) if measurement.latency_us else None,
                    "samples": [asdict(sample) for sample in measurement.samples],
                }
                for measurement in self.measurements
            ],
            "remarks": self.remarks,
        }
