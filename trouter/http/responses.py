"""Responses and their headers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import BinaryIO, Final

import h11

TEXT: Final = "text/plain; charset=utf-8"
CONTENT_SECURITY_POLICY: Final = "Content-Security-Policy"
#: Browsers guess no types, other sites cannot frame the pages, and a link's target does not get the page's address.
ALWAYS: Final[tuple[tuple[str, str], ...]] = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "SAMEORIGIN"),
    (CONTENT_SECURITY_POLICY, "frame-ancestors 'self'"),
    ("Referrer-Policy", "no-referrer"),
)
NOT_KEPT: Final = (("Cache-Control", "no-store"),)


@dataclass(frozen=True, slots=True)
class FileBody:
    """An open file and the number of bytes to send; the sender closes it."""

    file: BinaryIO
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Response:
    """One response."""

    status: int
    body: bytes | FileBody
    content_type: str = TEXT
    headers: Sequence[tuple[str, str]] = NOT_KEPT
    #: Headers that restrict what the browser does with the page.
    guards: Sequence[tuple[str, str]] = ALWAYS

    @property
    def size_bytes(self) -> int:
        return len(self.body) if isinstance(self.body, bytes) else self.body.size_bytes

    def close(self) -> None:
        """Close the file of a response that is not sent."""
        if isinstance(self.body, FileBody):
            self.body.file.close()

    def head(self, *, last: bool) -> h11.Response:
        """Return status and headers; ``last`` says that the connection ends with this response."""
        headers = [
            ("Date", formatdate(usegmt=True)),
            ("Content-Type", self.content_type),
            ("Content-Length", str(self.size_bytes)),
            *self.guards,
            *self.headers,
            *((("Connection", "close"),) if last else ()),
        ]
        return h11.Response(status_code=self.status, headers=headers, reason=HTTPStatus(self.status).phrase)


def refusal(status: int, *headers: tuple[str, str], why: str = "") -> Response:
    """Return a response with an error status; ``why`` is a text of our own."""
    text = f"{status} {HTTPStatus(status).phrase}" + (f": {why}" if why else "") + "\n"
    return Response(status, text.encode(), headers=(*NOT_KEPT, *headers))
