"""What a listener's attributes mean to HTTP, and the limits that have no attribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from trouter.config import ListenerEntity
from trouter.config.files import is_absent_console
from trouter.config.hosts import HostRange

#: The line and headers of a request.
MAX_HEAD_BYTES: Final = 16384
#: A body, which no page reads.
MAX_BODY_BYTES: Final = 65536
#: How long a request may take to come in where the listener sets no time of its own.
REQUEST_S: Final = 10.0
#: How long a connection may wait for its next request.
IDLE_S: Final = 75.0
#: How long a client may take to read one piece of an answer.
WRITE_S: Final = 30.0
PIECE_BYTES: Final = 65536
#: After the last answer, or the last WebSocket message: how long to wait for the other end to have read it.
LINGER_S: Final = 2.0
#: Connections of one listener that are no WebSockets; beyond it the one that waits longest gives way.
MAX_PLAIN: Final = 256
#: One WebSocket message. It is passed on as it comes in, so this is no memory.
MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
#: How long /healthz waits for the core.
HEALTH_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """What the connections of one listener are served."""

    healthz: bool
    metrics: bool
    websockets: bool
    #: Whose figures /metrics shows; empty for those of the whole router.
    tenant: str
    #: The folder of files to serve; None for none.
    root: Path | None
    #: Without such a folder: the router's own web console is served.
    console: bool
    #: Lower-case origins besides the listener's own that may open WebSockets; ``*`` stands for all.
    origins: tuple[str, ...]
    request_s: float
    #: Clients without TLS are refused.
    requires_tls: bool = False
    #: From where alone /metrics may be read, and for which token; empty for anywhere, and for none.
    metrics_hosts: tuple[HostRange, ...] = ()
    metrics_token: bytes = field(default=b"", repr=False)
    #: Where a token may pass in clear: `no`, `loopback` or `yes`.
    clear_tokens: str = "no"


def http_settings(entity: ListenerEntity) -> HttpSettings:
    """Return the settings of ``entity``. Where tenants are kept apart, a client sees only its own tenant's figures."""
    root = None if is_absent_console(entity.http_root_dir) else entity.http_root_dir
    return HttpSettings(
        healthz=entity.healthz,
        metrics=entity.metrics and not (entity.multi_tenant and not entity.policy_vhost),
        tenant=(entity.policy_vhost or "") if entity.multi_tenant else "",
        websockets=entity.websockets,
        root=Path(root) if root else None,
        console=entity.websockets and not root,  # it is of no use where it cannot speak AMQP
        origins=entity.web_socket_origins,
        request_s=float(entity.initial_handshake_timeout_seconds or REQUEST_S),
        requires_tls=entity.require_ssl or entity.require_encryption,
        metrics_hosts=entity.metrics_hosts,
        metrics_token=b"" if entity.metrics_token is None else entity.metrics_token.reveal().encode(),
        clear_tokens=_clear_tokens(entity),
    )


def _clear_tokens(entity: ListenerEntity) -> str:
    """Return where a token may pass in clear: beyond this machine only where the file says it of passwords."""
    allowed = entity.allow_insecure_plain
    return "loopback" if allowed == "yes" and "allow_insecure_plain" not in entity.written else allowed
