"""Asks a health page of a router: the status of its answer, and the reasons in it."""

from __future__ import annotations

import ssl
from contextlib import suppress
from http.client import HTTPConnection, HTTPSConnection
from typing import Final
from urllib.parse import SplitResult

#: The most bytes of an answer that are read.
MAX_ANSWER_BYTES: Final = 65_536


def ask_page(where: SplitResult, context: ssl.SSLContext | None, timeout_s: float) -> tuple[int, tuple[str, ...]]:
    """Return the status of a page's answer and its reasons, a line each. Blocks. OSError, HTTPException.

    ``context`` is for https; None trusts what the system trusts. ``timeout_s`` limits each wait, not their sum.
    """
    host = where.hostname or ""
    if where.scheme == "https":
        connection: HTTPConnection = HTTPSConnection(host, where.port, timeout=timeout_s, context=context)
    else:
        connection = HTTPConnection(host, where.port, timeout=timeout_s)
    try:
        connection.request("GET", where.path, headers={"User-Agent": "trouter"})
        answer = connection.getresponse()
        text = answer.read(MAX_ANSWER_BYTES).decode("utf-8", "replace")
    finally:
        with suppress(OSError):
            connection.close()
    return answer.status, tuple(line for line in text.splitlines() if line not in ("OK", "NOT OK", ""))
