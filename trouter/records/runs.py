"""Runs of deleted segments: each follows the one before by its header, so a run says exactly what was deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trouter.records.schema import RecordsDropped
from trouter.records.segments import DeletedRun, Position

#: Runs that are kept. Retention leaves fewer unless an intruder removes segments; beyond that, the oldest is forgotten,
#: and a check reports its segments as missing.
_MAX_RUNS: Final = 128


class Runs:
    """The runs of one router, those that follow each other joined."""

    def __init__(self) -> None:
        self._runs: list[DeletedRun] = []

    def __iter__(self) -> Iterator[DeletedRun]:
        return iter(self._runs)

    def add(self, run: DeletedRun) -> DeletedRun:
        """Add a valid run; return the joined one that it is part of."""
        for other in list(self._runs):
            joined = _join(other, run)
            if joined is not None:
                self._runs.remove(other)
                run = joined
        self._runs.append(run)
        if len(self._runs) > _MAX_RUNS:
            self._runs.remove(min(self._runs, key=lambda kept: kept.begin))
        return run

    def within(self, first: Position, last: Position) -> list[DeletedRun]:
        """Return the runs that have a segment between two positions, oldest first."""
        overlapping = [run for run in self._runs if first <= run.end and run.begin <= last]
        return sorted(overlapping, key=lambda run: run.begin)


def _join(one: DeletedRun, other: DeletedRun) -> DeletedRun | None:
    """Return the run of two, None if neither includes or follows the other.

    Two runs between whose seals a number is missing stay apart: segments between them may have been removed otherwise.
    """
    earlier, later = sorted((one, other), key=lambda run: (run.begin, -run.end[0], -run.end[1]))
    if later.end <= earlier.end:
        return earlier
    if later.after != earlier.last:
        return None
    if earlier.to_seal is not None and later.from_seal is not None and later.from_seal != earlier.to_seal + 1:
        return None
    return DeletedRun(
        first=earlier.first,
        last=later.last,
        after=earlier.after,
        from_seal=later.from_seal if earlier.from_seal is None else earlier.from_seal,
        to_seal=earlier.to_seal if later.to_seal is None else later.to_seal,
    )


def run_of(dropped: RecordsDropped) -> DeletedRun | None:
    """Return the run that a record reports; None if it names no segments, or none that can be."""
    if dropped.from_seg is None or dropped.to_seg is None:
        return None
    run = DeletedRun(
        first=dropped.from_seg,
        last=dropped.to_seg,
        after=dropped.after_seg,
        from_seal=dropped.from_seal,
        to_seal=dropped.to_seal,
    )
    return run if run.is_valid() else None
