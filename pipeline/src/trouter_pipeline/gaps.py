"""Numbers of routers' streams that are missing from the table, and the reasons that routers reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from trouter_pipeline.datasets import Records, SegmentFacts

#: The reason of a gap that is no report of the router: its records are there, but `compact` left them out.
LEFT_OUT: Final = "left out: other records have these numbers"

#: One start of one router.
Boot = tuple[str, int]


class Gap(NamedTuple):
    """Missing numbers, and the times in microseconds of the records before and after them."""

    router: str
    boot: int
    from_n: int
    to_n: int
    t_from: int
    t_to: int
    #: The reason that the router reports, or `LEFT_OUT`; "" without one.
    reason: str

    @property
    def explained(self) -> bool:
        return bool(self.reason)


class Report(NamedTuple):
    """Numbers that a router reports as missing."""

    from_n: int
    to_n: int
    reason: str


def gaps_in(records: Records) -> list[Gap]:
    """Return all gaps of the records; BadTable, OSError."""
    return gaps_of(records.segments.values(), reports_in(records))


def reports_in(records: Records) -> dict[Boot, list[Report]]:
    """Return the reports of missing numbers by router and start; BadTable, OSError."""
    reports: dict[Boot, list[Report]] = {}
    for place in records.places("records.dropped"):
        with place.parquet() as file:
            rows = file.read(columns=["router", "boot", "of_boot", "from_n", "to_n", "reason"])
        for row in rows.to_pylist():
            boot = row["boot"] if row["of_boot"] is None else row["of_boot"]
            reports.setdefault((row["router"], boot), []).append(Report(row["from_n"], row["to_n"], row["reason"]))
    return reports


def gaps_of(segments: Iterable[SegmentFacts], reports: Mapping[Boot, list[Report]]) -> list[Gap]:
    """Return numbers that are in no segment, by router, start and number; reported ones apart from others.

    Segments that were left out come last.
    """
    boots: dict[Boot, list[SegmentFacts]] = {}
    left_out: list[SegmentFacts] = []
    for facts in segments:
        if facts.left_out:
            left_out.append(facts)
        else:
            boots.setdefault((facts.router, facts.boot), []).append(facts)
    missing = [
        piece
        for (router, boot), known in sorted(boots.items())
        for gap in _missing(router, boot, known)
        for piece in _split(gap, reports.get((router, boot), []))
    ]
    return missing + [
        Gap(each.router, each.boot, each.first, each.last, each.t_min, each.t_max, LEFT_OUT)
        for each in sorted(left_out, key=lambda each: (each.router, each.boot, each.first, each.crc))
    ]


def _missing(router: str, boot: int, known: Iterable[SegmentFacts]) -> list[Gap]:
    """Return the gaps of one start, from 0 to its last number. Segments may overlap."""
    runs = sorted(run for facts in known for run in _runs(facts))
    gaps = []
    last, t_last = -1, 0
    for first, to, t_first, t_to in runs:
        if first > last + 1:
            gaps.append(Gap(router, boot, last + 1, first - 1, t_last or t_first, t_first, ""))
        if to > last:
            last, t_last = to, t_to
    return gaps


def _runs(facts: SegmentFacts) -> list[tuple[int, int, int, int]]:
    """Return the ranges of numbers in a segment, from and to, and their times."""
    if not facts.count:
        return []
    runs = []
    first, t_first = facts.first, facts.t_min
    for from_n, to_n, t_from, t_to in facts.gaps:
        if from_n > first:
            runs.append((first, from_n - 1, t_first, t_from))
        first, t_first = to_n + 1, t_to
    return [*runs, (first, facts.last, t_first, facts.t_max)]


def _split(gap: Gap, reports: Iterable[Report]) -> list[Gap]:
    """Split a gap into pieces with one reason each."""
    edges = {gap.from_n, gap.to_n + 1}
    touching = [each for each in reports if each.from_n <= gap.to_n and each.to_n >= gap.from_n]
    edges |= {edge for each in touching for edge in (each.from_n, each.to_n + 1) if gap.from_n < edge <= gap.to_n}
    ordered = sorted(edges)
    pieces: list[Gap] = []
    for first, after in pairwise(ordered):
        reasons = [each.reason for each in touching if each.from_n <= first <= each.to_n]
        reason = reasons[0] if reasons else ""
        if pieces and pieces[-1].reason == reason:
            pieces[-1] = pieces[-1]._replace(to_n=after - 1)
        else:
            pieces.append(gap._replace(from_n=first, to_n=after - 1, reason=reason))
    return pieces
