"""Free ports for tests that must know a port before it is opened, or open it again."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Container
from typing import Final

#: Below the ports that systems give to clients (Linux: from 32768), so that an outgoing connection cannot take one of
#: these while no process listens on it.
_PORTS: Final = range(20_000, 32_768)


def free_port(taken: Container[int] = ()) -> int:
    """Return a port that no process listens on at any interface, and that is not in ``taken``."""
    while True:
        port = random.choice(_PORTS)
        if port not in taken and _is_free(port):
            return port


def free_ports(count: int) -> list[int]:
    """Return ``count`` different free ports."""
    found: list[int] = []
    while len(found) < count:
        found.append(free_port(found))
    return found


def ports_for(names: Collection[str]) -> dict[str, str]:
    """Return a free port for each name, as text."""
    return dict(zip(names, map(str, free_ports(len(names))), strict=True))


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("", port)).close()
    except OSError:
        return False
    return True
