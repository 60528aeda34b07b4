"""Write the frames of the data path straight into a connection's output (AMQP 1.0 part 2, 2.7.4-2.7.6).

The transfers of a link begin with the same bytes except for the delivery's numbers, so a link keeps a template and
fills those in. Anything unusual (a delivery tag of another length, a message format, a delivery state on the transfer)
takes the general encoder.
"""

from __future__ import annotations

import struct
from typing import Final

from trouter.wire import octets

#: Octets of frame header, performative and tag in a templated first frame, and in a continuation.
TRANSFER_OVERHEAD: Final = 37
CONTINUATION_OVERHEAD: Final = 24
#: The general encoder's most, without the delivery state: list32, a tag of 32 octets, every flag.
GENERAL_OVERHEAD: Final = 96

_ID: Final = 20
_TAG: Final = 26
_SETTLED: Final = 35
_MORE: Final = 36
_MORE_AGAIN: Final = 23


class TransferWriter:
    """The transfer frames of one outgoing link on ``channel`` with ``handle``."""

    __slots__ = ("_again", "_channel", "_first", "_handle")

    def __init__(self, channel: int, handle: int) -> None:
        self._channel = channel
        self._handle = handle
        head = b"\0\0\0\0\2\0" + channel.to_bytes(2, "big") + b"\0\x53\x14\xc0"
        link = b"\x70" + handle.to_bytes(4, "big")
        self._first = bytearray(head + b"\x18\x06" + link + b"\x70\0\0\0\0" + b"\xa0\x08" + bytes(8) + b"\x43\x42\x42")
        self._again = bytearray(head + b"\x0b\x06" + link + b"\x40\x40\x40\x40\x42")

    def write_first_frame(
        self,
        out: bytearray,
        delivery_id: int,
        number: int,
        settled: bool,
        more: bool,
        data: bytes,
        start: int,
        end: int,
    ) -> None:
        """Write the first frame of a delivery with the tag ``number`` (8 bytes, little-endian)."""
        head = self._first
        octets.put_uint32(head, _ID, delivery_id)
        octets.put_tag(head, _TAG, number)
        head[_SETTLED] = 0x41 if settled else 0x42
        head[_MORE] = 0x41 if more else 0x42
        octets.append_framed(out, head, data, start, end)

    def write_next_frame(self, out: bytearray, more: bool, data: bytes, start: int, end: int) -> None:
        """Write one more frame of a delivery that is begun."""
        head = self._again
        head[_MORE_AGAIN] = 0x41 if more else 0x42
        octets.append_framed(out, head, data, start, end)

    def write_general_frame(
        self,
        out: bytearray,
        delivery_id: int,
        tag: bytes,
        message_format: int,
        settled: bool,
        more: bool,
        state: bytes | None,
        data: bytes,
        start: int,
        end: int,
    ) -> None:
        """Write a first frame with a tag of up to 32 bytes, message format and (encoded) delivery ``state``."""
        body = b"".join(
            (
                _UINT.pack(0x70, self._handle),
                _UINT.pack(0x70, delivery_id),
                bytes((0xA0, len(tag))),
                tag,
                _UINT.pack(0x70, message_format),
                b"\x41" if settled else b"\x42",
                b"\x41" if more else b"\x42",
                b"" if state is None else b"\x40" + state,
            )
        )
        size = 20 + len(body) + end - start
        out += _FRAME_LIST32.pack(
            size, 2, 0, self._channel, 0, 0x53, 0x14, 0xD0, len(body) + 4, 6 if state is None else 8
        )
        out += body
        octets.append_slice(out, data, start, end)

    def write_abort(self, out: bytearray) -> None:
        """Write the frame that aborts a begun delivery (2.6.14)."""
        out += _FRAME_LIST8.pack(28, 2, 0, self._channel, 0, 0x53, 0x14, 0xC0, 15, 10)
        out += _UINT.pack(0x70, self._handle)
        out += b"\x40\x40\x40\x41\x42\x40\x40\x40\x41"


def write_disposition(
    out: bytearray, channel: int, role: bool, first: int, last: int, settled: bool, state: bytes | None
) -> None:
    """Write a disposition frame for the deliveries ``first`` to ``last`` with the encoded ``state``, if any."""
    if state is None:
        state = b""  # left out: some clients take a null for an unknown outcome
    fields = 12 + len(state)
    if fields < 255:
        head = _FRAME_LIST8.pack(14 + fields, 2, 0, channel, 0, 0x53, 0x15, 0xC0, fields + 1, 5 if state else 4)
    else:
        head = _FRAME_LIST32.pack(20 + fields, 2, 0, channel, 0, 0x53, 0x15, 0xD0, fields + 4, 5)
    out += head
    out += _RANGE.pack(0x41 if role else 0x42, 0x70, first, 0x70, last, 0x41 if settled else 0x42)
    out += state


def write_flow(
    out: bytearray,
    channel: int,
    next_incoming_id: int,
    incoming_window: int,
    next_outgoing_id: int,
    outgoing_window: int,
) -> None:
    """Write a session flow frame; ``next_incoming_id`` is -1 before the peer's begin."""
    known = next_incoming_id >= 0
    fields = 20 if known else 16
    out += _FRAME_LIST8.pack(14 + fields, 2, 0, channel, 0, 0x53, 0x13, 0xC0, fields + 1, 4)
    out += _UINT.pack(0x70, next_incoming_id) if known else b"\x40"
    out += _WINDOWS.pack(0x70, incoming_window, 0x70, next_outgoing_id, 0x70, outgoing_window)


def write_link_flow(
    out: bytearray,
    channel: int,
    next_incoming_id: int,
    incoming_window: int,
    next_outgoing_id: int,
    outgoing_window: int,
    handle: int,
    delivery_count: int,
    link_credit: int,
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
