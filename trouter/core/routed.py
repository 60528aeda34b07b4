"""Routed links: a peer's link joined to one of ours at a container, so that both peers see a single link.

The peer's attach goes on to the container with its name and termini, and is answered when the container answers; from
then on each side's frames are passed on to the other (routing.md 1.7, 2.7, 6.3; inter-router.md 7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from trouter.engine.connection import Connection
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import LinkSink
from trouter.engine.session import Session
from trouter.wire.performatives import Attach, Coordinator, Error, Source, Target
from trouter.wire.types import Described

from .addresses import MOBILE, strip_location
from .containers import DetachReason, LinkOwner, free_name, own_link, passed_on, takes
from .egress import Egress
from .entry import AddressEntry
from .ingress import Ingress
from .links import LinkOptions, attach_link, make_routed_incoming, make_routed_outgoing
from .modes import SETTLED, Modes, answered_modes, passed_modes
from .names import with_id, with_space
from .refusals import FRAME_TOO_SMALL, LINK_EXPIRATION, LINK_LOST, NO_ROUTE, AttachRefused
from .relay import MirroredCredit
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

#: The longest handle in a frame, for measuring one.
_ANY_HANDLE: Final = 0xFFFFFFFF
_NEVER: Final = "never"
#: Links at most, of those that wait for one session of ours, that outlive the client's session to be given back.
_MAX_GIVEN_BACK: Final = 16

_Terminus = TypeVar("_Terminus", Source | Described | None, Target | Coordinator | Described | None)


class RoutedLink(LinkOwner):
    """One routed link: ``near`` is the peer's, ``far`` ours at the container, None before its session is mapped."""

    def __init__(
        self,
        router: RouterPort,
        near: Link,
        terms: PeerTerms,
        pattern: RoutePattern,
        hop: Hop,
        text: str,
    ) -> None:
        """Make a routed link; ``text`` is the address in the table of routes, with its tenant; AttachRefused."""
        self.near = near
        self.far: Link | None = None
        self.text = text
        self._router = router
        self._terms = terms
        self._pattern = pattern
        self._hop = hop
        #: The client, and the session at the container that its links have (see ``Container.for_routed_links``).
        self._client: object = near.session if terms.is_router else near.session.connection
        self._own = hop.container.for_routed_links(self._client)
        #: The name that it has taken, as in ``LinkNames``; None for none.
        self._taken_name: tuple[bool, str, object] | None = None
        #: The end whose peer detached it, and waits for the other peer's answer while the end's context is this, or
        #: that was lost; and the reason, which the other peer hears.
        self._detached_first: Link | None = None
        self._detach_reason = DetachReason(True, None)

    # --- the attach

    def begin_link(self) -> None:
        """Accept the peer's link, and attach ours as soon as possible; AttachRefused."""
        near, wanted = self.near, _attach_of(self.near)
        self._make_endpoint(near, self._terms, sends_settled=wanted.snd_settle_mode == SETTLED)
        near.holder = self
        try:
            self._own.attach_or_wait(self, self._client)
        except AttachRefused:
            self._give_name_back()
            near.sink, near.holder = _NO_OWNER, None
            raise

    def attach_on_session(self, session: Session) -> None:
        """Attach the link at the container, whose session is mapped; AttachRefused."""
        near, wanted = self.near, _attach_of(self.near)
        name = free_name(session, self._own_name(wanted.name), not near.incoming, self._router.next_identity)
        source, target = self._outward_termini(wanted)
        fields = _passed_fields(wanted, passed_modes(wanted))
        attach = Attach(name=name, handle=_ANY_HANDLE, role=not near.incoming, source=source, target=target, **fields)
        if not takes(self._hop.container.connection, attach):
            raise AttachRefused(FRAME_TOO_SMALL)
        far = self.far = own_link(session, name, not near.incoming)
        far.holder = self
        endpoint = self._make_endpoint(far, self._hop.container.terms, sends_settled=False)
        self._router.add_endpoint(endpoint, self._hop.container.number)
        if self._detached_first is not None:  # the peer has detached it meanwhile
            attach_link(far, source, target, **fields)
            self._pass_detach_on()
            return
        incoming, outgoing = (near.sink, endpoint) if near.incoming else (endpoint, near.sink)
        assert isinstance(outgoing, Egress)  # noqa: S101 - by its direction
        _credit_of(incoming).join_ends(outgoing)
        attach_link(far, source, target, **fields)
        near.keep_essentials()

    def _make_endpoint(self, link: Link, terms: PeerTerms, *, sends_settled: bool) -> Ingress | Egress:
        options = LinkOptions(terms=terms, entry=self._pattern.entry, sends_settled=sends_settled)
        if isinstance(link, IncomingLink):
            return make_routed_incoming(self._router, link, options)
        assert isinstance(link, OutgoingLink)  # noqa: S101 - by its direction
        return make_routed_outgoing(self._router, link, options)

    def _own_name(self, name: str) -> str:
        """Return the name of our link: unique for a client's link, unchanged for another router's (1.7)."""
        terms, remote = self._terms, _connection_of(self.near).remote_open
        if terms.role == "inter-router" or remote is None:
            return name
        peer_id, first = remote.container_id, name
        if terms.tenant is not None and terms.names_tenant:
            peer_id, first = (with_space(each, terms.tenant.space) for each in (peer_id, name))
        if not self._hop.goes_up:
            first = with_id(name, peer_id)
        incoming = not self.near.incoming
        client = terms.tenant, terms.user, remote.container_id or terms.connection_number
        taken = self._hop.container.names.take(incoming, first, client, name, peer_id)
        self._taken_name = incoming, taken, client
        return taken

    def _leave(self) -> None:
        """Give up the session at the container, and the name there: the link is over at both ends."""
        self._give_name_back()
        self._own.drop_link(self, self._client)

    def _give_name_back(self) -> None:
        if self._taken_name is not None:
            self._hop.container.names.give_back(*self._taken_name)
            self._taken_name = None

    # --- the address on both sides

    def _outward_termini(
        self, wanted: Attach
    ) -> tuple[Source | Described | None, Target | Coordinator | Described | None]:
        """Return the termini for the container, with its name for the address."""
        if self.near.incoming:
            return wanted.source, self._addressed(_without_second(wanted.target), self._container_address)
        return self._addressed(_without_second(wanted.source), self._container_address), wanted.target

    def _container_address(self, text: str) -> str:
        return to_container(text, self._hop.route, self._terms.tenant)

    def _peer_address(self, text: str) -> str:
        """Return the peer's name for the address that the container calls ``text``."""
        wanted = _attach_of(self.near)
        own = getattr(wanted.target if self.near.incoming else wanted.source, "address", None)
        if isinstance(own, str) and self._container_address(own) == text:
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
            target = self._addressed(target, self._peer_address)
        else:
            source = self._addressed(source, self._peer_address)
        fields = _passed_fields(attach, answered_modes(_attach_of(near), attach))
        answer = Attach(name=near.name, handle=near.handle, role=near.incoming, source=source, target=target, **fields)
        if not takes(_connection_of(near), answer):
            self._router.end_link(near, DetachReason(True, FRAME_TOO_SMALL))
            return
        attach_link(near, source, target, **fields)
        incoming = near.sink if near.incoming else link.sink
        _credit_of(incoming).top_up_credit()

    def handle_refusal(self, error: Error) -> None:
        """Refuse the peer's link: there is no session, or it cannot have our link."""
        if self._detached_first is not None:
            self._answer_first_detach(True, error)
            return
        self._leave()
        self.near.holder = None
        self._router.end_link(self.near, DetachReason(True, error))

    # --- the end

    def handle_end(self, link: Link, reason: DetachReason | None) -> None:
        """End the other end too, with the same reason or that of the loss; pass its answer back."""
        if self._detached_first is not None:
            self._answer_detach(link, reason)
            return
        near, far = self.near, self.far
        other = far if link is near else near
        for sink in (near.sink, far.sink if far is not None else None):
            if isinstance(sink, Ingress):
                _credit_of(sink).part_ends()
        if other is None and reason is None:
            self._leave()
            return
        if reason is None:
            outlives = other is far and _outlives(near.remote_attach)
            self._detach_reason = DetachReason(not outlives, self._why_lost(link))
        else:
            self._detach_reason = DetachReason(reason.closed, passed_on(reason.error))
            link.holder = self
        self._detached_first = link
        self._router.pending_detaches.add(self, self._router.shared.now_s)
        if other is None:
            return  # it is attached and detached once its session is mapped
        if isinstance(other.sink, Egress):
            other.sink.call_when_sent(self._pass_detach_on)
        else:
            self._pass_detach_on()

    def _pass_detach_on(self) -> None:
        """Detach the other end, after its deliveries, and wait for its peer's answer if the first peer does."""
        first, other = self._detached_ends()
        assert other is not None  # noqa: S101 - the caller has attached it
        other.holder = None
        other.awaited = first.holder is self
        self._router.end_link(other, self._detach_reason)
        if other.awaited:
            other.holder = self
        else:
            self._end_wait()
            self._leave()

    def _answer_detach(self, link: Link, reason: DetachReason | None) -> None:
        """Answer the first detach, because the other peer answered or an end was lost.

        What the first peer sent before its loss still goes to the other one. A close is answered with a close, whatever
        the answer was: RabbitMQ never closes, and clients wait for it.
        """
        first, other = self._detached_ends()
        if link is first:
            bounded = other is not None or (first.kept_bytes == 0 and self._own.waiting <= _MAX_GIVEN_BACK)
            if not (bounded and self._is_held_back(other)):
                self._end_wait()
                self._leave()
            return
        answer = reason or DetachReason(self._detach_reason.closed, self._why_lost(link))
        self._answer_first_detach(answer.closed or self._detach_reason.closed, passed_on(answer.error))

    def _answer_first_detach(self, closed: bool, error: Error | None = None) -> None:
        """Answer the first detach, unless its end was lost since."""
        first, _ = self._detached_ends()
        waits = first.holder is self
        self._end_wait()
        if waits:
            first.detach(closed, error)
        self._leave()

    def _why_lost(self, link: Link) -> Error:
        """Return what one end hears if ``link``, the other one, was lost: the container's reason if it gave one."""
        return self._own.reason_of_end() if link is self.far else LINK_LOST

    def wait_no_longer(self) -> None:
        """See ``PendingDetach``."""
        _, other = self._detached_ends()
        if other is not None and isinstance(other.sink, Egress) and other.sink.when_sent is not None:
            other.sink.when_sent = None
            other.holder = None
            self._router.end_link(other, self._detach_reason)
        self._answer_first_detach(self._detach_reason.closed)

    def _detached_ends(self) -> tuple[Link, Link | None]:
        """Return the end that its peer detached or lost first, and the other one, None before it is attached."""
        assert self._detached_first is not None  # noqa: S101 - asked for after that
        return self._detached_first, self.other_end(self._detached_first)

    def _is_held_back(self, other: Link | None) -> bool:
        """Return whether the other end is still to be detached: after its deliveries, or once it is attached."""
        return other is None or (isinstance(other.sink, Egress) and other.sink.when_sent is not None)

    def _end_wait(self) -> None:
        """Stop reports of both ends, and the wait."""
        first, other = self._detached_ends()
        self._router.pending_detaches.discard(self)
        first.holder = None
        if other is not None:
            other.holder = None
            other.awaited = False
            other.release_if_refused()

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
    RoutedLink(router, link, terms, pattern, hop, address.text).begin_link()
    return True


