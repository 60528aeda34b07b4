"""The sessions of one connection and their links: their admission to the routing, their end, and their log lines.

Attaches and detaches are answered in order, all of one read (of which the peer's task takes ``EVENTS_AT_ONCE``) before
anything else runs: else a sender on another connection could send before the later receivers of that read exist. An
edge router first asks its interior router about the addresses. Meanwhile a session has a task, so that the answers may
take time without delaying the data path or other sessions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from trouter.admission.memory import FEW_LINKS, MemoryWatch
from trouter.backbone.uplinks import Uplinks
from trouter.core.by_address import ByAddress
from trouter.core.containers import Container, DetachReason
from trouter.core.egress import Egress
from trouter.core.entry import AddressEntry
from trouter.core.ingress import Ingress
from trouter.core.links import Endpoint, identity_of, update_gate, update_terms
from trouter.core.lookups import LOOKUP_S, LookupResult
from trouter.core.refusals import NO_ROUTE
from trouter.core.terms import PeerTerms
from trouter.core.watch import BLOCKED_AFTER_S
from trouter.engine.connection import Connection
from trouter.engine.events import LinkAttached, LinkDetached, SessionEnded
from trouter.engine.faults import Fault, PeerFault
from trouter.engine.link_base import Link
from trouter.engine.ports import SessionPort
from trouter.engine.session import Session
from trouter.engine.states import UNANSWERED, LinkState
from trouter.logs.peer_text import and_more, describe_counters, describe_error, describe_terminus
from trouter.net.hub import Hub
from trouter.net.shares import ProcessorShare
from trouter.net.turns import TaskTurns
from trouter.policy.connection_policy import ConnectionPolicy
from trouter.policy.kinds import LINK_DENIED, SINGLY
from trouter.telemetry.allowances import Writer
from trouter.telemetry.recorder import Recorder
from trouter.telemetry.user_keys import UserKey
from trouter.wire.performatives import Attach, Error, Source, Target

from .inbox import Inbox, InboxEvent
from .lifetime import Lifetime

#: Sessions whose memory is freed in one step when their connection has ended.
FORGOTTEN_AT_ONCE: Final = 64

#: One step of the end of a connection; it is taken once, also if it fails.
Step = Callable[[], object]

container_log = logging.getLogger("trouter.CONTAINER")
core_log = logging.getLogger("trouter.ROUTER_CORE")


class NoCredit:
    """A gate that grants no credit."""

    def take_credit(self, link: object, count: int) -> int:
        """Return 0: the sender is granted nothing."""
        return 0


NO_CREDIT: Final = NoCredit()

#: The peer has attached the link and detached it, and we have not detached it.
_DETACH_CAME: Final = frozenset((LinkState.ATTACH_DETACH_RECEIVED, LinkState.DETACH_RECEIVED))


class Sessions:
    """The sessions and links of one connection."""

    __slots__ = (
        "_begun", "_connection", "_container", "_hub", "_inboxes", "_lifetime", "_max_links", "_memory",
        "_own_sessions", "_policy", "_recorder", "_routed", "_share", "_suspended", "_told_as", "_turns", "_uplinks",
        "lost_resources", "terms",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        lifetime: Lifetime,
        policy: ConnectionPolicy,
        terms: PeerTerms,
        max_links: int,
        share: ProcessorShare,
        told_as: UserKey | None,
        hub: Hub,
        turns: TaskTurns,
        memory: MemoryWatch,
        recorder: Recorder,
        uplinks: Uplinks | None,
    ) -> None:
        """Make the sessions of an admitted connection, whose links get ``terms`` and those of the policy.

        What its tasks do counts as ``share``; the begins and ends of its links are told as events of
        ``told_as``, None for a router. ``uplinks`` are those of an edge router.
        """
        self._turns = turns
        self._share = share
        self._memory = memory
        self._uplinks = uplinks
        self._policy = policy
        self._suspended = False
        self._container: Container | None = None
        self._hub = hub
        self._connection = connection
        self._lifetime = lifetime
        self._recorder = recorder
        self._told_as = told_as
        #: The most links of the peer, and those it has. Empty dicts are a third of the size of empty sets.
        self._max_links = max_links
        self._routed: dict[int, None] = {}
        #: Sessions that both sides have begun and neither has ended; and those of them that the router began.
        self._begun: dict[SessionPort, Session] = {}
        self._own_sessions: dict[SessionPort, None] = {}
        #: The peer's sessions, senders and receivers when its connection was lost; none if it was closed.
        self.lost_resources = 0, 0, 0
        #: The inboxes of the sessions' tasks, while there are any.
        self._inboxes: dict[SessionPort, Inbox] = {}
        connection.oversize_error = policy.oversize_error
        policy.count_sessions(0, connection.open_bytes)
        #: The terms of links that are attached from now on.
        self.terms = self._with_policy_terms(terms, policy)

    def _set_terms(self, terms: PeerTerms) -> None:
        self.terms = terms
        if self._container is not None:
            self._container.terms = terms

    def as_container(self, name: str) -> Container:
        """Return the connection as a container for links of the router's own, under the current terms."""
        if self._container is None:
            remote = self._connection.remote_open
            container_id = "" if remote is None else remote.container_id
            role, end = self.terms.role, self.end_own_session
            self._container = Container(self._connection, self.terms, container_id, name, role, end)
        return self._container

    def suspend_credit(self, suspended: bool) -> None:
        """Withhold the peer's credit, or grant again what is owed."""
        self._suspended = suspended
        self._set_terms(self._with_policy_terms(self.terms, self._policy))
        for session in self._connection.sessions():
            for link in session.links.list_links():
                sink = link.sink
                # what routers tell each other about themselves goes on: without it there would be no network
                if isinstance(sink, Ingress) and not sink.account.goes_on:
                    update_gate(sink, self.terms)

    def stop_messages(self) -> None:
        """Give the peer no new messages and no credit; a sender's last credit is drained.

        A receiver of a dynamic address still gets the answers that come there.
        """
        self.suspend_credit(True)
        for session in self._connection.sessions():
            for link in session.links.list_links():
                sink = link.sink
                if isinstance(sink, Ingress) and isinstance(sink.destination, ByAddress):
                    sink.link.drain()
                elif isinstance(sink, Egress):
                    entry = sink.entry
                    if isinstance(entry, AddressEntry) and entry.creator < 0 and sink in entry.forwarder.consumers:
                        entry.remove_consumer(sink)

    def count_unsettled(self) -> int:
        """Return the number of deliveries that are unsettled, or wait to be sent."""
        count = 0
        for session in self._connection.sessions():
            count += session.deliveries.incoming.count + session.deliveries.outgoing.count
            for link in session.links.list_links():
                if isinstance(link.sink, Egress):
                    count += link.sink.backlog
        return count

    def _with_policy_terms(self, terms: PeerTerms, policy: ConnectionPolicy) -> PeerTerms:
        """Return the terms with those of the policy."""
        gate = NO_CREDIT if self._suspended else policy.gate
        check = policy.make_check(of_tenant=terms.tenant is not None)
        return replace(
            terms, check=check, max_message_bytes=policy.max_message_bytes, gate=gate, tap=policy.make_tap(terms.log)
        )

    def apply_policy(self) -> None:
        """Apply the changed policy: detach the links that it no longer allows, and update the others."""
        policy, router = self._policy, self._hub.router
        self._connection.oversize_error = policy.oversize_error
        self._set_terms(self._with_policy_terms(self.terms, policy))
        policy.count_sessions(self._of_peer, self._connection.open_bytes)
        kept = {True: 0, False: 0}
        for session in self._connection.sessions():
            session.windows.count_in_budgets(policy.budgets)
        for link in [link for session in self._connection.sessions() for link in session.links.list_links()]:
            sink, attach = link.sink, link.remote_attach
            if identity_of(sink) not in router.links or attach is None:
                continue
            own = router.is_own(link)
            error = None if own else policy.keeps_link(attach, kept.__getitem__)
            if error is not None:
                self._uncount_link(link)
                router.detach_link(link, True, error)
                record = self._recorder.links.gone(router, link, "policy", closed=True, condition=error.condition)
                self._tell_end(link, "detached by policy", False, record)
                continue
            kept[link.incoming] += not own
            if not own:
                policy.count_link(sink, attach, self)
            if isinstance(sink, Ingress):
                update_terms(
                    sink, self.terms, self.terms.max_message_bytes or self._connection.limits.max_message_bytes
                )

    # --- what the policy asks of the peer's links

    def count_links(self, incoming: bool) -> int:
        """See ``PeerLinks``."""
        router = self._hub.router
        links = (link for session in self._connection.sessions() for link in session.links.list_links())
        return sum(
            link.incoming == incoming and identity_of(link.sink) in router.links and not router.is_own(link)
            for link in links
        )

    def address_key(self, attach: Attach) -> str | None:
        """See ``PeerLinks``."""
        terminus = attach.source if attach.role else attach.target
        if not isinstance(terminus, Source | Target):
            return None
        if terminus.dynamic:
            return ""
        text = terminus.address
        return (
            self._hub.router.table.parse(text, tenant=self.terms.tenant).key if isinstance(text, str) and text else None
        )

    # ---

    def _uncount_link(self, link: Link) -> None:
        """Stop counting a link that has ended, if it was routed."""
        sink = link.sink
        if isinstance(sink, Endpoint):
            self._routed.pop(sink.identity, None)
            self._policy.uncount_link(sink)

    @property
    def _of_peer(self) -> int:
        """Number of open sessions that the peer began."""
        return len(self._begun) - len(self._own_sessions)

    def begin_own_sessions(self, count: int) -> list[Session]:
        """Begin sessions of the router's, which count once they are answered; Misuse if the peer allows no more."""
        sessions = [self._connection.add_session() for _ in range(count)]
        for session in sessions:
            session.begin()
        return sessions

    def end_own_session(self, session: Session) -> None:
        """End a session that the router began, and ignore its further frames."""
        self._begun.pop(session, None)
        self._own_sessions.pop(session, None)
        session.end()

    def answer_begin(self, session: Session, *, ours: bool = False) -> None:
        """Answer the peer's begin, or note that it answered ``ours``."""
        limits = self._connection.limits
        if session.remote_channel > limits.channel_max:  # sent before the peer knew our channel-max
            channel, limit = session.remote_channel, limits.channel_max
            self._connection.end_for_fault(PeerFault(Fault.CHANNEL_MAX, channel=channel, channel_max=limit))
            return
        error = None if ours else self._policy.may_begin(self._of_peer)
        if error is not None:
            session.end(error)
            return
        self._begun[session] = session
        session.windows.count_in_budgets(self._policy.budgets)
        if ours:
            self._own_sessions[session] = None
            self._hub.router.session_begun(session)
        session.begin()

    def _end_session(self, event: SessionEnded) -> None:
        session = event.session
        if event.fault is not None:
            what = f"{self._lifetime.label} Session on channel {session.channel}"
            write = partial(_log_session_end, what, str(event.fault))
            self._tell_refusal("session", write)
        self._lose_links(session, event.error)
        session.end()
        self._connection.drop_session(session)
        self._own_sessions.pop(session, None)
        if self._begun.pop(session, None) is not None:
            self._policy.count_sessions(self._of_peer, self._connection.open_bytes)

    async def answer_link_event(self, event: LinkAttached | LinkDetached, nursery: trio.Nursery) -> None:
        """Answer an attach or detach; on an edge router pass a new link's to its session's task in ``nursery``.

        Wait while the inbox of that task is full.
        """
        if isinstance(event, LinkDetached) and event.fault is not None and event.fault.fault is Fault.MESSAGE_SIZE:
            self._count_too_large()
        session = self._begun.get(event.link.session)
        if session is None:
            return
        if self._uplinks is None or not _waits(event.link):
            self._answer_event(event, LookupResult.MESSAGES)
            return
        inbox = self._inboxes.get(session)
        if inbox is None:
            inbox = self._inboxes[session] = Inbox()
            nursery.start_soon(self._serve_inbox, session, inbox)
        await inbox.put(event)

    async def answer_session_end(self, event: SessionEnded) -> None:
        """Forget a session that the peer or a fault ended, after the detaches of links whose attaches still wait."""
        inbox = self._inboxes.get(event.session)
        if inbox is not None and _is_given_back(event.session):
            await inbox.put(event)
        else:
            self._end_session(event)

    async def wait_for_answers(self) -> None:
        """Wait, not for long, for the answers about links that the peer attached and detached before it left."""
        pending = [
            inbox
            for session in self._connection.sessions()
            if (inbox := self._inboxes.get(session)) is not None and _is_given_back(session)
        ]
        if pending:
            with trio.move_on_after(LOOKUP_S):
                for inbox in pending:
                    await inbox.emptied.wait()

    def _count_too_large(self) -> None:
        """Count a message that was too large, and end the connection if the policy says so."""
        self._policy.deny_large_message()
        error = self._connection.oversize_error
        if error is not None:
            self._lifetime.end_connection(error)

    def loss(self) -> Iterator[Step]:
        """Yield the steps that lose every link and session of a connection that has ended."""
        yield partial(self._hub.router.container_gone, self.terms.connection_number, self._lifetime.peer_error)
        remaining = self._connection.sessions()
        remaining.reverse()
        while remaining:
            yield partial(self._lose_session, remaining.pop())
        channels = self._connection.channels
        while channels.by_channel:
            yield partial(channels.forget_sessions, FORGOTTEN_AT_ONCE)

    async def _serve_inbox(self, session: Session, inbox: Inbox) -> None:
        """Answer the events in the inbox, those of one read together, and return once it is empty."""
        while events := inbox.take_events():
            found = await self._look_up_addresses(session, events)
            began_s = await self._turns.take(self._share)
            for event in events:
                if isinstance(event, SessionEnded):
                    self._end_session(event)
                else:
                    self._answer_event(event, found.get(event.link, LookupResult.MESSAGES))
            self._hub.flush()
            self._turns.end(self._share, began_s)
            await trio.lowlevel.checkpoint()
        del self._inboxes[session]
        inbox.emptied.set()

    async def _look_up_addresses(self, session: Session, events: Sequence[InboxEvent]) -> Mapping[Link, LookupResult]:
        """Return what the interior router says about the addresses of new links; nothing if it is not asked."""
        attached = (event.link for event in events if isinstance(event, LinkAttached))
        links = [link for link in attached if _waits(link) and (session.mapped or link.state in _DETACH_CAME)]
        return {} if self._uplinks is None else await self._uplinks.find(links, self.terms)

    def _answer_event(self, event: LinkAttached | LinkDetached, found: LookupResult) -> None:
        """Answer an event, also after the peer has ended the session or closed the connection.

        Of the links that the peer attached just before, only those that it detached too go on: the container may keep
        something under the name, which the detach gives back.
        """
        if isinstance(event, LinkDetached):
            self._answer_detach(event)
        elif event.link.session.mapped or event.link.state in _DETACH_CAME:
            self._answer_attach(event, found)

    def _answer_attach(self, event: LinkAttached, found: LookupResult) -> None:
        link = event.link
        if link.state not in UNANSWERED:  # the peer answered our attach, perhaps after we ended the link
            self._hub.router.handle_own_attach(link)
            if link.attached:
                self._log_attached(link, event.attach)
            return
        if self._hub.router.shared.stopping and not self.terms.is_router:
            link.refuse(Error("amqp:connection:forced", "the router is shutting down"))
            return
        error = self._policy.admit_link(event.attach, link.kept_bytes, self, self._full_rule())
        if error is None and found is LookupResult.NOWHERE:
            error = NO_ROUTE
        if error is None:
            if self._hub.router.answer_attach(link, self.terms, goes_up=found is LookupResult.LINKS) is LINK_DENIED:
                self._policy.deny_address(event.attach, "reserved" if self.terms.tenant else "dynamic")
        else:
            link.refuse(error)
        sink = link.sink
        if isinstance(sink, Endpoint):
            self._policy.count_link(sink, event.attach, self)
            self._routed[sink.identity] = None
            self._log_attached(link, event.attach)
        else:
            write = partial(_log_attach, f"{self._lifetime.label} Link refused", link.incoming, _describe(event.attach))
            self._tell_refusal("attach", write)

    def _tell_refusal(self, what: str, write: Writer) -> None:
        """Log that the router has refused or ended something; what a connection or its user repeats, in sum."""
        connection = self._lifetime.label, what
        if self._told_as is None:
            self._recorder.repeats.happened(connection, SINGLY, write)
        else:
            self._recorder.repeats.happened_to_user((self._told_as, what), connection, SINGLY, write)

    def _full_rule(self) -> str:
        """Return the rule by which the peer may attach no more links; empty if it may."""
        count = len(self._routed)
        if count >= self._max_links:
            return "maxLinks"
        scarce = self._memory.refuses_links and not self.terms.is_router
        return "maxMemoryBytes" if scarce and count >= FEW_LINKS else ""

    def _log_attached(self, link: Link, attach: Attach) -> None:
        identity = identity_of(link.sink)
        what = f"{self._lifetime.label}[L{identity}] Link attached"
        log_it = partial(_log_attach, what, link.incoming, _describe(attach))
        write = partial(_write_both, log_it, self._recorder.links.attached(link, attach))
        self._recorder.allowances.tell("attached", self._told_as, write)

    def _answer_detach(self, event: LinkDetached) -> None:
        link = event.link
        # The peer answers a detach of ours. The answer to a fault's may come before the event of the fault.
        if link.state is LinkState.END and event.fault is None:
            self._hub.router.detach_link(link, event.closed, remote_error=event.error)
            return
        blocked = self._hub.router.zero_credit_s(link) > BLOCKED_AFTER_S
        self._uncount_link(link)
        self._hub.router.detach_link(link, event.closed, remote_error=_error_of(event))
        condition = _condition_of(event)
        record = self._recorder.links.gone(self._hub.router, link, "detached", closed=event.closed, condition=condition)
        self._tell_end(link, "detached", blocked, record, describe_error(_error_of(event)))

    def note_ended(self, link: Link, reason: DetachReason) -> None:
        """Detach a link of the connection that the router ends by itself."""
        blocked = self._hub.router.zero_credit_s(link) > BLOCKED_AFTER_S
        self._uncount_link(link)
        condition = None if reason.error is None else reason.error.condition
        record = self._recorder.links.gone(self._hub.router, link, "routed", closed=reason.closed, condition=condition)
        self._tell_end(link, "detached by the router", blocked, record, describe_error(reason.error))

    def _lose_session(self, session: Session) -> None:
        """Lose a session with its connection, and note what the peer had on it."""
        known = self._connection.channels.by_remote_channel
        if self._begun.pop(session, None) is not None and session.remote_channel in known:
            sending = sum(comes_in for comes_in, _ in session.links.by_name)
            sessions, senders, receivers = self.lost_resources
            self.lost_resources = sessions + 1, senders + sending, receivers + len(session.links.by_name) - sending
        self._lose_links(session, self._lifetime.peer_error)

    def _lose_links(self, session: Session, error: Error | None = None) -> None:
        """Lose the links that the session still has; ``error`` is the peer's."""
        router = self._hub.router
        held = [link for link in session.links.list_links() if identity_of(link.sink) in router.links]
        blocked = [router.zero_credit_s(link) > BLOCKED_AFTER_S for link in held]
        for link in held:
            self._uncount_link(link)
        router.lose_session(session, error)
        condition = None if error is None else error.condition
        for link, was_blocked in zip(held, blocked, strict=True):
            record = self._recorder.links.gone(router, link, "lost", closed=True, condition=condition)
            self._tell_end(link, "lost", was_blocked, record, describe_error(error))

    def _tell_end(self, link: Link, how: str, blocked: bool, record: Writer | None, why: str = "") -> None:
        """Log that a link has ended, with its counts, and write the record."""
        sink = link.sink
        if isinstance(sink, Endpoint):
            counts = describe_counters(sink.counters, blocked)
            line = f"{self._lifetime.label}[L{sink.identity}] Link {how}: {counts}{why}"
            write = partial(_write_both, partial(_log_end, line), record)
            self._recorder.allowances.tell("ended", self._told_as, write)


