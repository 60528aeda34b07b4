"""Write the frames of the data path straight into a connection's output (AMQP 1.0 part 2, 2.7.4-2.7.6).

Most transfers begin with the same bytes except for some numbers: those are copied, and the numbers filled in. They are
the same for all links, so that a router with many links reads nothing of a link's own for this. Anything unusual (a
delivery tag of another length, a message format, a delivery state on the transfer) takes the general encoder.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from trouter.wire import octets

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

#: Octets of frame header, performative and tag in a templated first frame, and in a continuation.
TRANSFER_OVERHEAD: Final = 37
CONTINUATION_OVERHEAD: Final = 24
#: The general encoder's most, without the delivery state: list32, a tag of 32 octets, every flag.
GENERAL_OVERHEAD: Final = 96

# Offsets in the heads below; C numbers in the compiled twin.
_CHANNEL: Final[Py_ssize_t] = 6
_HANDLE: Final[Py_ssize_t] = 15
_ID: Final[Py_ssize_t] = 20
_TAG: Final[Py_ssize_t] = 26
_SETTLED: Final[Py_ssize_t] = 35
_MORE: Final[Py_ssize_t] = 36
_MORE_AGAIN: Final[Py_ssize_t] = 23
_FIRST_OVERHEAD: Final[Py_ssize_t] = TRANSFER_OVERHEAD
_AGAIN_OVERHEAD: Final[Py_ssize_t] = CONTINUATION_OVERHEAD
#: A frame's header, a transfer's descriptor, and a list of six fields: handle, delivery-id, tag, format, settled, more.
_FIRST: Final[bytes] = (
    b"\0\0\0\0\2\0\0\0\0\x53\x14\xc0\x18\x06\x70\0\0\0\0\x70\0\0\0\0\xa0\x08" + bytes(8) + b"\x43\x42\x42"
)
_AGAIN: Final[bytes] = b"\0\0\0\0\2\0\0\0\0\x53\x14\xc0\x0b\x06\x70\0\0\0\0\x40\x40\x40\x40\x42"
# The same of a disposition: the list's size and count, then role, first, last and settled; its state follows.
_LIST_BYTES: Final[Py_ssize_t] = 12
_LIST_COUNT: Final[Py_ssize_t] = 13
_ROLE: Final[Py_ssize_t] = 14
_FIRST_ID: Final[Py_ssize_t] = 16
_LAST_ID: Final[Py_ssize_t] = 21
_RANGE_SETTLED: Final[Py_ssize_t] = 25
_DISPOSITION_BYTES: Final[Py_ssize_t] = 26
#: Larger ones need a list of the long form.
_MAX_SHORT_STATE: Final[Py_ssize_t] = 242
_DISPOSITION: Final[bytes] = b"\0\0\0\0\2\0\0\0\0\x53\x15\xc0\0\0\x42\x70\0\0\0\0\x70\0\0\0\0\x42"


def write_first_frame(
    out: bytearray,
    channel: c_int,
    handle: Py_ssize_t,
    delivery_id: Py_ssize_t,
    number: Py_ssize_t,
    settled: bool,
    more: bool,
    data: bytes,
    start: Py_ssize_t,
    end: Py_ssize_t,
) -> None:
    """Write the first transfer frame of a delivery with the tag ``number`` (8 bytes, little-endian)."""
    at: Py_ssize_t = len(out)
    body: Py_ssize_t = at + _FIRST_OVERHEAD
    octets.lengthen(out, body + end - start)
    octets.put_slice(out, at, _FIRST, 0, _FIRST_OVERHEAD)
    octets.put_uint32(out, at, body + end - start - at)
    out[at + _CHANNEL] = channel >> 8
    out[at + _CHANNEL + 1] = channel & 0xFF
    octets.put_uint32(out, at + _HANDLE, handle)
    octets.put_uint32(out, at + _ID, delivery_id)
    octets.put_tag(out, at + _TAG, number)
    out[at + _SETTLED] = 0x41 if settled else 0x42
    out[at + _MORE] = 0x41 if more else 0x42
    octets.put_slice(out, body, data, start, end)


def write_next_frame(
    out: bytearray, channel: c_int, handle: Py_ssize_t, more: bool, data: bytes, start: Py_ssize_t, end: Py_ssize_t
) -> None:
    """Write one more transfer frame of a delivery that is begun."""
    at: Py_ssize_t = len(out)
    body: Py_ssize_t = at + _AGAIN_OVERHEAD
    octets.lengthen(out, body + end - start)
    octets.put_slice(out, at, _AGAIN, 0, _AGAIN_OVERHEAD)
    octets.put_uint32(out, at, body + end - start - at)
    out[at + _CHANNEL] = channel >> 8
    out[at + _CHANNEL + 1] = channel & 0xFF
    octets.put_uint32(out, at + _HANDLE, handle)
    out[at + _MORE_AGAIN] = 0x41 if more else 0x42
    octets.put_slice(out, body, data, start, end)


def write_general_frame(
    out: bytearray,
    channel: c_int,
    handle: Py_ssize_t,
    delivery_id: Py_ssize_t,
    tag: bytes,
    message_format: Py_ssize_t,
    settled: bool,
    more: bool,
    state: bytes | None,
    data: bytes,
    start: Py_ssize_t,
    end: Py_ssize_t,
) -> None:
    """Write a first transfer frame with a tag of up to 32 bytes, message format and (encoded) delivery ``state``."""
    body: bytes = b"".join(
        (
            _UINT.pack(0x70, handle),
            _UINT.pack(0x70, delivery_id),
            bytes((0xA0, len(tag))),
            tag,
            _UINT.pack(0x70, message_format),
            b"\x41" if settled else b"\x42",
            b"\x41" if more else b"\x42",
            b"" if state is None else b"\x40" + state,
        )
    )
    size: Py_ssize_t = 20 + len(body) + end - start
    out += _FRAME_LIST32.pack(size, 2, 0, channel, 0, 0x53, 0x14, 0xD0, len(body) + 4, 6 if state is None else 8)
    out += body
    octets.append_slice(out, data, start, end)


def write_abort(out: bytearray, channel: c_int, handle: Py_ssize_t) -> None:
    """Write the transfer frame that aborts a begun delivery (2.6.14)."""
    out += _FRAME_LIST8.pack(28, 2, 0, channel, 0, 0x53, 0x14, 0xC0, 15, 10)
    out += _UINT.pack(0x70, handle)
    out += b"\x40\x40\x40\x41\x42\x40\x40\x40\x41"


def write_disposition(
    out: bytearray, channel: c_int, role: bool, first: Py_ssize_t, last: Py_ssize_t, settled: bool, state: bytes | None
) -> None:
    """Write a disposition frame for the deliveries ``first`` to ``last`` with the encoded ``state``, if any."""
    if state is None:
        state = b""  # left out: some clients take a null for an unknown outcome
    size: Py_ssize_t = len(state)
    if size > _MAX_SHORT_STATE:
        out += _FRAME_LIST32.pack(32 + size, 2, 0, channel, 0, 0x53, 0x15, 0xD0, 16 + size, 5)
        out += _RANGE.pack(0x41 if role else 0x42, 0x70, first, 0x70, last, 0x41 if settled else 0x42)
        out += state
        return
    at: Py_ssize_t = len(out)
    octets.lengthen(out, at + _DISPOSITION_BYTES + size)
    octets.put_slice(out, at, _DISPOSITION, 0, _DISPOSITION_BYTES)
    octets.put_uint32(out, at, _DISPOSITION_BYTES + size)
    out[at + _CHANNEL] = channel >> 8
    out[at + _CHANNEL + 1] = channel & 0xFF
    out[at + _LIST_BYTES] = 13 + size
    out[at + _LIST_COUNT] = 5 if size > 0 else 4
    out[at + _ROLE] = 0x41 if role else 0x42
    octets.put_uint32(out, at + _FIRST_ID, first)
    octets.put_uint32(out, at + _LAST_ID, last)
    out[at + _RANGE_SETTLED] = 0x41 if settled else 0x42
    octets.put_slice(out, at + _DISPOSITION_BYTES, state, 0, size)


def write_flow(
    out: bytearray,
    channel: c_int,
    next_incoming_id: Py_ssize_t,
    incoming_window: Py_ssize_t,
    next_outgoing_id: Py_ssize_t,
    outgoing_window: Py_ssize_t,
) -> None:
    """Write a session flow frame; ``next_incoming_id`` is -1 before the peer's begin."""
    known = next_incoming_id >= 0
    fields = 20 if known else 16
    out += _FRAME_LIST8.pack(14 + fields, 2, 0, channel, 0, 0x53, 0x13, 0xC0, fields + 1, 4)
    out += _UINT.pack(0x70, next_incoming_id) if known else b"\x40"
    out += _WINDOWS.pack(0x70, incoming_window, 0x70, next_outgoing_id, 0x70, outgoing_window)


