"""Ports for those that have to name one beforehand, or that come back to the one they had."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Container
from typing import Final

#: Below the ports that systems give to clients (Linux: from 32768): a connection that somebody opens while nobody
#: listens at a port of these cannot take it.
_PORTS: Final = range(20_000, 32_768)


def free_port(taken: Container[int] = ()) -> int:
    """A port that nobody listens on at any interface, and that is not one of ``taken``."""
    while True:
        port = random.choice(_PORTS)
        if port not in taken and _is_free(port):
            return port


def free_ports(count: int) -> list[int]:
    """So many ports, different ones."""
    found: list[int] = []
    while len(found) < count:
        found.append(free_port(found))
    return found


def ports_for(names: Collection[str]) -> dict[str, str]:
    """A port for each name, as text."""
    return dict(zip(names, map(str, free_ports(len(names))), strict=True))


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("", port)).close()
    except OSError:
        return False
    return True
