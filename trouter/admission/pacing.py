"""Grants credit that quotas withheld, as time passes, and checks quotas."""

from __future__ import annotations

from typing import Final

from trouter.policy.book import Book

#: Seconds between two rounds of granting while quotas are in use, and between two checks of received octets.
TICK_S: Final = 0.1
CHECK_S: Final = 1.0


class QuotaClock:
    """Calls the quotas of a router."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._checked_at_s = 0.0

    def grant_and_check(self) -> None:
        """Grant credit, and check quotas once in ``CHECK_S``; to be called every ``TICK_S`` while quotas are in use."""
        self._book.grant_waiting()
        now_s = self._book.now()
        if now_s - self._checked_at_s >= CHECK_S:
            self._checked_at_s = now_s
            self._book.check_usage()
