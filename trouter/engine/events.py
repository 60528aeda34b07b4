"""What a peer did, reported to the holder of the connection: the rare steps only.

Transfers, dispositions and flows go to a link's sink instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .ports import Event

if TYPE_CHECKING:
    from trouter.wire.performatives import Attach, Begin, Error, Open

    from .faults import PeerFault
    from .link_base import Link
    from .session import Session


@dataclass(frozen=True, slots=True)
class SaslMechanismsWanted(Event):
    """The client waits for mechanisms; answer with ``offer``. Input waits until then."""


@dataclass(frozen=True, slots=True)
class SaslInitReceived(Event):
    """The client chose ``mechanism``; answer with ``challenge`` or ``finish``. Input waits until then."""

    mechanism: str
    #: The initial response, perhaps empty; None if the client waits for a challenge.
    response: bytes | None
    hostname: str | None


@dataclass(frozen=True, slots=True)
class SaslResponseReceived(Event):
    """The client answered our challenge."""

    response: bytes


@dataclass(frozen=True, slots=True)
class SaslMechanismsOffered(Event):
    """The server's mechanisms; answer with ``begin_sasl``."""

    mechanisms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SaslChallengeReceived(Event):
    """The server sent a challenge; answer with ``respond``."""

    challenge: bytes


@dataclass(frozen=True, slots=True)
class SaslFinished(Event):
    """The exchange is over; ``code`` 0 is success (part 5, 5.3.3.6). ``additional`` is the outcome's data."""

    code: int
    additional: bytes | None = None


@dataclass(frozen=True, slots=True)
class ConnectionOpened(Event):
    """The peer's open came."""

    open: Open


@dataclass(frozen=True, slots=True)
class ConnectionClosed(Event):
    """The peer's close came, or our own after ``fault``; no more events follow."""

    error: Error | None
    fault: PeerFault | None = None


@dataclass(frozen=True, slots=True)
class SessionBegun(Event):
    """The peer began a session, or answered our begin."""

    session: Session
    begin: Begin


@dataclass(frozen=True, slots=True)
class SessionEnded(Event):
    """The session is over, by the peer's end or by ours after ``fault``; its links are over too."""

    session: Session
    error: Error | None
    fault: PeerFault | None = None


@dataclass(frozen=True, slots=True)
class LinkAttached(Event):
    """The peer attached a link (answer with ``accept`` or ``refuse``), or answered our attach."""

    link: Link
    attach: Attach


@dataclass(frozen=True, slots=True)
class LinkDetached(Event):
    """The peer detached a link and our detach is due, or the peer answered ours (see ``Link.awaited``).

    With a ``fault`` the engine detached the link because of what the peer did.
    """

    link: Link
    closed: bool
    error: Error | None
    fault: PeerFault | None = None


__all__ = [
    "ConnectionClosed",
    "ConnectionOpened",
    "Event",
    "LinkAttached",
    "LinkDetached",
    "SaslChallengeReceived",
    "SaslFinished",
    "SaslInitReceived",
    "SaslMechanismsOffered",
    "SaslMechanismsWanted",
    "SaslResponseReceived",
    "SessionBegun",
    "SessionEnded",
]
