"""Disconnect clients whose heartbeats have stopped (inter-router.md 6.5)."""

from __future__ import annotations

from typing import Final

import trio

from trouter.core.edge.downlinks import SILENCE_S
from trouter.net.hub import Hub

from .registry import Connections

#: Seconds between two checks.
LOOK_S: Final = 1.0


async def drop_silent(hub: Hub, connections: Connections) -> None:
    """Disconnect silent clients until cancelled, without a close, so that they take the connection for broken."""
    while True:
        await trio.sleep(LOOK_S)
        hub.update_clock()
        for number in hub.router.edges.silent():
            if number in connections:
                connections[number].cut(f"no heartbeat for more than {SILENCE_S:g} s")
