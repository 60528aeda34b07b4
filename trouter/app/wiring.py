"""Builds the objects of a router in order, each from earlier ones; ``process`` runs them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count as counted_from
from typing import TYPE_CHECKING

import trio

from trouter.admission.decisions import Decisions
from trouter.admission.guard import Guard
from trouter.admission.host_names import HostNames
from trouter.admission.memory import MemoryWatch
from trouter.auth.auth_services import AuthServices
from trouter.backbone.backbone import Backbone
from trouter.backbone.contact import make_backbone
from trouter.backbone.own_links import OwnLinks
from trouter.backbone.uplinks import Uplinks
from trouter.config import Configuration, ConnectorEntity, ListenerEntity, RouterEntity
from trouter.connections.connectors import Connectors
from trouter.connections.listen import ConnectionNumbers, Listener
from trouter.connections.listeners import Listeners, Standing
from trouter.connections.logins import LoginMaker
from trouter.connections.opening import OpenAdmission
from trouter.connections.registry import Connections
from trouter.connections.router_parts import RouterParts
from trouter.connections.settings import connector_settings, listener_settings
from trouter.core.identities import Identities
from trouter.core.marks import Marks
from trouter.core.past import PastAddresses
from trouter.core.router import Router
from trouter.engine.ports import Budget
from trouter.hooks import Plugins
from trouter.net.hub import Hub
from trouter.net.owed import grant_owed_credit
from trouter.net.poller import Poller
from trouter.net.rates import bucket_maker
from trouter.net.reach import Reach
from trouter.net.timers import TimerQueue
from trouter.net.workers import Workers
from trouter.policy.router_policy import RouterPolicy
from trouter.policy.sanctions import Sanctions
from trouter.telemetry.change_records import ChangeRecords
from trouter.telemetry.periodic import Telemetry
from trouter.telemetry.record_logs import RecordLogs
from trouter.telemetry.recorder import Recorder
from trouter.telemetry.tracing import MessageSpans
from trouter.tls.secure import Secure

from .addresses import ConfiguredAddresses
from .consumers import Consumers
from .control import Control
from .draining import Drain
from .dump import StateDump
from .exchanges import ConfiguredExchanges
from .findings import RouterFindings
from .in_force import ConfigurationInForce
from .other_workers import OtherWorkers
from .parts import ConfiguredParts
from .routes import ConfiguredRoutes
from .running import Running

if TYPE_CHECKING:
    from trouter.connections.connector import Connector

    from .site import RouterSite


@dataclass(frozen=True, slots=True)
class Services:
    """What all connections of a router share; no part is given the whole."""

    hub: Hub
    poller: Poller
    timers: TimerQueue
    plugins: Plugins
    #: The octets of messages that all connections hold together.
    budget: Budget
    connections: Connections
    recorder: Recorder
    guard: Guard
    secure: Secure
    policy: RouterPolicy
    auth_services: AuthServices
    #: None on a router without neighbours.
    backbone: Backbone | None
    #: None on a router that is no edge router.
    uplinks: Uplinks | None


@dataclass(frozen=True, slots=True)
class Assembly:
    """The objects of a router that does not run yet."""

    router: Router
    services: Services
    in_force: ConfigurationInForce
    control: Control
    decisions: Decisions
    consumers: Consumers
    telemetry: Telemetry
    others: OtherWorkers | None
    state_dump: StateDump
    makers: Makers


class Makers:
    """Maker of the listeners and connectors that run for entities of the configuration."""

    def __init__(self, services: Services, reach: Reach, *, secure_defaults: bool) -> None:
        self._services = services
        self._secure_defaults = secure_defaults
        self._logins = LoginMaker(services.plugins, services.guard, services.recorder, services.auth_services)
        self._parts = _router_parts(services)
        self._reach = reach
        self._router = services.hub.router
        workers = reach.workers
        self._numbers = ConnectionNumbers() if workers is None else ConnectionNumbers(workers.number, len(workers.ids))
        self._site: RouterSite | None = None

    def listener(
        self, in_force: ConfigurationInForce, entity: ListenerEntity, sockets: list[socket.socket]
    ) -> Standing:
        """Return a listener on ``sockets``, for AMQP or for HTTP; that one shows ``in_force``."""
        if not entity.serves_http:
            return self._amqp_listener(entity, sockets)
        from trouter.http import HttpListener  # noqa: PLC0415  # most routers do not use this room

        return HttpListener(entity, sockets, self.site(in_force))

    def _admitter(self, entity: ListenerEntity) -> Listener:
        """Return a listener without sockets, which admits the clients of an HTTP listener's WebSockets."""
        return self._amqp_listener(entity, [])

    def _amqp_listener(self, entity: ListenerEntity, sockets: list[socket.socket]) -> Listener:
        services = self._services
        return Listener(
            entity,
            sockets,
            partial(listener_settings, self._router.table.router_id, secure=self._secure_defaults),
            self._numbers,
            services.guard,
            services.policy,
            services.secure,
            services.poller,
            self._logins,
            self._parts,
        )

    def connector(self, entity: ConnectorEntity) -> Connector:
        """Return the connector that dials for an entity."""
        from trouter.connections.connector import Connector  # noqa: PLC0415  # most routers have none

        services, settings = self._services, connector_settings(self._router.table.router_id, entity)
        return Connector(entity, settings, self._numbers, self._reach, services.secure, services.plugins, self._parts)

    def site(self, in_force: ConfigurationInForce) -> RouterSite:
        """Return the router as its HTTP listeners see it, made on first use."""
        if self._site is None:
            from .site import RouterSite  # noqa: PLC0415

            services = self._services
            self._site = RouterSite(
                self._router,
                in_force,
                self._admitter,
                services.poller.turns,
                services.budget,
                services.backbone,
                self._reach.workers,
            )
        return self._site


