"""One connection for other parts: management, the state dump, the records, the memory watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trouter.core.containers import Container
from trouter.core.egress import Egress
from trouter.core.ingress import Ingress
from trouter.core.tenants import Tenant
from trouter.engine.connection import Connection
from trouter.hooks import PeerFacts
from trouter.logs.frame_log import FrameLog
from trouter.tls.secure import SecurityLayer
from trouter.wire.performatives import Error
from trouter.wire.types import Long, UInt

from .lifetime import Lifetime
from .membership import Membership
from .opening import OpenAdmission
from .peer_login import PeerLogin
from .registry import Connections, shown_properties
from .sessions import Sessions
from .shared import PeerSettings
from .states import PeerState, PeerStep

CONNECTION_TYPE: Final = "org.apache.qpid.dispatch.connection"
#: The user of a connection without one, and the mechanism that gives none.
NO_USER: Final = "anonymous"
ANONYMOUS: Final = "ANONYMOUS"


class ListedConnection:
    """One connection in the list of ``registry.Connections``, from its open until its end."""

    __slots__ = (
        "_admission",
        "_connections",
        "_frames",
        "_lifetime",
        "_login",
        "_membership",
        "_sessions",
        "_settings",
        "engine",
        "facts",
        "security",
    )

    def __init__(
        self,
        facts: PeerFacts,
        settings: PeerSettings,
        security: SecurityLayer,
        engine: Connection,
        lifetime: Lifetime,
        login: PeerLogin,
        admission: OpenAdmission,
        sessions: Sessions,
        membership: Membership,
        frames: FrameLog,
        connections: Connections,
    ) -> None:
        self.facts = facts
        #: The security layer of the connection.
        self.security = security
        #: The engine's connection.
        self.engine = engine
        self._settings = settings
        self._lifetime = lifetime
        self._login = login
        self._admission = admission
        self._sessions = sessions
        self._membership = membership
        self._frames = frames
        self._connections = connections

    # --- facts

    @property
    def number(self) -> int:
        return self.facts.connection_id

    @property
    def name(self) -> str:
        """Name in management."""
        return f"connection/{self._lifetime.remote}"

    @property
    def role(self) -> str:
        return self._settings.role

    @property
    def listener(self) -> str:
        return self._settings.name

    @property
    def outgoing(self) -> bool:
        """True if the router dialled."""
        return self._login.outgoing

    @property
    def user(self) -> str:
        return self._login.user

    @property
    def mechanism(self) -> str:
        return self._login.mechanism

    @property
    def failure(self) -> str:
        """Reason of the failure, empty for none."""
        return self._lifetime.failure

    @property
    def closing(self) -> bool:
        """True if an operator or the process ended it."""
        return self._lifetime.state is PeerState.DELETED

    @property
    def tenant(self) -> Tenant | None:
        return self._admission.tenant

    @property
    def trace(self) -> bool:
        """True if this connection's frames are logged; to set it outweighs the level of the module PROTOCOL."""
        return self._frames.on

    @trace.setter
    def trace(self, wanted: bool) -> None:
        self._frames.decide(wanted, midway=self._lifetime.opened)

    def links(self) -> Iterator[int]:
        """Yield the identities of its links."""
        for session in self.engine.sessions():
            for link in session.all_links():
                if isinstance(link.sink, Ingress | Egress):
                    yield link.sink.identity

    def about(self) -> dict[str, Any]:
        """Return the fields common to all records about the connection."""
        remote, policy, tenant = self.engine.remote_open, self._admission.policy, self._admission.tenant
        vhost = remote.hostname if remote is not None else None
        if policy is not None:
            vhost = policy.admission.vhost or vhost
        return {
            "conn": self.number,
            "vhost": vhost or None,
            "user": self.user or None,
            "host": self.facts.remote_host,
            "tenant": None if tenant is None else tenant.name,
        }

    def row(self, now_s: float) -> dict[str, object]:
        """Return the row in management, in the order of Qpid Dispatch's columns (management.md 11)."""
        remote, tls, tenant = self.engine.remote_open, self.facts.tls, self.tenant
        last_delivery_s = self._connections.last_delivery_s(self.number, now_s)
        return {
            "name": self.name,
            "identity": str(self.number),
            "host": self._lifetime.remote,
            "role": self.role,
            "protocol": "amqp",
            "dir": "out" if self.outgoing else "in",
            "container": remote.container_id if remote else None,
            "sasl": self.mechanism or None,
            "isAuthenticated": bool(self.user) and self.mechanism not in {"", ANONYMOUS},
            "user": self.user or NO_USER,
            "isEncrypted": tls is not None,
            "sslProto": None if tls is None else tls.version,
            "sslCipher": None if tls is None else tls.cipher,
            "properties": shown_properties(remote.properties if remote else None),
            "sslSsf": Long(0 if tls is None else tls.bits),
            "tenant": None if tenant is None else f"{tenant.space}/",
            "type": CONNECTION_TYPE,
            "ssl": tls is not None,
            "opened": remote is not None,
            "active": self._membership.is_active,
            "adminStatus": "deleted" if self.closing else "enabled",
            "operStatus": "closing" if self.closing else "up",
            "uptimeSeconds": UInt(int(now_s - (self._lifetime.opened_at_s or 0.0))),
            "lastDlvSeconds": None if last_delivery_s is None else UInt(int(last_delivery_s)),
            "enableProtocolTrace": self.trace,
        }

    # --- orders

    def follow_log(self) -> None:
        """Log frames from now on if the level of the module says so, unless an operator has set ``trace``."""
        self._frames.follow(midway=self._lifetime.opened)

    def as_container(self) -> Container:
        """Return the connection as a container, on which the router attaches links of its own."""
        return self._sessions.as_container(self._settings.given_name)

    def suspend_credit(self, suspended: bool) -> None:
        """Withhold the peer's credit, or grant again what is owed."""
        self._sessions.suspend_credit(suspended)

    def check_standing(self) -> None:
        """Close the connection if its peer's credentials are no longer valid."""
        if not self._login.is_good() and not self.closing and not self.engine.finished:
            self._lifetime.expire()

    def force_close(self, error: Error) -> None:
        """Close the connection with ``error`` and remove it from the list; the peer has ``LINGER_S`` to answer."""
        self._connections.remove(self.number)
        self._lifetime.end(error, PeerStep.DELETE)

    def cut(self, why: str) -> None:
        """Drop the connection without a close."""
        self._lifetime.cut(why)
