"""Any bytes that a reader of the data path accepts as a transfer, disposition or flow give the decoder the same fields.

The descriptor picks the reader; the first byte is ignored.

Allowed: DecodeError from both, because most bytes are no performative. A reader of the data path skips fields that it
does not use, so it may accept a frame that the decoder refuses for such a field. The decoder accepts no frame that a
reader refuses.
"""

from __future__ import annotations

from trouter.testing.fuzz import behind, values
from trouter.wire.errors import DecodeError
from trouter.wire.performatives import Disposition, Flow, Performative, Transfer, decode_performative
from trouter.wire.transfers import DispositionReader, FlowReader, TransferReader, read_descriptor

MUTATOR = behind(1, values)
COVERS = ("trouter.wire.transfers",)


def decoded(data: bytes) -> tuple[Performative, int] | None:
    try:
        return decode_performative(data, 0, len(data))
    except DecodeError:
        return None


def same(found: object, number: int) -> bool:
    """Return whether a reader's number, -1 for none, equals the decoder's value."""
    return number == (-1 if found is None else int(found))  # type: ignore[call-overload]


def check_transfer(data: bytes) -> None:
    reader, other = TransferReader(), decoded(data)
    try:
        reader.parse(data, 0, len(data))
    except DecodeError:
        assert other is None or not isinstance(other[0], Transfer)
        return
    assert 0 < reader.payload <= len(data)
    if other is None:
        return
    transfer, behind_it = other
    assert isinstance(transfer, Transfer)
    assert reader.payload == behind_it
    assert reader.handle == transfer.handle
    assert reader.copy_delivery_tag() == transfer.delivery_tag
    assert same(transfer.delivery_id, reader.delivery_id)
    assert same(transfer.message_format, reader.message_format)
    assert same(transfer.settled, reader.settled)
    assert same(transfer.rcv_settle_mode, reader.rcv_settle_mode)
    flags = (reader.more, reader.resume, reader.aborted, reader.batchable)
    assert flags == (transfer.more, transfer.resume, transfer.aborted, transfer.batchable)
    assert (reader.state is None) == (transfer.state is None)


def check_disposition(data: bytes) -> None:
    reader, other = DispositionReader(), decoded(data)
    try:
        reader.parse(data, 0, len(data))
    except DecodeError:
        assert other is None or not isinstance(other[0], Disposition)
        return
    if other is None:
        return
    disposition = other[0]
    assert isinstance(disposition, Disposition)
    last = disposition.first if disposition.last is None else disposition.last
    assert (reader.first, reader.last) == (disposition.first, last)
    assert (bool(reader.role), reader.settled) == (disposition.role, disposition.settled)
    assert (reader.state is None) == (disposition.state is None)


def check_flow(data: bytes) -> None:
    reader, other = FlowReader(), decoded(data)
    try:
        reader.parse(data, 0, len(data))
    except DecodeError:
        assert other is None or not isinstance(other[0], Flow)
        return
    if other is None:
        return
    flow = other[0]
    assert isinstance(flow, Flow)
    windows = (reader.incoming_window, reader.next_outgoing_id, reader.outgoing_window)
    assert windows == (flow.incoming_window, flow.next_outgoing_id, flow.outgoing_window)
    for name in ("next_incoming_id", "handle", "delivery_count", "link_credit", "available"):
        assert same(getattr(flow, name), getattr(reader, name))
    assert (reader.drain, reader.echo) == (flow.drain, flow.echo)


CHECKS = {0x14: check_transfer, 0x15: check_disposition, 0x13: check_flow}


def check(data: bytes) -> None:
    frame = data[1:]
    try:
        code = read_descriptor(frame, 0, len(frame))
    except DecodeError:
        return
    if code in CHECKS:
        CHECKS[code](frame)
