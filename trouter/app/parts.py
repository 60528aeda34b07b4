"""What runs for the entities of the configuration: listeners, connectors, addresses, policy, logs and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import trio

from trouter.admission.guard import Guard
from trouter.admission.host_names import HostNames
from trouter.auth.auth_services import AuthServices
from trouter.config import (
    AutoLinkEntity,
    BindingEntity,
    ConnectorEntity,
    Entity,
    ExchangeEntity,
    LinkRouteEntity,
    PolicyEntity,
    RecordLogEntity,
    SslProfileEntity,
)
from trouter.connections.connectors import Connectors
from trouter.connections.listen import Listener
from trouter.connections.listeners import Listeners
from trouter.connections.registry import Connections
from trouter.hooks import Plugins
from trouter.policy.router_policy import RouterPolicy
from trouter.telemetry.record_logs import RecordLogs
from trouter.tls.secure import Secure
from trouter.wire.performatives import Error

from .addresses import ConfiguredAddresses
from .exchanges import ConfiguredExchanges
from .routes import ConfiguredRoutes


@dataclass(frozen=True, slots=True)
class ConfiguredParts:
    """The parts of the router that a change of the configuration prepares, and the connections that came by them."""

    #: The open listeners and connectors, and closed ones that still serve peers.
    listeners: Listeners
    connectors: Connectors
    connections: Connections
    addresses: ConfiguredAddresses
    routes: ConfiguredRoutes
    exchanges: ConfiguredExchanges
    secure: Secure
    auth_services: AuthServices
    policy: RouterPolicy
    guard: Guard
    host_names: HostNames
    record_logs: RecordLogs
    plugins: Plugins

    def status(self, entity: Entity) -> Mapping[str, object]:
        """Return the observed attributes of an entity; none for one that is withheld or has none."""
        if isinstance(entity, LinkRouteEntity | AutoLinkEntity):
            return self.routes.status(entity)
        if isinstance(entity, ExchangeEntity | BindingEntity):
            return self.exchanges.status(entity)
        if isinstance(entity, PolicyEntity):
            return self.policy.shown_policy()
        if isinstance(entity, RecordLogEntity):
            return self.record_logs.status(entity)
        if isinstance(entity, SslProfileEntity):
            return self.secure.status(entity)
        connector = self.connectors.find(entity) if isinstance(entity, ConnectorEntity) else None
        if connector is None:
            return {}
        return {
            "failoverUrls": connector.failover_urls,
            "connectionStatus": connector.status,
            "connectionMsg": connector.message or None,
            "connectionAttempts": connector.attempts,
            "downSince": connector.down_since_us // 1000 or None,
        }

    def run_in(self, nursery: trio.Nursery) -> None:
        """Run the listeners and connectors in ``nursery``."""
        self.listeners.run_in(nursery)
        self.connectors.run_in(nursery)

    def refuse_clients(self) -> None:
        """Take no new connections; the present ones go on."""
        for listener in self.listeners.running:
            listener.drain()

    def end_connections(self, error: Error) -> None:
        """End listeners, connectors and connections; send ``error`` to every connected peer.

        All closes are written before any link is lost, so that no peer hears what the others' ends change.
        """
        listeners = self.listeners.all
        self.listeners.stop()
        for connection in list(self.connections.values()):
            if not connection.lifetime.closing:
                connection.close_at_once(error)
        for listener in listeners:
            if isinstance(listener, Listener):
                listener.end_peers(error)
        self.connectors.stop()

    async def wait_ended(self) -> None:
        """Wait until every listener and connector has ended its last connection."""
        for done in [*(each.done for each in self.listeners.all), *(each.done for each in self.connectors.all)]:
            await done.wait()
