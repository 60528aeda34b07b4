"""The encoding of AMQP 1.0: bytes to values and back. This room imports no other room."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)

from trouter.wire.annotations import (  # noqa: E402 - the twin is chosen first
    InvalidAnnotation,
    RouterAnnotations,
    compose_annotations,
    parse_annotations,
)
from trouter.wire.codec import decode, decode_all, encode, skip  # noqa: E402
from trouter.wire.errors import DecodeError, EncodeError  # noqa: E402
from trouter.wire.performatives import (  # noqa: E402
    decode_performative,
    decode_state,
    encode_performative,
    encode_state,
)
from trouter.wire.sections import InvalidMessage, MessageScan  # noqa: E402

COMPILED = _twin.is_compiled("trouter.wire.codec")

__all__ = [
    "COMPILED",
    "DecodeError",
    "EncodeError",
    "InvalidAnnotation",
    "InvalidMessage",
    "MessageScan",
    "RouterAnnotations",
    "compose_annotations",
    "decode",
    "decode_all",
    "decode_performative",
    "decode_state",
    "encode",
    "encode_performative",
    "encode_state",
    "parse_annotations",
    "skip",
]
