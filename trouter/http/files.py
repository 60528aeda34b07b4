"""Files below one folder, and nothing else (security.md R-2.5d): blocking calls, to be made in a thread."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .responses import FileBody, Response

INDEX: Final = "index.html"
UNKNOWN: Final = "application/octet-stream"
TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".gif": "image/gif",
    ".htm": "text/html; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/vnd.microsoft.icon",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".xml": "application/xml",
}


def open_file(root: Path, names: Sequence[str]) -> Response | None:
    """Return the file at ``names`` below ``root``, following only links within it; None if there is none."""
    *folders, last = names
    try:
        top = root.resolve(strict=True)
        path = top.joinpath(*folders, last or INDEX).resolve(strict=True)
        if not path.is_relative_to(top):
            return None
        # Do not follow a link that was made after the check above, and do not wait for a pipe's other end.
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a cycle of links
        return None
    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode):
        os.close(number)
        return None
    body = FileBody(os.fdopen(number, "rb", buffering=0), found.st_size)
    return Response(200, body, TYPES.get(path.suffix.lower(), UNKNOWN), headers=(("Cache-Control", "no-cache"),))
