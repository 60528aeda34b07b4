"""Spark's types as Arrow's types, and as Python types by which msgspec verifies values.

Spark's own conversion into Arrow has another spelling in each of its versions.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Final, NotRequired, Required, TypedDict

import msgspec
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - its customary name

_WHOLE: Final[dict[type[T.DataType], tuple[int, Any]]] = {
    T.ByteType: (8, pa.int8()),
    T.ShortType: (16, pa.int16()),
    T.IntegerType: (32, pa.int32()),
    T.LongType: (64, pa.int64()),
}
#: msgspec's type, and Arrow's.
_PLAIN: Final[dict[type[T.DataType], tuple[Any, Any]]] = {
    T.StringType: (str, pa.string()),
    T.BooleanType: (bool, pa.bool_()),
    T.FloatType: (float, pa.float32()),
    T.DoubleType: (float, pa.float64()),
    T.BinaryType: (bytes, pa.binary()),
    T.DateType: (date, pa.date32()),
    T.TimestampType: (datetime, pa.timestamp("us", "UTC")),
    T.TimestampNTZType: (Annotated[datetime, msgspec.Meta(tz=False)], pa.timestamp("us")),
}


class NoShape(ValueError):
    """An unsupported type of Spark; the text names it."""


def arrow_type(kind: T.DataType) -> pa.DataType:
    """Return Arrow's type for Spark's; NoShape."""
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)][1]
    if type(kind) in _WHOLE:
        return _WHOLE[type(kind)][1]
    if isinstance(kind, T.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, T.ArrayType):
        return pa.list_(pa.field("element", arrow_type(kind.elementType), kind.containsNull))
    if isinstance(kind, T.MapType):
        value = pa.field("value", arrow_type(kind.valueType), kind.valueContainsNull)
        return pa.map_(arrow_type(kind.keyType), value)
    if isinstance(kind, T.StructType):
        return pa.struct([pa.field(each.name, arrow_type(each.dataType), each.nullable) for each in kind])
    raise NoShape(f"{kind.simpleString()} has no place here")


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Return the schema of batches that Spark accepts as ``schema``; NoShape."""
    return pa.schema(list(arrow_type(schema)))


def python_type(kind: T.DataType) -> Any:
    """Return the type by which msgspec accepts the values that Spark can hold; NoShape."""
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)][0]
    if type(kind) in _WHOLE:
        bits = _WHOLE[type(kind)][0]
        return Annotated[int, msgspec.Meta(ge=-(1 << (bits - 1)), le=(1 << (bits - 1)) - 1)]
    if isinstance(kind, T.DecimalType):
        return Decimal
    if isinstance(kind, T.ArrayType):
        return list[_maybe(kind.elementType, kind.containsNull)]  # type: ignore[misc]  # made as it runs
    if isinstance(kind, T.MapType) and isinstance(kind.keyType, T.StringType):
        return dict[str, _maybe(kind.valueType, kind.valueContainsNull)]  # type: ignore[misc]
    if isinstance(kind, T.StructType):
        fields: dict[str, Any] = {}
        for each in kind:
            wanted = _maybe(each.dataType, each.nullable)
            fields[each.name] = NotRequired[wanted] if each.nullable else Required[wanted]
        return TypedDict("Fields", fields)  # type: ignore[operator]
    raise NoShape(f"{kind.simpleString()} cannot be read from a body")


def _maybe(kind: T.DataType, nullable: bool) -> Any:
    wanted = python_type(kind)
    return wanted | None if nullable else wanted
