"""SASL ANONYMOUS (RFC 4505): admits every client as the user "anonymous", and ignores the trace in its response.

Listeners that list ANONYMOUS or no mechanism offer it, unless they require authentication. Where the configuration of
Cyrus SASL lists mechanisms without it, only other routers are offered it, which find their neighbours by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trouter.hooks import Authenticated, ListenerFacts, PeerFacts, RouterFacts, SaslExchange, hookimpl
from trouter.mechanisms import ANONYMOUS

MECHANISM: Final = ANONYMOUS
USER: Final = "anonymous"
_ROLES_OF_ROUTERS: Final = frozenset({"inter-router", "edge"})


class Plugin:
    """What one router's configuration says about clients without a name."""

    def __init__(self) -> None:
        self._left_out = False

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        self._left_out = router.sasl_mech_list is not None and MECHANISM not in router.sasl_mech_list

    @hookimpl
    def sasl_mechanisms(self, listener: ListenerFacts) -> Sequence[str]:
        return (MECHANISM,) if self._serves(listener) else ()

    @hookimpl
    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        return AnonymousExchange() if mechanism == MECHANISM and self._serves(peer.listener) else None

    def _serves(self, listener: ListenerFacts) -> bool:
        if listener.authenticate_peer or (self._left_out and listener.role not in _ROLES_OF_ROUTERS):
            return False
        return not listener.sasl_mechanisms or MECHANISM in (name.upper() for name in listener.sasl_mechanisms)


class AnonymousExchange:
    """Over after the first response; its trace text is not kept."""

    async def respond(self, response: bytes) -> Authenticated:
        return Authenticated(USER)
