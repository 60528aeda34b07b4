"""What h11 reads in a request and other programs read differently: such a request is refused.

A proxy before the router may end a line, a head or a body elsewhere. Then a client hides one request in another, past
the rules of the proxy (RFC 9112, 11.2).
"""

from __future__ import annotations

import re
from typing import Final

import h11

#: h11 ends a line at a bare LF, keeps a bare CR and other control characters in a value, and joins folded lines
#: (RFC 9112, 2.2 and 5.2; RFC 9110, 5.5). A CR at the end may be the first half of an end of line.
_AMBIGUOUS: Final = re.compile(
    rb"(?P<lf>(?<!\r)\n)|(?P<cr>\r(?!\n|\Z))|(?P<fold>(?<=\n)[ \t])|(?P<control>[\x00-\x08\x0b\x0c\x0e-\x1f\x7f])"
)
_REASONS: Final = {
    "lf": "a line ends without CR",
    "cr": "a CR is not followed by LF",
    "fold": "a line is folded",
    "control": "it has a control character",
}


def ambiguity_of_head(data: bytes) -> str:
    """Return why the head at the beginning of ``data``, complete or not, is ambiguous; empty if it is not."""
    match = _AMBIGUOUS.search(data.partition(b"\r\n\r\n")[0])
    return "" if match is None else _REASONS[str(match.lastgroup)]


def ambiguity_of_framing(request: h11.Request) -> str:
    """Return why the end of the body of ``request`` is ambiguous; empty if it is not (RFC 9112, 6.1)."""
    if not is_chunked(request):
        return ""
    if any(name == b"content-length" for name, _ in request.headers):
        return "it has both Content-Length and Transfer-Encoding"
    return "" if request.http_version >= b"1.1" else "Transfer-Encoding is not of HTTP/1.0"


def is_chunked(request: h11.Request) -> bool:
    """Return whether the body has a Transfer-Encoding; h11 reads its trailers as leniently as heads."""
    return any(name == b"transfer-encoding" for name, _ in request.headers)
