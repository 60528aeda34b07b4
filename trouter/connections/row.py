"""The row of one connection in management, in the order of Qpid Dispatch's columns (management.md 11)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from trouter.wire.types import Long, UInt

if TYPE_CHECKING:
    from .peer import Peer

CONNECTION_TYPE: Final = "org.apache.qpid.dispatch.connection"
#: The user of a connection without one, and the mechanism that gives none.
NO_USER: Final = "anonymous"
ANONYMOUS: Final = "ANONYMOUS"
_MAX_PROPERTIES: Final = 64


def row_of(peer: Peer, last_delivery_s: float | None, now_s: float) -> dict[str, object]:
    """Return the row; ``last_delivery_s`` is the time since the last delivery, None before the first."""
    remote, tls, tenant, lifetime = peer.engine.remote_open, peer.facts.tls, peer.tenant, peer.lifetime
    return {
        "name": peer.name,
        "identity": str(peer.number),
        "host": lifetime.remote,
        "role": peer.role,
        "protocol": "amqp",
        "dir": "out" if peer.outgoing else "in",
        "container": remote.container_id if remote else None,
        "sasl": peer.mechanism or None,
        "isAuthenticated": bool(peer.user) and peer.mechanism not in {"", ANONYMOUS},
        "user": peer.user or NO_USER,
        "isEncrypted": tls is not None,
        "sslProto": None if tls is None else tls.version,
        "sslCipher": None if tls is None else tls.cipher,
        "properties": shown_properties(remote.properties if remote else None),
        "sslSsf": Long(0 if tls is None else tls.bits),
        "tenant": None if tenant is None else f"{tenant.space}/",
        "type": CONNECTION_TYPE,
        "ssl": tls is not None,
        "opened": remote is not None,
        "active": peer.membership is None or peer.membership.is_active,
        "adminStatus": "deleted" if peer.closing else "enabled",
        "operStatus": "closing" if peer.closing else "up",
        "uptimeSeconds": UInt(int(now_s - (lifetime.opened_at_s or 0.0))),
        "lastDlvSeconds": None if last_delivery_s is None else UInt(int(last_delivery_s)),
        "enableProtocolTrace": peer.trace,
    }


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
