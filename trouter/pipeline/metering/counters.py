"""What is counted, and for whom: columns that all tables made of the meter share, and the SQL that names them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Final

#: What may be told apart within an hour.
SUBJECTS: Final = ("vhost", "user", "addr", "dir")
KEY: Final = ("hour", *SUBJECTS)
#: Columns of the tables, and what records call them.
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
#: Of a row with ``hour_us``: the columns that a table has of it.
HOUR: Final = "timestamp_micros(hour_us) AS hour"
DATE: Final = "CAST(timestamp_micros(hour_us) AS date) AS date"


def hour_of(moment_us: str) -> str:
    """Return the hour that a time in microseconds is in, as its first microsecond."""
    return f"({moment_us}) - ({moment_us}) % {HOUR_US}"


def among(days: Collection[date]) -> str:
    """Return a list of days to be found in."""
    listed = ", ".join(f"DATE '{day}'" for day in sorted(days))
    return f"({listed or 'NULL'})"


def total(names: Collection[str], of: str = "{}") -> str:
    """Return the sums of columns under their names; of: which value each sums, with the name for `{}`."""
    return ", ".join(f"CAST(sum({of.format(name)}) AS bigint) AS {name}" for name in names)
