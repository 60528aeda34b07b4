"""The router's logins where it dials: the SASL mechanisms of a connector, its own and those of plugins."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from trouter.client.errors import AuthenticationFailed
from trouter.client.sasl import Anonymous, External, SaslMechanism, with_password
from trouter.config import ConnectorEntity
from trouter.hooks import PeerFacts, PluginError, Plugins, SaslClientExchange
from trouter.mechanisms import ANONYMOUS, EXTERNAL


class PluginMechanism:
    """A plugin's mechanism, with the interface of the router's own ones."""

    def __init__(self, plugins: Plugins, exchange: SaslClientExchange, step_s: float) -> None:
        self.name = exchange.name
        self._plugins = plugins
        self._exchange = exchange
        self._step_s = step_s

    async def start(self) -> bytes | None:
        return await self._ask(None)

    async def respond(self, challenge: bytes) -> bytes:
        return await self._ask(challenge) or b""

    async def finish(self, additional: bytes | None) -> None:
        """Check that the server, which accepted the login, has proven itself; AuthenticationFailed."""
        with trio.move_on_after(self._step_s):
            if await self._plugins.objects.client_is_satisfied(self._exchange, additional):
                return
        raise AuthenticationFailed(None, "the server accepted the login, but did not prove that it knows the password")

    async def _ask(self, challenge: bytes | None) -> bytes | None:
        with trio.move_on_after(self._step_s):
            try:
                return await self._plugins.objects.client_answer(self._exchange, challenge)
            except PluginError as error:
                raise AuthenticationFailed(None, str(error)) from None
        raise AuthenticationFailed(None, "the plugin that logs the router in took too long")


def client_mechanisms(
    entity: ConnectorEntity, facts: PeerFacts, *, has_certificate: bool = False
) -> Iterable[SaslMechanism]:
    """Yield the mechanisms to authenticate with, the strongest first: the configured ones, else those of the
    credentials.

    A password is sent only where no eavesdropper can read it, or where the connector allows it (security.md R-1.11c).
    """
    allowed = entity.sasl_mechanisms
    user, password = entity.sasl_username, entity.sasl_password
    if user and password is not None and password.reveal():
        bindings = facts.channel_bindings[:1]
        for mechanism in with_password(user, password.reveal(), plain=facts.may_send_password, bindings=bindings):
            if not allowed or mechanism.name in allowed:
                yield mechanism
    if facts.encrypted and has_certificate and (not allowed or EXTERNAL in allowed):
        yield External()
    if ANONYMOUS in allowed or not (allowed or user):
        yield Anonymous("trouter")
