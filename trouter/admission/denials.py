"""The kinds of denials, their counters, and one log line and one record for each.

Every denial is counted and recorded here, wherever it is decided (security.md 4.9). The errors that denied peers are
sent are here too.
"""

from __future__ import annotations

import logging
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from trouter.logs.peer_text import and_more
from trouter.records import PolicyDecision
from trouter.security.policy import Admission, Denial
from trouter.telemetry.denials import What
from trouter.telemetry.recorder import Recorder
from trouter.wire.performatives import Error

from .admitted import OpenRequest
from .denial_text import denied
from .policy_counts import PolicyCounts, VhostCounts

RESOURCE: Final = "amqp:resource-limit-exceeded"
CONNECTION_DENIED: Final = Error(RESOURCE, "connection disallowed by local policy")
SESSION_DENIED: Final = Error(RESOURCE, "session disallowed by local policy")
TOO_MANY_LINKS: Final = Error(RESOURCE, "link disallowed by local policy")
LINK_DENIED: Final = Error("amqp:unauthorized-access", "link disallowed by local policy")
MESSAGE_TOO_LARGE: Final = Error("amqp:connection:forced", "Message size exceeded")
#: Denials of a kind that are reported one by one within a second; a peer may repeat them, but rarely needs to.
SINGLY: Final = 16
#: The same for denials that may come with every message or request; the log has them at debug level only.
EACH: Final = 1

log = logging.getLogger("trouter.POLICY")


class Row(NamedTuple):
    """The kind of a denial: operation and reason for records, then the counters of policy and vhost."""

    operation: str
    reason: str
    policy: tuple[str, ...] = ()
    vhost: str = ""
    #: Denials on one connection that are reported one by one within a second; 0 for all.
    singly: int = 0


class Denied(Enum):
    """The kinds of denials."""

    ACCEPT = Row("accept", "max-connections", ("connections_denied", "total_denials"), singly=SINGLY)
    OPEN = Row("open", "connection", ("vhost_connections_denied",), "connections_denied")
    ORDER = Row("open", "decision", ("vhost_connections_denied",), "connections_denied")
    TENANT = Row("open", "tenant", ("vhost_connections_denied",))
    CONNECTOR = Row("open", "connector", ("vhost_connections_denied",))
    BEGIN = Row("begin", "session", ("total_denials",), "session_denied", singly=SINGLY)
    SENDER = Row("attach", "sender", ("links_denied", "total_denials"), "sender_denied", singly=SINGLY)
    RECEIVER = Row("attach", "receiver", ("links_denied", "total_denials"), "receiver_denied", singly=SINGLY)
    TARGET = Row("send", "target", ("messages_denied",), singly=EACH)
    NO_TO = Row("send", "no-address", ("messages_denied",), singly=EACH)
    USER_ID = Row("send", "user-id", ("user_id_denied",), singly=EACH)
    TOO_LARGE = Row(
        "send", "message-size", ("max_message_size_denied", "total_denials"), "max_message_size_denied", singly=SINGLY
    )
    DECISION = Row("send", "decision", ("messages_denied",), singly=EACH)
    MANAGEMENT = Row("manage", "management", ("management_denied",), singly=EACH)


class _Noted(NamedTuple):
    """A denial with all that the log and the record need."""

    row: Row
    who: OpenRequest | None
    where: Denial
    rule: str
    text: str
    address: str | None
    direction: str | None


class DenialLog:
    """Counts, logs and records denials, and records what was allowed."""

    def __init__(self, recorder: Recorder) -> None:
        self.counts = PolicyCounts()
        self.vhosts: dict[str, VhostCounts] = {}
        self._recorder = recorder

    def counts_of(self, vhost: str) -> VhostCounts:
        """Return the counters of a vhost, from 0 for a new one."""
        return self.vhosts.setdefault(vhost, VhostCounts())

    def deny(
        self,
        what: Denied,
        who: OpenRequest | None,
        where: Denial,
        rule: str,
        text: str = "",
        address: str | None = None,
        direction: str | None = None,
    ) -> None:
        """Count, log and record a denial; ``text`` describes it, ``who`` is None before an open."""
        row = what.value
        for name in row.policy:
            setattr(self.counts, name, getattr(self.counts, name) + 1)
        if row.vhost and where.vhost:
            counts = self.counts_of(where.vhost)
            setattr(counts, row.vhost, getattr(counts, row.vhost) + 1)
        denial = _Noted(row, who, where, rule, text, address, direction)
        if row.singly:
            number = 0 if who is None else who.number
            self._recorder.repeats.happened((number, row.reason), row.singly, partial(self._log, denial))
        else:
            self._log(denial, 1)

    def _log(self, denial: _Noted, count: int) -> None:
        """Write one line and one record for a denial, or for ``count`` repeated ones."""
        row, who, where, rule, text, address, direction = denial
        user, host = ("", text) if who is None else (who.user, who.host)
        about = text if address is None else address
        log.log(
            logging.DEBUG if row.singly == EACH else logging.INFO,
            "[C%d] %s%s",
            0 if who is None else who.number,
            denied(row.operation, row.reason, user, host, where.vhost, rule, about),
            and_more(count),
        )
        self._recorder.denials.note(What(row.operation, row.reason, user, host, where.vhost, rule, about), count)
        if self._recorder.active:
            record = self._record(who, where.vhost, where.group, row.operation, rule, row.reason, allow=False)
            record.addr, record.dir, record.repeat = address, direction, count
            if record.host is None:
                record.host = host
            self._recorder.emit(record)

    def allow(
        self,
        operation: str,
        request: OpenRequest,
        admission: Admission,
        rule: str,
        address: str | None = None,
        direction: str | None = None,
    ) -> None:
        """Record that something was allowed, unless no policy applies to it."""
        if self._recorder.active and not admission.unrestricted:
            record = self._record(request, admission.vhost, admission.group, operation, rule, "allowed", allow=True)
            record.addr, record.dir = address, direction
            self._recorder.emit(record)

    @staticmethod
    def _record(
        who: OpenRequest | None, vhost: str, group: str, operation: str, rule: str, reason: str, *, allow: bool
    ) -> PolicyDecision:
        return PolicyDecision(
            conn=0 if who is None else who.number,
            vhost=vhost or None,
            user=None if who is None else who.user,
            host=None if who is None else who.host,
            group=group or None,
            op=operation,
            allow=allow,
            rule=rule,
            reason=reason,
            repeat=1,
        )
