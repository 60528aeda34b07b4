"""The login of an accepted connection: the peer authenticates, in order and in time."""

from __future__ import annotations

from typing import Final

import trio

from trouter.admission.handshakes import Newcomer
from trouter.auth.login import Login
from trouter.engine.connection import Connection
from trouter.engine.events import Event, SaslInitReceived, SaslMechanismsWanted, SaslResponseReceived
from trouter.engine.sasl import SaslServer
from trouter.hooks import PeerFacts, Permissions

from .lifetime import Lifetime
from .shared import PeerSettings, Services
from .transport import Transport


class AcceptedLogin:
    """The login of one accepted connection. Until its open the peer is a ``newcomer``, ended if it is too slow."""

    __slots__ = (
        "_connection",
        "_login",
        "_newcomer",
        "_services",
        "_subject",
        "_transport",
        "mechanism",
        "sasl",
        "user",
    )

    outgoing: Final = False

    def __init__(
        self, facts: PeerFacts, settings: PeerSettings, services: Services, lifetime: Lifetime, newcomer: Newcomer
    ) -> None:
        plugins, listener = services.plugins, facts.listener
        asks = bool(listener.auth_service)
        self.sasl = SaslServer(
            None if asks else plugins.sasl_mechanisms_for(facts),
            settings.require_sasl,
            settings.limits.max_sasl_rounds,
            tls_due=settings.require_tls and not facts.encrypted,
        )
        service = services.auth_services.of(listener, plugins) if asks else None
        self._login = Login(
            facts,
            plugins,
            services.guard,
            self.sasl,
            settings.sasl_timeout_s,
            lifetime.postpone,
            service,
            services.recorder,
        )
        self._services = services
        self._subject = "" if facts.tls is None else facts.tls.subject
        self._newcomer = newcomer
        newcomer.came_s = trio.current_time()  # the TLS handshake had its own time limit
        newcomer.cut = lifetime.give_up_slow
        self.user = ""
        self.mechanism = ""

    @property
    def tenant(self) -> str:
        return self._login.tenant

    @property
    def permissions(self) -> Permissions | None:
        return self._login.permissions

    @property
    def expires_at_s(self) -> float:
        return self._login.expires_at_s

    def attach(self, connection: Connection, transport: Transport) -> None:
        self._connection = connection
        self._transport = transport
        transport.newcomer = self._newcomer

    async def handle(self, event: Event) -> bool:
        """Process one event; return whether it was one of the login. After the login the peer's input is read."""
        if not isinstance(event, SaslMechanismsWanted | SaslInitReceived | SaslResponseReceived):
            return False
        self._newcomer.waits(trio.current_time())
        with self._transport.noticing_absence():
            entered = await self._take_step(event)
        self._newcomer.answered(trio.current_time())
        if entered:
            self.user = self._login.user
            self._services.hub.update_clock()
        if entered or isinstance(event, SaslMechanismsWanted):
            self._connection.receive_data(b"")
        return True

    async def _take_step(self, event: SaslMechanismsWanted | SaslInitReceived | SaslResponseReceived) -> bool:
        """Answer the event; return whether the peer is logged in."""
        if isinstance(event, SaslMechanismsWanted):
            await self._login.offer()
            return False
        if isinstance(event, SaslInitReceived):
            self.mechanism = event.mechanism.upper()  # the case of a mechanism's name does not matter
            return await self._login.begin(event)
        return await self._login.respond(event.response)

    def opens(self) -> None:
        self.user = self.user or self._subject

    def is_good(self) -> bool:
        return self._login.good()

    def close(self) -> None:
        """End the login: release the newcomer and the authentication service."""
        self._services.guard.handshakes.end(self._newcomer)
        self._transport.newcomer = None
        self._login.close()