def _waits(link: Link) -> bool:
    """Return whether the peer's attach was neither answered nor taken to the other end of a routed link."""
    return link.state in UNANSWERED and not isinstance(link.sink, Endpoint)


def _is_given_back(session: Session) -> bool:
    """Return whether a link of the session is detached, though its attach still waits."""
    return any(_waits(link) and link.state in _DETACH_CAME for link in session.links.list_links())


def _describe(attach: Attach) -> str:
    return f"source={describe_terminus(attach.source)} target={describe_terminus(attach.target)}"


def _log_attach(what: str, incoming: bool, termini: str, count: int = 1) -> None:
    """Log how an attach was answered, for ``count`` of them."""
    core_log.info("%s: dir=%s %s%s", what, "in" if incoming else "out", termini, and_more(count))


def _log_end(line: str, count: int) -> None:
    """Log that ``count`` links have ended, of which ``line`` has the first."""
    core_log.info("%s%s", line, and_more(count))


def _write_both(log_it: Writer, record: Writer | None, count: int) -> None:
    """Write the line and the record of ``count`` events."""
    log_it(count)
    if record is not None:
        record(count)


def _log_session_end(what: str, fault: object, count: int) -> None:
    """Log that the peer's faults ended ``count`` sessions."""
    container_log.info("%s ended: %s%s", what, fault, and_more(count))


def _error_of(event: LinkDetached) -> Error | None:
    """Return the error with which a link ended, for the peer at its other end."""
    return event.error if event.fault is None else Error(event.fault.condition, event.fault.text)


def _condition_of(event: LinkDetached) -> str | None:
    """Return the condition with which a link ended, or None."""
    if event.fault is not None:
        return event.fault.condition
    return None if event.error is None else event.error.condition
