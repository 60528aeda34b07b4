"""Calls plugins so that a broken plugin can only deny (security.md 8.7).

Each typed wrapper turns an exception or an answer of the wrong type into the denial that ``specs`` promises for that
hook, counts it in ``faults`` and logs it to ``trouter.PLUGIN``. Only this module and ``offers`` call hooks, and only
``objects`` calls what they return.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    is_tracer,
    is_vhost_policy,
)
from trouter.hooks.consumers import Consumer
from trouter.hooks.facts import (
    CertificateFacts,
    ConnectorFacts,
    ListenerFacts,
    PeerFacts,
    RouterFacts,
    SslProfileFacts,
)
from trouter.hooks.faults import Culprit, Faults, place_of
from trouter.hooks.loading import ConfigurationRefused, PluginDescription
from trouter.hooks.objects import PluginObjects
from trouter.hooks.offers import MechanismOffers, offered_to, relayed_to
from trouter.hooks.policy import AnnotationFilter, AttachRequest, ConnectionRequest, VhostPolicy, Vote
from trouter.hooks.registration import Registration
from trouter.hooks.sasl import (
    AuthService,
    Refused,
    SaslClientExchange,
    SaslExchange,
)
from trouter.hooks.tracing import MessageTracer
from trouter.mechanisms import Mechanism

ENTRY_POINT_GROUP: Final = "trouter.plugins"
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
NO_SETTINGS: Final[Mapping[str, Mapping[str, object]]] = MappingProxyType({})

_ROUTER_ROLES: Final = frozenset({"inter-router", "edge"})
_STRIP_BOTH: Final = AnnotationFilter(strip_in=True, strip_out=True)
_STRIP_NOTHING: Final = AnnotationFilter(strip_in=False, strip_out=False)
log = logging.getLogger("trouter.PLUGIN")

Answer = TypeVar("Answer")
Denial = TypeVar("Denial")


class Plugins:
    """The loaded plugins of one router."""

    def __init__(self, plugins: Iterable[object] = (), decoy_key: bytes = b"") -> None:
        """Register ``plugins``: modules, objects, or classes, which are instantiated; PluginError if one is unusable.

        A module that defines a class ``Plugin`` stands for that class: its state belongs to one router. ``decoy_key``
        is that of the workers, empty in a router without.
        """
        self._decoy_key = decoy_key
        self._registered = Registration()
        self._faults = Faults(self._registered)
        #: The mechanisms of each listener, and what keeps others from being offered.
        self.offers = MechanismOffers(self._registered, self._faults)
        #: The caller of the objects that plugins make.
        self.objects = PluginObjects(self._registered, self._faults)
        for plugin in plugins:
            self.add(plugin)

    @classmethod
    def load(
        cls, listed: Mapping[str, str] = NOTHING, entry_point_group: str = ENTRY_POINT_GROUP, decoy_key: bytes = b""
    ) -> Plugins:
        """Load trouter's plugins and those ``listed``, with a hash of their code or ""; PluginError names a plugin."""
        plugins = cls(decoy_key=decoy_key)
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
        self.offers.forget()
        known = self._registered.origins
        problems = [f"pluginSettings: there is no plugin {name}" for name in settings if name not in known]
        for name in known:
            try:
                answers = self._registered.only(name, "configure")(
                    router=replace(router, settings=settings.get(name, router.settings), decoy_key=self._decoy_key)
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
            problems = [conflict for listener in router.listeners for conflict in self.offers.of(listener).conflicts]
            if router.secure_defaults:
                problems += [one for listener in router.listeners for one in self.offers.of(listener).unknown]
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

    def sasl_mechanisms(self, listener: ListenerFacts) -> tuple[Mechanism, ...]:
        """Return the mechanisms of ``listener``, in order and upper case; if there are none, no client is admitted."""
        return self.offers.of(listener).mechanisms

    def sasl_mechanisms_for(self, peer: PeerFacts) -> tuple[str, ...]:
        """Return the names to advertise to ``peer``: no mechanism that would expose a secret or cannot work."""
        return tuple(str(each) for each in offered_to(peer, self.sasl_mechanisms(peer.listener)))

    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        """Return the exchange that runs ``mechanism`` (in any case) for ``peer``; None refuses the peer."""
        mechanism = mechanism.upper()
        if mechanism not in self.sasl_mechanisms_for(peer):
            return None
        return self._query("open_sasl", is_exchange, None, mechanism=mechanism, peer=peer)

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

    def auth_service(self, listener: ListenerFacts, remote: AuthService) -> AuthService | None:
        """Return the service that authenticates the peers of ``listener``, which has a ``saslPlugin``; None refuses."""
        return self._query("auth_service", is_auth_service, None, listener=listener, remote=remote)

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


def _observes(plugin: object) -> frozenset[str] | None:
    """Return the kinds in a plugin's attribute ``observes``; None for all kinds if it has no such attribute."""
    wanted = getattr(plugin, "observes", None)
    return None if wanted is None else frozenset(wanted)
