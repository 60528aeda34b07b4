"""A circuit breaker: after repeated failures of a server, it is not used for a while, then tried once (R-3b)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

#: Failures in a row after which it opens, and how long it then stays so.
FAILURES: Final = 5
PAUSE_S: Final = 10.0


class Breaker:
    """Closed while all goes well; open it lets no attempt pass, half open one at a time."""

    def __init__(self, notify: Callable[[bool], None], now: Callable[[], float] = trio.current_time) -> None:
        """``notify`` is called with True when it opens, and with False when it closes again."""
        self._notify = notify
        self._now = now
        self._failures = 0
        self._until_s = 0.0
        self._open = False
        self._trying = False

    @property
    def open(self) -> bool:
        """Return whether it is left alone, or being tried."""
        return self._open

    def admit(self) -> bool:
        """Return whether an attempt is allowed; its caller then reports ``reached``, ``failed`` or ``gave_up``."""
        if not self._open:
            return True
        if self._trying or self._now() < self._until_s:
            return False
        self._trying = True
        return True

    def reached(self) -> None:
        """Note that the service answered. Whether it answers well is unknown: the next failure opens the breaker."""
        self._trying = False
        if self._open:
            self._open = False
            self._failures = FAILURES - 1
            self._notify(False)

    def succeeded(self) -> None:
        """Note an attempt with a proper answer: the count of failures begins anew."""
        self._failures = 0

    def failed(self) -> None:
        """Note that the service did not answer, or not as it has to."""
        self._trying = False
        self._failures += 1
        if self._failures >= FAILURES:
            self._until_s = self._now() + PAUSE_S
            if not self._open:
                self._open = True
                self._notify(True)

    def gave_up(self) -> None:
        """Note that an attempt ended without a result, because its client has gone."""
        self._trying = False
