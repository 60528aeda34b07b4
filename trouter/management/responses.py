"""Answers as the bytes of a message: a status, the correlation id, and a body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from trouter.wire.codec import encode
from trouter.wire.types import Described, Int, ULong

from .requests import Request
from .status import OK, REASONS
from .values import to_wire

#: The longest description in characters: it may contain a client's text.
MAX_DESCRIPTION: Final = 2000

_HEADER: Final = encode(Described(ULong(0x70), [False]))
_PROPERTIES: Final = 0x73
_APPLICATION_PROPERTIES: Final = 0x74
_VALUE_SECTION: Final = b"\x00\x53\x77"
_MAP32: Final = b"\xd1"
_LIST32: Final = b"\xd0"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an operation; ``body`` is an encoded value."""

    status: int
    body: bytes
    description: str = ""


def answer(value: object, status: int = OK) -> Answer:
    """Return an answer whose body is ``value``, converted to AMQP types."""
    return Answer(status, encode(to_wire(value)))


def refusal(status: int, description: str) -> Answer:
    """Return an answer with an error status and an empty map as body."""
    return Answer(status, encode({}), description)


def table(names: Sequence[str], rows: Iterable[bytes]) -> Answer:
    """Return the answer to a QUERY from encoded rows."""
    encoded = list(rows)
    results = _compound(_LIST32, len(encoded), b"".join(encoded))
    content = b"".join((encode("attributeNames"), encode(list(names)), encode("results"), results))
    return Answer(OK, _compound(_MAP32, 4, content))


def _compound(code: bytes, count: int, content: bytes) -> bytes:
    return b"".join((code, (len(content) + 4).to_bytes(4, "big"), count.to_bytes(4, "big"), content))


def compose(request: Request, given: Answer) -> bytes:
    """Return the message that answers ``request``."""
    description = given.description or REASONS[given.status]
    properties = [None, None, request.reply_to, None, None, request.correlation_id]
    head = (
        _HEADER,
        encode(Described(ULong(_PROPERTIES), properties[:5] if properties[5] is None else properties)),
        encode(
            Described(
                ULong(_APPLICATION_PROPERTIES),
                {"statusCode": Int(given.status), "statusDescription": description[:MAX_DESCRIPTION]},
            )
        ),
    )
    return b"".join((*head, _VALUE_SECTION, given.body))
