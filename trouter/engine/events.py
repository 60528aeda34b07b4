"""What a peer did, reported to the owner of the connection: the rare steps only.

Transfers, dispositions and flows go to a link's sink instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trouter.wire.performatives import Attach, Begin, Error, Open

    from .faults import PeerFault
    from .link_base import Link
    from .session import Session


@dataclass(frozen=True, slots=True)
class SaslMechanismsWanted:
    """The client asks how to authenticate; answer with ``offer``. Input stands still until then."""


@dataclass(frozen=True, slots=True)
class SaslInitReceived:
    """The client chose ``mechanism``; answer with ``challenge`` or ``finish``. Input stands still until then."""

    mechanism: str
    #: What it has to say, perhaps nothing; None if it waits for a challenge.
    response: bytes | None
    hostname: str | None


@dataclass(frozen=True, slots=True)
class SaslResponseReceived:
    """The client answered our challenge."""

    response: bytes


@dataclass(frozen=True, slots=True)
class SaslMechanismsOffered:
    """The server's mechanisms; answer with ``begin_sasl``."""

    mechanisms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SaslChallengeReceived:
    """The server asks; answer with ``respond``."""

    challenge: bytes


@dataclass(frozen=True, slots=True)
class SaslFinished:
    """The exchange is over; ``code`` 0 is success (part 5, 5.3.3.6). ``additional`` is the server's last word."""

    code: int
    additional: bytes | None = None


@dataclass(frozen=True, slots=True)
class ConnectionOpened:
    """The peer's open came."""

    open: Open


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The peer's close came, or our own after ``fault``; no more events follow."""

    error: Error | None
    fault: PeerFault | None = None


@dataclass(frozen=True, slots=True)
class SessionBegun:
    """The peer began a session, or answered our begin."""

    session: Session
    begin: Begin


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The session is gone, by the peer's end or by ours after ``fault``; its links went with it."""

    session: Session
    error: Error | None
    fault: PeerFault | None = None


@dataclass(frozen=True, slots=True)
class LinkAttached:
    """The peer attached a link (answer with ``accept`` or ``refuse``), or answered our attach."""

    link: Link
    attach: Attach


@dataclass(frozen=True, slots=True)
class LinkDetached:
    """The peer detached a link, and ours is still to be sent; or it answered ours (see ``Link.awaited``).

    With a ``fault`` it was the engine that detached the link, for what the peer did.
    """

    link: Link
    closed: bool
    error: Error | None
    fault: PeerFault | None = None


Event = (
    SaslMechanismsWanted
    | SaslInitReceived
    | SaslResponseReceived
    | SaslMechanismsOffered
    | SaslChallengeReceived
    | SaslFinished
    | ConnectionOpened
    | ConnectionClosed
    | SessionBegun
    | SessionEnded
    | LinkAttached
    | LinkDetached
)
