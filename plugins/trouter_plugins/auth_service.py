"""Authenticates clients by the service that a listener's ``saslPlugin`` names, with an optional cache of its answers.

Only a login that the service accepted upon the first response is cached: an answer to a challenge cannot be sent
again. The cache has keyed hashes of responses instead of passwords, for the service's ``cacheSeconds``. An answer holds
for peers of the same host, listener and TLS facts only, for the service may judge by these.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Final

from trouter.hooks import (
    Authenticated,
    AuthService,
    AuthServiceFacts,
    AuthSession,
    Challenge,
    ListenerFacts,
    PeerFacts,
    Refused,
    hookimpl,
)

#: Limit of the cached answers of one service; the oldest is dropped first.
MAX_REMEMBERED: Final = 10_000
#: Upper bound of the configured ``cacheSeconds`` (R-3e).
LONGEST_S: Final = 60.0


@hookimpl
def auth_service(listener: ListenerFacts, remote: AuthService) -> AuthService:
    return Remembering(remote) if remote.facts.cache_s > 0 else remote


class Remembering:
    """A service with a cache of its answers."""

    def __init__(self, service: AuthService, now: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._now = now
        self._key = secrets.token_bytes(32)
        self._known: OrderedDict[bytes, tuple[float, Authenticated]] = OrderedDict()

    @property
    def facts(self) -> AuthServiceFacts:
        return self._service.facts

    async def begin(self, peer: PeerFacts) -> AuthSession | Refused:
        session = await self._service.begin(peer)
        return session if isinstance(session, Refused) else RememberingSession(self, session, peer)

    def known(self, peer: PeerFacts, mechanism: str, response: bytes) -> Authenticated | None:
        """Return the service's answer to the same response of such a peer, if it admitted it and is recent enough."""
        key = self._hash(peer, mechanism, response)
        until_s, answer = self._known.get(key, (0.0, None))
        if answer is not None and until_s <= self._now():
            del self._known[key]
            return None
        return answer

    def remember(self, peer: PeerFacts, mechanism: str, response: bytes, answer: Authenticated) -> None:
        """Cache the service's answer to ``response`` for ``cache_s`` seconds, at most ``LONGEST_S``."""
        key = self._hash(peer, mechanism, response)
        self._known[key] = self._now() + min(self.facts.cache_s, LONGEST_S), answer
        self._known.move_to_end(key)
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)

    def _hash(self, peer: PeerFacts, mechanism: str, response: bytes) -> bytes:
        tls = None if peer.tls is None else astuple(peer.tls)
        about = peer.listener.name, peer.remote_host, peer.encrypted, peer.loopback, tls, mechanism.upper(), response
        return hmac.digest(self._key, repr(about).encode("utf-8", "surrogatepass"), hashlib.sha256)


class RememberingSession:
    """The authentication of one peer, which adds to the cache."""

    def __init__(self, memory: Remembering, session: AuthSession, peer: PeerFacts) -> None:
        self._memory = memory
        self._session = session
        self._peer = peer

    @property
    def mechanisms(self) -> Sequence[str]:
        return self._session.mechanisms

    async def start(self, mechanism: str, response: bytes | None) -> Challenge | Authenticated | Refused:
        if not response:
            return await self._session.start(mechanism, response)
        known = self._memory.known(self._peer, mechanism, response)
        if known is not None:
            return known
        answer = await self._session.start(mechanism, response)
        if isinstance(answer, Authenticated):
            self._memory.remember(self._peer, mechanism, response, answer)
        return answer

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        return await self._session.respond(response)

    def close(self) -> None:
        self._session.close()