def assemble(
    configuration: Configuration,
    plugins: Plugins,
    read: Callable[[], Configuration] | None,
    calendar: Callable[[], float],
    make_poller: Callable[[Hub, TimerQueue], Poller],
    reach: Reach,
) -> Assembly:
    """Return the objects of a router; the arguments are those of ``process.RouterProcess``."""
    part = reach.part_of(configuration)
    own = part.router
    timers = TimerQueue()
    own_links = OwnLinks(timers)
    router = _make_router(own, own_links, reach)
    services = _services(part, router, timers, plugins, calendar, make_poller, reach)
    recorder, hub = services.recorder, services.hub
    grant_owed_credit(router, timers)
    record_logs = RecordLogs(own.id, recorder, hub)
    telemetry = Telemetry(
        router, recorder, plugins, lambda: record_logs.interval_s, lambda: record_logs.latency_addresses
    )
    makers = Makers(services, reach, secure_defaults=own.secure_defaults)
    parts = _parts(services, makers, record_logs, reach)
    records = ChangeRecords(recorder, services.connections)
    guard, policy, notify = services.guard, services.policy, reach.notify_siblings
    decisions = Decisions(guard.sanctions, policy, guard.lockout, records, hub.flush, services.timers, notify)
    consumers = Consumers(router, plugins, policy, decisions, hub.flush, bucket_maker(reach.tallies))
    topology = None if services.backbone is None else services.backbone.topology
    drain = Drain(
        services.connections,
        hub.flush,
        lambda: float(in_force.configuration.router.drain_timeout_seconds),
        partial(_set_leaving, router, services.backbone),
    )
    in_force = ConfigurationInForce(
        configuration,
        parts,
        makers.listener,
        records,
        consumers,
        drain,
        MessageSpans(router.shared, plugins, timers),
        RouterFindings(parts, drain, reach, services.uplinks),
        reach,
    )
    control = Control(in_force, read, records, Running(parts, decisions, recorder, topology), reach)
    workers = reach.workers
    return Assembly(
        router,
        services,
        in_force,
        control,
        decisions,
        consumers,
        telemetry,
        None if workers is None else OtherWorkers(workers, in_force, control, decisions, guard.lockout),
        StateDump(hub, services.budget, services.connections),
        makers,
    )


