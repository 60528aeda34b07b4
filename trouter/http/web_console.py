"""The web console of the router: its built files, with headers that let a page run only its own code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from .files import INDEX, open_file
from .responses import ALWAYS, CONTENT_SECURITY_POLICY, Response

#: The folder of the build of `console/`, also in an installed package.
FOLDER: Final = Path(__file__).parent / "console"
#: The folder of files whose names change with their contents.
ASSETS: Final = "assets"
#: Code, styles and connections come from this listener only, and none is inline.
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
UNUSED_FEATURES: Final = (
    "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "magnetometer", "microphone", "midi",
    "payment", "usb",
)  # fmt: skip
GUARDS: Final = (
    *(header for header in ALWAYS if header[0] != CONTENT_SECURITY_POLICY),
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    ("Permissions-Policy", ", ".join(f"{feature}=()" for feature in UNUSED_FEATURES)),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
FOR_EVER: Final = ("Cache-Control", "public, max-age=31536000, immutable")
ASK_AGAIN: Final = ("Cache-Control", "no-cache")
NOT_BUILT: Final = b"""\
The web console is not in this installation.

In a source checkout `make console` builds it (with Node.js 18 or later). Installed packages of trouter contain it.
The rest of this listener works: /metrics, /healthz, /readyz, /livez and AMQP over WebSockets.
"""
_GZIP: Final = re.compile(r"(?:x-)?gzip(?:\s*;\s*q=(0(?:\.\d*)?|1(?:\.0*)?))?", re.IGNORECASE)


def open_console(folder: Path, names: Sequence[str], compressed: bool) -> Response | None:
    """Return the file at ``names`` in the console's ``folder``; 404 with a text if it was not built, None for no file.

    ``compressed`` says that the client accepts gzip, for files that were compressed at the build. It blocks: call it in
    a thread.
    """
    *folders, last = names
    last = last or INDEX
    plain = open_file(folder, (*folders, last))
    if plain is None:
        start = not folders and last == INDEX
        return Response(404, NOT_BUILT) if start else None
    caching = FOR_EVER if folders[:1] == [ASSETS] else ASK_AGAIN
    headers: tuple[tuple[str, str], ...] = (caching, ("Vary", "Accept-Encoding"))
    body = plain.body
    if compressed and (packed := open_file(folder, (*folders, f"{last}.gz"))) is not None:
        plain.close()
        body, headers = packed.body, (*headers, ("Content-Encoding", "gzip"))
    return Response(200, body, plain.content_type, headers, GUARDS)


def takes_gzip(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a request's Accept-Encoding names gzip (RFC 9110, 12.5.3)."""
    for name, value in headers:
        for coding in value.decode("latin-1").split(",") if name == b"accept-encoding" else ():
            match = _GZIP.fullmatch(coding.strip())
            if match and float(match[1] or 1):
                return True
    return False
