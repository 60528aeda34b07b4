"""The counted columns and subjects that all tables made of the meter share, and their SQL."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Final

#: Columns by which an hour is divided.
SUBJECTS: Final = ("vhost", "user", "addr", "dir")
KEY: Final = ("hour", *SUBJECTS)
#: Columns of the tables, and their names in records.
COUNTED: Final = {
    "msgs": "msgs",
    "bytes": "bytes",
    "accepted": "accepted",
    "rejected": "rejected",
    "released": "released",
    "modified": "modified",
    "presettled": "presettled",
    "dropped": "dropped_presettled",
    "undeliverable": "undeliverable",
}
HOUR_US: Final = 3_600_000_000
#: Columns of a table, computed from ``hour_us``.
HOUR: Final = "timestamp_micros(hour_us) AS hour"
DATE: Final = "CAST(timestamp_micros(hour_us) AS date) AS date"


def summed_after(attached: str) -> str:
    """Return SQL for whether the user of an attach has an end of links later that stands for several.

    A router writes such a record for a user whose links end very often, so the link's own end may be in it.
    """
    same = " AND ".join(f"several.{name} = {attached}.{name}" for name in ("router", "boot"))
    user = " AND ".join(f"several.{name} IS NOT DISTINCT FROM {attached}.{name}" for name in ("vhost", "user"))
    return f"several.repeat > 1 AND {same} AND {user} AND several.n > {attached}.n"


def hour_of(moment_us: str) -> str:
    """Return SQL for the first microsecond of the hour of a time in microseconds."""
    return f"({moment_us}) - ({moment_us}) % {HOUR_US}"


def among(days: Collection[date]) -> str:
    """Return an SQL list of days."""
    listed = ", ".join(f"DATE '{day}'" for day in sorted(days))
    return f"({listed or 'NULL'})"


def total(names: Collection[str], of: str = "{}") -> str:
    """Return SQL sums of columns under their names; ``of`` is the summed expression, with `{}` for the name."""
    return ", ".join(f"CAST(sum({of.format(name)}) AS bigint) AS {name}" for name in names)
