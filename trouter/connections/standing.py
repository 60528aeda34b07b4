"""Repeated checks of logins: plugins reload their files, then the user of each connection is checked again."""

from __future__ import annotations

from typing import Final

import trio

from trouter.hooks import Plugins

from .registry import Connections

#: Seconds between two checks: a changed file is in force, and an invalid login ended, after at most this time.
LOOK_S: Final = 2.0
#: Connections checked before other tasks get their turn.
PORTION: Final = 500


async def keep_standing(plugins: Plugins, connections: Connections) -> None:
    """Check all logins repeatedly until cancelled."""
    waiter = trio.CapacityLimiter(1)  # its own, because threads that check passwords may be busy
    while True:
        await trio.sleep(LOOK_S)
        if await trio.to_thread.run_sync(plugins.refresh, limiter=waiter, abandon_on_cancel=True):
            plugins.forget_offers()
        for asked, number in enumerate(connections, 1):
            _ask(connections, number)
            if asked % PORTION == 0:
                await trio.lowlevel.checkpoint()


def _ask(connections: Connections, number: int) -> None:
    """Check one connection, apart from the loop, whose local variables would keep it alive."""
    connection = connections.get(number)
    if connection is not None:
        connection.check_standing()
