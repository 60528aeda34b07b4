"""SASL EXTERNAL (RFC 4422, appendix A): the user is the one of the peer's TLS client certificate.

The router verified the certificate and mapped it to a user before SASL began (hook ``map_uid``); without such a user
the plugin does not offer the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trouter.hooks import Authenticated, ListenerFacts, PeerFacts, Refused, SaslExchange, hookimpl
from trouter.mechanisms import EXTERNAL

MECHANISM: Final = EXTERNAL


@hookimpl
def sasl_mechanisms(listener: ListenerFacts) -> Sequence[str]:
    return (MECHANISM,)


@hookimpl
def open_sasl(mechanism: str, peer: PeerFacts) -> SaslExchange | None:
    if mechanism != MECHANISM or peer.tls is None or not peer.tls.user:
        return None
    return ExternalExchange(peer.tls.user)


class ExternalExchange:
    """Over after the first response: nothing, or the same user once more."""

    def __init__(self, user: str) -> None:
        self._user = user

    async def respond(self, response: bytes) -> Authenticated | Refused:
        if response and response != self._user.encode():
            requested = response.decode(errors="replace")
            return Refused("the certificate is for another user", user=self._user, authorization_id=requested)
        return Authenticated(self._user)
