"""A custom SASL mechanism, HOUSE-KEY: the client sends `USER NUL KEY`; pluginSettings has the keys."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence

from trouter.hooks import (
    Authenticated,
    Challenge,
    ListenerFacts,
    PeerFacts,
    Refused,
    RouterFacts,
    SaslExchange,
    hookimpl,
)

MECHANISM = "HOUSE-KEY"


class Plugin:
    """The plugin of one router; its state is the keys."""

    def __init__(self) -> None:
        self.keys: Mapping[str, object] = {}

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        self.keys = router.settings

    @hookimpl
    def sasl_mechanisms(self, listener: ListenerFacts) -> Sequence[str]:
        return (MECHANISM,)

    @hookimpl
    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        return Exchange(self.keys) if mechanism == MECHANISM else None


class Exchange:
    """One login; it is over after one response."""

    def __init__(self, keys: Mapping[str, object]) -> None:
        self._keys = keys

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        user, _, key = response[:1024].decode(errors="replace").partition("\0")
        known = str(self._keys.get(user, ""))
        if known and hmac.compare_digest(known.encode(), key.encode()):
            return Authenticated(user)
        return Refused("the key does not fit", user=user)