def carry_up(router: RouterPort, link: Link, terms: PeerTerms, terminus: object) -> None:
    """Route a link over an edge router's uplink, as the interior router answered that it is routed; AttachRefused."""
    text = routed_address(terminus)
    if text is None or router.uplink is None:
        raise AttachRefused(NO_ROUTE)
    qualified = router.table.parse(text, tenant=terms.tenant).text
    key = LETTERS[IN if link.incoming else OUT][1] + qualified
    hop = Hop(router.uplink.container, AS_IT_IS, goes_up=True)
    pattern = RoutePattern(key, AddressEntry(key, qualified, LINK_BALANCED))
    RoutedLink(router, link, terms, pattern, hop, qualified).begin_link()


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


def _without_second(terminus: _Terminus) -> _Terminus:
    """Return a peer's terminus; a dynamic one without its address, which a peer must not give and no policy judges."""
    if isinstance(terminus, Source | Target) and terminus.dynamic:
        return replace(terminus, address=None)
    return terminus


def _attach_of(link: Link) -> Attach:
    """Return the attach of the link's peer."""
    attach = link.remote_attach
    assert attach is not None  # noqa: S101 - the caller has a link that the peer attached or answered
    return attach


class _PassedFields(Modes):
    """The fields of an attach that go to the other end, besides the termini."""

    offered_capabilities: tuple[str, ...]
    desired_capabilities: tuple[str, ...]
    properties: dict[object, object] | None


def _passed_fields(attach: Attach, modes: Modes) -> _PassedFields:
    """Return what goes to the other end of an attach with these modes."""
    return {
        **modes,
        "offered_capabilities": attach.offered_capabilities,
        "desired_capabilities": attach.desired_capabilities,
        "properties": attach.properties,
    }


def _credit_of(incoming: LinkSink) -> MirroredCredit:
    """Return the credit of the incoming end."""
    assert isinstance(incoming, Ingress)  # noqa: S101 - by its direction
    assert isinstance(incoming.account, MirroredCredit)  # noqa: S101 - `make_routed_incoming` has made it
    return incoming.account


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
