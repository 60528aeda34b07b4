"""The uplink of an edge router and its links (inter-router.md 6.2-6.6, 6.8).

Messages for receivers elsewhere go over an anonymous link. An address with consumers here has a link on which the
interior router sends; one with producers here has a link to send on, used while the interior router reports receivers
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from trouter.core.addresses import FALLBACK_PHASE, MOBILE, temporary_token
from trouter.core.containers import Container, DetachReason, LinkOwner, own_link
from trouter.core.egress import Egress
from trouter.core.entry import AddressEntry
from trouter.core.ingress import Ingress
from trouter.core.links import LinkOptions, attach_link, make_incoming, make_outgoing, make_receiver
from trouter.core.lookups import Lookups, Query, made_up
from trouter.core.network import LINK_ROUTE_LETTERS
from trouter.core.notes import Note, read, write
from trouter.core.readers import every
from trouter.core.refusals import AttachRefused
from trouter.core.routerport import RouterPort
from trouter.core.sections import OUT
from trouter.core.terms import network_terms
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import LinkSink
from trouter.engine.session import Session
from trouter.wire.errors import DecodeError
from trouter.wire.performatives import Source, Target
from trouter.wire.types import Int

from .announcing import Announcer
from .needed import NeededLinks
from .protocol import DOWNLINK, HEARTBEAT, LOOKUP, STOLEN, TRACKING

#: Sessions: one for clients' messages, one for those between the routers.
SESSIONS: Final = 2
TRACKING_CREDIT: Final = 32
RESPONSE_CREDIT: Final = 100
REPLY_CREDIT: Final = 250
MANAGEMENT: Final = "$management"
#: Seconds between two heartbeats.
BEAT_S: Final = 2.0
_MAX_BEAT: Final = 2**31
_EXPIRY: Final = "link-detach"


class EdgeRouter(RouterPort, Protocol):
    """The router that an uplink belongs to."""

    @property
    def links(self) -> Mapping[int, object]:
        """Return every link by its identity; a lost one is absent."""

    def set_uplink(self, uplink: Uplink | None, way: Egress | None) -> None:
        """Use this uplink from now on, with the link ``way`` for all that is elsewhere; None for neither."""


class UplinkOwner(Protocol):
    """The owner of the connection that an uplink is on."""

    def note_usable(self) -> None:
        """Note that the interior router has taken all needed links."""

    def note_trouble(self, why: str) -> None:
        """Note a problem with which the uplink stays in use."""

    def note_broken(self, why: str) -> None:
        """Note that the uplink is broken."""


class Uplink(LinkOwner):
    """The connection of an edge router to its interior router; ``number`` is its number in management.

    ``container`` is the same connection, for routed links.
    """

    def __init__(
        self,
        router: EdgeRouter,
        container: Container,
        sessions: Sequence[Session],
        capacity: int,
        owner: UplinkOwner,
    ) -> None:
        self.number = container.number
        self.container = container
        self._router = router
        self._sessions = sessions
        self._terms = network_terms(self.number, capacity)
        self._ended = False
        self._needed = NeededLinks()
        self._owner = owner
        #: An invalid tracking message came and was reported.
        self._disbelieved = False
        self._anonymous: Egress | None = None
        self._downlink: Ingress | None = None
        self._tracking: Ingress | None = None
        self._management: Egress | None = None
        self._responses: Ingress | None = None
        self._announcer = Announcer(router.table.router_id, self._send_note, owner.note_trouble)
        self._lookups = Lookups(router)
        self._heartbeat: Egress | None = None
        self._beats = 0
        self._receivers: dict[AddressEntry, Ingress] = {}
        self._senders: dict[AddressEntry, Egress] = {}
        #: The address of each link.
        self._used_for: dict[Ingress | Egress, AddressEntry] = {}
        #: The addresses with a link to send on that have receivers elsewhere.
        self._taken: set[AddressEntry] = set()

    @property
    def usable(self) -> bool:
        """True while the interior router has taken all links that messages need."""
        return self._needed.complete

    @property
    def refusal(self) -> str:
        """The reasons why it refused some of them, empty if it refused none."""
        return self._needed.refusal

    # --- its links

    def attach_links(self) -> None:
        """Attach all links, in the order that interior routers expect; AttachRefused."""
        router, (data, control) = self._router, self._sessions
        way = self._anonymous = self._send_on(data, Target())
        self._needed.add_link(_ANONYMOUS, way.link)
        self._attach_downlink()
        self._attach_tracking()
        self._management = self._attach_to(control, MANAGEMENT)
        self._responses = self._receive_notes(control, Source(dynamic=True), RESPONSE_CREDIT, self._take_response)
        lookups = self._lookups
        lookups.query_link = self._attach_to(control, LOOKUP)
        lookups.reply_link = self._receive_notes(control, Source(dynamic=True), REPLY_CREDIT, lookups.read_reply)
        self._heartbeat = self._attach_to(control, HEARTBEAT)
        entry = router.table.obtain_uplink()
        way.entry = entry
        entry.add_consumer(way)
        router.set_uplink(self, way)
        for served in list(router.table.entries.values()):
            if served.key.startswith(MOBILE):
                self.update_links(served)
        for key in router.routes.local_keys():
            self._announcer.announce_route(key)

    def stop_using_links(self) -> None:
        """Stop using the uplink, whose connection has ended or is about to."""
        if self._ended:
            return
        self._ended = True
        self._router.set_uplink(None, None)
        self._lookups.end_queries()

    def _attach_downlink(self) -> None:
        source = Source(self._router.table.router_id, capabilities=(DOWNLINK,))
        self._downlink = self._receive_messages(self._sessions[0], None, source)
        self._needed.add_link(_DOWNLINK, self._downlink.link)

    def _attach_tracking(self) -> None:
        self._tracking = self._receive_notes(self._sessions[1], Source(TRACKING), TRACKING_CREDIT, self._process_note)
        self._needed.add_link(_TRACKING, self._tracking.link)

    def _attach_to(self, session: Session, service: str) -> Egress:
        """Return a link to a service of the interior router; it has no source, like Qpid Dispatch's."""
        return self._send_on(session, Target(service), has_source=False)

    def _send_on(self, session: Session, target: Target, *, has_source: bool = True) -> Egress:
        link = self._link(session, incoming=False)
        assert isinstance(link, OutgoingLink)  # noqa: S101 - by its direction
        outgoing = make_outgoing(self._router, link, LinkOptions(terms=self._terms))
        self._router.add_endpoint(outgoing, self.number)
        attach_link(link, Source(expiry_policy=_EXPIRY) if has_source else None, _lasting(target))
        return outgoing

    def _receive_messages(self, session: Session, entry: AddressEntry | None, source: Source) -> Ingress:
        router, link = self._router, self._link(session, incoming=True)
        assert isinstance(link, IncomingLink)  # noqa: S101 - by its direction
        options = LinkOptions(terms=self._terms, entry=entry, is_fallback=source.capabilities == _FALLBACK)
        incoming = make_incoming(router, link, options)
        router.add_endpoint(incoming, self.number)
        target = Target(capabilities=source.capabilities) if entry is None else Target()
        attach_link(link, _lasting(source), _lasting(target))
        incoming.account.grant_first_credit()
        return incoming

    def _receive_notes(self, session: Session, source: Source, credit: int, take: Callable[[bytes], None]) -> Ingress:
        link = self._link(session, incoming=True)
        assert isinstance(link, IncomingLink)  # noqa: S101 - by its direction
        receiver = make_receiver(self._router, link, LinkOptions(terms=network_terms(self.number, credit)), every(take))
        self._router.add_endpoint(receiver, self.number)
        attach_link(link, _lasting(source), None if source.dynamic else _lasting(Target()))
        receiver.account.grant_first_credit()
        return receiver

    def _link(self, session: Session, *, incoming: bool) -> IncomingLink | OutgoingLink:
        link = own_link(session, f"qdlink.{temporary_token()[:15]}", incoming)
        link.holder = self
        return link

    def is_own_link(self, link: Link) -> bool:
        """Return True: all its links are ours."""
        return True

    def handle_answer(self, link: Link) -> None:
        """Process the interior router's answer to one of our attaches."""
        if self._responses is not None and link is self._responses.link:
            self._announcer.start_requests(made_up(link))
        else:
            self._lookups.handle_answer(link)
        if self._needed.note_answer(link):
            self._owner.note_usable()

    def handle_end(self, link: Link, reason: DetachReason | None) -> None:
        """Handle the end of a link of ours: detached by the interior router, or lost with its session."""
        sink = link.sink
        if self._ended:
            return
        if reason is None or sink is self._anonymous:
            self.stop_using_links()
            self._owner.note_broken("a session of the uplink is over" if reason is None else _why(reason, _ANONYMOUS))
        elif sink is self._downlink:
            self._handle_missing_link(link, _why(reason, _DOWNLINK), reason)
        elif sink is self._tracking:
            self._handle_missing_link(link, _why(reason, _TRACKING), reason)
        elif sink is self._lookups.query_link or sink is self._lookups.reply_link:
            self._lookups.answer_all()
        elif sink is self._heartbeat:
            self._heartbeat = None
        elif sink is self._management or sink is self._responses:
            self._management = None
            self._owner.note_trouble(_why(reason, "management"))
        else:
            address = self._forget_address(sink)
            if reason.error is not None:
                self._owner.note_trouble(_why(reason, address))

    def _handle_missing_link(self, link: Link, why: str, reason: DetachReason) -> None:
        """Handle the end of a needed link; it is attached again later, unless another edge router has taken it."""
        stolen = reason.error is not None and reason.error.condition == STOLEN.condition
        if self._needed.note_end(link, why, again=not stolen):
            self._owner.note_trouble(why)

    def _forget_address(self, sink: LinkSink) -> str:
        """Forget the ended link of an address and return the address; the next user of it attaches a link again."""
        entry = self._used_for.pop(sink, None) if isinstance(sink, Ingress | Egress) else None
        if entry is None:
            return ""
        if self._receivers.get(entry) is sink:
            del self._receivers[entry]
        elif self._senders.get(entry) is sink:
            del self._senders[entry]
            self._taken.discard(entry)
        return entry.text

    # --- addresses

    def update_links(self, entry: AddressEntry) -> None:
        """Attach and detach the links of an address whose users have changed; not while the router stops."""
        if self._ended or self._router.shared.stopping:
            return
        fallback = entry.fallback
        try:
            self._keep_receiver(entry)
            self._keep_sender(entry)
        except AttachRefused:
            self._owner.note_trouble(f"no link is left for the address {entry.text}")
            return
        self._update_forwarding(entry)
        if fallback is not None:
            self.update_links(fallback)

    def _keep_receiver(self, entry: AddressEntry) -> None:
        wanted = self._has_consumers(entry)
        incoming = self._receivers.get(entry)
        if wanted and incoming is None:
            source = Source(entry.text, capabilities=self._capability(entry, outgoing=True))
            incoming = self._receivers[entry] = self._receive_messages(self._sessions[0], entry, source)
            self._used_for[incoming] = entry
            entry.add_sender(incoming)
        elif incoming is not None and not wanted:
            del self._receivers[entry]
            self._detach_link(incoming.link)

    def _keep_sender(self, entry: AddressEntry) -> None:
        wanted = self._has_producers(entry)
        outgoing = self._senders.get(entry)
        if wanted and outgoing is None:
            target = Target(entry.text, capabilities=self._capability(entry, outgoing=False))
            outgoing = self._senders[entry] = self._send_on(self._sessions[0], target)
            self._used_for[outgoing] = entry
        elif outgoing is not None and not wanted:
            del self._senders[entry]
            self._taken.discard(entry)
            self._stop_forwarding(entry, outgoing)
            outgoing.call_when_sent(partial(self._detach_link, outgoing.link))

    def _detach_link(self, link: Link) -> None:
        """Detach a link of ours that is no longer needed."""
        link.holder = None
        self._used_for.pop(link.sink, None)  # type: ignore[call-overload]  # an address's links have one of ours
        self._router.end_link(link, DetachReason(True, None))

    def _has_consumers(self, entry: AddressEntry) -> bool:
        forwarder = entry.forwarder
        if forwarder.is_exchange:
            return True
        return any(consumer.connection_number != self.number for consumer in forwarder.consumers)

    def _has_producers(self, entry: AddressEntry) -> bool:
        """Return whether the address, or the one that it is the fallback of, has a local sender."""
        primary = entry.fallback_of
        senders = [entry.senders] if primary is None else [entry.senders, primary.senders]
        return any(sender.connection_number != self.number for some in senders for sender in some)

    def _capability(self, entry: AddressEntry, *, outgoing: bool) -> tuple[str, ...]:
        """Return the capability for the address's phase, if it is not the configured one."""
        phase = entry.key[1]
        if phase == FALLBACK_PHASE:
            return _FALLBACK
        table = self._router.table
        rule = table.rule_for(table.parse(entry.text))
        number = int(phase)
        if number == (rule.egress_phase if outgoing else rule.ingress_phase):
            return ()
        ordinal = number + 1 if outgoing else number
        return (f"qd.waypoint.{ordinal}",) if 1 <= ordinal <= _LAST_WAYPOINT else ()

    # --- the receivers elsewhere

    def _process_note(self, message: bytes) -> None:
        """Process the interior router's note whether an address of ours has receivers elsewhere."""
        try:
            body = read(message).body
        except DecodeError:
            body = None
        if not (isinstance(body, list) and [type(part) for part in body] == [str, bool]):
            if not self._disbelieved:
                self._disbelieved = True
                self._owner.note_trouble("the interior router sent a tracking message that has no address and boolean")
            return
        key, takes = body
        entry = self._router.table.entries.get(key)
        if entry is None or entry not in self._senders:
            return  # its last producer has left
        if takes:
            self._taken.add(entry)
        else:
            self._taken.discard(entry)
        self._update_forwarding(entry)

    def _update_forwarding(self, entry: AddressEntry) -> None:
        """Start or stop sending messages up, as the interior router says, and never past a closer consumer."""
        outgoing = self._senders.get(entry)
        if outgoing is None:
            return
        wanted = entry in self._taken and not (entry.treatment == "closest" and self._has_consumers(entry))
        if wanted and outgoing.entry is None and outgoing.identity in self._router.links:  # else it is just lost
            self._router.table.counts.join_link(entry, OUT, outgoing.counters)
            outgoing.serve_entry(entry)
            entry.add_consumer(outgoing)
        elif not wanted:
            self._stop_forwarding(entry, outgoing)

    def _stop_forwarding(self, entry: AddressEntry, outgoing: Egress) -> None:
        if outgoing.entry is not None:
            outgoing.entry = None
            entry.remove_consumer(outgoing)
            self._router.table.counts.leave_link(entry, OUT, outgoing.counters)

    # --- look-ups

    def send_query(self, text: str, is_sender: bool, done: Callable[[], None]) -> Query | None:
        """Ask whether links to an address are routed; None without a look-up link. ``done`` is called once."""
        return None if self._ended else self._lookups.send_query(text, is_sender, done)

    def forget_query(self, query: Query) -> None:
        """Stop waiting for the answer to ``query``."""
        self._lookups.forget_query(query)

    # --- link routes

    def advertise_local(self, key: str, hint: int, present: bool) -> None:
        """Announce or withdraw a link route whose key has its first consumer here, or none any more.

        A router that stops does neither.
        """
        if key[0] not in LINK_ROUTE_LETTERS or self._ended or self._router.shared.stopping:
            return
        if present:
            self._announcer.announce_route(key)
        else:
            self._announcer.withdraw_route(key)

    def _send_note(self, note: Note) -> None:
        if self._management is not None:
            self._router.inside.send_on(self._management, write(note))

    def _take_response(self, message: bytes) -> None:
        try:
            self._announcer.read_response(read(message))
        except DecodeError:
            return

    # --- heartbeats

    def send_heartbeat(self) -> None:
        """Send a heartbeat if the interior router gives credit; to be called every ``BEAT_S`` seconds.

        Needed links that the interior router refused are attached again when their time has come.
        """
        for name in self._needed.due_links():
            try:
                self._attach_downlink() if name == _DOWNLINK else self._attach_tracking()
            except AttachRefused:
                self._owner.note_trouble(f"no link is left for the {name} link")
        self._announcer.give_up_overdue()
        if self._heartbeat is not None and self._heartbeat.link.is_ready():
            self._router.inside.send_on(self._heartbeat, write(Note(Int(self._beats % _MAX_BEAT), headless=True)))
            self._beats += 1


def _lasting(terminus: Source | Target) -> Source | Target:
    terminus.expiry_policy = _EXPIRY
    return terminus


def _why(reason: DetachReason, what: str) -> str:
    error = reason.error
    why = "no reason given" if error is None else f"{error.condition} {error.description or ''}"
    return f"link {what} of the uplink was detached: {why}"


#: Names of the needed links, as the log shows them.
_ANONYMOUS: Final = "anonymous"
_DOWNLINK: Final = "downlink"
_TRACKING: Final = "tracking"
_FALLBACK: Final = ("qd.fallback",)
_LAST_WAYPOINT: Final = 9
