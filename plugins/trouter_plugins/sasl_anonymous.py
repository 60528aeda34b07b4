"""SASL ANONYMOUS (RFC 4505): admits every client as the user "anonymous", and ignores the trace in its response.

Listeners that list ANONYMOUS or no mechanism offer it, unless they require authentication.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trouter.hooks import Authenticated, ListenerFacts, PeerFacts, SaslExchange, hookimpl
from trouter.mechanisms import ANONYMOUS

MECHANISM: Final = ANONYMOUS
USER: Final = "anonymous"


@hookimpl
def sasl_mechanisms(listener: ListenerFacts) -> Sequence[str]:
    return (MECHANISM,) if _serves(listener) else ()


@hookimpl
def open_sasl(mechanism: str, peer: PeerFacts) -> SaslExchange | None:
    return AnonymousExchange() if mechanism == MECHANISM and _serves(peer.listener) else None


def _serves(listener: ListenerFacts) -> bool:
    if listener.authenticate_peer:
        return False
    return not listener.sasl_mechanisms or MECHANISM in (name.upper() for name in listener.sasl_mechanisms)


class AnonymousExchange:
    """Over after the first response; its trace text is not kept."""

    async def respond(self, response: bytes) -> Authenticated:
        return Authenticated(USER)
