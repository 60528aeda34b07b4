"""An AMQP 1.0 client for trio: ``connect``, ``open_sender``, ``open_receiver``; `docs/client.md` is its manual."""

from trouter.engine.limits import EngineLimits
from trouter.wire.errors import DecodeError, EncodeError
from trouter.wire.message import BodyKind, Header, Message, Properties
from trouter.wire.performatives import (
    ACCEPTED,
    MODIFIED,
    REJECTED,
    RELEASED,
    Accepted,
    Error,
    Modified,
    Open,
    Received,
    Rejected,
    Released,
    Source,
    Target,
    TransactionalState,
)

from .connection import Connection, connect
from .delivery import Delivery
from .errors import (
    AuthenticationFailed,
    ClientError,
    ConnectionClosed,
    DeliveryAborted,
    LimitReached,
    LinkDetached,
    OutcomeUnknown,
    SessionEnded,
)
from .inlet import Inlet
from .link import ReceiverSettleMode, SenderSettleMode
from .receiver import Receiver
from .sasl import Anonymous, External, Plain, SaslMechanism, Scram
from .sender import Encoded, Outcome, Pipeline, Sender, Tracker
from .servers import Servers
from .session import Session

__all__ = [
    "ACCEPTED",
    "MODIFIED",
    "REJECTED",
    "RELEASED",
    "Accepted",
    "Anonymous",
    "AuthenticationFailed",
    "BodyKind",
    "ClientError",
    "Connection",
    "ConnectionClosed",
    "DecodeError",
    "Delivery",
    "DeliveryAborted",
    "EncodeError",
    "Encoded",
    "EngineLimits",
    "Error",
    "External",
    "Header",
    "Inlet",
    "LimitReached",
    "LinkDetached",
    "Message",
    "Modified",
    "Open",
    "Outcome",
    "OutcomeUnknown",
    "Pipeline",
    "Plain",
    "Properties",
    "Received",
    "Receiver",
    "ReceiverSettleMode",
    "Rejected",
    "Released",
    "SaslMechanism",
    "Scram",
    "Sender",
    "SenderSettleMode",
    "Servers",
    "Session",
    "SessionEnded",
    "Source",
    "Target",
    "Tracker",
    "TransactionalState",
    "connect",
]
