"""Any bytes are a performative, a delivery state or raise DecodeError; a decoded one can be encoded without a change.

Allowed: DecodeError from decode_performative and decode_state, because most bytes are neither. Not allowed:
EncodeError, because a decoded performative or state can be encoded.
"""

from __future__ import annotations

from trouter.testing.fuzz import values as typed_values
from trouter.wire.errors import DecodeError
from trouter.wire.performatives import decode_performative, decode_state, encode_performative, encode_state

MUTATOR = typed_values
COVERS = ("trouter.wire.performatives", "trouter.wire.composite")


def check_text(text: str) -> None:
    """Check the text that the router logs and sends to the peer."""
    assert text.isprintable()
    assert len(text) < 200


def check(data: bytes) -> None:
    end = len(data)
    try:
        performative, behind = decode_performative(data, 0, end)
    except DecodeError as error:
        check_text(str(error))
    else:
        assert 0 < behind <= end
        octets = encode_performative(performative)
        assert encode_performative(decode_performative(octets, 0, len(octets))[0]) == octets
        repr(performative)
    try:
        state, behind = decode_state(data, 0, end)
    except DecodeError as error:
        check_text(str(error))
    else:
        assert 0 < behind <= end
        octets = encode_state(state)
        assert encode_state(decode_state(octets, 0, len(octets))[0]) == octets
