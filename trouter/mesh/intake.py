"""Messages from the control links: each is sent on, taken here, both, or dropped and counted.

Large ones, and all about addresses, are taken in pieces, in turns of the neighbours that bring them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from trouter.wire.errors import DecodeError

from .events import Forward
from .faults import MeshFault
from .hearing import Hearing, Spread
from .knowledge import Knowledge
from .messages import (
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
    find_body,
)
from .names import shown
from .pieces import SMALL_BYTES, Pieces, parse_in_pieces
from .relay import HELLO_ADDRESS, LINKS_ADDRESS, MOBILE_ADDRESS, Dropped, Relay, relay

#: The address of each message; a hello that was relayed does not make its sender a neighbour.
TAKEN_AT: Final[Mapping[type, str]] = {
    Hello: HELLO_ADDRESS,
    RouterAdvertisement: LINKS_ADDRESS,
    LinkStateRequest: LINKS_ADDRESS,
    LinkStateUpdate: LINKS_ADDRESS,
    MobileAddressRequest: MOBILE_ADDRESS,
    MobileAddressUpdate: MOBILE_ADDRESS,
}
#: The opcodes of messages that only come over a connection that leads to their router.
UPDATES: Final = frozenset({"LSU", "MAU"})

T = TypeVar("T")


class Intake:
    """Takes the messages of the control links, lets the ``hearing`` learn from them, and says where to send them on."""

    def __init__(self, known: Knowledge, hearing: Hearing) -> None:
        self._known = known
        self._hearing = hearing

    def take_message(self, data: bytes, connection: int, now_s: float) -> Relay:
        """Process the message ``data`` from the control link of ``connection``; return where to send it on."""
        try:
            way = relay(data, self._known.me, self._known.paths)
            if not way.address:
                return way if self._may_pass(way, data, connection, now_s) else Relay("")
            waits = way.address == MOBILE_ADDRESS or len(data) > SMALL_BYTES
            lane = self._lane_of(connection)
            if waits and not self._known.later.has_room(len(data), lane):
                raise Dropped(MeshFault.TOO_MANY, "bytes of messages that wait")
        except Dropped as dropped:
            self._known.report_fault(dropped.fault, dropped.detail, connection, now_s)
        except DecodeError as error:
            self._known.report_fault(MeshFault.MALFORMED, str(error), connection, now_s)
        else:
            taking = self._take(data, way, connection, now_s)
            if waits:
                subject = self._subject_of(way, connection)
                return self._known.later.begin(taking, subject, lane, len(data), way.origin or "") or Relay("")
            return _result_of(taking)
        return Relay("")

    def _lane_of(self, connection: int) -> Hashable:
        """Return the neighbour on a connection, or the connection as long as no router is known there."""
        link = self._known.links.get(connection)
        return connection if link is None else link.router or connection

    def _subject_of(self, way: Relay, connection: int) -> Hashable:
        """Return the router that a message is about; the connection if that may not bring messages of the router.

        A router that sends a message itself need not name itself in its annotations.
        """
        router = way.origin or self._lane_of(connection)
        if isinstance(router, str) and self._known.may_come_over(connection, router):
            return router
        return connection

    @property
    def has_pieces(self) -> bool:
        """True if messages about addresses wait for ``do_piece``."""
        return len(self._known.later) > 0

    def do_piece(self) -> None:
        """Do a piece of the work on messages about addresses."""
        result = self._known.later.do_piece()
        if isinstance(result, Relay) and result.hops:
            self._known.events.append(Forward(result.hops, result.data))

    def _take(self, data: bytes, way: Relay, connection: int, now_s: float) -> Pieces[Relay]:
        """Process a message for this router, in pieces if it is large; return where to send it on."""
        try:
            message = yield from parse_in_pieces(data)
            if TAKEN_AT.get(type(message), way.address) != way.address:
                raise DecodeError(f"{type(message).__name__} is not taken at {way.address[:32]!r}")
            if way.origin not in (None, message.id) and way.address != HELLO_ADDRESS:
                raise Dropped(MeshFault.OTHER_AUTHOR, f"{shown(way.origin or '')}, not {shown(message.id)}")
        except Dropped as dropped:
            self._known.report_fault(dropped.fault, dropped.detail, connection, now_s)
        except DecodeError as error:
            self._known.report_fault(MeshFault.MALFORMED, str(error), connection, now_s)
        else:
            if isinstance(message, MobileAddressUpdate) and message.id != self._known.me:
                spread = yield from self._hearing.receive_addresses(message, connection, now_s)
            else:
                spread = self._hearing.receive_message(message, connection, now_s)
            if spread is Spread.TO_ALL:
                return replace(way, hops=way.around)
            return way if spread is Spread.ALONG_THE_TREE else replace(way, hops=())
        return Relay("")

    def _may_pass(self, way: Relay, data: bytes, connection: int, now_s: float) -> bool:
        """Return whether to send a message for another router on; that router believes what comes from here."""
        if way.origin is None or self._known.may_come_over(connection, way.origin):
            return True
        if find_body(data)[0] not in UPDATES:
            return True
        if self._known.is_calm(now_s):
            self._known.report_fault(MeshFault.OFF_PATH, shown(way.origin), connection, now_s)
        return False


def _result_of(pieces: Pieces[T]) -> T:
    """Return the result of work after all its pieces."""
    while True:
        try:
            next(pieces)
        except StopIteration as over:
            return over.value  # type: ignore[no-any-return]  # the result of a generator has no type there
