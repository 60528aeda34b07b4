"""The logins of accepted connections; those of dialled ones are in ``dialled``."""

from __future__ import annotations

import trio

from trouter.admission.guard import Guard
from trouter.admission.handshakes import Newcomer
from trouter.auth.auth_services import AuthServices
from trouter.auth.login import AcceptedLogin
from trouter.engine.sasl import SaslServer
from trouter.hooks import PeerFacts, Plugins
from trouter.telemetry.recorder import Recorder

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
