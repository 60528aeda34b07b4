"""The columns of what the policy allowed and denied, of failed logins, of alarms, and of decisions in force.

`stat --vhoststats` shows those of ``vhostStats`` with a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .column import Column, Head, Merge


@dataclass(slots=True)
class VhostCounts:
    """What a vhost allowed and denied since the start."""

    connections_approved: int = 0
    connections_denied: int = 0
    session_denied: int = 0
    sender_denied: int = 0
    receiver_denied: int = 0
    max_message_size_denied: int = 0
    quota_alarms: int = 0


class VhostFacts(NamedTuple):
    """A vhost at one moment: its counts, its open connections, and its active quota alarms."""

    hostname: str
    counts: VhostCounts
    connections: int
    by_user: Mapping[str, Sequence[str]]
    by_host: Mapping[str, Sequence[str]]
    alarms: Sequence[str]


class LockoutFacts(NamedTuple):
    """The failed logins of a user at a place, or of all users there if ``user`` is None."""

    place: str
    user: str | None
    failures: int
    wait_s: float
    locked_s: float


class DecisionFacts(NamedTuple):
    """A decision in force, and the seconds until it ends. All texts are safe to show; some may be empty."""

    id: str
    action: str
    subject: str
    vhost: str
    #: Messages a second; None for a decision without a rate.
    rate: int | None
    reason: str
    evidence: Sequence[int]
    decided_by: str
    left_s: float


class DenialFacts(NamedTuple):
    """A denial, how often it happened, and when it last did. All texts are safe to show; some may be empty."""

    operation: str
    reason: str
    user: str
    host: str
    vhost: str
    rule: str
    about: str
    times: int
    at_ms: int


class AlarmFacts(NamedTuple):
    """An alarm, how often it was raised or cleared so, and when it last was. Some texts may be empty."""

    name: str
    severity: str
    subject: str
    state: str
    value: str
    limit: str
    times: int
    at_ms: int


def _counted(
    name: str,
    text: str,
    read: Callable[[VhostCounts], int],
    unit: str,
    *,
    head: Head | None = None,
    extra: bool = False,
) -> Column[None, VhostFacts]:
    """Return a column with a count of a vhost."""
    return Column(name, int, text, lambda _, vhost: read(vhost.counts), unit=unit, head=head, graph=True, extra=extra)


def _denied(name: str, what: str, read: Callable[[VhostCounts], int]) -> Column[None, VhostFacts]:
    """Return a column with the number of ``what`` that a vhost refused; its head is its name."""
    head = Head(name, needs=False, counter=True, alarm=True)
    return _counted(name, f"Number of {what} refused.", read, what, head=head)


#: Those of Qpid Dispatch first, in the order of its schema.
VHOST: Final[tuple[Column[None, VhostFacts], ...]] = (
    Column("id", str, "Host name of the vhost.", lambda _, vhost: vhost.hostname),
    Column(
        "hostname",
        str,
        "Host name of the vhost.",
        lambda _, vhost: vhost.hostname,
        head=Head("hostname", needs=False),
    ),
    _counted(
        "connectionsApproved",
        "Number of connections allowed.",
        lambda counts: counts.connections_approved,
        "connections",
        head=Head("connectionsApproved", needs=False, counter=True),
    ),
    _denied("connectionsDenied", "connections", lambda counts: counts.connections_denied),
    Column(
        "connectionsCurrent",
        int,
        "Number of open connections.",
        lambda _, vhost: vhost.connections,
        unit="connections",
        head=Head("connectionsCurrent", needs=False),
        graph=True,
    ),
    Column(
        "perUserState",
        dict,
        "Open connections by user.",
        lambda _, vhost: vhost.by_user,
        merge=Merge.JOIN,
    ),
    Column(
        "perHostState",
        dict,
        "Open connections by host.",
        lambda _, vhost: vhost.by_host,
        merge=Merge.JOIN,
    ),
    _denied("sessionDenied", "sessions", lambda counts: counts.session_denied),
    _denied("senderDenied", "senders", lambda counts: counts.sender_denied),
    _denied("receiverDenied", "receivers", lambda counts: counts.receiver_denied),
    _counted(
        "maxMessageSizeDenied",
        "Number of messages refused because they were too large.",
        lambda counts: counts.max_message_size_denied,
        "messages",
        head=Head("maxMessageSizeDenied", counter=True, alarm=True),
    ),
    _counted(
        "quotaAlarms",
        "Number of quota alarms of the vhost and its groups.",
        lambda counts: counts.quota_alarms,
        "alarms",
        extra=True,
    ),
    Column(
        "quotaAlarmsRaised",
        list,
        "Quota alarms that are active.",
        lambda _, vhost: list(vhost.alarms),
        extra=True,
        merge=Merge.JOIN,
    ),
)

LOCKOUT: Final[tuple[Column[None, LockoutFacts], ...]] = (
    Column("host", str, "Host: an address, or an IPv6 network of 64 bits.", lambda _, login: login.place),
    Column(
        "user",
        str,
        "User name that was tried, in small letters; empty if none was tried, absent for all users from the host.",
        lambda _, login: login.user,
        optional=True,
    ),
    Column(
        "failures",
        int,
        "Number of failed logins that count.",
        lambda _, login: login.failures,
        unit="logins",
        graph=True,
        merge=Merge.LARGEST,
    ),
    Column(
        "delaySeconds",
        int,
        "Seconds that the next login has to wait.",
        lambda _, login: math.ceil(login.wait_s),
        unit="seconds",
        merge=Merge.LARGEST,
    ),
    Column(
        "locked",
        bool,
        "Whether the user is locked out at the host.",
        lambda _, login: login.locked_s > 0,
        merge=Merge.LARGEST,
    ),
    Column(
        "lockedSeconds",
        int,
        "Seconds until the lockout ends.",
        lambda _, login: math.ceil(login.locked_s),
        unit="seconds",
        merge=Merge.LARGEST,
    ),
)

DECISION: Final[tuple[Column[None, DecisionFacts], ...]] = (
    Column("id", str, "Id of the decision, given by its sender.", lambda _, decision: decision.id),
    Column(
        "action",
        str,
        "Action of the router.",
        lambda _, decision: decision.action,
        values=("lock-user", "block-host", "slow-tenant"),
    ),
    Column(
        "subject",
        str,
        "Subject of the decision: the user, the address of the host, or the tenant.",
        lambda _, decision: decision.subject,
    ),
    Column(
        "vhost",
        str,
        "Vhost or tenant from which the user is locked out; absent for all.",
        lambda _, decision: decision.vhost or None,
        optional=True,
    ),
    Column(
        "rate",
        int,
        "Messages per second to which the tenant is limited.",
        lambda _, decision: decision.rate,
        unit="messages per second",
        optional=True,
        merge=Merge.FIRST,
    ),
    Column(
        "reason",
        str,
        "Reason that the sender gave.",
        lambda _, decision: decision.reason or None,
        optional=True,
    ),
    Column(
        "evidence",
        list,
        "Numbers of the records that justify the decision.",
        lambda _, decision: list(decision.evidence),
    ),
    Column("decidedBy", str, "User who sent the decision.", lambda _, decision: decision.decided_by),
    Column(
        "secondsLeft",
        int,
        "Seconds remaining.",
        lambda _, decision: max(0, math.ceil(decision.left_s)),
        unit="seconds",
        merge=Merge.FIRST,
    ),
)

DENIAL: Final[tuple[Column[None, DenialFacts], ...]] = (
    Column(
        "at",
        int,
        "Time of the last occurrence, in milliseconds since 1970.",
        lambda _, denial: denial.at_ms,
        unit="milliseconds since 1970",
    ),
    Column("count", int, "Number of occurrences.", lambda _, denial: denial.times, unit="occurrences", graph=True),
    Column(
        "operation",
        str,
        "Operation denied: `login`, `accept`, `open`, `begin`, `attach`, `send` or `manage`.",
        lambda _, denial: denial.operation or None,
        optional=True,
    ),
    Column("reason", str, "Reason, as in records.", lambda _, denial: denial.reason or None, optional=True),
    Column("user", str, "User, if known.", lambda _, denial: denial.user or None, optional=True),
    Column("host", str, "Host from which the connection came.", lambda _, denial: denial.host or None, optional=True),
    Column("vhost", str, "Vhost whose policy denied it.", lambda _, denial: denial.vhost or None, optional=True),
    Column(
        "rule",
        str,
        "Rule that denied it, as in docs/policy.md; for a login, the listener.",
        lambda _, denial: denial.rule or None,
        optional=True,
    ),
    Column(
        "about",
        str,
        "Object of the operation: the address, the request, the host name or the mechanism.",
        lambda _, denial: denial.about or None,
        optional=True,
    ),
)

ALARM: Final[tuple[Column[None, AlarmFacts], ...]] = (
    Column(
        "at",
        int,
        "Time of the last occurrence, in milliseconds since 1970.",
        lambda _, alarm: alarm.at_ms,
        unit="milliseconds since 1970",
    ),
    Column("count", int, "Number of occurrences.", lambda _, alarm: alarm.times, unit="occurrences", graph=True),
    Column(
        "alarm",
        str,
        "Name of the alarm, as in records, such as `memory` or `auth-lockout`.",
        lambda _, alarm: alarm.name,
    ),
    Column("severity", str, "Severity of the alarm.", lambda _, alarm: alarm.severity, values=("warning", "critical")),
    Column("subject", str, "Object of the alarm, such as the user or the sslProfile.", lambda _, alarm: alarm.subject),
    Column(
        "state", str, "Whether the alarm began or ended.", lambda _, alarm: alarm.state, values=("raised", "cleared")
    ),
    Column("value", str, "Value that raised or cleared it.", lambda _, alarm: alarm.value or None, optional=True),
    Column("limit", str, "Limit of that value.", lambda _, alarm: alarm.limit or None, optional=True),
)
