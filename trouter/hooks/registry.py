"""Calls plugins so that a broken plugin can only deny (security.md 8.7).

Each typed wrapper turns an exception or an answer of the wrong type into the denial that ``specs`` promises for that
hook, counts it in ``faults`` and logs it to ``trouter.PLUGIN``. No other module calls hooks.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeGuard, TypeVar

from trouter.hooks.answers import (
    MAX_CERTIFICATE_USER_BYTES,
    Rubbish,
    consumers_of,
    is_annotation_filter,
    is_auth_service,
    is_exchange,
    is_mechanism_list,
    is_sasl_answer,
    is_tracer,
    is_vhost_policy,
)
from trouter.hooks.consumers import Consumer, Decision, IncomingMessage, Rejected
from trouter.hooks.facts import (
    CertificateFacts,
    ConnectorFacts,
    ListenerFacts,
    PeerFacts,
    RouterFacts,
    SslProfileFacts,
)
from trouter.hooks.faults import Culprit, Faults, place_of
from trouter.hooks.loading import ConfigurationRefused, PluginDescription, PluginError
from trouter.hooks.offers import NO_OFFER, Offer, offer_of, offered_to, relayed_to
from trouter.hooks.policy import AnnotationFilter, AttachRequest, ConnectionRequest, VhostPolicy, Vote
from trouter.hooks.registration import Registration
from trouter.hooks.sasl import (
    Authenticated,
    AuthService,
    AuthSession,
    Challenge,
    Refused,
    SaslClientExchange,
    SaslExchange,
)
from trouter.hooks.tracing import EndedSpan, MessageTracer
from trouter.mechanisms import Mechanism, mechanism_of

ENTRY_POINT_GROUP: Final = "trouter.plugins"
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
NO_SETTINGS: Final[Mapping[str, Mapping[str, object]]] = MappingProxyType({})

#: Limit of the listeners whose mechanisms are cached.
MAX_KNOWN_LISTENERS: Final = 1024

_ROUTER_ROLES: Final = frozenset({"inter-router", "edge"})
_STRIP_BOTH: Final = AnnotationFilter(strip_in=True, strip_out=True)
_STRIP_NOTHING: Final = AnnotationFilter(strip_in=False, strip_out=False)
log = logging.getLogger("trouter.PLUGIN")

Answer = TypeVar("Answer")
Denial = TypeVar("Denial")


class Plugins:
    """The loaded plugins of one router."""

    def __init__(self, plugins: Iterable[object] = ()) -> None:
        """Register ``plugins``: modules, objects, or classes, which are instantiated; PluginError if one is unusable.

        A module that defines a class ``Plugin`` stands for that class: its state belongs to one router.
        """
        self._registered = Registration()
        self._faults = Faults(self._registered)
        self._offers: dict[ListenerFacts, Offer] = {}
        for plugin in plugins:
            self.add(plugin)

    @classmethod
    def load(cls, listed: Mapping[str, str] = NOTHING, entry_point_group: str = ENTRY_POINT_GROUP) -> Plugins:
        """Load trouter's plugins and those ``listed``, with a hash of their code or ""; PluginError names a plugin."""
        plugins = cls()
        plugins._registered.load(listed, entry_point_group)
        return plugins

    def add(self, plugin: object, name: str = "") -> None:
        """Register a plugin before ``configure``: a module, an object or a class; PluginError if it is unusable."""
        self._registered.add(plugin, name)

    @property
    def faults(self) -> Counter[str]:
        """Exceptions and wrong answers, counted by hook name (``respond`` for exchanges)."""
        return self._faults.by_hook

    @property
    def culprits(self) -> Counter[Culprit]:
        """The same, counted by hook, plugin and exception."""
        return self._faults.culprits

    def describe(self) -> tuple[PluginDescription, ...]:
        """Return a description of each loaded plugin, in the order of registration."""
        return self._registered.describe()

    # Each method below is the only caller of its hook.

    def configure(self, router: RouterFacts, settings: Mapping[str, Mapping[str, object]] = NO_SETTINGS) -> None:
        """Pass ``router`` to every plugin, each with its own ``settings``; ConfigurationRefused with all problems.

        It is a problem, too, if two plugins would serve one mechanism of a listener.
        """
        self._offers.clear()
        known = self._registered.origins
        problems = [f"pluginSettings: there is no plugin {name}" for name in settings if name not in known]
        for name in known:
            try:
                answers = self._registered.only(name, "configure")(
                    router=replace(router, settings=settings.get(name, router.settings))
                )
            except ConfigurationRefused as refusal:
                problems += [f"{name}: {problem}" for problem in refusal.problems]
            except Exception as error:  # noqa: BLE001 - whatever it is, it denies
                self._faults.raised("configure", error, name)
                problems.append(f"{name}: failed while it was configured, see the log")
            else:
                if answers:
                    self._faults.rubbish("configure", answers[0], name)
                    problems.append(f"{name}: configure must return nothing")
        if not problems:
            problems = [conflict for listener in router.listeners for conflict in self.conflicts(listener)]
            if router.secure_defaults:
                problems += [one for listener in router.listeners for one in self.unknown(listener)]
        if problems:
            raise ConfigurationRefused(*problems)

    def consumers(
        self, router: RouterFacts, settings: Mapping[str, Mapping[str, object]] = NO_SETTINGS
    ) -> tuple[Consumer, ...]:
        """Return the consumers of all plugins; an address that two consumers claim gets none."""
        found: dict[str, list[Consumer]] = {}
        for name in self._registered.origins:
            facts = replace(router, settings=settings.get(name, router.settings))
            try:
                answers = self._registered.only(name, "consumers")(router=facts)
                listed = [consumer for answer in answers for consumer in consumers_of(answer)]
            except Rubbish as rubbish:
                self._faults.rubbish("consumers", rubbish.answer, name)
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it denies
                self._faults.raised("consumers", error, name)
                continue
            for consumer in listed:
                found.setdefault(consumer.terms.address, []).append(consumer)
        for address, rivals in found.items():
            if len(rivals) > 1:
                log.error(
                    "%d consumers of plugins claim the address %r; none of them gets its messages", len(rivals), address
                )
        return tuple(rivals[0] for rivals in found.values() if len(rivals) == 1)

    def consume(self, consumer: Consumer, message: IncomingMessage) -> Decision | Rejected:
        """Return a consumer's answer to a message; a fault of the consumer rejects the message."""
        try:
            answer: object = consumer.consume(message)
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.failed("consumers", consumer, "a consumer", error)
            return Rejected("the plugin that takes messages here failed", "amqp:internal-error")
        match answer:
            case Decision(str(), str(), str(), int()) | Rejected(str(), str()):
                return answer
        self._faults.rubbish("consumers", answer, self._registered.owner_of(consumer))
        return Rejected("the plugin that takes messages here gave no valid answer", "amqp:internal-error")

    def message_tracer(
        self, router: RouterFacts, settings: Mapping[str, Mapping[str, object]] = NO_SETTINGS
    ) -> MessageTracer | None:
        """Return the first tracer that a plugin gives; None if none does."""
        for name in self._registered.origins:
            facts = replace(router, settings=settings.get(name, router.settings))
            try:
                answers = self._registered.only(name, "message_tracer")(router=facts)
            except Exception as error:  # noqa: BLE001 - messages pass without spans
                self._faults.raised("message_tracer", error, name)
                continue
            for answer in answers:
                if is_tracer(answer):
                    return answer
                self._faults.rubbish("message_tracer", answer, name)
        return None

    def export_spans(self, tracer: MessageTracer, spans: Sequence[EndedSpan], dropped: int) -> None:
        """Pass spans to a tracer; a fault loses them."""
        try:
            tracer.export(spans, dropped)
        except Exception as error:  # noqa: BLE001 - the messages have passed
            self._faults.failed("message_tracer", tracer, "a tracer", error)

    def refresh(self) -> bool:
        """Call ``refresh`` of every plugin; return whether any took over a change. Blocks, as plugins read files."""
        changed = False
        for name in self._registered.origins:
            try:
                answers = self._registered.only(name, "refresh")()
            except Exception as error:  # noqa: BLE001 - the plugin keeps its former state
                self._faults.raised("refresh", error, name)
                continue
            for answer in answers:
                if isinstance(answer, bool):
                    changed |= answer
                else:
                    self._faults.rubbish("refresh", answer, name)
        return changed

    def forget_offers(self) -> None:
        """Clear the cached mechanisms of listeners, so that plugins list them again."""
        self._offers.clear()

    def sasl_mechanisms(self, listener: ListenerFacts) -> tuple[Mechanism, ...]:
        """Return the mechanisms of ``listener``, in order and upper case; if there are none, no client is admitted."""
        return self._offer(listener).mechanisms

    def conflicts(self, listener: ListenerFacts) -> tuple[str, ...]:
        """Return a sentence for each mechanism of ``listener`` that two plugins would serve; it is not offered."""
        return self._offer(listener).conflicts

    def unserved(self, listener: ListenerFacts) -> tuple[str, ...]:
        """Return the mechanisms that ``listener`` names and no plugin serves."""
        return self._offer(listener).unserved

    def unknown(self, listener: ListenerFacts) -> tuple[str, ...]:
        """Return a sentence for each name in ``listener`` that is no known mechanism and that no plugin serves."""
        return self._offer(listener).unknown

    def sasl_mechanisms_for(self, peer: PeerFacts) -> tuple[str, ...]:
        """Return the names to advertise to ``peer``: no mechanism that would expose a secret or cannot work."""
        return tuple(str(each) for each in offered_to(peer, self.sasl_mechanisms(peer.listener)))

    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        """Return the exchange that runs ``mechanism`` (in any case) for ``peer``; None refuses the peer."""
        mechanism = mechanism.upper()
        if mechanism not in self.sasl_mechanisms_for(peer):
            return None
        return self._query("open_sasl", is_exchange, None, mechanism=mechanism, peer=peer)

    async def respond_or_refuse(
        self, exchange: SaslExchange | AuthSession, response: bytes
    ) -> Challenge | Authenticated | Refused:
        """Return ``exchange.respond(response)``; an exception or a wrong answer is a temporary refusal.

        The caller sets the deadline; its cancellation passes through. Only the type and place of an exception are
        logged, as its text may quote the peer's secret.
        """
        return await self._answer_or_refuse("respond", exchange, lambda: exchange.respond(response))

    async def start_or_refuse(
        self, session: AuthSession, mechanism: str, response: bytes | None
    ) -> Challenge | Authenticated | Refused:
        """Return ``session.start(mechanism, response)``; an exception or a wrong answer is a temporary refusal."""
        return await self._answer_or_refuse("start", session, lambda: session.start(mechanism, response))

    async def _answer_or_refuse(
        self, what: str, called: object, query: Callable[[], Awaitable[object]]
    ) -> Challenge | Authenticated | Refused:
        try:
            answer = await query()
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.failed(what, called, "a SASL exchange", error)
            return Refused("the authentication plugin failed", temporary=True)
        if is_sasl_answer(answer):
            return answer
        self._faults.rubbish(what, answer, self._registered.owner_of(called))
        return Refused("the authentication plugin gave no valid answer", temporary=True)

    def map_uid(self, certificate: CertificateFacts, profile: SslProfileFacts) -> str | Refused:
        """Return the user of ``certificate``; Refused if no plugin names one or a plugin fails."""
        try:
            answer = self._registered.hook.map_uid(certificate=certificate, profile=profile)
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.raised("map_uid", error)
            return Refused("the plugin that maps certificates to users failed", temporary=True)
        if isinstance(answer, str) and len(answer.encode("utf-8", "surrogatepass")) > MAX_CERTIFICATE_USER_BYTES:
            return Refused(f"the certificate makes a user of more than {MAX_CERTIFICATE_USER_BYTES} bytes")
        if isinstance(answer, Refused) or (isinstance(answer, str) and answer):
            return answer
        if answer is not None:
            self._faults.rubbish("map_uid", answer)
        return Refused("no plugin names the user of this certificate")

    def open_sasl_client(self, mechanisms: Sequence[str], connector: ConnectorFacts) -> SaslClientExchange | None:
        """Return a plugin's exchange that authenticates the router by one of ``mechanisms``; None if there is none."""

        def fits(answer: object) -> TypeGuard[SaslClientExchange]:
            return isinstance(answer, SaslClientExchange) and answer.name in mechanisms

        return self._query("open_sasl_client", fits, None, mechanisms=tuple(mechanisms), connector=connector)

    async def client_answer(self, exchange: SaslClientExchange, challenge: bytes | None) -> bytes | None:
        """Return the answer of ``exchange`` to a challenge, or its initial response if that is None; PluginError.

        The caller sets the deadline. The text of an exception is dropped, as it may quote a secret.
        """
        try:
            answer: object = await (exchange.start() if challenge is None else exchange.respond(challenge))
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.failed("open_sasl_client", exchange, "a SASL client", error)
            raise PluginError("the plugin that logs the router in failed") from None
        if isinstance(answer, bytes) or (answer is None and challenge is None):
            return answer
        self._faults.rubbish("open_sasl_client", answer, self._registered.owner_of(exchange))
        raise PluginError("the plugin that logs the router in gave no valid answer")

    async def client_is_satisfied(self, exchange: SaslClientExchange, additional: bytes | None) -> bool:
        """Return whether the server has proven itself as the mechanism demands; False if the plugin fails."""
        try:
            return await exchange.finish(additional) is True
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.failed("open_sasl_client", exchange, "a SASL client", error)
            return False

    def auth_service(self, listener: ListenerFacts, remote: AuthService) -> AuthService | None:
        """Return the service that authenticates the peers of ``listener``, which has a ``saslPlugin``; None refuses."""
        return self._query("auth_service", is_auth_service, None, listener=listener, remote=remote)

    async def begin_or_refuse(self, service: AuthService, peer: PeerFacts) -> AuthSession | Refused:
        """Return ``service.begin(peer)``; an exception or a wrong answer is a temporary refusal.

        The caller sets a deadline, and offers ``peer`` the session's mechanisms that ``relayed_mechanisms`` returns.
        """
        try:
            session: object = await service.begin(peer)
            match session:
                case Refused(str(), bool(), str()):
                    return session
                case AuthSession():
                    if is_mechanism_list(session.mechanisms):
                        return session
                    session.close()
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.failed("begin", service, "an authentication service", error)
            return Refused("the authentication plugin failed", temporary=True)
        self._faults.rubbish("begin", session, self._registered.owner_of(service))
        return Refused("the authentication plugin gave no valid answer", temporary=True)

    @staticmethod
    def relayed_mechanisms(peer: PeerFacts, offered: Sequence[str]) -> tuple[str, ...]:
        """Return the mechanisms of a service to advertise to ``peer``, in the service's order."""
        return relayed_to(peer, offered)

    def vhost_policy(self, connection: ConnectionRequest) -> VhostPolicy | None:
        """Return the policy of plugins for ``connection``; None leaves it to the configuration, a fault denies."""
        return self._query("vhost_policy", is_vhost_policy, VhostPolicy(denied="plugin-failed"), connection=connection)

    def may_attach(self, request: AttachRequest) -> bool:
        """Return whether no plugin denies the link; a fault denies it."""
        if not self._judges_attach:
            return True
        try:
            votes = self._registered.hook.judge_attach(request=request)
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.raised("judge_attach", error)
            return False
        for vote in votes:
            if not isinstance(vote, Vote):
                self._faults.rubbish("judge_attach", vote)
                return False
        return Vote.DENY not in votes

    def annotation_filter(self, endpoint: ListenerFacts) -> AnnotationFilter:
        """Return the filter for ``endpoint``: both directions unless a plugin says otherwise, none between routers."""
        if endpoint.role in _ROUTER_ROLES:
            return _STRIP_NOTHING
        return self._query("annotation_filter", is_annotation_filter, _STRIP_BOTH, endpoint=endpoint) or _STRIP_BOTH

    @property
    def _judges_attach(self) -> bool:
        """True if any plugin votes on links; most routers have none and skip the call."""
        return bool(self._registered.hook.judge_attach.get_hookimpls())

    def observed_kinds(self) -> frozenset[str] | None:
        """Return the kinds of records that plugins observe; None for all kinds."""
        kinds: set[str] = set()
        for implementation in self._registered.hook.observe.get_hookimpls():
            wanted = _observes(implementation.plugin)
            if wanted is None:
                return None
            kinds |= wanted
        return frozenset(kinds)

    def observe(self, record: Mapping[str, object]) -> None:
        """Pass ``record`` to every plugin that observes its kind; called in its own thread, one record at a time."""
        for implementation in self._registered.hook.observe.get_hookimpls():
            wanted = _observes(implementation.plugin)
            if wanted is not None and record["k"] not in wanted:
                continue
            try:
                answer = implementation.function(*(record for _ in implementation.argnames))
            except Exception as error:  # noqa: BLE001 - the other plugins still get the record
                self._faults.ignored(implementation.plugin_name, place_of(error), error)
            else:
                if answer is not None:
                    self._faults.ignored(implementation.plugin_name, f"answered with a {type(answer).__qualname__}")

    # Checking answers.

    def _query(
        self, hook: str, fits: Callable[[object], TypeGuard[Answer]], denial: Denial, **facts: object
    ) -> Answer | Denial | None:
        """Return the answer of ``hook`` if it ``fits``, None if no plugin answers, ``denial`` in every other case."""
        try:
            answer: object = getattr(self._registered.hook, hook)(**facts)
            if answer is None or fits(answer):
                return answer
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.raised(hook, error)
            return denial
        self._faults.rubbish(hook, answer)
        return denial

    def _offer(self, listener: ListenerFacts) -> Offer:
        offer = self._offers.get(listener)
        if offer is None:
            if len(self._offers) >= MAX_KNOWN_LISTENERS:  # changed listeners would fill it without end
                self._offers.clear()
            offer = self._offers[listener] = self._query_mechanisms(listener)
        return offer

    def _query_mechanisms(self, listener: ListenerFacts) -> Offer:
        if listener.auth_service:
            return NO_OFFER  # the service has mechanisms of its own
        servers: dict[Mechanism, list[str]] = {}
        for name in self._registered.origins:
            try:
                answers = self._registered.only(name, "sasl_mechanisms")(listener=listener)
            except Exception as error:  # noqa: BLE001 - whatever it is, it denies
                self._faults.raised("sasl_mechanisms", error, name)
                return NO_OFFER
            for answer in answers:
                if not is_mechanism_list(answer):
                    self._faults.rubbish("sasl_mechanisms", answer, name)
                    return NO_OFFER
                for served in dict.fromkeys(mechanism_of(each) for each in answer):
                    servers.setdefault(served, []).append(name)
        return offer_of(listener, servers)


def _observes(plugin: object) -> frozenset[str] | None:
    """Return the kinds in a plugin's attribute ``observes``; None for all kinds if it has no such attribute."""
    wanted = getattr(plugin, "observes", None)
    return None if wanted is None else frozenset(wanted)
