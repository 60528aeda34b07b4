"""The bugs of the router itself: each is logged with its traceback and counted, and ends no more than it must.

An exception that reaches a guard is a bug, as what peers, files and plugins can cause has a type of its own. The guard
ends the connection, the request or the piece of work in which it happened; everything else goes on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

log = logging.getLogger("trouter.ERROR")


class BugBook:
    """The bugs that one process has met since its start."""

    def __init__(self) -> None:
        self.total = 0
        #: What the last one ended, and when, in seconds since 1970.
        self.last_text = ""
        self.last_at_s = 0.0

    def report(self, text: str, error: BaseException) -> None:
        """Count a bug, and log ``text``, which says what it has ended, with the traceback.

        It never raises: a log that fails must not end more than the bug did.
        """
        self.total += 1
        self.last_text, self.last_at_s = text, time.time()
        with suppress(Exception):
            log.error("%s", text, exc_info=_only(error))

    @contextmanager
    def contained(self, text: str) -> Iterator[None]:
        """End the block, and nothing else, at a bug in it, which is reported with ``text``."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it is reported
            self.report(text, error)


def _only(error: BaseException) -> BaseException:
    """Return the one exception in nested groups; the group if it has several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


#: The book of this process.
BUGS: Final = BugBook()
