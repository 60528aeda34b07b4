"""The status codes of management answers, and the refusal that carries one."""

from __future__ import annotations

from typing import Final

from trouter.config.changes import ChangeRefused, Why

OK: Final = 200
CREATED: Final = 201
NO_CONTENT: Final = 204
BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
CONFLICT: Final = 409
INTERNAL_ERROR: Final = 500
NOT_IMPLEMENTED: Final = 501

REASONS: Final = {
    OK: "OK",
    CREATED: "Created",
    NO_CONTENT: "No Content",
    BAD_REQUEST: "Bad Request",
    FORBIDDEN: "Forbidden",
    NOT_FOUND: "Not Found",
    CONFLICT: "Conflict",
    INTERNAL_ERROR: "Internal Server Error",
    NOT_IMPLEMENTED: "Not Implemented",
}


class Refusal(ChangeRefused):
    """A request is not carried out, whether it asks for a change or not."""


def bad_request(description: str, why: Why = Why.OTHER) -> Refusal:
    """Return the refusal of an invalid request."""
    return Refusal(BAD_REQUEST, description, why)


def not_found(description: str) -> Refusal:
    """Return the refusal of a request about something that does not exist."""
    return Refusal(NOT_FOUND, description, Why.ABSENT)


def forbidden(description: str) -> Refusal:
    """Return the refusal of a request that is not allowed."""
    return Refusal(FORBIDDEN, description)


def not_implemented(description: str) -> Refusal:
    """Return the refusal for an operation that entities of this type do not have."""
    return Refusal(NOT_IMPLEMENTED, description)
