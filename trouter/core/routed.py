"""Routed links: a peer's link joined to one of ours at a container, so that both peers see a single link.

The peer's attach goes on to the container with its name and termini, and is answered when the container answers; from
then on each side's frames are passed on to the other (routing.md 1.7, 2.7, 6.3; inter-router.md 7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Final, TypeVar

from trouter.engine.connection import Connection
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import LinkSink
from trouter.engine.session import Session
from trouter.wire.performatives import Attach, Coordinator, Error, Source, Target
from trouter.wire.types import Described

from .addresses import MOBILE, strip_location
from .containers import DetachReason, OwnSession, free_name, own_link, passed_on, takes
from .entry import AddressEntry
from .links import LinkOptions, attach_link, make_routed_incoming, make_routed_outgoing
from .refusals import FRAME_TOO_SMALL, LINK_EXPIRATION, LINK_LOST, NO_ROUTE, AttachRefused
from .relay import RoutedIncomingEndpoint, RoutedOutgoingEndpoint
from .routerport import RouterPort
from .routes import (
    ADDRESS_PROPERTY,
    AS_IT_IS,
    IN,
    LETTERS,
    LINK_BALANCED,
    OUT,
    Hop,
    LinkRoute,
    RoutePattern,
    dynamic_address,
    routed_address,
)
from .tenants import Tenant
from .terms import PeerTerms

_SETTLED_ONLY: Final = 1
#: The longest link name that other routers accept for certain, in bytes; a longer one becomes its digest.
_MAX_NAME_BYTES: Final = 8192
#: The longest handle in a frame, for measuring one.
_ANY_HANDLE: Final = 0xFFFFFFFF
_NEVER: Final = "never"

_Terminus = TypeVar("_Terminus", Source | Described | None, Target | Coordinator | Described | None)


class RoutedLink:
    """One routed link: ``near`` is the peer's, ``far`` ours at the container, None before its session is mapped."""

    def __init__(
        self,
        router: RouterPort,
        near: Link,
        terms: PeerTerms,
        pattern: RoutePattern,
        hop: Hop,
        own: OwnSession,
        text: str,
    ) -> None:
        """Make a routed link; ``text`` is the address in the table of routes, with its tenant."""
        self.near = near
        self.far: Link | None = None
        self.text = text
        self._router = router
        self._terms = terms
        self._pattern = pattern
        self._hop = hop
        self._own = own
        #: The end whose peer detached it and waits for the other peer's answer; and the reason of that detach.
        self._asker: Link | None = None
        self._word = DetachReason(True, None)

    # --- the attach

    def begin_link(self) -> None:
        """Accept the peer's link, and attach ours as soon as possible; AttachRefused."""
        near, wanted = self.near, _attach_of(self.near)
        self._make_endpoint(near, self._terms, sends_settled=wanted.snd_settle_mode == _SETTLED_ONLY)
        near.context = self
        try:
            self._own.attach_or_wait(self)
        except AttachRefused:
            near.sink, near.context = _NO_OWNER, None
            raise

    def attach_on_session(self, session: Session) -> None:
        """Attach the link at the container, whose session is mapped; AttachRefused."""
        near, wanted = self.near, _attach_of(self.near)
        name = free_name(session, self._own_name(wanted.name), not near.incoming, self._router.next_identity)
        source, target = self._outward_termini(wanted)
        attach = Attach(name=name, handle=_ANY_HANDLE, role=not near.incoming, source=source, target=target)
        if not takes(self._hop.container.connection, attach):
            raise AttachRefused(FRAME_TOO_SMALL)
        far = self.far = own_link(session, name, not near.incoming)
        far.context = self
        endpoint = self._make_endpoint(far, self._hop.container.terms, sends_settled=False)
        incoming, outgoing = (near.sink, endpoint) if near.incoming else (endpoint, near.sink)
        assert isinstance(incoming, RoutedIncomingEndpoint)  # noqa: S101 - by its direction
        assert isinstance(outgoing, RoutedOutgoingEndpoint)  # noqa: S101 - by its direction
        incoming.join_ends(outgoing)
        self._router.add_endpoint(endpoint, self._hop.container.number)
        attach_link(far, source, target)
        near.keep_essentials()

    def _make_endpoint(
        self, link: Link, terms: PeerTerms, *, sends_settled: bool
    ) -> RoutedIncomingEndpoint | RoutedOutgoingEndpoint:
        options = LinkOptions(terms=terms, entry=self._pattern.entry, sends_settled=sends_settled)
        if isinstance(link, IncomingLink):
            return make_routed_incoming(self._router, link, options)
        assert isinstance(link, OutgoingLink)  # noqa: S101 - by its direction
        return make_routed_outgoing(self._router, link, options, self._pass_detach_on)

    def _own_name(self, name: str) -> str:
        """Return the name of our link: unique for a client's link, unchanged for another router's (1.7)."""
        remote = _connection_of(self.near).remote_open
        from_router = self._terms.role == "inter-router"
        if from_router or remote is None:
            return name
        unique = f"{name}@{remote.container_id}"
        return unique if len(unique.encode()) <= _MAX_NAME_BYTES else sha256(unique.encode()).hexdigest()

    # --- the address on both sides

    def _outward_termini(
        self, wanted: Attach
    ) -> tuple[Source | Described | None, Target | Coordinator | Described | None]:
        """Return the termini for the container, with its name for the address."""
        if self.near.incoming:
            return wanted.source, self._addressed(wanted.target, self._out)
        return self._addressed(wanted.source, self._out), wanted.target

    def _out(self, text: str) -> str:
        return to_container(text, self._hop.route, self._terms.tenant)

    def _home(self, text: str) -> str:
        """Return the peer's name for the address that the container calls ``text``."""
        wanted = _attach_of(self.near)
        own = getattr(wanted.target if self.near.incoming else wanted.source, "address", None)
        if isinstance(own, str) and self._out(own) == text:
            return own
        return from_container(text, self._hop.route, self._terms.tenant)

    def _addressed(self, terminus: _Terminus, change: Callable[[str], str]) -> _Terminus:
        """Return a terminus with its address, or the one that a dynamic terminus names, changed."""
        if not isinstance(terminus, Source | Target):
            return terminus
        address, properties = terminus.address, terminus.dynamic_node_properties
        if isinstance(address, str) and address:
            address = change(address)
        named = dynamic_address(properties)
        if named is not None and isinstance(properties, dict):
            properties = {key: change(named) if key == ADDRESS_PROPERTY else value for key, value in properties.items()}
        return replace(terminus, address=address, dynamic_node_properties=properties)

    # --- the answer

    def is_own_link(self, link: Link) -> bool:
        """See ``LinkOwner``."""
        return link is self.far

    def handle_answer(self, link: Link) -> None:
        """Answer the peer as the container answered."""
        near, attach = self.near, _attach_of(link)
        source, target = attach.source, attach.target
        if near.incoming:
            target = self._addressed(target, self._home)
        else:
            source = self._addressed(source, self._home)
        answer = Attach(name=near.name, handle=near.handle, role=near.incoming, source=source, target=target)
        if not takes(_connection_of(near), answer):
            self._router.end_link(near, DetachReason(True, FRAME_TOO_SMALL))
            return
        attach_link(near, source, target)
        incoming = near.sink if near.incoming else link.sink
        assert isinstance(incoming, RoutedIncomingEndpoint)  # noqa: S101 - by its direction
        incoming.follow_receiver()

    def handle_refusal(self, error: Error) -> None:
        """Refuse the peer's link: there is no session, or it cannot have our link."""
        self._own.drop_link(self)
        self.near.context = None
        self._router.end_link(self.near, DetachReason(True, error))

    # --- the end

    def handle_end(self, link: Link, reason: DetachReason | None) -> None:
        """End the other end too, with the same reason or that of the loss; pass its answer back."""
        if self._asker is not None:
            self._answer_detach(link, reason)
            return
        near, far = self.near, self.far
        self._own.drop_link(self)
        other = far if link is near else near
        for each in (near.sink, far.sink if far is not None else None):
            if isinstance(each, RoutedIncomingEndpoint):
                each.part_ends()
        if other is None:
            return
        if reason is None:
            outlives = other is far and _outlives(near.remote_attach)
            other.context = None
            self._router.end_link(other, DetachReason(not outlives, self._why_lost(link)))
            return
        self._asker, self._word = link, DetachReason(reason.closed, passed_on(reason.error))
        link.context = self
        self._router.farewells.add(self, self._router.shared.now_s)
        if isinstance(other.sink, RoutedOutgoingEndpoint) and other.sink.backlog > 0:
            other.sink.closing = True
        else:
            self._pass_detach_on()

    def _pass_detach_on(self) -> None:
        """Detach the other end, after its deliveries, and wait for its peer's answer."""
        _, other = self._detached_ends()
        other.context = None
        other.awaited = True
        self._router.end_link(other, self._word)
        other.context = self

    def _answer_detach(self, link: Link, reason: DetachReason | None) -> None:
        """Answer the first detach, because the other peer answered or an end was lost.

        A close is answered with a close, whatever the answer was: RabbitMQ never closes, and clients wait for it.
        """
        asker = self._forget_farewell()
        if link is asker:
            self._cut_short()
        else:
            word = reason or DetachReason(self._word.closed, self._why_lost(link))
            asker.detach(word.closed or self._word.closed, passed_on(word.error))

    def _why_lost(self, link: Link) -> Error:
        """Return what one end hears if ``link``, the other one, was lost: the container's reason if it gave one."""
        return self._own.reason_of_end() if link is self.far else LINK_LOST

    def wait_no_longer(self) -> None:
        """See ``Farewell``."""
        asker = self._forget_farewell()
        self._cut_short()
        asker.detach(self._word.closed)

    def _detached_ends(self) -> tuple[Link, Link]:
        """Return the end whose peer detached it, and the other one, while one waits for the other."""
        asker, other = (self.near, self.far) if self._asker is self.near else (self.far, self.near)
        assert asker is not None  # noqa: S101 - both exist while one waits
        assert other is not None  # noqa: S101 - the same
        return asker, other

    def _forget_farewell(self) -> Link:
        """Stop reports of both ends; return the end that waited."""
        asker, other = self._detached_ends()
        self._router.farewells.discard(self)
        asker.context = None
        other.context = None
        other.awaited = False
        other.release_if_refused()
        return asker

    def _cut_short(self) -> None:
        """Stop waiting for the other end; detach it now if its deliveries held that back."""
        _, other = self._detached_ends()
        if isinstance(other.sink, RoutedOutgoingEndpoint) and other.sink.closing:
            other.sink.closing = False
            self._router.end_link(other, self._word)

    def other_end(self, link: Link) -> Link | None:
        """Return the link at the other end; None before it is attached."""
        return self.far if link is self.near else self.near


