"""The errors that end a connection, a session or a link, with their AMQP condition (part 2, 2.8.14-2.8.18).

A call that waits raises the exception of the outermost object that ended. Using an object that one has closed oneself
raises ``trio.ClosedResourceError``, as everywhere in trio.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from trouter.wire.performatives import Error


class ClientError(Exception):
    """The base of this module. ``condition`` is None if the peer gave none, for example when a socket closed."""

    #: The part of the conversation that has ended, for people.
    ended: ClassVar[str] = ""

    def __init__(
        self, condition: str | None, description: str | None = None, info: dict[Any, Any] | None = None
    ) -> None:
        super().__init__(condition, description, info)
        self.condition = condition
        self.description = description
        self.info = info

    @classmethod
    def from_peer(cls, error: Error | None, otherwise: str) -> Self:
        """Return the exception for the peer's ``error``, or with the text ``otherwise`` if it gave none."""
        return cls(None, otherwise) if error is None else cls(str(error.condition), error.description, error.info)

    def copy_for_raise(self) -> Self:
        """Return a copy of the exception, to be raised in another task."""
        return type(self)(self.condition, self.description, self.info)

    @property
    def sentence(self) -> str:
        """The text, with what ended."""
        return f"{self.ended} ended: {self}" if self.ended else str(self)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.condition, self.description) if part) or "the peer gave no reason"


class ConnectionClosed(ClientError):
    """The connection has ended: the peer closed it, broke the protocol, fell silent or went away."""

    ended = "the connection"


class AuthenticationFailed(ConnectionClosed):
    """The server refused the login, or offers none of our SASL mechanisms."""


class SessionEnded(ClientError):
    """The peer ended the session, or broke a rule that ends it; its links ended with it."""

    ended = "the session"


class LinkDetached(ClientError):
    """The peer refused or detached the link, or broke a rule that ends it."""

    ended = "the link"


class DeliveryAborted(ClientError):
    """The sender aborted a delivery of which only a part had come (part 2, 2.6.14)."""


class OutcomeUnknown(ClientError):
    """The peer settled a delivery with a state that cannot be decoded; the link continues."""


class LimitReached(ClientError):
    """The peer allows no more sessions on this connection, or no more links on this session."""
