"""Records the verdicts of the policy: one log line, one record, the counters, and the last denials, for each.

Every verdict is recorded here (security.md 4.9). The lines (module POLICY) are in Qpid Dispatch's words, for its
tools. Texts that a client chose, its user name and its vhost, are quoted so that they cannot end their quotes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import Final

from trouter.columns.security import VhostCounts
from trouter.logs.peer_text import and_more, quoted
from trouter.records import Alarm, PolicyDecision
from trouter.telemetry.allowances import Writer
from trouter.telemetry.recorder import Denied, Recorder
from trouter.telemetry.user_keys import user_key

from .book import QuotaAlarm
from .judge import Verdict
from .kinds import EACH, SINGLY, RequestKind
from .requests import OpenRequest

#: The limits on links of Qpid Dispatch, with its names.
_LINK_LIMITS: Final = ("maxSenders", "maxReceivers")
_MAX_RULE: Final = 256

log = logging.getLogger("trouter.POLICY")


@dataclass(slots=True)
class PolicyCounts:
    """The counters of the entity ``policy``."""

    connections_processed: int = 0
    connections_denied: int = 0
    connections_current: int = 0
    links_denied: int = 0
    max_message_size_denied: int = 0
    total_denials: int = 0
    vhost_connections_denied: int = 0
    messages_denied: int = 0
    user_id_denied: int = 0
    management_denied: int = 0


class PolicyRecord:
    """The counters of one router's policy, and the writer of its log lines and records."""

    def __init__(self, recorder: Recorder) -> None:
        self.counts = PolicyCounts()
        self.vhosts: dict[str, VhostCounts] = {}
        self._recorder = recorder

    def counts_of(self, vhost: str) -> VhostCounts:
        """Return the counters of a vhost, from 0 for a new one."""
        return self.vhosts.setdefault(vhost, VhostCounts())

    def record_verdict(self, verdict: Verdict, who: OpenRequest | None) -> None:
        """Count, log and record a verdict about a request of ``who``, None before an open.

        What is allowed is a record only, and none without a policy.
        """
        if verdict.allowed and (verdict.unrestricted or not self._recorder.active):
            return
        assert verdict.judged is not None  # noqa: S101 - an address by itself is not recorded
        row: RequestKind = verdict.judged.value
        if verdict.allowed:
            write = partial(self._emit_record, verdict, row, who, "allowed")
            if who is None or row.operation == "open":
                write(1)
            else:
                key = user_key(verdict.vhost, who.user, who.remote_host)
                self._recorder.allowances.tell(row.operation, key, write)
            return
        for name in row.policy:
            setattr(self.counts, name, getattr(self.counts, name) + 1)
        if row.vhost and verdict.vhost:
            counts = self.counts_of(verdict.vhost)
            setattr(counts, row.vhost, getattr(counts, row.vhost) + 1)
        write = partial(self._write_denial, verdict, row, who)
        if who is None:
            self._recorder.repeats.happened(row.reason, row.singly, write)
            return
        user = user_key(verdict.vhost, who.user, who.remote_host), row.reason
        self._recorder.repeats.happened_to_user(user, (who.connection_id, row.reason), row.singly, write)

    def tell_repeated(self, what: str, vhost: str, who: OpenRequest, write: Writer) -> None:
        """Write lines about ``what`` the user of a connection may repeat at will: the first ones, the others in sum."""
        user = user_key(vhost, who.user, who.remote_host), what
        self._recorder.repeats.happened_to_user(user, (who.connection_id, what), SINGLY, write)

    def record_alarm(self, alarm: QuotaAlarm, *, configured: bool) -> None:
        """Log, count and record that a quota is met, or no longer is; ``configured``: its vhost is."""
        rule, vhost = alarm.rule.rule_id(alarm.measure), alarm.rule.vhost
        state, held = "raised" if alarm.raised else "cleared", "enforced" if alarm.rule.enforced else "alarm only"
        log.log(
            logging.WARNING if alarm.raised else logging.INFO,
            "ALARM quota %s: rule=%.256r who=%.128r limit=%d (%s)",
            state,
            rule,
            alarm.who,
            alarm.limit,
            held,
        )
        if alarm.raised and (configured or vhost in self.vhosts):
            self.counts_of(vhost).quota_alarms += 1
        subject = f"{rule} {alarm.who}".rstrip()
        self._recorder.alarm(
            Alarm(name="quota", severity="warning", subject=subject, state=state, value=held, limit=str(alarm.limit))
        )

    def _write_denial(self, verdict: Verdict, row: RequestKind, who: OpenRequest | None, count: int) -> None:
        """Write one line and one record for a denial, or for ``count`` repeated ones."""
        user, host = ("", verdict.text) if who is None else (who.user, who.remote_host)
        about = verdict.text if verdict.address is None else verdict.address
        log.log(
            logging.DEBUG if row.singly == EACH else logging.INFO,
            "[C%d] %s%s",
            0 if who is None else who.connection_id,
            denial_line(row.operation, row.reason, user, host, verdict.vhost, verdict.rule, about),
            and_more(count),
        )
        denied = Denied(row.operation, row.reason, user, host, verdict.vhost, verdict.rule, about)
        self._recorder.denials.note_denial(denied, count)
        if self._recorder.active:
            self._emit_record(verdict, row, who, row.reason, count)

    def _emit_record(
        self, verdict: Verdict, row: RequestKind, who: OpenRequest | None, reason: str, count: int
    ) -> None:
        record = PolicyDecision(
            conn=0 if who is None else who.connection_id,
            vhost=verdict.vhost or None,
            user=None if who is None else who.user,
            host=verdict.text if who is None else who.remote_host,
            group=verdict.group or None,
            op=row.operation,
            allow=verdict.allowed,
            rule=verdict.rule,
            reason=reason,
            repeat=count,
            addr=verdict.address,
            dir=verdict.direction,
        )
        self._recorder.emit(record)


