"""A circuit breaker: after repeated failures of a server, it is not used for a while, then tried once (R-3b)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

#: Failures in a row that open it, and the seconds for which it stays open.
FAILURES: Final = 5
PAUSE_S: Final = 10.0


class Breaker:
    """Closed while the server works; open it allows no attempt, half open one at a time."""

    def __init__(self, notify: Callable[[bool], None], now: Callable[[], float] = trio.current_time) -> None:
        """Make a closed breaker; ``notify`` is called with True when it opens, and with False when it closes again."""
        self._notify = notify
        self._now = now
        self._failures = 0
        self._until_s = 0.0
        self._open = False
        self._trying = False

    @property
    def open(self) -> bool:
        """True if the server is not used, or is tried again."""
        return self._open

    def admit(self) -> bool:
        """Return whether an attempt is allowed; the caller then reports ``reached``, ``failed`` or ``gave_up``."""
        if not self._open:
            return True
        if self._trying or self._now() < self._until_s:
            return False
        self._trying = True
        return True

    def reached(self) -> None:
        """Note that the server answered; as its answers may still fail, the next failure opens the breaker again."""
        self._trying = False
        if self._open:
            self._open = False
            self._failures = FAILURES - 1
            self._notify(False)

    def succeeded(self) -> None:
        """Note an attempt with a proper answer: the count of failures starts again."""
        self._failures = 0

    def failed(self) -> None:
        """Note that the server did not answer, or not properly."""
        self._trying = False
        self._failures += 1
        if self._failures >= FAILURES:
            self._until_s = self._now() + PAUSE_S
            if not self._open:
                self._open = True
                self._notify(True)

    def gave_up(self) -> None:
        """Note that an attempt ended without a result, because its client left."""
        self._trying = False
