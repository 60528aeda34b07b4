"""The peer of a connection in the role edge: its downlink and its tracking link."""

from __future__ import annotations

from collections.abc import Callable

from trouter.core.egress import Egress, Supplier
from trouter.core.entry import AddressEntry
from trouter.core.notes import Note, write
from trouter.core.ports import SharedState
from trouter.engine.link import OutgoingLink


class EdgePeer:
    """A connection in the role edge. ``user`` is the name that the edge router authenticated as."""

    def __init__(self, number: int, user: str = "") -> None:
        #: The connection's number in management.
        self.number = number
        self.user = user
        #: The edge router's id, "" before its downlink.
        self.id = ""
        self.downlink: Egress | None = None
        #: The link on which it is notified of ``addresses``; None for both before its tracking link.
        self.tracker: Egress | None = None
        self.addresses: TrackedAddresses | None = None
        #: The addresses that it sends to, and the number of links for each.
        self.sends: dict[AddressEntry, int] = {}


class TrackedAddresses(Supplier):
    """The notes to an edge router whether its addresses have receivers elsewhere; only the newest of each waits.

    While the router is leaving there is no note that an address has none any more.
    """

    def __init__(self, link: OutgoingLink, shared: SharedState, send: Callable[[bytes], None]) -> None:
        """Start without notified addresses; ``send`` sends a message of the router itself on the link."""
        self._link = link
        self._shared = shared
        self._send = send
        self._due: dict[str, bool] = {}
        #: The addresses notified as having receivers elsewhere; the others need no note.
        self._notified: set[str] = set()

    def follow_credit(self, outgoing: Egress) -> None:
        """See ``Supplier.follow_credit``."""
        self.send_due()
        outgoing.return_credit()

    def note_takers(self, key: str, takes: bool) -> None:
        """Note whether another connection takes messages to the address."""
        if takes == (key in self._notified) or (self._shared.leaving and not takes):
            self._due.pop(key, None)
        else:
            self._due[key] = takes
            self.send_due()

    def withdraw_address(self, key: str) -> None:
        """Withdraw an address to which the edge router no longer sends, if there is credit for the note."""
        self.note_takers(key, False)
        self._due.pop(key, None)
        self._notified.discard(key)

    def send_due(self) -> None:
        """Send the notes that are due, as far as credit allows."""
        while self._due and self._link.is_ready():
            key = next(iter(self._due))
            takes = self._due.pop(key)
            if self._shared.leaving and not takes:
                continue
            if takes:
                self._notified.add(key)
            else:
                self._notified.discard(key)
            self._send(write(Note([key, takes])))
