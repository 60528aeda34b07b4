"""Tables that are made from the meter: which days to compute again after some of its days have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from trouter_pipeline.jobs.meter import METER
from trouter_pipeline.places import Where
from trouter_pipeline.pruned import pruned_days
from trouter_pipeline.tables import Table


@dataclass(frozen=True, slots=True)
class Summary:
    """The days that were computed, or why none was."""

    days: Sequence[date] = ()
    nothing: str | None = None


def summary_of(root: Where, days: set[date]) -> Summary:
    """Return the summary of a job that computed these days; BadTable, OSError."""
    if days:
        return Summary(sorted(days))
    if Table(root, METER).last_commit() is None:
        return Summary(nothing="there is no table meter yet: run `trouter pipeline meter` first")
    return Summary(nothing="nothing is new")


def generations(meter: Table) -> dict[str, int]:
    """Return the days of the meter, each with a number that changes with the day; BadTable, OSError."""
    return {f"{meter.name}/{day}": number for day, number in meter.generations().items()}


def changed_days(
    table: Table,
    meter: Table,
    inputs: Mapping[str, int],
    version: int,
    parameters: Mapping[str, object],
    *,
    again: bool,
) -> set[date]:
    """Return the days to compute again, with those that the meter no longer has. BadTable, OSError.

    Days of which rows of the meter were pruned are left out, because their counts would be too low.
    """
    meter.require_own_rows()
    if not again:
        table.require_own_rows()
    before = table.last_commit()
    same = before is not None and before.is_by(version, parameters) and not again
    held = before.inputs if before is not None and same else {}
    names = {name for name in inputs.keys() | held.keys() if inputs.get(name) != held.get(name)}
    days = {date.fromisoformat(name.rpartition("/")[2]) for name in names}
    return (days if same else days | table.dates()) - pruned_days(meter)
