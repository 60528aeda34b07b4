"""Any bytes decode to a client's message or raise DecodeError; a decoded message encodes to the same message again.

Sections that are skipped are those that are read, and a body that comes in pieces is that of the whole message.

Allowed: DecodeError, because most bytes are no message.
"""

from __future__ import annotations

from trouter.client import BodyKind, Message
from trouter.testing.fuzz import values
from trouter.wire.errors import DecodeError
from trouter.wire.message import SectionReader
from trouter.wire.pieces import MAX_HEAD_BYTES, BodyReader

MUTATOR = values
COVERS = ("trouter.wire.message", "trouter.wire.pieces")


def check(data: bytes) -> None:
    read, is_valid = codes_in(data, reads=True)
    assert read == codes_in(data, reads=False)[0][: len(read)]
    pieces = body_in_pieces(data)
    try:
        message = Message.decode(data)
    except DecodeError:
        return
    assert is_valid
    octets = message.encode()
    again = Message.decode(octets)
    assert again.encode() == octets
    assert again.kind == message.kind
    if message.kind is BodyKind.DATA and len(data) <= MAX_HEAD_BYTES:
        assert pieces == message.body


def codes_in(data: bytes, *, reads: bool) -> tuple[list[int], bool]:
    """Return the codes of the sections, read or skipped, up to the first fault, and whether there is none."""
    codes: list[int] = []
    reader = SectionReader(data)
    try:
        while code := reader.next_section():
            if reads:
                reader.read_value()
            assert reader.start < reader.find_end() <= len(data)
            codes.append(code)
    except DecodeError:
        return codes, False
    return codes, True


def body_in_pieces(data: bytes) -> bytes | None:
    """Return the body of a message of data sections that comes in small pieces; None if it is no such message."""
    reader = BodyReader()
    try:
        found = [octets for at in range(0, len(data), 7) for octets in reader.read_piece(data[at : at + 7])]
        reader.check_end()
    except DecodeError:
        return None
    return b"".join(found)