def carry(router: RouterPort, link: Link, terms: PeerTerms, terminus: Source | Target | Coordinator) -> bool:
    """Return whether the link's address is that of a link route, and if so, route the link; AttachRefused."""
    if not len(router.routes):
        return False
    text = routed_address(terminus)
    if text is None:
        return False
    address = router.table.parse(text, tenant=terms.tenant)
    if address.letter != MOBILE or router.table.is_served(address):
        return False
    space = "" if terms.tenant is None else terms.tenant.space
    pattern = router.routes.find(address.text, IN if link.incoming else OUT, space)
    if pattern is None:
        return False
    wanted = link.remote_attach
    if not router.routes.resumable and _outlives(wanted):
        raise AttachRefused(LINK_EXPIRATION)
    hop = router.routes.next_hop(pattern, terms.connection_number)
    if hop is None:
        raise AttachRefused(NO_ROUTE)
    _set_out(router, link, terms, pattern, hop, address.text)
    return True


def carry_up(router: RouterPort, link: Link, terms: PeerTerms, terminus: object) -> None:
    """Route a link over an edge router's uplink, as the interior router answered that it is routed; AttachRefused."""
    text = routed_address(terminus)
    if text is None or router.uplink is None:
        raise AttachRefused(NO_ROUTE)
    qualified = router.table.parse(text, tenant=terms.tenant).text
    key = LETTERS[IN if link.incoming else OUT][1] + qualified
    hop = Hop(router.uplink.container, AS_IT_IS)
    _set_out(router, link, terms, RoutePattern(key, AddressEntry(key, qualified, LINK_BALANCED)), hop, qualified)


