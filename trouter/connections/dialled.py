"""The login of a dialled connection: the router authenticates, by a mechanism that the peer offers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trouter.auth.client_mechanisms import PluginMechanism
from trouter.client.errors import AuthenticationFailed
from trouter.client.sasl import SaslMechanism, check_success
from trouter.engine.events import Event, SaslChallengeReceived, SaslFinished, SaslMechanismsOffered
from trouter.engine.sasl import SASL_OK, SaslClient
from trouter.hooks import ConnectorFacts, Permissions, Plugins
from trouter.mechanisms import DIALLING, mechanism_of

from .lifetime import Lifetime
from .peer_login import LoginFailed
from .shared import PeerSettings


class DialledLogin:
    """The login of one dialled connection: the first of ``mechanisms`` that the peer offers is used.

    For ``listed`` mechanisms that are not among ``mechanisms``, plugins may use the ``credentials``.
    """

    __slots__ = (
        "_chosen",
        "_credentials",
        "_lifetime",
        "_listed",
        "_mechanisms",
        "_plugins",
        "_step_s",
        "mechanism",
        "sasl",
        "user",
    )

    outgoing: Final = True
    tenant: Final = ""
    permissions: Final[Permissions | None] = None
    expires_at_s: Final = float("inf")

    def __init__(
        self,
        settings: PeerSettings,
        plugins: Plugins,
        lifetime: Lifetime,
        mechanisms: tuple[SaslMechanism, ...],
        listed: tuple[str, ...],
        credentials: ConnectorFacts,
    ) -> None:
        self.sasl = SaslClient(settings.limits.max_sasl_rounds)
        self.user = ""
        self.mechanism = ""
        self._plugins = plugins
        self._lifetime = lifetime
        self._step_s = settings.sasl_timeout_s
        self._mechanisms = mechanisms
        self._listed = listed
        self._credentials = credentials
        self._chosen: SaslMechanism | None = None

    @property
    def refused(self) -> bool:
        return self.sasl.refused

    async def take_step(self, event: Event) -> bool:
        """Answer one event of the login; return whether the router is logged in. LoginFailed."""
        try:
            if isinstance(event, SaslMechanismsOffered):
                await self._choose_mechanism(event.mechanisms)
            elif isinstance(event, SaslChallengeReceived):
                await self._answer_challenge(event.challenge)
            elif isinstance(event, SaslFinished):
                return await self._check_outcome(event.code, event.additional)
        except AuthenticationFailed as failed:
            raise LoginFailed(str(failed.description)) from failed
        return False

    async def _choose_mechanism(self, offered: tuple[str, ...]) -> None:
        for mechanism in (*self._mechanisms, *self._of_plugins(offered)):
            if mechanism.name in offered:
                self._chosen = mechanism
                self.mechanism = mechanism.name
                self.sasl.send_init(mechanism.name, await mechanism.start())
                return
        raise LoginFailed(f"no mechanism available: the peer offers {' '.join(offered)[:200] or 'none'}")

    def _of_plugins(self, offered: tuple[str, ...]) -> Iterator[SaslMechanism]:
        """Yield a plugin's mechanism that the connector lists, if the router itself can use none."""
        credentials = self._credentials
        able = {mechanism.name for mechanism in self._mechanisms}
        if able & set(offered):
            return
        known = {name.upper(): name for name in reversed(offered)}
        wanted = [
            known[name]
            for name in self._listed
            if name in known
            and name not in DIALLING
            and (credentials.may_send_password or not mechanism_of(name).in_clear)
        ]
        exchange = self._plugins.open_sasl_client(wanted, credentials) if wanted else None
        if exchange is not None:
            yield PluginMechanism(self._plugins, exchange, self._step_s)

    async def _answer_challenge(self, challenge: bytes) -> None:
        if self._chosen is not None:
            self.sasl.send_response(await self._chosen.respond(challenge))

    async def _check_outcome(self, code: int, additional: bytes | None) -> bool:
        """Check the outcome; AuthenticationFailed if the peer is not the configured server."""
        if code != SASL_OK:
            self._lifetime.log_failure(f"amqp:unauthorized-access Authentication failed [mech={self.mechanism}]")
            return False
        if isinstance(self._chosen, PluginMechanism):
            await self._chosen.finish(additional)
        else:
            check_success(self._chosen, additional)
        self.user = self._credentials.user or "anonymous"
        return True

    def note_open(self) -> None:
        """Do nothing: the router knows its own user."""

    def is_good(self) -> bool:
        """Return True: the peer judges the router's credentials."""
        return True

    def close(self) -> None:
        """Do nothing: the login holds no resources."""
