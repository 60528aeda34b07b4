"""Whether clients that are logged in may stay: plugins look at their files, then each connection is checked again."""

from __future__ import annotations

from typing import Final

import trio

from trouter.hooks import Plugins

from .registry import Connections

#: Between two looks. A file that changes is in force, and a peer that may stay no longer is out, this much later.
LOOK_S: Final = 2.0
#: Connections that are asked before others get their turn.
PORTION: Final = 500


async def keep_standing(plugins: Plugins, connections: Connections) -> None:
    """Check all logins again and again until cancelled."""
    waiter = trio.CapacityLimiter(1)  # a thread of its own: threads that check passwords may be busy
    while True:
        await trio.sleep(LOOK_S)
        if await trio.to_thread.run_sync(plugins.refresh, limiter=waiter, abandon_on_cancel=True):
            plugins.forget_offers()
        for asked, number in enumerate(connections, 1):
            _ask(connections, number)
            if asked % PORTION == 0:
                await trio.lowlevel.checkpoint()


def _ask(connections: Connections, number: int) -> None:
    """One of them; apart, for what a task that sleeps has in hand is not gone when it is over."""
    connection = connections.get(number)
    if connection is not None:
        connection.check_standing()
