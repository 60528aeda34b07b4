"""Auto links: links that the router attaches to containers by configuration (routing.md 6.2).

An auto link has an activation on each connection that matches it. The caller, who has a clock, retries failed ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from trouter.engine.link import IncomingLink
from trouter.engine.link_base import Link
from trouter.engine.session import Session
from trouter.wire.performatives import Error, Source, Target

from .addresses import FALLBACK_PHASE, temporary_token
from .containers import Container, Containers, DetachReason, LinkOwner, OwnSession, free_name, own_link, passed_on
from .egress import Egress
from .entry import AddressEntry
from .ingress import Ingress
from .links import LinkOptions, attach_link, identity_of, make_incoming, make_outgoing
from .refusals import LINK_LOST, AttachRefused
from .routerport import RouterPort
from .routes import IN

#: The states of an activation, in the order in which one of several decides the auto link's state.
FAILED, ATTACHING, ACTIVE = "failed", "attaching", "active"
INACTIVE: Final = "inactive"
_WORST_FIRST: Final = (FAILED, ATTACHING, ACTIVE)
#: Seconds before a failed activation is retried: the first time, and every time after that.
FIRST_RETRY_S: Final = 2.0
RETRY_S: Final = 5.0

_DETACH: Final = "link-detach"
UNAVAILABLE: Final = Error("amqp:not-found", "the address is unavailable by configuration")
_NAME: Final = "qdlink."
_NAME_LENGTH: Final = 15


@dataclass(frozen=True, slots=True)
class AutoLinkRule:
    """An auto link as configured; ``direction`` is ``in`` for a link on which the container sends."""

    address: str
    direction: str
    phase: int = 0
    container_id: str = ""
    connection: str = ""
    #: The container's name for the address, empty for the same.
    external_address: str = ""
    #: An outgoing link is a fallback consumer; messages from an incoming one go to no fallback.
    fallback: bool = False
    name: str = ""


class AutoLink:
    """One auto link, on every connection that matches it."""

    def __init__(self, rule: AutoLinkRule) -> None:
        self.rule = rule
        self.activations: dict[Container, Activation] = {}
        #: The next failure is the first: its retry is soon.
        self.fresh = True
        #: Attempts to attach its link, on all connections.
        self.attempts = 0

    def next_retry_s(self) -> float:
        """Return the seconds to wait before the next retry."""
        fresh, self.fresh = self.fresh, False
        return FIRST_RETRY_S if fresh else RETRY_S

    @property
    def worst(self) -> Activation | None:
        """Activation in the worst state, the last of several; None without activations."""
        found = self.activations.values()
        return min(reversed(found), key=lambda each: _WORST_FIRST.index(each.state), default=None)

    @property
    def state(self) -> str:
        """State of the worst activation: ``failed``, ``attaching``, ``active``, or ``inactive`` without any."""
        worst = self.worst
        return INACTIVE if worst is None else worst.state

    @property
    def last_error(self) -> str:
        """Error of the worst activation; empty if it has not failed."""
        worst = self.worst
        return "" if worst is None else worst.why

    @property
    def identity(self) -> int:
        """Identity of the link that was attached last, 0 for none."""
        return max((each.identity for each in self.activations.values()), default=0)


class AutoLinkObserver:
    """The receiver of events of auto links; the base ignores them."""

    def note_activated(self, activation: Activation) -> None:
        """Note that the link of an auto link is attached."""

    def note_failed(self, activation: Activation) -> None:
        """Note that a link was detached or lost; the owner must ``retry_link`` the activation after a while."""

    def note_idle(self, activation: Activation) -> None:
        """Note that the activation is over: it must not be retried."""


class AutoLinkRouter(RouterPort, Protocol):
    """The router that auto links belong to."""

    @property
    def observer(self) -> AutoLinkObserver:
        """Observer of auto links."""

    @property
    def containers(self) -> Containers:
        """Containers that are connected."""


class Activation(LinkOwner):
    """One auto link on one connection; owned by its ``AutoLink``."""

    def __init__(self, router: AutoLinkRouter, auto: AutoLink, container: Container) -> None:
        self.auto = auto
        self.container = container
        self.state = ATTACHING
        #: The text of its error.
        self.why = ""
        self._router = router
        self._link: Link | None = None
        self._own: OwnSession | None = None
        #: The peer ended its session with an error, perhaps for another link: it gets a session of its own.
        self._apart = False
        self._ended = False

    @property
    def identity(self) -> int:
        """Identity of its link in management, 0 for none."""
        return 0 if self._link is None else identity_of(self._link.sink)

    def begin_link(self) -> None:
        """Attach the link, now or once the session is mapped."""
        self.state, self.why = ATTACHING, ""
        self.auto.attempts += 1
        try:
            own = self._own = self.container.for_auto_links(apart=self._apart)
            own.attach_or_wait(self)
        except AttachRefused as refusal:
            self._own = None
            self._note_failure(refusal.error)

    def retry_link(self) -> None:
        """Attach the link again; do nothing if it has not failed or the activation has ended."""
        if self.state == FAILED and not self._ended:
            self.begin_link()

    def attach_on_session(self, session: Session) -> None:
        """Attach the link on the session, which is mapped; AttachRefused."""
        rule, router, terms = self.auto.rule, self._router, self.container.terms
        incoming = rule.direction == IN
        entry = self._obtain_entry()
        if entry is None:
            raise AttachRefused(UNAVAILABLE)
        name = free_name(session, _NAME + temporary_token()[:_NAME_LENGTH], incoming, router.next_identity)
        try:
            link = own_link(session, name, incoming)
        except AttachRefused:
            router.table.release_entry(entry)
            raise
        address = rule.external_address or rule.address
        source, target = Source(expiry_policy=_DETACH), Target(expiry_policy=_DETACH)
        endpoint: Ingress | Egress
        if isinstance(link, IncomingLink):
            source.address = address
            options = LinkOptions(
                terms=replace(terms, tenant=None), entry=entry, to_override=rule.address, is_fallback=rule.fallback
            )
            endpoint = make_incoming(router, link, options)
            entry.add_sender(endpoint)
        else:
            target.address = address
            endpoint = make_outgoing(router, link, LinkOptions(terms=terms, entry=entry))
        self._link, link.holder = link, self
        router.add_endpoint(endpoint, terms.connection_number)
        attach_link(link, source, target)

    def _obtain_entry(self) -> AddressEntry | None:
        """Return the entry of the internal address; balanced if no rule matches, whatever the default is (5.4)."""
        rule, table = self.auto.rule, self._router.table
        outgoing = rule.direction != IN
        configured = table.rule_for(table.parse(rule.address))
        treatment = "balanced" if configured is table.default_rule else None
        phase = FALLBACK_PHASE if outgoing and rule.fallback else str(rule.phase)
        return table.obtain_entry(rule.address, outgoing, phase, treatment)

    def is_own_link(self, link: Link) -> bool:
        """See ``LinkOwner``."""
        return link is self._link

    def handle_answer(self, link: Link) -> None:
        """Activate the link; do nothing if the answer has no address, because the peer is about to refuse."""
        attach, sink = link.remote_attach, link.sink
        assert attach is not None  # noqa: S101 - the peer has answered
        terminus = attach.source if link.incoming else attach.target
        if not isinstance(terminus, Source | Target) or terminus.address in (None, ""):
            return
        self.state = ACTIVE
        self._router.observer.note_activated(self)
        if isinstance(sink, Ingress):
            sink.account.grant_first_credit()
        elif isinstance(sink, Egress):
            entry = self._obtain_entry() or sink.entry  # no user has kept the entry until now
            assert isinstance(entry, AddressEntry)  # noqa: S101 - `attach_on` has set it
            sink.entry = entry
            entry.add_consumer(sink)
            sink.on_credit(sink.link)

    def handle_refusal(self, error: Error) -> None:
        """Fail: the container has no session for the link."""
        self._apart = self._apart or self._session_error() is not None
        self._leave_session()
        self._note_failure(error)

    def handle_end(self, link: Link, reason: DetachReason | None) -> None:
        """Fail: the peer detached the link, or the session is lost."""
        self._link = None
        why = passed_on(reason.error) if reason is not None else LINK_LOST
        error = self._session_error()
        if reason is None and error is not None:
            self._apart, why = True, passed_on(error)
        self._leave_session()
        if not self._ended:
            self._note_failure(why)

    def _session_error(self) -> Error | None:
        """Return the error with which the peer ended the session; None if there is none."""
        return None if self._own is None else self._own.error

    def _note_failure(self, error: Error | None) -> None:
        self.state = FAILED
        self.why = "" if error is None else error.description or error.condition
        self._router.observer.note_failed(self)

    def _leave_session(self) -> None:
        if self._own is not None:
            self._own.drop_link(self)
            self._own = None

    def end_activation(self) -> None:
        """End the activation, and detach its link if it has one."""
        self._ended = True
        link = self._link
        self._leave_session()
        self._router.observer.note_idle(self)
        if link is not None:
            self._link = link.holder = None
            self._router.end_link(link, DetachReason(True, None))

    def forget_link(self) -> None:
        """Forget the link, which is lost with its connection."""
        self._ended = True
        self._leave_session()
        self._router.observer.note_idle(self)


class AutoLinks:
    """The configured auto links of one router, each with its activations."""

    def __init__(self, router: AutoLinkRouter) -> None:
        self._router = router
        self._all: dict[AutoLink, None] = {}

    def add_rule(self, rule: AutoLinkRule) -> AutoLink:
        """Configure an auto link; attach it on every connected container that matches."""
        auto = AutoLink(rule)
        self._all[auto] = None
        self._router.table.add_name(rule.address)
        for container in self._router.containers.matching(rule.container_id, rule.connection):
            self._activate(auto, container)
        return auto

    def remove_rule(self, auto: AutoLink) -> None:
        """Remove an auto link: its links are detached."""
        del self._all[auto]
        self._router.table.remove_name(auto.rule.address)
        for activation in list(auto.activations.values()):
            activation.end_activation()
        auto.activations.clear()

    def container_came(self, container: Container) -> None:
        """Attach the auto links that match this container, which has connected."""
        for auto in self._all:
            if container.matches(auto.rule.container_id, auto.rule.connection):
                self._activate(auto, container)

    def container_gone(self, container: Container) -> None:
        """Forget the activations on a connection that has ended."""
        for auto in self._all:
            activation = auto.activations.pop(container, None)
            if activation is not None:
                auto.fresh = False
                activation.forget_link()

    def _activate(self, auto: AutoLink, container: Container) -> None:
        activation = auto.activations[container] = Activation(self._router, auto, container)
        activation.begin_link()
