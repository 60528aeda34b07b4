"""The control links of one router, the router on each, and the hellos sent there (docs/networks.md).

A hello lists the routers heard recently. A router that finds itself listed knows that the link works both ways, and is
a neighbour from then on. One hello is sent when the link is up, and one when the other router is first heard, so this
takes at most two hellos each way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .events import Send
from .messages import HELLO_TO, Hello

#: Seconds between two ticks, about.
TICK_S: Final = 1.0
#: The error of ages that are compared at a tick.
HALF_TICK_S: Final = TICK_S / 2

_NEVER: Final = float("-inf")


@dataclass(slots=True)
class ControlLink:
    """A control link to the router at the other end of a connection."""

    cost: int
    #: The router that says hello on it, its instance, the time of its last hello, and of the last that listed us.
    router: str = ""
    instance: int = 0
    heard_s: float = _NEVER
    confirmed_s: float = _NEVER
    #: Our last hello on it listed that router.
    named: bool = False


class Hellos:
    """The control links of the router ``me``, by connection, and the hellos on them."""

    def __init__(self, me: str, instance: int, interval_s: float, max_age_s: float) -> None:
        """Send a hello every ``interval_s`` seconds, which lists the routers heard within ``max_age_s``."""
        self.links: dict[int, ControlLink] = {}
        #: Seconds without a hello after which a neighbour is silent; never less than the next hello may take.
        self.max_age_s = max(max_age_s, interval_s + HALF_TICK_S)
        self._me = me
        self._instance = instance
        self._interval_s = interval_s
        self._last_s = _NEVER

    def add_link(self, connection: int, cost: int, now_s: float) -> Send:
        """Send hellos over ``connection`` from now on; return the first."""
        link = self.links[connection] = ControlLink(cost)
        return self._hello_over(self._compose_hello(now_s), connection, link)

    def remove_link(self, connection: int) -> ControlLink | None:
        """Forget the control link over ``connection``, which has ended, and return it; None if there was none."""
        return self.links.pop(connection, None)

    def due_hellos(self, now_s: float) -> Iterator[Send]:
        """Yield the hellos over all links, if they are due."""
        if now_s - self._last_s < self._interval_s - HALF_TICK_S:
            return
        self._last_s = now_s
        hello = self._compose_hello(now_s)
        for connection, link in self.links.items():
            yield self._hello_over(hello, connection, link)

    def answer_hello(self, connection: int, now_s: float) -> Iterator[Send]:
        """Yield the hello that lists the router over ``connection``, unless the last one there did."""
        link = self.links[connection]
        if not link.named:
            yield self._hello_over(self._compose_hello(now_s), connection, link)

    def is_fresh(self, link: ControlLink, router: str, now_s: float) -> bool:
        """Return whether ``router`` is at the other end of ``link``, and listed us recently."""
        return link.router == router and now_s - link.confirmed_s <= self.max_age_s

    def _compose_hello(self, now_s: float) -> Hello:
        heard = [link.router for link in self.links.values() if now_s - link.heard_s <= self.max_age_s]
        return Hello(self._me, self._instance, tuple(dict.fromkeys(heard)))

    def _hello_over(self, hello: Hello, connection: int, link: ControlLink) -> Send:
        link.named = link.router in hello.seen
        return Send(hello, HELLO_TO, connection)
