"""The columns of ``connection``: `stat --connections` shows those with a head."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from trouter.mechanisms import ANONYMOUS
from trouter.wire.types import Long, UInt

from .column import Column, Form, Head

if TYPE_CHECKING:
    from trouter.core.identities import Identities
    from trouter.net.view import ConnectionView

TYPE: Final = "org.apache.qpid.dispatch.connection"
#: The user of a connection without one.
NO_USER: Final = "anonymous"
_MAX_PROPERTIES: Final = 64


@dataclass(frozen=True, slots=True)
class Moment:
    """A connection at one moment; ``last_delivery_s`` is the time since its last delivery, None before the first."""

    connection: ConnectionView
    now_s: float
    last_delivery_s: float | None
    identities: Identities


def shown_properties(properties: Any) -> dict[str, object]:
    """Return the string and integer properties of a peer's open, at most ``_MAX_PROPERTIES``."""
    if not isinstance(properties, dict):
        return {}
    shown = (
        (str(key), value)
        for key, value in properties.items()
        if isinstance(value, str | int) and not isinstance(value, bool)
    )
    return dict(islice(shown, _MAX_PROPERTIES))


def _remote(at: Moment, name: str) -> Any:
    """Return a field of the peer's open; None before it."""
    remote = at.connection.engine.remote_open
    return None if remote is None else getattr(remote, name)


def _is_authenticated(_: None, at: Moment) -> bool:
    return bool(at.connection.login.user) and at.connection.login.mechanism not in {"", ANONYMOUS}


def _tenant(_: None, at: Moment) -> str | None:
    tenant = at.connection.tenant
    return None if tenant is None else f"{tenant.space}/"


def _tenant_identity(_: None, at: Moment) -> str | None:
    return None if at.connection.tenant is None else str(at.identities.connections.show(at.connection.number))


#: Those of Qpid Dispatch first, in the order of its schema.
CONNECTION: Final[tuple[Column[None, Moment], ...]] = (
    Column("name", str, "", lambda _, at: at.connection.lifetime.name),
    Column("identity", str, "", lambda _, at: str(at.connection.number), head=Head("id", needs=False)),
    Column("type", str, "", lambda _, __: TYPE),
    Column(
        "adminStatus",
        str,
        "Administrative state of the connection; setting it to `deleted` closes the connection.",
        lambda _, at: "deleted" if at.connection.lifetime.closing else "enabled",
        values=("enabled", "deleted"),
        default="enabled",
        update=True,
    ),
    Column(
        "operStatus",
        str,
        "Operational state of the connection.",
        lambda _, at: "closing" if at.connection.lifetime.closing else "up",
        values=("up", "closing"),
    ),
    Column("protocol", str, "Protocol of the connection.", lambda _, __: "amqp", head=Head("proto", needs=False)),
    Column(
        "container",
        str,
        "Container id of the peer.",
        lambda _, at: _remote(at, "container_id"),
        optional=True,
        head=Head("container", needs=False),
    ),
    Column(
        "opened",
        bool,
        "Whether the peer has sent its open.",
        lambda _, at: at.connection.engine.remote_open is not None,
    ),
    Column(
        "host",
        str,
        "Address and port of the peer.",
        lambda _, at: at.connection.lifetime.remote,
        head=Head("host", needs=False),
    ),
    Column(
        "dir",
        str,
        "Direction: `in` if the peer connected, `out` if the router did.",
        lambda _, at: "out" if at.connection.login.outgoing else "in",
        values=("in", "out"),
        head=Head("dir", needs=False),
    ),
    Column(
        "role",
        str,
        "Role of the listener or connector.",
        lambda _, at: at.connection.facts.listener.role,
        head=Head("role", needs=False),
    ),
    Column("isAuthenticated", bool, "Whether the peer is authenticated.", _is_authenticated),
    Column(
        "isEncrypted", bool, "Whether the connection is encrypted.", lambda _, at: at.connection.facts.tls is not None
    ),
    Column(
        "enableProtocolTrace",
        bool,
        "Whether the router logs the frames of the connection.",
        lambda _, at: at.connection.trace,
        default=False,
        update=True,
    ),
    Column(
        "sasl",
        str,
        "SASL mechanism with which the peer authenticated.",
        lambda _, at: at.connection.login.mechanism or None,
        optional=True,
    ),
    Column("user", str, "User of the connection.", lambda _, at: at.connection.login.user or NO_USER),
    Column("ssl", bool, "Whether the connection uses TLS.", lambda _, at: at.connection.facts.tls is not None),
    Column(
        "sslProto",
        str,
        "Version of TLS.",
        lambda _, at: tls.version if (tls := at.connection.facts.tls) else None,
        optional=True,
    ),
    Column(
        "sslCipher",
        str,
        "TLS cipher.",
        lambda _, at: tls.cipher if (tls := at.connection.facts.tls) else None,
        optional=True,
    ),
    Column(
        "sslSsf",
        Long,
        "Strength of the cipher, in bits.",
        lambda _, at: tls.bits if (tls := at.connection.facts.tls) else 0,
        unit="bits",
    ),
    Column("tenant", str, "Tenant to whose addresses the connection is restricted.", _tenant, optional=True),
    Column(
        "uptimeSeconds",
        UInt,
        "Seconds since the connection was opened.",
        lambda _, at: at.now_s - (at.connection.lifetime.opened_at_s or 0.0),
        unit="seconds",
        graph=True,
        head=Head("uptime", Form.SPAN),
    ),
    Column(
        "properties",
        dict,
        "Properties from the open of the peer.",
        lambda _, at: shown_properties(_remote(at, "properties")),
    ),
    Column(
        "lastDlvSeconds",
        UInt,
        "Seconds since the last delivery on the connection.",
        lambda _, at: at.last_delivery_s,
        unit="seconds",
        graph=True,
        optional=True,
        head=Head("last dlv", Form.SPAN),
    ),
    Column(
        "active",
        bool,
        "False for a standby uplink of an edge router, else true.",
        lambda _, at: at.connection.is_active,
        extra=True,
    ),
    Column(
        "tenantIdentity",
        str,
        "Identity of the connection as its tenant sees it, also in `qd.conn-id` of the router's open.",
        _tenant_identity,
        extra=True,
        optional=True,
    ),
)
