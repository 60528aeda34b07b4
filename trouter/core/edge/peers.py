"""The other end of a connection in the role edge: its downlink, and the link on which it hears of addresses."""

from __future__ import annotations

from collections.abc import Callable

from trouter.core.egress import Egress
from trouter.core.entry import AddressEntry
from trouter.core.notes import Note, write
from trouter.engine.ports import LinkPort


class EdgePeer:
    """A connection in the role edge. ``user`` is the name that the edge router authenticated as."""

    def __init__(self, number: int, user: str = "") -> None:
        #: What management calls the connection.
        self.number = number
        self.user = user
        #: The edge router's id, "" before its downlink.
        self.id = ""
        self.downlink: Egress | None = None
        self.tracker: EdgeTracker | None = None
        #: The addresses that it sends to, and on how many links.
        self.sends: dict[AddressEntry, int] = {}


class EdgeTracker(Egress):
    """The link on which an edge router hears of addresses: of each, only what holds now waits to be sent."""

    __slots__ = ("_due", "_send", "_notified")

    def track_with(self, send: Callable[[Egress, bytes], None]) -> None:
        """Begin with nothing told; ``send`` sends a message from inside the router on a link."""
        self._send = send
        self._due: dict[str, bool] = {}
        #: The addresses that were told as taken elsewhere; of all others nothing needs to be told.
        self._notified: set[str] = set()

    def notify(self, key: str, takes: bool) -> None:
        """Note that another connection takes messages to the address, or that none does any more."""
        if takes == (key in self._notified):
            self._due.pop(key, None)
        else:
            self._due[key] = takes
            self._push_due()

    def forget(self, key: str) -> None:
        """Take back what was told of an address to which the edge router sends no more, if there is credit for it."""
        self.notify(key, False)
        self._due.pop(key, None)
        self._notified.discard(key)

    def on_credit(self, link: LinkPort) -> None:
        """Send the notes that are due, as far as there is credit."""
        self._push_due()
        super().on_credit(link)

    def _push_due(self) -> None:
        while self._due and self.link.ready():
            key = next(iter(self._due))
            takes = self._due.pop(key)
            if takes:
                self._notified.add(key)
            else:
                self._notified.discard(key)
            self._send(self, write(Note([key, takes])))
