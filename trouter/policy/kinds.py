"""What the policy judges: the kinds of requests, the reasons of denials, and the errors that denied peers get."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Final, NamedTuple

from trouter.core.refusals import LINK_DENIED
from trouter.wire.performatives import Error

__all__ = ["LINK_DENIED"]

RESOURCE: Final = "amqp:resource-limit-exceeded"
CONNECTION_DENIED: Final = Error(RESOURCE, "connection disallowed by local policy")
SESSION_DENIED: Final = Error(RESOURCE, "session disallowed by local policy")
TOO_MANY_LINKS: Final = Error(RESOURCE, "link disallowed by local policy")
MESSAGE_TOO_LARGE: Final = Error("amqp:connection:forced", "Message size exceeded")
#: For a connection that belongs to no tenant, in the words of Qpid Dispatch's policy.
TENANT_DENIED: Final = Error("amqp:unauthorized-access", "connection disallowed by local policy")
#: For a user that the listener does not allow.
USER_DENIED: Final = Error("amqp:unauthorized-access", "connection disallowed by the listener")
#: Denials of a kind that are reported one by one within a second; a peer may repeat them, but rarely needs to.
SINGLY: Final = 16
#: The same for denials that may come with every message or request; the log has them at debug level only.
EACH: Final = 1


class Reason(StrEnum):
    """Why a connection is denied; stable words for records and counters."""

    NO_VHOST = "no-vhost"
    NO_GROUP = "no-group"
    NO_CONNECTOR_GROUP = "no-connector-group"
    REMOTE_HOST = "remote-host"
    NO_TENANT = "no-tenant"
    BAD_PERMISSIONS = "bad-permissions"
    PLUGIN = "plugin"
    MAX_CONNECTIONS = "max-connections"
    MAX_CONNECTIONS_PER_USER = "max-connections-per-user"
    MAX_CONNECTIONS_PER_HOST = "max-connections-per-host"
    QUOTA = "quota"
    DECISION = "decision"


class MemberBy(Enum):
    """Why a user is in a group."""

    LISTED = "listed"
    EVERY_USER = "every user"
    UNKNOWN_USER = "allowUnknownUser"
    CONNECTOR = "connector"


class RequestKind(NamedTuple):
    """One kind of request: operation and reason for records, then the counters of denials in policy and vhost."""

    operation: str
    reason: str
    policy: tuple[str, ...] = ()
    vhost: str = ""
    #: Denials on one connection that are reported one by one within a second; of a user's ``recorder.OF_USER`` more.
    singly: int = SINGLY


class Judged(Enum):
    """The kinds of requests that are judged."""

    ACCEPT = RequestKind("accept", "max-connections", ("connections_denied", "total_denials"))
    OPEN = RequestKind("open", "connection", ("vhost_connections_denied",), "connections_denied")
    ORDER = RequestKind("open", "decision", ("vhost_connections_denied",), "connections_denied")
    TENANT = RequestKind("open", "tenant", ("vhost_connections_denied",))
    USER = RequestKind("open", "user", ("vhost_connections_denied",))
    CONNECTOR = RequestKind("open", "connector", ("vhost_connections_denied",))
    BEGIN = RequestKind("begin", "session", ("total_denials",), "session_denied")
    SENDER = RequestKind("attach", "sender", ("links_denied", "total_denials"), "sender_denied")
    RECEIVER = RequestKind("attach", "receiver", ("links_denied", "total_denials"), "receiver_denied")
    TARGET = RequestKind("send", "target", ("messages_denied",), singly=EACH)
    NO_TO = RequestKind("send", "no-address", ("messages_denied",), singly=EACH)
    USER_ID = RequestKind("send", "user-id", ("user_id_denied",), singly=EACH)
    TOO_LARGE = RequestKind(
        "send", "message-size", ("max_message_size_denied", "total_denials"), "max_message_size_denied"
    )
    DECISION = RequestKind("send", "decision", ("messages_denied",), singly=EACH)
    MANAGEMENT = RequestKind("manage", "management", ("management_denied",), singly=EACH)
