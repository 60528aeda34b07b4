"""The exchanges that authenticate a peer, or this router to a peer, and the answers of one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from trouter.hooks.facts import AuthServiceFacts, PeerFacts
from trouter.hooks.policy import Permissions


@dataclass(frozen=True, slots=True)
class Challenge:
    """The exchange goes on: send ``data`` to the peer. Never shown in a repr, it may belong to a secret.

    ``user`` is who the peer has proved to be when ``data`` tells it so and only its assent is due: ``data`` is not sent
    to a peer that is refused for other reasons.
    """

    data: bytes
    user: str = ""

    def __repr__(self) -> str:
        return f"Challenge({len(self.data)} bytes)"


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The exchange succeeded: the peer is ``user`` (never empty); ``data`` goes with the outcome."""

    user: str
    data: bytes = b""
    #: When the credentials end, in seconds since 1970; the connection is closed then.
    expires_at_s: float | None = None
    #: What the user may do; None leaves it to the policy.
    permissions: Permissions | None = None
    #: The tenant that the user belongs to; empty leaves that to the listener.
    tenant: str = ""
    #: Asked every few seconds while the connection lasts, without I/O; anything but True, or a raise, closes it.
    still_good: Callable[[], bool] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.user:
            raise ValueError("an authenticated user needs a name")

    def __repr__(self) -> str:
        return f"Authenticated({self.user!r}, {len(self.data)} bytes)"


@dataclass(frozen=True, slots=True)
class Refused:
    """The exchange failed. ``reason`` is for the log, the peer learns only whether to try later (``temporary``).

    ``user`` is the name that was tried, untrusted text for the audit log; a reason never holds anything the peer sent.
    """

    reason: str
    temporary: bool = False
    user: str = ""
    #: The user that the peer wanted to act for, instead of its own name; untrusted too.
    authorization_id: str = ""


#: What one step of an exchange may answer.
SaslAnswer = Challenge | Authenticated | Refused


@runtime_checkable
class SaslExchange(Protocol):
    """One peer's authentication. It is awaited under a deadline, and dropped after Authenticated or Refused."""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        """Answer the peer's initial response (b"" if it sent none) or its reply to the last Challenge."""


@runtime_checkable
class SaslClientExchange(Protocol):
    """Our side of an authentication with a peer that we called; awaited under a deadline, used once."""

    @property
    def name(self) -> str:
        """Return the mechanism that was chosen, as the server spells it."""

    async def start(self) -> bytes | None:
        """Return the initial response; None for none. What is raised ends the connection, as it does below."""

    async def respond(self, challenge: bytes) -> bytes:
        """Return the response to a challenge."""

    async def finish(self, additional: bytes | None) -> bool:
        """Return whether the server, which lets us in, perhaps with a last word, has proven all that it has to."""


@runtime_checkable
class AuthSession(Protocol):
    """One peer's authentication by a service. It is awaited under a deadline, and closed when it is over."""

    @property
    def mechanisms(self) -> Sequence[str]:
        """Return what the service offers, in its order."""

    async def start(self, mechanism: str, response: bytes | None) -> Challenge | Authenticated | Refused:
        """Answer the peer's choice, spelt as it came, and its initial response, None if it sent none."""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        """Answer the peer's reply to the last Challenge."""

    def close(self) -> None:
        """End the exchange: nothing more will be asked. May be called again."""


@runtime_checkable
class AuthService(Protocol):
    """Authenticates peers of listeners that have a ``saslPlugin``."""

    @property
    def facts(self) -> AuthServiceFacts:
        """Return what is configured."""

    async def begin(self, peer: PeerFacts) -> AuthSession | Refused:
        """Turn to the service for ``peer``; Refused, which is temporary, if it cannot be reached."""
