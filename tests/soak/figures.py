"""The figures of a soak: samples over time, counts of objects by class, and the problems found in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np

#: The samples are averaged over this count of equal spans before the regression.
_SPANS: Final = 40
#: Seconds after the warm-up below which a slope means nothing.
LEAST_SPAN_S: Final = 600.0
_CONFIDENCE: Final = 0.95
#: Classes of which the router keeps objects after those that they were made for. Their number is limited by that of the
#: objects of another class, or by a fixed length ("", and the class is not judged).
NOTES: Final = {
    "trouter.core.counters.AddressCounters": "trouter.core.ingress.Ingress",
    "trouter.core.entry.AddressEntry": "trouter.core.ingress.Ingress",
    "trouter.core.forwarders.Balanced": "trouter.core.ingress.Ingress",
    "trouter.core.forwarders.Closest": "trouter.core.ingress.Ingress",
    "trouter.core.forwarders.Multicast": "trouter.core.ingress.Ingress",
    "trouter.core.message.CachedAnnotations": "trouter.core.ingress.Ingress",
    "trouter.core.watch._StalledLink": "trouter.core.ingress.Ingress",
    "trouter.wire.annotations.RouterAnnotations": "trouter.core.ingress.Ingress",
    "trouter.logs.book.LogLine": "",
    # Cancelled timers, such as that of each look's own connection, until they would have been due. One that is not
    # cancelled keeps its connection, which is counted.
    "trouter.net.timers.Timer": "",
}
#: Classes of other packages whose objects belong to the router.
_OTHERS: Final = frozenset({"trio.lowlevel.Task", "socket.socket"})


class Slope(NamedTuple):
    """A slope in bytes per hour, with the interval that contains the true slope with 95 % confidence."""

    middle: float
    low: float
    high: float

    @property
    def rises(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low > 0


def slope(times_s: Sequence[float], octets: Sequence[float]) -> Slope:
    """Fit a line by least squares; return its slope. It needs at least 40 samples.

    Consecutive samples are correlated and count for less than independent ones: they are averaged over spans, and the
    number of spans is reduced by the lag-one correlation of the residuals. Student's quantile is taken for that number.
    """
    spans = [np.mean(part) for part in np.array_split(np.asarray(times_s) / 3600, _SPANS)]
    times, values = np.array(spans), np.array([np.mean(part) for part in np.array_split(octets, _SPANS)])
    centred = times - times.mean()
    spread = float(centred @ centred)
    middle = float(centred @ values) / spread
    rest = values - values.mean() - middle * centred
    squares = float(rest @ rest)
    alike = max(0.0, float(rest[1:] @ rest[:-1]) / squares) if squares else 0.0
    worth = max(_SPANS * (1 - alike) / (1 + alike), 4.0)
    margin = _student(worth - 2) * (squares / (worth - 2) / spread) ** 0.5
    return Slope(middle, middle - margin, middle + margin)


def _student(freedom: float) -> float:
    """Return Student's quantile for the confidence and degrees of freedom (Abramowitz and Stegun, 26.7.5)."""
    z = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


class Change(NamedTuple):
    """The counts of one class in one router, before the first client and after the last."""

    router: str
    name: str
    before: int
    after: int
    #: How many more objects may remain, because the router keeps them (``NOTES``).
    notes: int = 0

    @property
    def judged(self) -> bool:
        """Whether the count of this class must return to its first value."""
        ours = self.name.startswith("trouter.") or "." not in self.name or self.name in _OTHERS
        return ours and NOTES.get(self.name) != ""

    @property
    def left_over(self) -> bool:
        """Whether more objects are left than may remain."""
        return self.judged and self.after > self.before + self.notes


Counts = Mapping[str, Mapping[str, int]]


def changes(before: Counts, after: Counts) -> list[Change]:
    """Return the changes of all classes of all routers that were counted at either time."""
    return [
        Change(router, name, old.get(name, 0), after[router].get(name, 0), after[router].get(NOTES.get(name, ""), 0))
        for router, old in before.items()
        for name in sorted({*old, *after[router]})
    ]


def left_over(before: Counts, after: Counts) -> list[Change]:
    """Return the classes of which more objects are left than may remain."""
    return [each for each in changes(before, after) if each.left_over]


@dataclass(frozen=True)
class Figures:
    """The figures of a soak in the files of a folder; the soak may still run, or may have been interrupted."""

    about: Mapping[str, Any]
    samples: Sequence[Mapping[str, Any]]
    before: Counts
    #: Empty if the soak was interrupted.
    after: Counts

    @classmethod
    def read(cls, folder: Path) -> Figures:
        """Read the files in the folder."""
        lines = (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
        after = folder / "after.json"
        return cls(
            json.loads((folder / "about.json").read_text(encoding="utf-8")),
            [json.loads(line) for line in lines if line.endswith("}")],
            json.loads((folder / "before.json").read_text(encoding="utf-8")),
            json.loads(after.read_text(encoding="utf-8")) if after.exists() else {},
        )

    @property
    def measured(self) -> Sequence[Mapping[str, Any]]:
        """Return the samples after the warm-up."""
        return [each for each in self.samples if each["at_s"] >= self.about["warm_up_s"]]

    def slopes(self) -> dict[str, Slope]:
        """Return the slope of each router's resident memory after the warm-up; empty if the time was too short."""
        measured = self.measured
        if not measured or measured[-1]["at_s"] - measured[0]["at_s"] < LEAST_SPAN_S:
            return {}
        times = [each["at_s"] for each in measured]
        return {name: slope(times, [each["resident"][name] for each in measured]) for name in self.before}

    def problems(self) -> list[str]:
        """Return a sentence for each count that did not return and each kind of client that did nothing."""
        found = [
            f"Router {each.router} had {each.before:,} of {each.name} before the first client, "
            f"and has {each.after:,} after the last one has gone."
            for each in (left_over(self.before, self.after) if self.after else ())
        ]
        found += [
            f"The resident memory of router {name} rises by {rise.middle / 1024:,.0f} KiB an hour "
            f"(95 % confidence: {rise.low / 1024:,.0f} to {rise.high / 1024:,.0f})."
            for name, rise in self.slopes().items()
            if rise.rises
        ]
        last = self.samples[-1] if self.samples else {"received": {}, "churned": {}}
        found += [f"No message came: {kind}." for kind in self.about["traffic"] if not last["received"].get(kind)]
        found += [f"No churn: {kind}." for kind in self.about["churn"] if not last["churned"].get(kind)]
        if not self.after:
            found.append("The soak was cut before the last client had gone, so that nothing could be counted.")
        return found
