"""AMQP 1.0 encoding: bytes to values and back. This room knows nothing else of the house."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)

from trouter.wire.codec import decode, decode_all, encode, skip  # noqa: E402 - the twin is chosen first
from trouter.wire.errors import DecodeError, EncodeError  # noqa: E402
from trouter.wire.performatives import (  # noqa: E402
    decode_performative,
    decode_state,
    encode_performative,
    encode_state,
)

COMPILED = _twin.is_compiled("trouter.wire.codec")

__all__ = [
    "COMPILED",
    "DecodeError",
    "EncodeError",
    "decode",
    "decode_all",
    "decode_performative",
    "decode_state",
    "encode",
    "encode_performative",
    "encode_state",
    "skip",
]
