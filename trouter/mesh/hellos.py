"""The control links of one router: which router says hello over each, and when our hellos go there (docs/networks.md).

A hello names every router that was heard lately. A router that finds itself named knows that the link works both ways,
and is a neighbour from then on. So that takes no more than two hellos each way, whatever the ticks: one goes when the
link is there, and one as soon as the other router was heard for the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .events import Send
from .messages import HELLO_TO, Hello

#: The mesh is looked after so often, a little sooner or later each time.
TICK_S: Final = 1.0
#: So ages that are compared at a tick may be so much off.
HALF_TICK_S: Final = TICK_S / 2

_NEVER: Final = float("-inf")


@dataclass(slots=True)
class ControlLink:
    """A control link to the router at the other end of a connection."""

    cost: int
    #: The router that says hello over it and which start of it, when it was last heard, and when it last named us.
    router: str = ""
    instance: int = 0
    heard_s: float = _NEVER
    confirmed_s: float = _NEVER
    #: Our last hello over it named that router.
    named: bool = False


class Hellos:
    """The control links of the router ``me``, by connection, and the hellos that go over them."""

    def __init__(self, me: str, instance: int, interval_s: float, max_age_s: float) -> None:
        """A hello goes every ``interval_s``; a router that was not heard for ``max_age_s`` is named no longer."""
        self.links: dict[int, ControlLink] = {}
        #: A neighbour is silent for too long after so many seconds: never before its next hello may be late.
        self.max_age_s = max(max_age_s, interval_s + HALF_TICK_S)
        self._me = me
        self._instance = instance
        self._interval_s = interval_s
        self._last_s = _NEVER

    def open(self, connection: int, cost: int, now_s: float) -> Send:
        """Send hellos over ``connection`` from now on; return the one that goes at once."""
        link = self.links[connection] = ControlLink(cost)
        return self._say(self._compose(now_s), connection, link)

    def close(self, connection: int) -> ControlLink | None:
        """Forget the control link over ``connection``, which is gone; return what it was, None if there was none."""
        return self.links.pop(connection, None)

    def tick(self, now_s: float) -> Iterator[Send]:
        """Yield the hellos over all links, if they are due."""
        if now_s - self._last_s < self._interval_s - HALF_TICK_S:
            return
        self._last_s = now_s
        hello = self._compose(now_s)
        for connection, link in self.links.items():
            yield self._say(hello, connection, link)

    def answer(self, connection: int, now_s: float) -> Iterator[Send]:
        """Yield the hello that names the router over ``connection``, unless the last one there did."""
        link = self.links[connection]
        if not link.named:
            yield self._say(self._compose(now_s), connection, link)

    def is_fresh(self, link: ControlLink, router: str, now_s: float) -> bool:
        """Return whether ``router`` is at the other end of ``link``, and has named us lately."""
        return link.router == router and now_s - link.confirmed_s <= self.max_age_s

    def _compose(self, now_s: float) -> Hello:
        heard = [link.router for link in self.links.values() if now_s - link.heard_s <= self.max_age_s]
        return Hello(self._me, self._instance, tuple(dict.fromkeys(heard)))

    def _say(self, hello: Hello, connection: int, link: ControlLink) -> Send:
        link.named = link.router in hello.seen
        return Send(hello, HELLO_TO, connection)
