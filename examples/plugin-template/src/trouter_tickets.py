"""Offer PLAIN to peers whose password is a ticket: `EXPIRY.SIGNATURE`, valid for one user until that second since 1970.

The signature is an HMAC of user and expiry under a key that the issuer of tickets shares with the router. The router's
configuration names the file of the key:

    router {
        plugins: tickets
        pluginSettings: { tickets: { keyFile: /etc/trouter/tickets.key } }
    }
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Sequence
from pathlib import Path

from trouter.hooks import (
    Authenticated,
    Challenge,
    ConfigurationRefused,
    ListenerFacts,
    PeerFacts,
    Refused,
    RouterFacts,
    SaslExchange,
    hookimpl,
)

MIN_KEY_BYTES = 32
#: User names and tickets are short; a longer response is no honest login.
MAX_RESPONSE_BYTES = 1024


class Plugin:
    """The plugin of one router; its state is the key."""

    def __init__(self) -> None:
        self.key = b""

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        path = router.settings.get("keyFile")
        if not isinstance(path, str):
            raise ConfigurationRefused("pluginSettings must say where the keyFile is")
        try:
            key = Path(path).read_bytes().strip()
        except OSError as error:
            raise ConfigurationRefused(f"keyFile {path}: {error.strerror}") from None
        if len(key) < MIN_KEY_BYTES:
            raise ConfigurationRefused(f"keyFile {path}: a key has at least {MIN_KEY_BYTES} bytes")
        self.key = key

    @hookimpl
    def sasl_mechanisms(self, listener: ListenerFacts) -> Sequence[str]:
        return ["PLAIN"] if "PLAIN" in listener.sasl_mechanisms else []

    @hookimpl
    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        return TicketExchange(self.key) if mechanism == "PLAIN" else None


class TicketExchange:
    """One PLAIN login with a ticket."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._asked = False

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        if not response and not self._asked:  # a client may wait for an empty challenge
            self._asked = True
            return Challenge(b"")
        try:
            authorize, user, password = response[:MAX_RESPONSE_BYTES].decode().split("\0")
            expiry, _, signature = password.partition(".")
            expires_at_s = int(expiry) if expiry.isascii() and expiry.isdecimal() else 0
        except ValueError:
            return Refused("malformed response")
        good = hmac.compare_digest(sign(self._key, user, expires_at_s).encode(), signature.encode())
        if not good or not user or authorize not in ("", user):
            return Refused("no such ticket", user=user)
        if expires_at_s <= time.time():
            return Refused("the ticket has expired", user=user)
        return Authenticated(user, expires_at_s=float(expires_at_s))  # the connection ends when the ticket expires


def sign(key: bytes, user: str, expires_at_s: int) -> str:
    """Return the signature of a ticket, in hexadecimal."""
    return hmac.new(key, f"{user}\0{expires_at_s}".encode(), hashlib.sha256).hexdigest()


def ticket(key: bytes, user: str, lifetime_s: int) -> str:
    """Return a ticket that is valid for ``lifetime_s`` seconds, as the issuer gives it to a user."""
    expires_at_s = int(time.time()) + lifetime_s
    return f"{expires_at_s}.{sign(key, user, expires_at_s)}"
