"""The HTTP settings of a listener, and the limits that have no attribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from trouter.config import ListenerEntity
from trouter.config.files import is_absent_console
from trouter.config.hosts import HostRange

from .names import KnownNames, known_names

#: Bytes of the line and headers of a request.
MAX_HEAD_BYTES: Final = 16384
#: Bytes of a body, which no page reads.
MAX_BODY_BYTES: Final = 65536
#: Seconds for a request to arrive, unless the listener sets its own time.
REQUEST_S: Final = 10.0
#: Seconds that a connection may wait for its next request.
IDLE_S: Final = 75.0
#: Seconds for a client to read a whole response, and the bytes for which it has one second more.
WRITE_S: Final = 30.0
READ_BYTES_PER_S: Final = 16384
PIECE_BYTES: Final = 65536
#: Requests a second of one connection, and WebSocket frames without content. Further ones wait: they cost the router
#: processor time before the client has logged in.
TURNS_PER_S: Final = 50
#: Seconds for the peer to read the last response or WebSocket message.
LINGER_S: Final = 2.0
#: Connections of one listener that are no WebSockets; a further one ends one of the host that has most of them.
MAX_PLAIN: Final = 256
#: Connections that may be no WebSockets if WebSockets are `maxConnections`, and which are then beyond it; as many as
#: that, if it is less.
PLAIN_BESIDE: Final = 64
#: Probes of one listener that are answered besides; a further one is like any request.
MAX_PROBES: Final = 64
#: Bytes of one WebSocket message; it is passed on as it arrives, so it uses no memory.
MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
#: Seconds that /healthz waits for the core.
HEALTH_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The settings of the connections of one listener."""

    healthz: bool
    metrics: bool
    websockets: bool
    #: The tenant whose figures /metrics shows; empty for the whole router.
    tenant: str
    #: The folder of files to serve; None for none.
    root: Path | None
    #: The router's own web console is served, because no folder is configured.
    console: bool
    #: Lower-case origins besides the listener's own that may open WebSockets; ``*`` for all.
    origins: tuple[str, ...]
    request_s: float
    #: The names under which requests without TLS may address the listener.
    names: KnownNames
    #: Clients without TLS are refused.
    requires_tls: bool = False
    #: The hosts that may read /metrics, and the token for it; empty for any host, and for no token.
    metrics_hosts: tuple[HostRange, ...] = ()
    metrics_token: bytes = field(default=b"", repr=False)
    #: The connections on which a token may be sent in clear: `no`, `loopback` or `yes`.
    clear_tokens: str = "no"


def http_settings(entity: ListenerEntity) -> HttpSettings:
    """Return the settings of ``entity``; on a multi-tenant listener /metrics shows at most one tenant's figures."""
    root = None if is_absent_console(entity.http_root_dir) else entity.http_root_dir
    return HttpSettings(
        healthz=entity.healthz,
        metrics=entity.metrics and not (entity.multi_tenant and not entity.policy_vhost),
        tenant=(entity.policy_vhost or "") if entity.multi_tenant else "",
        websockets=entity.websockets,
        root=Path(root) if root else None,
        console=entity.websockets and not root,  # it needs AMQP over WebSockets
        origins=entity.web_socket_origins,
        names=known_names(entity),
        request_s=float(entity.initial_handshake_timeout_seconds or REQUEST_S),
        requires_tls=entity.require_ssl or entity.require_encryption,
        metrics_hosts=entity.metrics_hosts,
        metrics_token=b"" if entity.metrics_token is None else entity.metrics_token.reveal().encode(),
        clear_tokens=_clear_tokens(entity),
    )


def _clear_tokens(entity: ListenerEntity) -> str:
    """Return where a token may be sent in clear: beyond this machine only if the file allows it for passwords."""
    allowed = entity.allow_insecure_plain
    return "loopback" if allowed == "yes" and "allow_insecure_plain" not in entity.written else allowed
