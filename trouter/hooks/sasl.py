"""The exchanges that authenticate a peer, or this router to a peer, and the answers of their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from trouter.hooks.facts import AuthServiceFacts, PeerFacts
from trouter.hooks.policy import Permissions


@dataclass(frozen=True, slots=True)
class Refused:
    """The exchange failed. ``reason`` is for the log; the peer learns only whether to try later (``temporary``).

    ``user`` is the name that was tried, untrusted text for the audit log; ``reason`` never holds text of the peer.
    """

    reason: str
    temporary: bool = False
    user: str = ""
    #: The user that the peer wanted to act for, instead of its own name; untrusted too.
    authorization_id: str = ""


@dataclass(frozen=True, slots=True)
class Challenge:
    """The exchange goes on: send ``data`` to the peer. A repr never shows ``data``, as it may belong to a secret.

    ``user`` is the proven user if ``data`` confirms the success and only the peer's assent is missing: the router does
    not send ``data`` to a peer that it refuses for other reasons. ``refusal`` is the answer that is certain already if
    ``data`` tells the peer why it is refused: the router counts the failure before the peer can read that and leave.
    """

    data: bytes
    user: str = ""
    refusal: Refused | None = None

    def __repr__(self) -> str:
        return f"Challenge({len(self.data)} bytes)"


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The exchange succeeded: the peer is ``user`` (never empty); ``data`` goes with the outcome."""

    user: str
    data: bytes = b""
    #: The expiry of the credentials, in seconds since 1970; the connection is closed then.
    expires_at_s: float | None = None
    #: The addresses that the user may use; None leaves them to the policy.
    permissions: Permissions | None = None
    #: The user's tenant; empty leaves that to the listener.
    tenant: str = ""
    #: Called every few seconds while the connection lasts, without I/O; an answer but True, or an exception, closes it.
    still_good: Callable[[], bool] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.user:
            raise ValueError("an authenticated user needs a name")

    def __repr__(self) -> str:
        return f"Authenticated({self.user!r}, {len(self.data)} bytes)"


#: The answers of one step of an exchange.
SaslAnswer = Challenge | Authenticated | Refused


@runtime_checkable
class SaslExchange(Protocol):
    """The authentication of one peer. It is awaited under a deadline, and dropped after Authenticated or Refused."""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        """Return the answer to the peer's initial response (b"" if it sent none) or its reply to the last Challenge."""


@runtime_checkable
class SaslClientExchange(Protocol):
    """The router's side of a login at a peer that it dialled; awaited under a deadline, used once."""

    @property
    def name(self) -> str:
        """The chosen mechanism, as the server spells it."""

    async def start(self) -> bytes | None:
        """Return the initial response; None for none. An exception ends the connection, here and in ``respond``."""

    async def respond(self, challenge: bytes) -> bytes:
        """Return the response to a challenge."""

    async def finish(self, additional: bytes | None) -> bool:
        """Return whether a server that accepts the login, perhaps with ``additional`` data, has proven itself."""


@runtime_checkable
class AuthSession(Protocol):
    """The authentication of one peer by a service. It is awaited under a deadline, and closed when it is over."""

    @property
    def mechanisms(self) -> Sequence[str]:
        """The mechanisms that the service offers, in its order."""

    async def start(self, mechanism: str, response: bytes | None) -> Challenge | Authenticated | Refused:
        """Return the answer to the peer's mechanism, spelt as it came, and initial response, None if it sent none."""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        """Return the answer to the peer's reply to the last Challenge."""

    def close(self) -> None:
        """End the exchange. May be called again."""


@runtime_checkable
class AuthService(Protocol):
    """A service that authenticates peers of listeners that have a ``saslPlugin``."""

    @property
    def facts(self) -> AuthServiceFacts:
        """The configuration of the service."""

    async def begin(self, peer: PeerFacts) -> AuthSession | Refused:
        """Return a session with the service for ``peer``; a temporary Refused if the service cannot be reached."""
