"""Disconnect clients whose heartbeats have stopped (inter-router.md 6.5)."""

from __future__ import annotations

from typing import Final

from trouter.core.edge.protocol import SILENCE_S
from trouter.core.router import Router

from .registry import Connections

#: Seconds between two checks.
CHECK_S: Final = 1.0


def abort_silent(router: Router, connections: Connections) -> None:
    """Disconnect silent clients, without a close, so that they take the connection for broken."""
    for number in router.edges.silent_connections():
        if number in connections:
            connections[number].abort_connection(f"no heartbeat for more than {SILENCE_S:g} s")
