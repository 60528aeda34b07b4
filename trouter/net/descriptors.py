"""The descriptors that clients leave free: for probes, operators, records, files, and connections of the router's own.

The system gives out the lowest number that is free. So clients get none of the last numbers below the limit.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
from typing import Final

#: The last numbers that clients do not get; a quarter of all, if these are fewer.
RESERVE: Final = 64


def client_limit(limit: int, *, of_few: bool) -> int:
    """Return how many of ``limit`` descriptors clients may have; those of HTTP and routers (``of_few``) have more."""
    reserve = min(RESERVE, limit // 4)
    return limit - (reserve // 2 if of_few else reserve)


def accept_client(sock: socket.socket, *, of_few: bool) -> tuple[socket.socket, tuple[str, int]]:
    """Accept a connection; OSError, with EMFILE also if the next descriptor is one that clients leave free."""
    lowest = os.dup(sock.fileno())
    os.close(lowest)
    if not _may_have(lowest, of_few=of_few):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    accepted, address = sock.accept()
    return accepted, address[:2]


def has_pair_for_client() -> bool:
    """Return whether two descriptors more are ones that clients may have: a WebSocket takes a pair."""
    try:
        pair = os.pipe()
    except OSError:
        return False
    for each in pair:
        os.close(each)
    return _may_have(max(pair), of_few=False)


def _may_have(descriptor: int, *, of_few: bool) -> bool:
    """Return whether a client may have a descriptor."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit == resource.RLIM_INFINITY or descriptor < client_limit(limit, of_few=of_few)
