"""A connection as every other room sees it: its facts, the orders that it takes, and the notices that it wants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from trouter.engine.ports import ConnectionOwner

if TYPE_CHECKING:
    from trouter.core.containers import Container, DetachReason
    from trouter.core.tenants import Tenant
    from trouter.engine.connection import Connection
    from trouter.engine.link_base import Link
    from trouter.engine.ports import LinkPort
    from trouter.engine.session import Session
    from trouter.hooks import PeerFacts
    from trouter.wire.performatives import Error


@dataclass(frozen=True, slots=True)
class PeerCertificates:
    """The certificates that a peer proved to have, and what verified them."""

    #: The verified chain in DER, the leaf first; empty for a peer without a certificate.
    chain: tuple[bytes, ...] = field(default=(), repr=False)
    #: The sslProfile, its generation, and the listener's own file of authorities.
    profile: str = ""
    ordinal: int = 0
    trusted_file: str = ""


NO_CERTIFICATES: Final = PeerCertificates()


class LoginView(Protocol):
    """The login of one connection, as other rooms see it."""

    @property
    def outgoing(self) -> bool:
        """True if the router dialled: then it authenticates, else the peer does."""

    @property
    def user(self) -> str:
        """The user that the login proved; empty before the login and without one."""

    @property
    def mechanism(self) -> str:
        """The SASL mechanism; empty without one."""

    def is_good(self) -> bool:
        """Return whether the credentials are still valid."""


class LifetimeView(Protocol):
    """The lifetime of one connection, as other rooms see it."""

    @property
    def remote(self) -> str:
        """The peer's host and port."""

    @property
    def name(self) -> str:
        """The connection's name in management, from the peer's host and port."""

    @property
    def opened_at_s(self) -> float | None:
        """When the opens were exchanged, by the clock of trio; None before."""

    @property
    def failure(self) -> str:
        """Why the connection failed, empty if it did not."""

    @property
    def closing(self) -> bool:
        """True if an operator or the process ended it."""


class ConnectionView(ConnectionOwner, Protocol):
    """One connection; ``connections/peer.py`` has it. Its engine refers to it as ``owner`` until it has ended."""

    #: The frames of this connection are logged; to set it outweighs the level of the module PROTOCOL.
    trace: bool

    # --- facts

    @property
    def number(self) -> int:
        """The number in ``[C<n>]``."""

    @property
    def is_active(self) -> bool:
        """False for a standby uplink of an edge router."""

    @property
    def facts(self) -> PeerFacts:
        """The peer's address, its TLS, and the listener or connector of the connection."""

    @property
    def engine(self) -> Connection:
        """The engine's connection, with its sessions, links and messages."""

    @property
    def login(self) -> LoginView:
        """The login: the direction, and the user."""

    @property
    def lifetime(self) -> LifetimeView:
        """The lifetime: whether it is open, ends, or has failed."""

    @property
    def certificates(self) -> PeerCertificates:
        """The peer's certificates."""

    @property
    def tenant(self) -> Tenant | None:
        """The tenant, None for none."""

    @property
    def leaves_in_drain(self) -> bool:
        """True if it is closed when the router drains."""

    def count_unsettled(self) -> int:
        """Return the number of its deliveries that are unsettled, or wait to be sent to the peer."""

    def describe_connection(self) -> dict[str, Any]:
        """Return the fields common to all records about the connection."""

    def build_management_row(self, now_s: float) -> dict[str, object]:
        """Return the attributes of the type connection, as values of AMQP types."""

    def received_bytes(self) -> int:
        """Return the bytes received so far, within TLS."""

    # --- orders

    def force_close(self, error: Error) -> None:
        """Close it with ``error`` by order of an operator or the process: it is no longer listed."""

    def close_at_once(self, error: Error) -> None:
        """Do as ``force_close``, and write the close now: the peer gets no frame that the ends of others cause."""

    def turn_out(self, error: Error) -> None:
        """Close it with ``error``."""

    def abort_connection(self, why: str) -> None:
        """Drop it without a close."""

    def follow_policy(self, vhost: str) -> None:
        """Apply the changed policy, which puts it into ``vhost``, also to its links."""

    def follow_log(self) -> None:
        """Apply the changed log levels."""

    def suspend_credit(self, suspended: bool) -> None:
        """Withhold the peer's credit, or grant again what is owed."""

    def stop_messages(self) -> None:
        """Give the peer no new messages and no credit, so that what is under way can end before the connection does."""

    def end_login(self) -> None:
        """Do as ``close_at_once``, because the peer's credentials are no longer valid."""

    # --- links of the router's own

    def as_container(self) -> Container:
        """Return it as a container, on which the router attaches links of its own."""

    def begin_own_sessions(self, count: int) -> list[Session]:
        """Begin ``count`` sessions of the router's and return them; Misuse if the peer allows no more."""

    # --- notices

    def note_in_use(self) -> None:
        """Note that the other router serves it, or that it is a standby uplink."""

    def link_ended(self, link: Link, reason: DetachReason) -> None:
        """Note that the router ends a link of it by itself."""


def owner_of(link: LinkPort) -> ConnectionView | None:
    """Return the connection of a link of this router; None once it has ended."""
    return cast("ConnectionView | None", link.session.connection.owner)  # every peer is a view
