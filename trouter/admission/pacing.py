"""Grants credit that quotas withheld, as time passes, and checks quotas."""

from __future__ import annotations

import random
from typing import Final

from trouter.policy.book import Book

#: Seconds between two rounds of granting while quotas are in use, and between two checks of received octets.
TICK_S: Final = 0.1
CHECK_S: Final = 1.0


def pause_s(book: Book) -> float:
    """Return the seconds until the next round; among workers by chance, so that none is always first to take credit."""
    pause_s = TICK_S if book.busy else CHECK_S
    return pause_s * random.uniform(0.5, 1.5) if book.is_shared else pause_s


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
