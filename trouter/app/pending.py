"""Parts of a change of the configuration that are prepared: each is applied, or dropped, once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from trouter.admission.guard import Guard
from trouter.admission.policing import Policing
from trouter.config import Configuration, RouterEntity
from trouter.config.facts import router_facts
from trouter.connections.registry import Connections
from trouter.hooks import ConfigurationRefused, Plugins
from trouter.security.policy import Policy
from trouter.telemetry.sampling import Sampling

from .service import Service


class Unfit(Exception):
    """A configuration that cannot be served: a line for each reason, and the status that management answers."""

    def __init__(self, lines: list[str], status: int) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.status = status


class Server(Protocol):
    """What takes note of the part of a configuration that is served."""

    def serve(self, configuration: Configuration, service: Service) -> None:
        """Note what is served from now on."""


class PendingPolicy:
    """A policy that is compiled; it comes last, as connections that are there may end for it."""

    def __init__(self, policing: Policing, policy: Policy, samplings: Mapping[str, Sampling]) -> None:
        self._policing = policing
        self._policy = policy
        self._samplings = samplings

    def apply(self) -> None:
        self._policing.become(self._policy, self._samplings)

    def drop(self) -> None:
        """Drop the change; nothing was opened, so nothing is to be closed."""


class PendingService:
    """What is in service, and word of what is withheld."""

    def __init__(self, server: Server, configuration: Configuration, service: Service) -> None:
        self._server = server
        self._configuration = configuration
        self._service = service

    def apply(self) -> None:
        self._server.serve(self._configuration, self._service)

    def drop(self) -> None:
        """Drop the change; nothing was opened, so nothing is to be closed."""


class PendingGuard:
    """Other numbers for those at the door; what was counted stays."""

    def __init__(self, guard: Guard, router: RouterEntity) -> None:
        self._guard = guard
        self._router = router

    def apply(self) -> None:
        self._guard.configure(self._router)

    def drop(self) -> None:
        """Drop the change; nothing was opened, so nothing is to be closed."""


class PendingTraces:
    """Connections that are open follow the level of their frames' module; comes after the log."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def apply(self) -> None:
        self._connections.follow_log()

    def drop(self) -> None:
        """Drop the change; nothing was opened, so nothing is to be closed."""


class PendingPlugins:
    """Plugins take over what they are asked about, so this comes last; ConfigurationRefused when one does not."""

    def __init__(self, plugins: Plugins, old: Configuration, new: Configuration) -> None:
        self._plugins = plugins
        self._old = old
        try:
            plugins.configure(router_facts(new), new.router.plugin_settings)
        except ConfigurationRefused:
            self.drop()
            raise

    def apply(self) -> None:
        """Do nothing: the change is in force already."""

    def drop(self) -> None:
        with suppress(ConfigurationRefused):  # a plugin that cannot go back keeps what it has
            self._plugins.configure(router_facts(self._old), self._old.router.plugin_settings)
