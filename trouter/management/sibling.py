"""Requests of one worker to another: what a requester asked for, its rights, and the answer, as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trouter.config.changes import Why
from trouter.wire.codec import decode, decode_all, encode, skip

from .ports import Rights
from .requests import Request
from .responses import OperationResult

#: Seconds for the answer to a change of the configuration, which waits for all workers.
CHANGED_WITHIN_S: Final = 25.0
#: The code and the fixed part of a map and a list with a size and a count of 32 bits.
_WIDE_BYTES: Final = 9


def encode_request(
    request: Request,
    rights: Rights,
    tenant: str,
    properties: Mapping[str, object],
    names: list[str] | None,
    requester: Mapping[str, object],
) -> bytes:
    """Return a request as another worker gets it, with other ``properties``; ``names`` are columns instead of a body.

    The other worker trusts it: it acts with ``rights``, shows what the tenant of the name ``tenant`` sees, and records
    that ``requester`` asked for it.
    """
    if names is not None:
        body: Mapping[str, object] | str = {"attributeNames": names}
    elif isinstance(request.body, str):  # a configuration
        body = request.body
    else:
        body = request.new_attributes() if request.operation == "CREATE" else request.map_body()
    flags = [rights.level, rights.allow_admin_status_update, rights.allow_dynamic_link_routes]
    return encode([dict(properties), body, request.reply_to, tenant, flags, dict(requester)])


def decode_request(octets: bytes) -> tuple[Request, str]:
    """Return the request of another worker, and the name of the requester's tenant, empty for none."""
    properties, body, reply_to, tenant, flags, requester = decode_all(octets)
    request = Request()
    request.requester = requester
    request.properties, request.body, request.reply_to = properties, body, reply_to
    request.granted = Rights(*flags)
    return request, tenant


def encode_result(result: OperationResult) -> bytes:
    """Return an answer as bytes."""
    return encode([result.status, result.description, str(result.why), result.missing]) + result.body


def decode_result(octets: bytes) -> OperationResult:
    """Return the answer of another worker."""
    (status, description, why, missing), end = decode(octets, 0, len(octets))
    return OperationResult(status, octets[end:], description, Why(why), missing)


def rows_of(body: bytes) -> tuple[list[str], list[bytes]]:
    """Return the names of the columns and the encoded rows of the answer to a QUERY (``responses.table``)."""
    end = len(body)
    _, at = decode(body, _WIDE_BYTES, end)
    names, at = decode(body, at, end)
    _, at = decode(body, at, end)
    at += _WIDE_BYTES
    rows = []
    while at < end:
        behind = skip(body, at, end)
        rows.append(body[at:behind])
        at = behind
    return names, rows


def cells_of(row: bytes) -> list[Any]:
    """Return the cells of an encoded row."""
    cells: list[Any] = decode_all(row)
    return cells
