"""Rows of a spool as Arrow record batches in the schema of the source, without copies of the buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from trouter_pipeline.columns import Items, Lists, Numbers, Texts
from trouter_pipeline.decoding import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Limits of a batch for Spark: rows, and bytes of messages.
BATCH_ROWS: Final = 4096
BATCH_BYTES: Final = 8 << 20

_ENTRY: Final = pa.struct([("type", pa.string()), ("value", pa.string())])
_TYPED: Final = pa.map_(pa.string(), _ENTRY)
_TIME: Final = pa.timestamp("us", tz="UTC")
_HEADER: Final = pa.struct(
    [
        ("durable", pa.bool_()),
        ("priority", pa.int16()),
        ("ttl", pa.int64()),
        ("first_acquirer", pa.bool_()),
        ("delivery_count", pa.int64()),
    ]
)
#: The schema of the source in Arrow; Spark compares names, order and types.
ARROW_SCHEMA: Final = pa.schema(
    [
        ("spool_id", pa.string()),
        ("seq", pa.int64()),
        ("ingest_time", _TIME),
        ("shard", pa.int32()),
        ("address", pa.string()),
        ("delivery_tag", pa.binary()),
        ("message_format", pa.int64()),
        ("settled", pa.bool_()),
        ("header", _HEADER),
        ("delivery_annotations", _TYPED),
        ("message_annotations", _TYPED),
        ("message_id", pa.string()),
        ("message_id_type", pa.string()),
        ("user_id", pa.binary()),
        ("to", pa.string()),
        ("subject", pa.string()),
        ("reply_to", pa.string()),
        ("correlation_id", pa.string()),
        ("correlation_id_type", pa.string()),
        ("content_type", pa.string()),
        ("content_encoding", pa.string()),
        ("absolute_expiry_time", _TIME),
        ("creation_time", _TIME),
        ("group_id", pa.string()),
        ("group_sequence", pa.int64()),
        ("reply_to_group_id", pa.string()),
        ("application_properties", _TYPED),
        ("body_kind", pa.string()),
        ("body", pa.binary()),
        ("body_parts", pa.list_(pa.binary())),
        ("body_value", pa.string()),
        ("footer", _TYPED),
        ("error", pa.string()),
        ("raw", pa.binary()),
    ]
)


class Origin(NamedTuple):
    """The spool of a batch's rows."""

    spool: str
    shard: int
    address: str


def batches(
    blocks: Iterable[bytes], origin: Origin, start: int, end: int, max_message: int, *, keeps_messages: bool = False
) -> Iterator[tuple[pa.RecordBatch, Rows]]:
    """Yield the messages ``start`` to ``end`` - 1, which ``blocks`` hold in whole frames, in batches.

    With ``keeps_messages`` the column `raw` has every message, else those that could not be decoded.
    FrameFault if the frames are others or damaged: missing rows must never look like no rows.
    """
    rows = _rows(start, end, max_message, keeps_messages=keeps_messages)
    for block in blocks:
        offset = 0
        while offset < len(block):
            offset = rows.add(block, offset)
            if rows.full():
                yield record_batch(rows, origin), rows
                full, rows = rows, _rows(rows.next, end, max_message, keeps_messages=keeps_messages)
                rows.expect_like(full)
    if rows.count:
        yield record_batch(rows, origin), rows


def _rows(start: int, end: int, max_message: int, *, keeps_messages: bool) -> Rows:
    capacity = max(1, min(BATCH_ROWS, end - start))
    return Rows(start, capacity, BATCH_BYTES, max_message, keeps_messages=keeps_messages)


def record_batch(rows: Rows, origin: Origin) -> pa.RecordBatch:
    """Return ``rows`` as a batch; nothing may be added to them afterwards."""
    rows.finish()
    constants = {"spool_id": origin.spool, "shard": origin.shard, "address": origin.address}
    arrays = [
        pa.repeat(pa.scalar(constants[field.name], field.type), rows.count)
        if field.name in constants
        else _array(rows.columns, field.name, field.type, rows.count)
        for field in ARROW_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


def _array(columns: Mapping[str, Any], name: str, kind: pa.DataType, count: int) -> pa.Array:
    column = columns[name]
    if not column.used:
        return pa.nulls(count, kind)
    if isinstance(column, Texts):
        return _texts(column.data, column.offsets, column.valid, kind, count)
    if isinstance(column, Lists):
        return _typed_map(column, count) if kind == _TYPED else _list(column, kind, count)
    if kind == _HEADER:
        fields = [_array(columns, field.name, field.type, count) for field in kind]
        return pa.StructArray.from_buffers(kind, count, [_validity(column.valid, count)], children=fields)
    return _numbers(column, kind, count)


def _validity(valid: Any, count: int) -> pa.Buffer | None:
    """Return a bit for each row, None if all are valid."""
    octets = np.frombuffer(valid, np.uint8, count)
    return None if octets.all() else pa.py_buffer(np.packbits(octets, bitorder="little"))


def _numbers(column: Numbers, kind: pa.DataType, count: int) -> pa.Array:
    values = np.frombuffer(column.values, np.int64, count)
    buffer: Any = values
    if kind == pa.bool_():
        buffer = np.packbits(values.astype(np.uint8), bitorder="little")
    elif kind == pa.int16():
        buffer = values.astype(np.int16)
    return pa.Array.from_buffers(kind, count, [_validity(column.valid, count), pa.py_buffer(buffer)])


def _texts(data: bytearray, offsets: Any, valid: Any, kind: pa.DataType, count: int) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [_validity(valid, count), pa.py_buffer(offsets), pa.py_buffer(data)])


def _items(items: Items, kind: pa.DataType) -> pa.Array:
    count = len(items.valid)
    return _texts(items.data, items.offsets, items.valid, kind, count) if count else pa.nulls(0, kind)


def _list(column: Lists, kind: pa.DataType, count: int) -> pa.Array:
    buffers = [_validity(column.valid, count), pa.py_buffer(column.offsets)]
    return pa.Array.from_buffers(kind, count, buffers, children=[_items(column.values, kind.value_type)])


def _typed_map(column: Lists, count: int) -> pa.Array:
    entry = pa.StructArray.from_arrays(
        [_items(column.kinds, pa.string()), _items(column.values, pa.string())], fields=list(_ENTRY)
    )
    pairs = pa.StructArray.from_arrays(
        [_items(column.keys, pa.string()), entry], fields=[_TYPED.key_field, _TYPED.item_field]
    )
    buffers = [_validity(column.valid, count), pa.py_buffer(column.offsets)]
    return pa.Array.from_buffers(_TYPED, count, buffers, children=[pairs])