def _set_out(router: RouterPort, link: Link, terms: PeerTerms, pattern: RoutePattern, hop: Hop, text: str) -> None:
    client = (terms.connection_number, link.session.channel if terms.is_router else 0)
    own = hop.container.for_routed_links(client)
    RoutedLink(router, link, terms, pattern, hop, own, text).begin_link()


def to_container(text: str, route: LinkRoute, tenant: Tenant | None) -> str:
    """Return the container's name for a peer's address (6.3).

    A ``/`` at the beginning of ``del_prefix`` counts as little as one at the beginning of the address.
    """
    if tenant is not None:
        text = tenant.qualify(text)
    if route.add_prefix or route.del_prefix:
        text = route.add_prefix + strip_location(text).removeprefix(route.del_prefix.removeprefix("/"))
    return text


def from_container(text: str, route: LinkRoute, tenant: Tenant | None) -> str:
    """Return the peer's name for a container's address: the inverse of ``to_container``."""
    if route.add_prefix or route.del_prefix:
        if not text.startswith(route.add_prefix):
            return text
        text = route.del_prefix + text.removeprefix(route.add_prefix)
    return text if tenant is None else text.removeprefix(f"{tenant.space}/")


def _attach_of(link: Link) -> Attach:
    """Return the attach of the link's peer."""
    attach = link.remote_attach
    assert attach is not None  # noqa: S101 - the caller has a link that the peer attached or answered
    return attach


def _connection_of(link: Link) -> Connection:
    connection = link.session.connection
    assert isinstance(connection, Connection)  # noqa: S101 - behind the port of every link's session
    return connection


def _outlives(attach: Attach | None) -> bool:
    """Return whether a terminus must outlive its link."""
    termini = () if attach is None else (attach.source, attach.target)
    return any(
        isinstance(terminus, Source | Target) and (terminus.timeout > 0 or terminus.expiry_policy == _NEVER)
        for terminus in termini
    )


#: The sink of a link without an owner.
_NO_OWNER: Final = LinkSink()