def write_link_flow(
    out: bytearray,
    channel: c_int,
    next_incoming_id: Py_ssize_t,
    incoming_window: Py_ssize_t,
    next_outgoing_id: Py_ssize_t,
    outgoing_window: Py_ssize_t,
    handle: Py_ssize_t,
    delivery_count: Py_ssize_t,
    link_credit: Py_ssize_t,
    drain: bool,
) -> None:
    """Write a flow frame with one link's state and the session's; ``delivery_count`` is -1 when unknown."""
    fields = (20 if next_incoming_id >= 0 else 16) + 5 + (5 if delivery_count >= 0 else 1) + 5 + 2
    out += _FRAME_LIST8.pack(14 + fields, 2, 0, channel, 0, 0x53, 0x13, 0xC0, fields + 1, 9)
    out += _UINT.pack(0x70, next_incoming_id) if next_incoming_id >= 0 else b"\x40"
    out += _WINDOWS.pack(0x70, incoming_window, 0x70, next_outgoing_id, 0x70, outgoing_window)
    out += _UINT.pack(0x70, handle)
    out += _UINT.pack(0x70, delivery_count) if delivery_count >= 0 else b"\x40"
    out += _LINK_END.pack(0x70, link_credit, 0x40, 0x41 if drain else 0x42)


_FRAME_LIST8: Final = struct.Struct(">IBBHBBBBBB")
_FRAME_LIST32: Final = struct.Struct(">IBBHBBBBII")
_RANGE: Final = struct.Struct(">BBIBIB")
_UINT: Final = struct.Struct(">BI")
_WINDOWS: Final = struct.Struct(">BIBIBI")
_LINK_END: Final = struct.Struct(">BIBB")
