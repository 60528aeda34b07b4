"""Slows down whoever guesses passwords (security.md 8.1).

After a few failures from one place its next attempts are judged one after another, each later than the one before;
right passwords wait as wrong ones do, so the wait tells nothing. Waiting holds no thread. A place is an IPv4 address,
or the /64 network of an IPv6 address, which is what one subscriber has. This machine is exempt: what seems to come
from it may be everybody, sent on by a proxy.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import trio

#: Failures that nobody is slowed down for, and how long a failure is remembered after the last one.
FREE_FAILURES: Final = 5
MEMORY_S: Final = 60.0
#: The first wait; each further failure doubles it, up to the longest.
FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 30.0
MAX_PLACES: Final = 100_000


class _Place:
    __slots__ = ("failures", "last_s", "turn_s")

    def __init__(self) -> None:
        self.failures = 0
        self.last_s = 0.0
        #: When the last attempt that was let through is judged.
        self.turn_s = 0.0


class LoginGuard:
    """Remembers failures by place; the one that failed longest ago is forgotten when there are too many."""

    def __init__(self, now: Callable[[], float] = trio.current_time, max_places: int = MAX_PLACES) -> None:
        self._now = now
        self._max_places = max_places
        self._places: OrderedDict[str, _Place] = OrderedDict()

    def __len__(self) -> int:
        return len(self._places)

    def wait_s(self, host: str) -> float | None:
        """How long the next attempt from ``host`` has to wait for its turn; None if too many wait already."""
        key = _key(host)
        place = self._places.get(key)
        if place is None or place.failures < FREE_FAILURES:
            return 0.0
        now = self._now()
        if now - max(place.last_s, place.turn_s) > MEMORY_S:
            del self._places[key]
            return 0.0
        pause_s = min(FIRST_WAIT_S * 2.0 ** min(place.failures - FREE_FAILURES, 10), LONGEST_WAIT_S)
        turn_s = max(now, place.turn_s) + pause_s
        if turn_s - now > LONGEST_WAIT_S:
            return None
        place.turn_s = turn_s
        return turn_s - now

    def failed(self, host: str) -> None:
        """An attempt from ``host`` was refused."""
        key, now = _key(host), self._now()
        if not key:
            return
        place = self._places.get(key)
        if place is None or now - max(place.last_s, place.turn_s) > MEMORY_S:
            place = self._places[key] = _Place()
            if len(self._places) > self._max_places:
                self._places.popitem(last=False)
        self._places.move_to_end(key)
        place.failures += 1
        place.last_s = now


def _key(host: str) -> str:
    """What is one place with ``host``; empty for this machine, and for what is no address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            return "" if address.is_loopback else str(ipaddress.ip_network((address, 64), strict=False))
        address = address.ipv4_mapped
    return "" if address.is_loopback else str(address)