def _make_router(own: RouterEntity, own_links: OwnLinks, reach: Reach) -> Router:
    """Return the core, which knows the other workers, and whose their dynamic addresses are.

    It keeps the counts of addresses that they may still use.
    """
    router = Router(own.id, own.mode, own.default_distribution, observer=own_links, on_route=own_links.note_route)
    router.table.tenants_confined = own.secure_defaults
    router.network.siblings = reach.siblings
    if reach.tallies is not None:
        router.table.marks = Marks(reach.tallies.derive_key("dynamic addresses"), reach.siblings)
        router.table.tenants.identities = Identities(reach.tallies.derive_key("identities"))
        router.table.past = PastAddresses()
    if reach.workers is not None:  # workers give different numbers to what lives at one of them
        router.identities = counted_from(reach.workers.number, len(reach.workers.ids))
    return router


def _make_recorder(workers: Workers | None) -> Recorder:
    """Return the recorder, whose denials and alarms have other numbers than those of the other workers."""
    recorder = Recorder()
    if workers is not None:
        recorder.number_from(workers.number, len(workers.ids))
    return recorder


def _services(
    configuration: Configuration,
    router: Router,
    timers: TimerQueue,
    plugins: Plugins,
    calendar: Callable[[], float],
    make_poller: Callable[[Hub, TimerQueue], Poller],
    reach: Reach,
) -> Services:
    """Make what all connections share."""
    own = configuration.router
    hub, recorder, connections = Hub(router), _make_recorder(reach.workers), Connections()
    budget, sanctions = Budget(0), Sanctions(trio.current_time)
    poller = make_poller(hub, timers)
    secure = Secure(plugins, connections, recorder, calendar, poller, poller.turns)
    return Services(
        hub=hub,
        poller=poller,
        timers=timers,
        plugins=plugins,
        budget=budget,
        connections=connections,
        recorder=recorder,
        guard=Guard(
            MemoryWatch(budget, recorder), sanctions=sanctions, tallies=reach.tallies, notify=reach.notify_siblings
        ),
        secure=secure,
        policy=RouterPolicy(recorder, plugins, trio.current_time, sanctions, reach.tallies, reach.siblings),
        auth_services=AuthServices(secure, recorder, secure_defaults=own.secure_defaults),
        backbone=make_backbone(router, own, calendar, recorder, timers) if own.mode == "interior" else None,
        uplinks=Uplinks(hub) if own.mode == "edge" else None,
    )


def _router_parts(services: Services) -> RouterParts:
    """Return the parts of the router that each of its connections uses."""
    hub, poller, recorder = services.hub, services.poller, services.recorder
    admission = OpenAdmission(
        hub,
        poller.turns,
        services.policy,
        services.plugins,
        services.guard.memory,
        recorder,
        services.backbone,
        services.uplinks,
    )
    return RouterParts(
        hub=hub,
        poller=poller,
        timers=services.timers,
        budget=services.budget,
        connections=services.connections,
        recorder=recorder,
        admission=admission,
    )


def _set_leaving(router: Router, backbone: Backbone | None, leaving: bool) -> None:
    """Let the other routers know no more of a router that drains than they need, and send around it if they can."""
    router.set_leaving(leaving)
    if backbone is not None:
        backbone.avoid_transit(leaving)


def _parts(services: Services, makers: Makers, record_logs: RecordLogs, reach: Reach) -> ConfiguredParts:
    """Return the parts that run for configured entities."""
    router, flush = services.hub.router, services.hub.flush
    return ConfiguredParts(
        listeners=Listeners(reach),
        connectors=Connectors(makers.connector),
        connections=services.connections,
        addresses=ConfiguredAddresses(router.table),
        routes=ConfiguredRoutes(router, flush),
        exchanges=ConfiguredExchanges(router, flush),
        secure=services.secure,
        auth_services=services.auth_services,
        policy=services.policy,
        guard=services.guard,
        host_names=HostNames(),
        record_logs=record_logs,
        plugins=services.plugins,
    )
