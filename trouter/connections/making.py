"""The making of peers, accepted or dialled: each gets what all connections of a router share."""

from __future__ import annotations

import socket

import trio

from trouter.admission.guard import Guard
from trouter.admission.handshakes import Newcomer
from trouter.auth.auth_services import AuthServices
from trouter.auth.login import AcceptedLogin
from trouter.engine.ports import Budget
from trouter.engine.sasl import SaslServer
from trouter.hooks import PeerFacts, Plugins
from trouter.net.hub import Hub
from trouter.net.poller import Poller
from trouter.net.timers import TimerQueue
from trouter.telemetry.recorder import Recorder
from trouter.tls.secure import SecurityLayer

from .lifetime import Lifetime
from .opening import OpenAdmission
from .peer import Peer
from .peer_login import PeerLogin
from .registry import Connections
from .shared import PeerSettings


class LoginMaker:
    """Makes the logins of accepted connections."""

    def __init__(self, plugins: Plugins, guard: Guard, recorder: Recorder, auth_services: AuthServices) -> None:
        self._plugins = plugins
        self._guard = guard
        self._recorder = recorder
        self._auth_services = auth_services

    def make_login(
        self, facts: PeerFacts, settings: PeerSettings, scope: trio.CancelScope, newcomer: Newcomer
    ) -> AcceptedLogin:
        """Return the login of a connection whose tasks end with ``scope``; its open ends the ``newcomer``."""
        plugins, asks_service = self._plugins, bool(facts.listener.auth_service)
        sasl = SaslServer(
            None if asks_service else plugins.sasl_mechanisms_for(facts),
            settings.require_sasl,
            settings.limits.max_sasl_rounds,
            tls_due=settings.require_tls and not facts.encrypted,
        )
        service = self._auth_services.of(facts.listener, plugins) if asks_service else None
        return AcceptedLogin(
            facts, plugins, self._guard, sasl, settings.sasl_timeout_s, scope, service, newcomer, self._recorder
        )


class PeerMaker:
    """Makes the peers of a router."""

    def __init__(
        self,
        hub: Hub,
        poller: Poller,
        timers: TimerQueue,
        budget: Budget,
        connections: Connections,
        recorder: Recorder,
        admission: OpenAdmission,
    ) -> None:
        """``budget`` counts the octets of messages that all connections hold together."""
        self._hub = hub
        self._poller = poller
        self._timers = timers
        self._budget = budget
        self._connections = connections
        self._recorder = recorder
        self._admission = admission

    def make_peer(
        self,
        sock: socket.socket,
        facts: PeerFacts,
        security: SecurityLayer,
        settings: PeerSettings,
        lifetime: Lifetime,
        login: PeerLogin,
    ) -> Peer:
        """Return the connection of the peer on ``sock``."""
        return Peer(
            sock,
            facts,
            security,
            settings,
            lifetime,
            login,
            self._hub,
            self._poller,
            self._timers,
            self._budget,
            self._connections,
            self._recorder,
            self._admission,
        )
