"""Carry out the decisions of consumers: lock users, block hosts, slow tenants down, each for a limited time.

Each decision is in the log, in a record ``management.change`` and an entity ``decision``. A refusal is reported with
its reason, also to the sender.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final
from urllib.parse import quote

import trio

from trouter.columns.security import DecisionFacts
from trouter.config.operational import DECISION
from trouter.hooks import Decision, Rejected
from trouter.net.timers import TimerQueue
from trouter.policy.router_policy import RouterPolicy
from trouter.policy.sanctions import BLOCK_HOST, UNDOES, Sanction, Sanctions, SanctionTarget, target_of
from trouter.records.text import clean
from trouter.telemetry.change_records import ChangeRecords

from .lockout import Lockout, within

KIND: Final = DECISION.full_name
_MICROSECONDS: Final = 1_000_000
FULL: Final = "amqp:resource-limit-exceeded"
NOT_ALLOWED: Final = "amqp:not-allowed"
#: The longest decision that other workers get, as JSON.
MAX_SHARED_BYTES: Final = 60_000

log = logging.getLogger("trouter.POLICY")


class Decisions:
    """The decisions of one router. One of several workers notifies the others of those that come to it."""

    def __init__(
        self,
        sanctions: Sanctions,
        policy: RouterPolicy,
        lockout: Lockout,
        records: ChangeRecords,
        flush: Callable[[], None],
        queue: TimerQueue,
        notify: Callable[[Mapping[str, object]], None],
    ) -> None:
        """``notify`` notifies the other workers, if there are any, of what came here; they ``receive_news``."""
        self._notify = notify
        self._sanctions = sanctions
        self._policy = policy
        self._lockout = lockout
        self._records = records
        self._flush = flush
        self._queue = queue
        self._timer = queue.add("decisions that end", self._end_expired)

    def carry_out(self, decision: Decision, by: str, limit: int) -> Rejected | None:
        """Carry a decision out; return why not, or None. At most ``limit`` sanctions are in force at a time."""
        if self._sanctions.was_carried_out(decision):
            return None
        shared = _as_shared(decision, by)
        if len(json.dumps(shared)) > MAX_SHARED_BYTES:
            rejected: Rejected | None = Rejected(f"the decision is longer than {MAX_SHARED_BYTES} bytes")
        else:
            rejected = self._apply_decision(decision, by, limit)
        if rejected is None:
            self._notify({"decision": shared})
        else:
            self._records.refused("CREATE", KIND, identity_of(target_of(decision)))
            log.warning("decision %.128r of user %.128r refused: %s", decision.id, by, rejected.reason)
        return rejected

    def receive_news(self, news: Mapping[str, object]) -> None:
        """Carry out a decision that came to another worker, which has recorded it."""
        shared = news.get("decision")
        if isinstance(shared, dict):
            self._receive_decision(shared)

    def list_in_force(self) -> bytes:
        """Return the decisions in force, for a worker that is new."""
        return json.dumps([_as_shared(each.decision, each.by) for each in self._sanctions]).encode()

    def receive_decisions(self, shared: bytes) -> None:
        """Carry out the decisions that are in force at another worker."""
        for each in json.loads(shared):
            self._receive_decision(each)

    def _receive_decision(self, shared: Mapping[str, Any]) -> None:
        fields = dict(shared)
        by = str(fields.pop("by"))
        decision = Decision(**{**fields, "evidence": tuple(fields["evidence"])})
        if self._sanctions.was_carried_out(decision) is False:
            self._apply_decision(decision, by, None)

    def _apply_decision(self, decision: Decision, by: str, limit: int | None) -> Rejected | None:
        """Put a decision in force; return why not, or None. Without a ``limit`` another worker has recorded it."""
        if self._sanctions.was_carried_out(decision) is None:
            return Rejected("another decision had this id", NOT_ALLOWED)
        target, own = target_of(decision), limit is not None
        if decision.action in UNDOES:
            self._end_sanction(target, f"{decision.action} by {decision.id}", recorded=own)
            self._sanctions.remember_decision(decision)
            return None
        lasts_s = decision.until_us / _MICROSECONDS - time.time()
        if lasts_s <= 0:
            return Rejected("until_us is in the past")
        if limit is not None and self._sanctions.find_sanction(target) is None and len(self._sanctions) >= limit:
            return Rejected(f"{limit} decisions are in force already", FULL)
        why = self._unblockable_reason(decision)
        if why:
            return Rejected(why, NOT_ALLOWED)
        self._sanctions.add_sanction(Sanction(target, decision, by, trio.current_time() + lasts_s, own))
        self._sanctions.remember_decision(decision)
        self._queue.advance(self._timer, self._sanctions.next_s)
        log.warning(
            "decision %.128r of user %.128r: %s %.128r%s for %d s%s: %.256r",
            decision.id,
            by,
            decision.action,
            decision.subject,
            f" in {decision.vhost!r}" if decision.vhost else "",
            math.ceil(lasts_s),
            "" if decision.rate is None else f", {decision.rate} messages a second",
            decision.reason,
        )
        if own:
            self._records.done("CREATE", KIND, identity_of(target), _values(decision))
        self._policy.apply_decision(target)
        self._flush()
        return None

    def _unblockable_reason(self, decision: Decision) -> str:
        """Return why a host cannot be blocked: it is no address, or many clients may share it; empty if it can."""
        if decision.action != BLOCK_HOST:
            return ""
        try:
            ipaddress.ip_address(decision.subject)
        except ValueError:
            return "the subject of block-host must be an IP address"
        rules = self._lockout.rules
        spared = within((*rules.exempt, *rules.shared), decision.subject)
        return "the router does not block this host: it is in authLockoutExempt or handshakeExempt" if spared else ""

    def _end_sanction(self, target: SanctionTarget, why: str, *, recorded: bool) -> None:
        if self._lift_sanction(target, why) and recorded:
            self._records.done("DELETE", KIND, identity_of(target), {"why": why})

    def _lift_sanction(self, target: SanctionTarget, why: str) -> bool:
        sanction = self._sanctions.lift_sanction(target)
        if sanction is None:
            return False
        log.info("decision %.128r ends: %s", sanction.decision.id, clean(why))
        self._policy.apply_decision(target)
        self._flush()
        return True

    def _end_expired(self, _: float) -> float:
        """End the sanctions whose time is over; return when that of the next one is."""
        for sanction in self._sanctions.expired_sanctions():
            self._end_sanction(sanction.target, "its time is over", recorded=sanction.own)
        return self._sanctions.next_s

    # --- the entities of type decision

    def list_keys(self) -> list[SanctionTarget]:
        """Return the targets of the sanctions in force."""
        return [sanction.target for sanction in self._sanctions]

    def identity_of(self, key: SanctionTarget) -> str:
        """Return the identity of an entity."""
        return identity_of(key)

    def find_facts(self, key: SanctionTarget) -> DecisionFacts | None:
        """Return the decision on a target; None if it is no longer in force."""
        sanction = self._sanctions.find_sanction(key)
        if sanction is None:
            return None
        decision = sanction.decision
        return DecisionFacts(
            id=clean(decision.id),
            action=decision.action,
            subject=clean(key.subject),
            vhost=clean(key.vhost),
            rate=decision.rate,
            reason=clean(decision.reason),
            evidence=decision.evidence,
            decided_by=clean(sanction.by),
            left_s=sanction.until_s - trio.current_time(),
        )

    def lift_holdup(self, key: SanctionTarget) -> bool:
        """End it now; return whether it was in force."""
        return self._lift_sanction(key, "it was lifted")


def identity_of(target: SanctionTarget) -> str:
    """Return the identity of a target's entity, unique to it."""
    scope = f"{quote(target.vhost, safe='')}:" if target.vhost else ""
    return f"decision/{target.action}/{scope}{quote(target.subject, safe='')}"


def _as_shared(decision: Decision, by: str) -> dict[str, object]:
    """Return a decision of the user ``by`` as other workers get it."""
    return {**asdict(decision), "by": by}


def _values(decision: Decision) -> dict[str, str]:
    values: dict[str, Any] = {
        "id": decision.id,
        "action": decision.action,
        "subject": decision.subject,
        "vhost": decision.vhost,
        "rate": decision.rate,
        "until_us": decision.until_us,
        "reason": decision.reason,
        "evidence": " ".join(map(str, decision.evidence)),
    }
    return {name: str(value) for name, value in values.items() if value not in (None, "")}
