"""Answers as the bytes of a message: a status, the correlation id, and a body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from trouter.config.changes import Why
from trouter.wire.codec import encode
from trouter.wire.constants import AMQP_VALUE, APPLICATION_PROPERTIES, HEADER, PROPERTIES
from trouter.wire.message import encoded_section, section
from trouter.wire.parts import wide_list, wide_map
from trouter.wire.types import Int

from .requests import Request
from .status import OK, REASONS
from .values import to_wire

#: The longest description in characters: it may contain a client's text.
MAX_DESCRIPTION: Final = 2000

#: The property of an answer with the number of workers that it is the answer of.
WORKERS: Final = "workers"
#: The property of an answer that lacks some of them: which, and why.
MISSING: Final = "missing"

_NOT_DURABLE: Final = section(HEADER, [False])


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The result of an operation; ``body`` is an encoded value."""

    status: int
    body: bytes
    description: str = ""
    #: Why it is an error; for the other workers, requesters do not get it.
    why: Why = Why.OTHER
    #: The workers that it lacks, and why; empty if it lacks none.
    missing: str = ""


def answer(value: object, status: int = OK) -> OperationResult:
    """Return an answer whose body is ``value``, converted to AMQP types."""
    return OperationResult(status, encode(to_wire(value)))


def refusal(status: int, description: str, why: Why = Why.OTHER) -> OperationResult:
    """Return an answer with an error status and an empty map as body."""
    return OperationResult(status, encode({}), description, why)


def table(names: Sequence[str], rows: Iterable[bytes]) -> OperationResult:
    """Return the answer to a QUERY from encoded rows."""
    columns = (encode("attributeNames"), encode(list(names)))
    return OperationResult(OK, wide_map((*columns, encode("results"), wide_list(rows))))


def compose(request: Request, given: OperationResult, workers: int = 0) -> bytes:
    """Return the message that answers ``request``, for so many ``workers`` of a router that has several."""
    description = given.description or REASONS[given.status]
    properties = [None, None, request.reply_to, None, None, request.correlation_id]
    status: dict[str, object] = {"statusCode": Int(given.status), "statusDescription": description[:MAX_DESCRIPTION]}
    if workers:
        status[WORKERS] = Int(workers)
    if given.missing:
        status[MISSING] = given.missing[:MAX_DESCRIPTION]
    return b"".join(
        (
            _NOT_DURABLE,
            section(PROPERTIES, properties[:5] if properties[5] is None else properties),
            section(APPLICATION_PROPERTIES, status),
            encoded_section(AMQP_VALUE, given.body),
        )
    )
