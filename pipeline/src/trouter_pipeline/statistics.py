"""Statistics of the columns of a new file, by which engines skip files: least, greatest, and number of nulls.

They come from the Parquet footer, and are in the log as Delta's protocol has them ("Per-file Statistics"). A file has
them of every column of a simple type, or of none: if it lacks those of one, `DeltaTable.to_pyarrow_dataset` compares
that column with null, and a filter of it and another column finds no row (deltalake 1.6.6; of the kind of
https://github.com/delta-io/delta-rs/issues/3173).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyarrow.parquet import ColumnChunkMetaData, FileMetaData

#: Columns, from the first on, whose statistics readers use unless a table says otherwise.
INDEXED: Final = 32
#: Characters of a text in a bound; a greatest text that is cut gets a last one that is above all, as in delta-spark.
_TEXT: Final = 32
_ABOVE_ALL: Final = "\U0010ffff"
#: Digits of a number that every reader of JSON keeps.
_DIGITS: Final = 15
_MS: Final = timedelta(milliseconds=1)


class _NoBound(Exception):
    """A value has no bound that is exact in JSON."""


def is_simple(kind: pa.DataType) -> bool:
    """Return whether columns of a type have statistics: those that are neither bytes nor nested."""
    bytes_of = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return not (pa.types.is_nested(kind) or any(are(kind) for are in bytes_of))


def are_finite(rows: pa.Table) -> bool:
    """Return whether all numbers are finite; NaN is not in a footer, and JSON has no infinity."""
    numbers = (rows[each.name] for each in rows.schema if pa.types.is_floating(each.type))
    return all(pc.all(pc.is_finite(each), min_count=0).as_py() for each in numbers)


def of_footer(footer: FileMetaData, schema: pa.Schema) -> str:
    """Return the statistics of a file in JSON; "" if one of its columns has none that are exact."""
    simple = {each.name for each in schema if is_simple(each.type)}
    least, greatest, nulls = {}, {}, {}
    try:
        for at in range(footer.num_columns):
            if (name := footer.schema.column(at).path) in simple:
                groups = [footer.row_group(number).column(at) for number in range(footer.num_row_groups)]
                nulls[name] = sum(_nulls(each) for each in groups)
                if nulls[name] < footer.num_rows:
                    least[name], greatest[name] = _bounds(groups)
    except (_NoBound, ValueError, OverflowError):  # the last two: times that Python cannot tell
        return ""
    return json.dumps({"minValues": least, "maxValues": greatest, "nullCount": nulls})


def in_log(statistics: str, rows: int, columns: Iterable[str]) -> str:
    """Return statistics of a file for the log, with those of ``columns`` of its table that it lacks: all are null."""
    if not statistics:
        return json.dumps({"numRecords": rows})
    kept = list(islice(columns, INDEXED))
    found = json.loads(statistics)
    found = {what: {name: values[name] for name in kept if name in values} for what, values in found.items()}
    found["nullCount"] = dict.fromkeys(kept, rows) | found["nullCount"]
    return json.dumps({"numRecords": rows, **found})


def simple_columns(columns: Mapping[str, Any]) -> list[str]:
    """Return the columns of a table that have statistics, by their types in Delta's JSON."""
    return [name for name, kind in columns.items() if isinstance(kind, str) and kind != "binary"]


def _nulls(chunk: ColumnChunkMetaData) -> int:
    if not chunk.is_stats_set or not chunk.statistics.has_null_count:
        raise _NoBound
    return int(chunk.statistics.null_count)


def _bounds(groups: list[ColumnChunkMetaData]) -> tuple[Any, Any]:
    """Return the least and the greatest value of a column that has some."""
    filled = [each.statistics for each in groups if each.statistics.num_values]
    if all(each.has_min_max for each in filled):
        return _least(min(each.min for each in filled)), _greatest(max(each.max for each in filled))
    if filled[0].logical_type.type == "STRING":  # they are too long for a footer
        return "", _ABOVE_ALL * _TEXT
    raise _NoBound


def _least(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_TEXT]
    return _exact(value - timedelta(microseconds=value.microsecond % 1000) if isinstance(value, datetime) else value)


def _greatest(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT else value[:_TEXT] + _ABOVE_ALL
    if isinstance(value, datetime) and value.microsecond % 1000:
        value += _MS - timedelta(microseconds=value.microsecond % 1000)
    return _exact(value)


def _exact(value: Any) -> Any:
    """Return a value as JSON has it; _NoBound."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat(timespec="milliseconds")
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        if len(value.as_tuple().digits) > _DIGITS:
            raise _NoBound
        return float(value)
    if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise _NoBound
