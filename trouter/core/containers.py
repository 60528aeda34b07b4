"""Connections on which the router attaches links of its own: containers of routed links and auto links (routing.md 6.1,
7).

The router opens sessions there when it first needs them: one for its auto links, others for routed links. Some brokers
end the whole session for a queue that they do not have; auto links that lost their session to an error get one each
from then on, so that a missing queue does not disturb the others. A link waits until the peer has answered the begin,
which gives the handle-max. The routed links of each client have a session of their own, which ends with the last of
them: a client that reads nothing closes the window of its session, and some brokers keep a transaction until the
session of its coordinator ends. Clients share a session only if the peer allows no more; where there are auto links
they leave one free, for those that lose theirs. The next router keeps the sessions apart too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from trouter.engine.connection import Connection
from trouter.engine.faults import Misuse
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.link_base import Link
from trouter.engine.ports import LinkHolder, SessionHolder
from trouter.engine.session import Session
from trouter.wire.composite import encode
from trouter.wire.framing import frame
from trouter.wire.performatives import Attach, Error, encode_performative

from .names import LinkNames
from .refusals import CONTAINER_FULL, LINK_LOST, NO_ROUTE, AttachRefused
from .terms import ROUTE_CONTAINER, PeerTerms

#: The longest error of a peer that is sent to another, in bytes, and its parts in characters: it fits into any frame.
_MAX_ERROR_BYTES: Final = 400
_MAX_CONDITION: Final = 100
_MAX_DESCRIPTION: Final = 60


class DetachReason(NamedTuple):
    """The end of a link by its peer: whether it closed the link, and its error."""

    closed: bool
    error: Error | None


class LinkOwner(LinkHolder):
    """The part of the core that attached a link of the router's own, or joined a peer's to one."""

    def is_own_link(self, link: Link) -> bool:
        """Return whether the link is one of ours, and not a peer's that was joined to one."""
        raise NotImplementedError

    def handle_answer(self, link: Link) -> None:
        """Note that the peer answered the attach of a link of ours."""
        raise NotImplementedError

    def handle_end(self, link: Link, reason: DetachReason | None) -> None:
        """Handle the end of a link whose deliveries are settled; ``reason`` is None if the peer sent no detach."""
        raise NotImplementedError


class SessionWaiter(Protocol):
    """An auto link or link route that attaches a link once its session is mapped."""

    def attach_on_session(self, session: Session) -> None:
        """Attach the link on the session, which is mapped; AttachRefused."""

    def handle_refusal(self, error: Error) -> None:
        """Give up: the link cannot be attached because of ``error``."""


class OwnSession(SessionHolder):
    """A session of ours on a container's connection."""

    def __init__(self, container: Container, session: Session) -> None:
        self.session = session
        #: The number of links on it and of owners that wait to attach one; and those of each client.
        self.links = 0
        self.clients: dict[object, int] = {}
        #: The error with which the peer ended it, or closed its connection.
        self.error: Error | None = None
        self._container = container
        self._waiting: dict[SessionWaiter, None] = {}
        session.holder = self

    @property
    def waiting(self) -> int:
        """Number of owners that wait to attach a link, because the session is not mapped."""
        return len(self._waiting)

    def attach_or_wait(self, waiting: SessionWaiter, client: object = None) -> None:
        """Attach a link, of ``client`` if it is routed, now or once the session is mapped; AttachRefused."""
        self.links += 1
        self.clients[client] = self.clients.get(client, 0) + 1
        if not self.session.mapped:
            self._waiting[waiting] = None
            return
        try:
            waiting.attach_on_session(self.session)
        except AttachRefused:
            self.drop_link(waiting, client)
            raise

    def drop_link(self, waiting: SessionWaiter, client: object = None) -> None:
        """Forget a link that has ended or is no longer wanted; the last routed one ends the session."""
        self._waiting.pop(waiting, None)
        self.links -= 1
        self.clients[client] -= 1
        if not self.clients[client]:
            del self.clients[client]
            self._container.client_left(self, client)

    def attach_waiting(self) -> None:
        """Attach the links that waited for the peer to answer the begin."""
        waiting, self._waiting = self._waiting, {}
        for each in waiting:
            try:
                each.attach_on_session(self.session)
            except AttachRefused as refusal:
                each.handle_refusal(refusal.error or NO_ROUTE)

    def refuse_waiting(self, error: Error | None) -> None:
        """Refuse the links that wait: the session has ended; ``error`` is the peer's."""
        self.error = error or self.error
        self._container.forget_session(self)
        waiting, self._waiting = self._waiting, {}
        for each in waiting:
            each.handle_refusal(self.reason_of_end())

    def reason_of_end(self) -> Error:
        """Return what a client hears of the end of the session: the peer's reason if it gave one."""
        return passed_on(self.error) or LINK_LOST


