"""Tables read with Arrow alone: the files of one version for the dates, and only the needed columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trouter_pipeline.delta import BadTable, NoVersion, Version
from trouter_pipeline.parquet import File
from trouter_pipeline.places import Where
from trouter_pipeline.tables import Table

_TIME: Final = pa.timestamp("us", "UTC")
_TEXT: Final = pa.string()
_WHOLE: Final = pa.int64()
_REAL: Final = pa.float64()
_YES_NO: Final = pa.bool_()
_LIST: Final = pa.list_(pa.int64())
_TEXTS: Final = pa.list_(pa.string())

#: The columns that are read of each table, with their types.
COLUMNS: Final[Mapping[str, Mapping[str, Any]]] = {
    "meter": {
        "hour": _TIME, "vhost": _TEXT, "user": _TEXT, "addr": _TEXT, "dir": _TEXT, "msgs": _WHOLE, "bytes": _WHOLE,
        "accepted": _WHOLE, "rejected": _WHOLE, "released": _WHOLE, "modified": _WHOLE, "presettled": _WHOLE,
        "dropped": _WHOLE, "estimated_msgs": _WHOLE, "complete": _YES_NO,
    },
    "meter_conn": {
        "hour": _TIME, "vhost": _TEXT, "user": _TEXT, "connection_hours": _REAL, "peak_connections": _WHOLE,
        "failed": _WHOLE,
    },
    "meter_gaps": {
        "router": _TEXT, "boot": _WHOLE, "from_n": _WHOLE, "to_n": _WHOLE, "t_from": _TIME, "t_to": _TIME,
        "explained": _YES_NO, "reason": _TEXT,
    },
    "audit_alerts": {
        "alert_id": _TEXT, "rule": _TEXT, "user": _TEXT, "host": _TEXT, "vhost": _TEXT, "first_at": _TIME,
        "last_at": _TIME, "failures": _WHOLE, "distinct": _WHOLE, "evidence": _TEXTS,
    },
    "audit_rules": {"date": pa.date32(), "vhost": _TEXT, "rule": _TEXT, "allowed": _WHOLE, "denied": _WHOLE},
    "fraud_alerts": {
        "key": _TEXT, "large_n": _WHOLE, "tester_t": _TIME, "large_t": _TIME, "tester_amount": _REAL,
        "large_amount": _REAL,
    },
    "latency": {
        "hour": _TIME, "vhost": _TEXT, "addr": _TEXT, "family": _TEXT, "cnt": _WHOLE, "max_us": _WHOLE, "bi": _LIST,
        "bc": _LIST,
    },
    "top": {
        "hour": _TIME, "dimension": _TEXT, "rank": _WHOLE, "subject": _TEXT, "msgs": _WHOLE, "bytes": _WHOLE,
        "share": _REAL,
    },
    "topology_history": {
        "router": _TEXT, "peer": _TEXT, "up_at": _TIME, "down_at": _TIME, "cost": _WHOLE, "flap": _YES_NO,
        "converge_us": _WHOLE,
    },
}  # fmt: skip


class NoTable(Exception):
    """The table does not exist."""


#: The columns that say from when until when a row is; a row without the second one goes on. Others are whole days.
TIMES: Final[Mapping[str, tuple[str, str]]] = {
    "meter": ("hour", "hour"), "meter_conn": ("hour", "hour"), "meter_gaps": ("t_from", "t_to"),
    "audit_alerts": ("first_at", "last_at"), "fraud_alerts": ("large_t", "large_t"), "latency": ("hour", "hour"),
    "top": ("hour", "hour"), "topology_history": ("up_at", "down_at"),
}  # fmt: skip


@dataclass(frozen=True)
class Period:
    """A range of dates or moments, both ends included; None for an open end. A date is the whole day, in UTC."""

    first: date | None = None
    last: date | None = None

    def has(self, day: str) -> bool:
        """Return whether ``day`` (as in the log, 2026-03-01) is in the range, at least in part."""
        found = date.fromisoformat(day)
        return (self.first is None or found >= _day_of(self.first)) and (
            self.last is None or found <= _day_of(self.last)
        )

    def of(self, name: str, rows: Any) -> Any:
        """Return the rows of a table that are in the range, of those whose days are."""
        if name not in TIMES:
            return rows
        begin, end = TIMES[name]
        if isinstance(self.first, datetime):
            goes_on = pc.is_null(rows[end])
            rows = rows.filter(
                pc.or_(goes_on, pc.greater_equal(rows[end], pa.scalar(self.first, _TIME)).fill_null(True))
            )
        if isinstance(self.last, datetime):
            rows = rows.filter(pc.less_equal(rows[begin], pa.scalar(self.last, _TIME)))
        return rows


def _day_of(end: date) -> date:
    """Return the day of the end of a range."""
    return end.astimezone(UTC).date() if isinstance(end, datetime) else end


def read(root: Where, name: str, period: Period, at: int | datetime | None = None) -> Any:
    """Return a pyarrow.Table with the columns of COLUMNS, of the last version or that of ``at``; NoTable, BadTable."""
    table = Table(root, name, at)
    try:
        version = table.version()
        if version is None or table.last_commit() is None:
            raise NoTable(f"there is no table {name}")
        columns = COLUMNS[name]
        parts = [_read_file(version, file, columns) for file in version.files if period.has(file.partition[0] or "")]
    except NoVersion as error:
        raise NoTable(str(error)) from None
    except OSError as error:
        raise BadTable(f"{error.filename}: {error.strerror}") from None
    return period.of(name, pa.concat_tables([pa.schema(list(columns.items())).empty_table(), *parts]))


def _read_file(version: Version, file: File, columns: Mapping[str, Any]) -> Any:
    """Return a file's columns; ``date`` is not in it."""
    stored = [column for column in columns if column != "date"]
    found = version.rows(file, stored)
    if lacking := [column for column in stored if column not in found.column_names]:
        raise BadTable(f"{version.path(file)}: there is no column {lacking[0]}")
    cast = []
    for column, kind in columns.items():
        if column == "date":
            cast.append(pa.array([date.fromisoformat(file.partition[0] or "")] * found.num_rows, kind))
            continue
        try:
            cast.append(found[column].cast(kind, safe=False))
        except pa.ArrowException as error:
            raise BadTable(
                f"{version.path(file)}: column {column} is {found[column].type}, not {kind} ({error})"
            ) from None
    return pa.table(cast, names=list(columns))
