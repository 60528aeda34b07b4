"""Any bytes as a message become one row of the source and do not change the rows beside it.

A row has an error and the raw bytes of the message, or it has no error. Each text is UTF-8 and the offsets of each
column ascend.

Allowed: nothing. A message that does not decode becomes a row with an error.
"""

from __future__ import annotations

from typing import Any

from trouter.client import Message
from trouter.testing.fuzz import values as typed_values
from trouter.wire.errors import DecodeError
from trouter_pipeline.columns import Items, Lists, Numbers, Texts
from trouter_pipeline.decoding import Rows
from trouter_pipeline.spool.frames import FrameWriter

MUTATOR = typed_values
COVERS = ("trouter_pipeline.decoding", "trouter_pipeline.values", "trouter_pipeline.columns")

GOOD = Message(b"good", application_properties={"k": "v"}).encode()
BINARY = {"delivery_tag", "user_id", "body", "body_parts", "raw"}
OF_THE_FRAME = {"seq", "ingest_time", "message_format", "settled", "delivery_tag"}


def frames(*messages: bytes) -> bytes:
    writer = FrameWriter(0)
    for message in messages:
        writer.begin(0, b"t", 1)
        writer.extend(message, 0, len(message))
        writer.finish(False)
    return bytes(writer.take())


def cells(data: Any, offsets: Any, valid: Any, count: int, name: str) -> list[bytes | None]:
    found: list[bytes | None] = []
    assert offsets[0] == 0
    for row in range(count):
        assert offsets[row] <= offsets[row + 1]
        assert valid[row] or offsets[row] == offsets[row + 1]
        found.append(bytes(data[offsets[row] : offsets[row + 1]]) if valid[row] else None)
    assert offsets[count] == len(data)
    if name not in BINARY:
        for cell in found:
            (cell or b"").decode()
    return found


def items(column: Items, name: str) -> list[bytes | None]:
    return cells(column.data, column.offsets, column.valid, len(column.valid), name)


def said(name: str, column: Numbers | Texts | Lists, count: int) -> list[Any]:
    """Return the value of each row in a column; None where the row has none."""
    if not column.used:
        return [None] * count
    if isinstance(column, Numbers):
        return [column.values[row] if column.valid[row] else None for row in range(count)]
    if isinstance(column, Texts):
        return list(cells(column.data, column.offsets, column.valid, count, name))
    values = items(column.values, name)
    parts = (
        zip(items(column.keys, name), items(column.kinds, name), values, strict=True)
        if name != "body_parts"
        else values
    )
    entries = list(parts)
    assert column.offsets[count] == len(entries)
    return [
        entries[column.offsets[row] : column.offsets[row + 1]] if column.valid[row] else None for row in range(count)
    ]


def rows_of(*messages: bytes) -> list[dict[str, Any]]:
    rows = Rows(0, len(messages), 1 << 30, 1 << 20)
    block = frames(*messages)
    assert rows.add(block, 0) == len(block)
    rows.finish()
    columns = {name: said(name, column, rows.count) for name, column in rows.columns.items()}
    return [{name: column[row] for name, column in columns.items()} for row in range(rows.count)]


def check(data: bytes) -> None:
    before, row, behind = rows_of(GOOD, data, GOOD)
    assert before["body"] == behind["body"] == b"good"
    assert before["application_properties"] == behind["application_properties"] == [(b"k", b"string", b"v")]
    assert before["error"] is behind["error"] is None
    told = {name for name, value in row.items() if value is not None} - OF_THE_FRAME
    if row["error"] is not None:
        assert told == {"error", "raw"}
        assert row["raw"] == data
    else:
        assert row["body_kind"] is not None
    try:
        decoded = Message.decode(data)
    except DecodeError:
        return
    if row["error"] is None and row["body_kind"] == b"data":
        assert row["body"] == decoded.body
