"""Any bytes decode to a client's message or raise DecodeError; a decoded message encodes to the same message again.

Allowed: DecodeError, because most bytes are no message.
"""

from __future__ import annotations

from trouter.client import Message
from trouter.testing.fuzz import values
from trouter.wire.errors import DecodeError

MUTATOR = values
COVERS = ("trouter.client.message",)


def check(data: bytes) -> None:
    try:
        message = Message.decode(data)
    except DecodeError:
        return
    octets = message.encode()
    again = Message.decode(octets)
    assert again.encode() == octets
    assert again.kind == message.kind
