"""Sends warnings and errors of the interpreter to the log (module PYTHON) instead of standard error."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

log = logging.getLogger("trouter.PYTHON")


@contextmanager
def python_logged() -> Iterator[None]:
    """Log warnings, and exceptions that the interpreter ignores, while the block runs."""
    unraisable = sys.unraisablehook
    sys.unraisablehook = _log_unraisable
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _log_warning
            # The package cryptography says this of a peer's name in a certificate; the user is judged elsewhere.
            warnings.filterwarnings("ignore", "Attribute's length must be", UserWarning)
            yield
    finally:
        sys.unraisablehook = unraisable


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    log.warning("%s: %s (%s:%d)", category.__name__, message, filename, lineno)


def _log_unraisable(what: sys.UnraisableHookArgs) -> None:
    exception = what.exc_value or what.exc_type()
    if isinstance(what.object, bytes) and isinstance(exception, UnicodeDecodeError):
        return  # a server name of TLS that is no text: the line about the failed handshake says so
    log.error("%s: %s", what.err_msg or "Exception ignored in", type(what.object).__qualname__, exc_info=exception)
