"""The connections of a listener: what they wait for, and which one ends when there are too many.

Who sends requests and does not read the answers, or sends none, costs a place each. So a new connection always gets a
place while others wait: one of those ends for it, of the host that has most of them. An address may stand for many
people, so no host is refused for its number of connections alone; those of one host end for each other.

WebSockets end for no other connection, and may last for days: however many there are, some connections may be beside
them, for probes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto

import trio

from trouter.config.hosts import place_of
from trouter.net.descriptors import has_pair_for_client

from .settings import MAX_PLAIN, MAX_PROBES, PLAIN_BESIDE


class Doing(Enum):
    """What a connection does, as far as it matters for its end."""

    #: It waits for its client: for the handshake of TLS, a request, or the end.
    AWAITING = auto()
    #: It waits for its client to read an answer.
    WRITING = auto()
    #: It waits for its client to read the answer by which it becomes a WebSocket.
    UPGRADING = auto()
    #: A page is being made.
    ANSWERING = auto()
    #: A probe is being answered, which takes little time: no other connection ends it.
    PROBED = auto()


class HttpPlace:
    """The place of one connection at the door."""

    def __init__(self, host: str) -> None:
        """``host`` is the client's address."""
        #: Hosts that can have many addresses of their own count as one.
        self.host = place_of(host)
        self.doing = Doing.AWAITING
        #: Cancelling it ends the connection.
        self.scope = trio.CancelScope()
        #: The wait of a connection that may end when the listener stops; None for none.
        self.wait: trio.CancelScope | None = None
        #: Set when the connection has ended and its socket is closed.
        self.left = trio.Event()

    @property
    def is_given_up(self) -> bool:
        """True if the connection is being ended for another one."""
        return self.scope.cancel_called


class Door:
    """Knows the connections of a listener, and ends some of them."""

    def __init__(self) -> None:
        #: No new WebSockets are accepted.
        self.draining = False
        #: No new requests are accepted either.
        self.stopping = False
        self.websockets = 0
        #: The connections that are no WebSockets, those first that have done what they do for longest.
        self._plain: dict[HttpPlace, None] = {}

    def __len__(self) -> int:
        """Return the number of connections, WebSockets too."""
        return len(self._plain) + self.websockets

    def enter(self, host: str) -> HttpPlace:
        """Give a new connection of ``host`` a place, until ``leave``."""
        place = HttpPlace(host)
        self._plain[place] = None
        return place

    def leave(self, place: HttpPlace) -> None:
        """Give back the place of a connection that has ended and closed its socket."""
        del self._plain[place]
        place.left.set()

    def find_room(self, host: str, maximum: int | None) -> str:
        """Return why a new connection of ``host`` has no place, empty if it has one; another one may end for it.

        ``maximum`` is the most connections, with WebSockets, beside which some may be that are none; None for no limit.
        """
        closing = sum(place.is_given_up for place in self._plain)
        others = self._that_may_end()
        full = maximum is not None and len(self._plain) - closing >= _plain_places(maximum, self.websockets)
        if len(others) < MAX_PLAIN and not full:
            return ""
        if full and not others:
            return f"maxConnections {maximum}"
        if closing >= MAX_PLAIN:
            return f"{closing} connections are being closed"
        _most_spare(others, place_of(host)).scope.cancel()
        return ""

    def give_one_up(self) -> HttpPlace | None:
        """End a connection for one whose host is not known; return its place, None if none may end."""
        ending = next((place for place in self._plain if place.is_given_up), None)
        if ending is None and (others := self._that_may_end()):
            ending = _most_spare(others, "")
            ending.scope.cancel()
        return ending

    def _that_may_end(self) -> list[HttpPlace]:
        """Return the places of connections that may end for another one: WebSockets and probes do not."""
        return [place for place in self._plain if not (place.is_given_up or place.doing is Doing.PROBED)]

    def why_no_websocket(self, maximum: int | None) -> str:
        """Return why no further connection may become a WebSocket, empty if one may; ``maximum`` as for `find_room`."""
        upgrading = sum(place.doing is Doing.UPGRADING for place in self._plain)
        if maximum is not None and self.websockets + upgrading >= maximum:
            return "WebSockets take all maxConnections of the listener: close some, or raise it"
        if not has_pair_for_client():
            return "few descriptors are left: close connections, or raise the limit of descriptors (nofile)"
        return ""

    @contextmanager
    def websocket(self, place: HttpPlace) -> Iterator[None]:
        """Count a connection as a WebSocket, which ends for no other one, while it is served as such."""
        del self._plain[place]
        self.websockets += 1
        try:
            yield
        finally:
            self.websockets -= 1
            self._plain[place] = None

    @contextmanager
    def busy(self, place: HttpPlace, doing: Doing) -> Iterator[None]:
        """Note what a connection does meanwhile; afterwards it waits for its client.

        A probe beyond MAX_PROBES is like any page.
        """
        if doing is Doing.PROBED and sum(each.doing is doing for each in self._plain) >= MAX_PROBES:
            doing = Doing.ANSWERING
        self._turn(place, doing)
        try:
            yield
        finally:
            self._turn(place, Doing.AWAITING)

    @contextmanager
    def waiting(self, place: HttpPlace, scope: trio.CancelScope) -> Iterator[None]:
        """Let a stop of the listener end a wait for the client by cancelling ``scope``."""
        if self.stopping:
            scope.cancel()
        place.wait = scope
        try:
            yield
        finally:
            place.wait = None

    def stop(self) -> None:
        """End all connections that wait for requests: complete ones are still answered, others are dropped."""
        self.draining = self.stopping = True
        for place in self._plain:
            if place.wait is not None:
                place.wait.cancel()

    def _turn(self, place: HttpPlace, doing: Doing) -> None:
        place.doing = doing
        del self._plain[place]
        self._plain[place] = None


def _plain_places(maximum: int, websockets: int) -> int:
    """Return how many connections may be no WebSockets, beside so many that are."""
    return max(maximum - websockets, min(maximum, PLAIN_BESIDE))


def _most_spare(places: list[HttpPlace], newcomer: str) -> HttpPlace:
    """Return the place to give up for a connection of the host ``newcomer``.

    It is one of the host with most places; there the one whose client has let it wait for longest.
    """
    counts = Counter(place.host for place in places)
    counts[newcomer] += 1
    return max(places, key=lambda place: (counts[place.host], place.doing is not Doing.ANSWERING))
