"""The faults of a peer, one row each (AMQP 1.0 part 2, 2.8.15-2.8.18).

A row has the condition, the scope that ends (link, session, connection) and the description's text. The log line, the
counter and the manual's table come from the same row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from trouter._text import escape_unprintable


class Scope(IntEnum):
    """What a fault ends: a link by detach, a session by end, a connection by close."""

    LINK = 0
    SESSION = 1
    CONNECTION = 2


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One kind of fault; ``text`` is a format string over the fault's details."""

    condition: str
    scope: Scope
    text: str


class Fault(Enum):
    """The faults of a peer that the engine recognises."""

    FRAMING = FaultRow("amqp:connection:framing-error", Scope.CONNECTION, "{detail}")
    #: A peer that speaks TLS here understands no AMQP answer: the connection ends without one.
    TLS_NOT_CONFIGURED = FaultRow(
        "amqp:connection:framing-error", Scope.CONNECTION, "tls-not-configured: TLS where no sslProfile is configured"
    )
    #: The peer skipped TLS or authentication, which it must use.
    FORBIDDEN = FaultRow("amqp:connection:policy-error", Scope.CONNECTION, "{detail}")
    DECODE = FaultRow("amqp:decode-error", Scope.CONNECTION, "{detail}")
    UNKNOWN_PERFORMATIVE = FaultRow(
        "amqp:not-implemented", Scope.CONNECTION, "no performative has the descriptor {code}"
    )
    FRAME_TYPE = FaultRow(
        "amqp:connection:framing-error", Scope.CONNECTION, "frame type {frame_type} where {due} frames are due"
    )
    FRAME_SIZE_TOO_SMALL = FaultRow(
        "amqp:frame-size-too-small", Scope.CONNECTION, "our {performative} needs a frame of more than {size} bytes"
    )
    ILLEGAL_CONNECTION_STEP = FaultRow("amqp:illegal-state", Scope.CONNECTION, "{detail}")
    NOT_OPEN = FaultRow("amqp:illegal-state", Scope.CONNECTION, "{performative} before open")
    CONTAINER_ID = FaultRow("amqp:invalid-field", Scope.CONNECTION, "open carries no container-id")
    CONTAINER_ID_SIZE = FaultRow(
        "amqp:invalid-field", Scope.CONNECTION, "open carries a container-id of more than {limit} bytes"
    )
    MAX_FRAME_SIZE = FaultRow(
        "amqp:invalid-field", Scope.CONNECTION, "max-frame-size {size} is below the minimum of 512"
    )
    CHANNEL_MAX = FaultRow(
        "amqp:connection:framing-error",
        Scope.CONNECTION,
        "remote channel {channel} is above negotiated channel_max {channel_max}.",
    )
    CHANNEL_IN_USE = FaultRow("amqp:not-allowed", Scope.CONNECTION, "begin on channel {channel}, which has a session")
    REMOTE_CHANNEL = FaultRow(
        "amqp:invalid-field", Scope.CONNECTION, "begin answers channel {channel}, where no begin is waiting"
    )
    CHANNEL_UNMAPPED = FaultRow(
        "amqp:not-allowed", Scope.CONNECTION, "{performative} on channel {channel}, which has no session"
    )
    IDLE_TIMEOUT = FaultRow("amqp:resource-limit-exceeded", Scope.CONNECTION, "local-idle-timeout expired")
    LINK_NAME_IN_USE = FaultRow("amqp:invalid-field", Scope.CONNECTION, "link name already attached: {name}")
    HANDLE_MAX = FaultRow(
        "amqp:connection:framing-error", Scope.CONNECTION, "handle {handle} exceeds handle-max {handle_max}"
    )
    HANDLE_IN_USE = FaultRow(
        "amqp:session:handle-in-use", Scope.SESSION, "attach of {name} on handle {handle}, which has a link"
    )
    UNATTACHED_HANDLE = FaultRow(
        "amqp:session:unattached-handle", Scope.SESSION, "{performative} on handle {handle}, which has no link"
    )
    WINDOW_VIOLATION = FaultRow("amqp:session:window-violation", Scope.SESSION, "transfer beyond the incoming window")
    ERRANT_LINK = FaultRow(
        "amqp:session:errant-link", Scope.SESSION, "transfer on {name}, a link which the peer receives on"
    )
    DELIVERY_ID = FaultRow("amqp:invalid-field", Scope.SESSION, "{detail}")
    DISPOSITION_RANGE = FaultRow(
        "amqp:invalid-field", Scope.SESSION, "disposition of {first} to {last}, which runs backwards"
    )
    LINK_NAME_SIZE = FaultRow(
        "amqp:invalid-field", Scope.SESSION, "attach of a link whose name has more than {limit} bytes"
    )
    LINK_COUNT = FaultRow("amqp:resource-limit-exceeded", Scope.SESSION, "more than {limit} links on one connection")
    MEMORY = FaultRow(
        "amqp:resource-limit-exceeded", Scope.SESSION, "the router has reached its limit of memory for messages"
    )
    BUFFERED = FaultRow(
        "amqp:resource-limit-exceeded", Scope.SESSION, "the connection holds more than {limit} bytes of messages"
    )
    TRANSFER_LIMIT = FaultRow("amqp:link:transfer-limit-exceeded", Scope.LINK, "transfer without credit")
    MESSAGE_SIZE = FaultRow("amqp:link:message-size-exceeded", Scope.LINK, "Message size exceeded")
    DELIVERY_FRAMES = FaultRow(
        "amqp:resource-limit-exceeded", Scope.LINK, "a delivery of {payload_bytes} bytes in more than {frames} frames"
    )
    DELIVERY_TAG = FaultRow(
        "amqp:invalid-field", Scope.LINK, "the first transfer of a delivery carries no delivery-tag"
    )
    TRANSFER_STATE = FaultRow(
        "amqp:resource-limit-exceeded",
        Scope.LINK,
        "delivery state of {size} bytes on a transfer; at most {limit} are accepted",
    )


#: A description repeats what a peer wrote; this many bytes fit into any frame and a log line.
MAX_TEXT_BYTES: Final = 320


class PeerFault(Exception):
    """A fault of the peer, which the answer names: ``fault`` is the row, ``text`` the filled-in description."""

    def __init__(self, fault: Fault, **details: object) -> None:
        self.fault: Final = fault
        plain = {name: int(value) if isinstance(value, int) else value for name, value in details.items()}
        self.text: Final = _fit(fault.value.text.format(**plain))
        super().__init__(f"{fault.value.condition}: {self.text}")

    @property
    def condition(self) -> str:
        """Return the AMQP error condition of the row."""
        return self.fault.value.condition

    @property
    def scope(self) -> Scope:
        """Return what the fault ends."""
        return self.fault.value.scope


def _fit(text: str) -> str:
    """Return ``text`` with unprintable characters escaped, cut to ``MAX_TEXT_BYTES`` of UTF-8."""
    shown = escape_unprintable(text[:MAX_TEXT_BYTES])
    return shown.encode()[:MAX_TEXT_BYTES].decode(errors="ignore")


class Misuse(Exception):
    """A call that the state of the engine forbids: a bug of ours, never sent to the peer."""
