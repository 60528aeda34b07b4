"""Log lines about what strangers do without end: one a second for all of them, with the number of those left out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

#: Seconds between two lines of one kind.
LOG_EVERY_S: Final = 1.0


class SeldomLine:
    """The lines of one kind that a router or a listener writes; ``now`` returns seconds from any start."""

    def __init__(self, log: logging.Logger, now: Callable[[], float], level: int = logging.WARNING) -> None:
        self._log = log
        self._level = level
        self._now = now
        self._written_s = float("-inf")
        self._left_out = 0

    def write(self, text: str, *args: object) -> None:
        """Log a line, or count it for the next one."""
        now_s = self._now()
        if now_s - self._written_s < LOG_EVERY_S:
            self._left_out += 1
            return
        others = f" ({self._left_out} more since the last such line)" if self._left_out else ""
        self._log.log(self._level, text + "%s", *args, others)
        self._written_s, self._left_out = now_s, 0
