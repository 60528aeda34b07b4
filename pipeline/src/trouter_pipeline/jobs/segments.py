"""Tables that are made from records: their segments, and what to compute again when these change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from trouter_pipeline.datasets import NO_RECORDS, Records
from trouter_pipeline.pruned import frozen_by, pruned_days
from trouter_pipeline.streams import without_streams
from trouter_pipeline.tables import Table


@dataclass(frozen=True)
class Material:
    """The input of a table."""

    #: Segments by name, with their checksums.
    inputs: Mapping[str, int]
    #: What distinguishes them from the inputs of the table (see `Table.changes_to`).
    changes: Mapping[str, int | None]
    #: Segments that the table does not include yet, or must not include any more.
    fresh: frozenset[str]
    #: Days of these segments or of the table's rows, without frozen days.
    fresh_days: frozenset[date]
    #: All days from the first to the last with records or rows, without frozen days.
    days: frozenset[date]
    #: Time of the last record, in microseconds since 1970.
    until: int

    @property
    def nothing(self) -> str | None:
        """Why no work is due; None if there is some."""
        if not self.inputs and not self.fresh:
            return NO_RECORDS
        return None if self.fresh else "nothing is new"


def material_of(
    records: Records, table: Table, version: int, parameters: Mapping[str, object], *, again: bool = False
) -> Material:
    """Return the input of a table. Another version of the job or other parameters make all segments new.

    NoRecords, BadTable, OSError.
    """
    records.require_own_rows()
    segments, frozen = records.segments, frozen_by(records, table.name) | pruned_days(table)
    inputs = {name: facts.crc for name, facts in sorted(segments.items())}
    if not again:
        table.require_own_rows()
    before = table.last_commit()
    same = before is not None and before.is_by(version, parameters) and not again
    changes = table.changes_to(inputs)
    fresh = without_streams(changes).keys() if same else inputs.keys()
    kept = table.dates()
    gone = not fresh <= inputs.keys()  # the days of deleted segments are unknown
    days = {name: facts.days() for name, facts in segments.items()}
    there = set[date]().union(*days.values())
    changed = set[date]().union(*(days.get(name, set()) for name in fresh))
    if (not same and fresh) or gone:
        changed = there | kept
    return Material(
        inputs,
        changes,
        frozenset(fresh),
        frozenset(changed - frozen),
        frozenset((_every_day(there) | kept) - frozen),
        max((facts.t_max for facts in segments.values()), default=0),
    )


def _every_day(days: set[date]) -> set[date]:
    """Return these days and all between them."""
    if not days:
        return set()
    first, last = min(days), max(days)
    return {first + timedelta(number) for number in range((last - first).days + 1)}
