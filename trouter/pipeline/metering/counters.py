"""What is counted, and for whom: columns that all tables made of the meter share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812  # its customary name

if TYPE_CHECKING:
    from pyspark.sql import Column

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


def hour_of(moment_us: Column) -> Column:
    """The hour that a time in microseconds is in, as ``hour``."""
    return F.date_trunc("hour", F.timestamp_micros(moment_us)).alias("hour")


def key_at(moment_us: Column) -> list[Column]:
    """The columns of `KEY` of a row that counts at this time."""
    return [hour_of(moment_us), *[F.col(name) for name in SUBJECTS]]
