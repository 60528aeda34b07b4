"""Small amounts of credit owed to senders, granted once no delivery comes for a moment.

The core grants credit in portions, which is cheap on a busy link. A sender that continues only after a flow would wait
for the rest of a portion forever.
"""

from __future__ import annotations

from typing import Final

import trio

from trouter.core.router import Router

from .timers import NEVER, TimerQueue

#: Seconds without a delivery after which a link gets its owed credit.
MOMENT_S: Final = 0.01
#: Links checked at a time.
PORTION: Final = 500


def grant_owed_credit(router: Router, queue: TimerQueue) -> None:
    """Let ``router`` grant owed credit from now on, while there is some."""

    def grant(now_s: float) -> float:
        more = router.return_owed_credit(PORTION)
        return now_s + MOMENT_S if more else NEVER

    timer = queue.add("credit that is owed", grant)

    def wake() -> None:
        queue.advance(timer, trio.current_time() + MOMENT_S)

    router.shared.owed_listeners.add(wake)
