"""Small amounts of credit owed to senders, granted once no delivery comes for a moment.

The core grants credit in portions, which is cheap on a busy link. A sender that continues only after a flow would wait
for the rest of a portion forever.
"""

from __future__ import annotations

from typing import Final

import trio

from .hub import Hub
from .timers import NEVER, TimerQueue

#: Seconds without a delivery after which a link gets its owed credit.
MOMENT_S: Final = 0.01
#: Links checked at a time.
PORTION: Final = 500


class OwedCredit:
    """Grants owed credit while there is some, and is never due while there is none."""

    def __init__(self, hub: Hub, queue: TimerQueue) -> None:
        self._router = hub.router
        self._queue = queue
        self._timer = queue.add(self._grant)
        hub.router.pulse.on_owing = self._wake

    def _wake(self) -> None:
        self._queue.advance(self._timer, trio.current_time() + MOMENT_S)

    def _grant(self, now_s: float) -> float:
        """Grant owed credit; return when more is to be granted."""
        more = self._router.return_owed_credit(PORTION)
        return now_s + MOMENT_S if more else NEVER