def denial_line(operation: str, reason: str, user: str, host: str, vhost: str, rule: str, text: str) -> str:
    """Return the log line of a denied ``operation``; ``text`` is the address, or the object of the denial."""
    if operation == "begin":
        who = f"user: {quoted(user)}, rhost: {host}, vhost: {quoted(vhost)}"
        return f"DENY AMQP Begin Session due to session limit. {who}"
    who = f"for user {quoted(user)}, rhost '{host}', vhost {quoted(vhost)}"
    if operation == "open":
        return f"DENY AMQP Open {who}: {reason} rule={_shown(rule)} {_shown(text)}"
    if operation == "attach":
        limit = rule.rpartition(":")[2]
        if limit in _LINK_LIMITS:
            return f"DENY AMQP Attach {reason} {who} based on {limit} limit"
        return f"DENY AMQP Attach {reason} link {quoted(text)} {who} based on {_shown(rule)}"
    if operation == "send" and reason == "message-size":
        return f"DENY AMQP Transfer maxMessageSize exceeded {who} rule={_shown(rule)}"
    whose = f"user={_shown(user)} host={host} vhost={_shown(vhost)}"
    return f"DENY {operation} {reason}: {whose} rule={_shown(rule)} {_shown(text)}"


def closed_line(name: str, held: tuple[int, int, int], denials: VhostCounts, connections: int) -> str:
    """Return the log line of the end of a connection that had ``held`` sessions, senders and receivers.

    ``denials`` are those of its vhost so far, on all connections.
    """
    sessions, senders, receivers = held
    return (
        f"Connection {quoted(name)} closed with resources n_sessions={sessions}, n_senders={senders}, "
        f"n_receivers={receivers}, sessions_denied={denials.session_denied}, "
        f"senders_denied={denials.sender_denied}, receivers_denied={denials.receiver_denied}, "
        f"max_message_size_denied:{denials.max_message_size_denied}, nConnections= {connections}."
    )


def _shown(text: str) -> str:
    return repr(text[:_MAX_RULE])