class Container:
    """The container at the other end of one connection; ``name`` is that of the connector or listener, empty for none.

    ``terms`` apply to links that the peer attaches, and to links of ours on the connection. ``end_session`` ends a
    session of ours.
    """

    def __init__(
        self,
        connection: Connection,
        terms: PeerTerms,
        container_id: str,
        name: str,
        role: str,
        end_session: Callable[[Session], None] = Session.end,
    ) -> None:
        self.connection = connection
        self.terms = terms
        self.container_id = container_id
        self.name = name
        self.role = role
        self._auto: OwnSession | None = None
        self._has_auto_links = False
        self._apart: list[OwnSession] = []
        #: The sessions of routed links, and the one of each client; clients share one if the peer allows no more.
        self._routed: dict[OwnSession, None] = {}
        self._of_clients: dict[object, OwnSession] = {}
        #: The names of routed links there.
        self.names = LinkNames()
        self._end_session = end_session

    @property
    def number(self) -> int:
        """Number of the connection in management."""
        return self.terms.connection_number

    def matches(self, container_id: str, connection: str) -> bool:
        """Return whether this connection matches auto links and link routes for that container or that connection."""
        if self.role != ROUTE_CONTAINER:
            return False
        return bool(connection and connection == self.name) or bool(container_id and container_id == self.container_id)

    def for_auto_links(self, *, apart: bool = False) -> OwnSession:
        """Return the session of all auto links, or with ``apart`` one for a single link; AttachRefused."""
        self._has_auto_links = True
        if apart:
            own = next((each for each in self._apart if not each.links), None)
            if own is None:
                own = self._begin_session()
                self._apart.append(own)
            return own
        if self._auto is None:
            self._auto = self._begin_session()
        return self._auto

    def for_routed_links(self, client: object) -> OwnSession:
        """Return the session for the routed links of ``client``: its own, or a shared one; AttachRefused.

        A client is a connection, or a session of another router, which has one for each of its clients.
        """
        own = self._of_clients.get(client)
        if own is None:
            own = self._of_clients[client] = self._begin_routed()
        return own

    def _begin_routed(self) -> OwnSession:
        """Begin a session; if the peer allows no more than auto links may need, return one that others have."""
        if self._routed and self.connection.channels.count_free() <= self._kept_for_auto_links():
            return min(self._routed, key=lambda each: each.links)
        own = self._begin_session()
        self._routed[own] = None
        return own

    def _kept_for_auto_links(self) -> int:
        """Return how many sessions clients leave: one more than auto links have, and that which these have lost."""
        if not self._has_auto_links:
            return 0
        return 1 if self._auto is not None or self._apart else 2

    def client_left(self, own: OwnSession, client: object) -> None:
        """Forget a client without links; end the session if it was the last on it, and with it what it left there."""
        if own in self._routed:
            del self._of_clients[client]
            if not own.links:
                del self._routed[own]
                self._end_session(own.session)

    def _begin_session(self) -> OwnSession:
        try:
            session = self.connection.add_session()
        except Misuse:
            raise AttachRefused(CONTAINER_FULL) from None
        own = OwnSession(self, session)
        session.begin()
        return own

    def forget_session(self, own: OwnSession) -> None:
        """Forget a session of ours that has ended."""
        if own is self._auto:
            self._auto = None
        if own in self._apart:
            self._apart.remove(own)
        if own in self._routed:
            del self._routed[own]
            for client in own.clients:
                del self._of_clients[client]

    def refuse_waiting(self, error: Error | None) -> None:
        """End all sessions: the connection has ended; ``error`` is that of the peer's close."""
        for own in [each for each in (self._auto, *self._apart, *self._routed) if each is not None]:
            own.refuse_waiting(error)


class Containers:
    """The connected containers, by the numbers of their connections."""

    def __init__(self) -> None:
        self._connected: dict[int, Container] = {}

    def add(self, container: Container) -> None:
        """Add a container whose connection has opened."""
        self._connected[container.number] = container

    def remove(self, number: int) -> Container | None:
        """Remove the container of connection ``number``; return it, or None if there was none."""
        return self._connected.pop(number, None)

    def get(self, number: int) -> Container | None:
        """Return the container of connection ``number``; None if there is none."""
        return self._connected.get(number)

    def matching(self, container_id: str, connection: str) -> list[Container]:
        """Return the containers that match a route or auto link by container id or connection."""
        return [each for each in self if each.matches(container_id, connection)]

    def __iter__(self) -> Iterator[Container]:
        return iter(list(self._connected.values()))

    def __len__(self) -> int:
        return len(self._connected)


def free_name(session: Session, name: str, incoming: bool, next_number: Callable[[], int]) -> str:
    """Return ``name``, with a number if the session has a link of that name."""
    free = name
    while (incoming, free) in session.links.by_name:
        free = f"{name}@{next_number()}"
    return free


def own_link(session: Session, name: str, incoming: bool) -> IncomingLink | OutgoingLink:
    """Return a new link of ours, not attached yet; AttachRefused."""
    try:
        return add_link(session, name, incoming)
    except Misuse:
        raise AttachRefused(CONTAINER_FULL) from None


def takes(connection: Connection, attach: Attach) -> bool:
    """Return whether an attach fits into the largest frame that the peer of ``connection`` accepts."""
    remote = connection.remote_open
    return remote is None or len(frame(0, encode_performative(attach))) <= remote.max_frame_size


def passed_on(error: Error | None) -> Error | None:
    """Return a peer's error for another peer: whole if it is short, else with its parts cut."""
    if error is None or len(encode(error)) <= _MAX_ERROR_BYTES:
        return error
    return Error(error.condition[:_MAX_CONDITION], (error.description or "")[:_MAX_DESCRIPTION] or None)
