"""Grant credit that quotas withheld, as time passes; one task serves all connections."""

from __future__ import annotations

from typing import Final

import trio

from trouter.net.hub import Hub
from trouter.security.quotas import QuotaBook

#: Seconds between two rounds of granting while quotas are in use, and between two checks of received octets.
TICK_S: Final = 0.1
LOOK_S: Final = 1.0


async def keep_pace(quotas: QuotaBook, hub: Hub) -> None:
    """Grant credit and check quotas until cancelled."""
    looked_at_s = 0.0
    while True:
        await trio.sleep(TICK_S if quotas.busy else LOOK_S)
        hub.update_clock()
        if quotas.tick():
            hub.flush()
        if trio.current_time() - looked_at_s >= LOOK_S:
            looked_at_s = trio.current_time()
            quotas.look()
