"""The policy in force, its counters, and the connections that it applies to.

Every denial goes through ``Policing.deny`` to ``denials.DenialLog`` (security.md 4.9).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from types import MappingProxyType
from typing import Final

import trio

from trouter.config.entities import PolicyEntity, Quotas
from trouter.config.entities.group import LEVELS, OPERATORS
from trouter.config.schema import camel
from trouter.core.messagelog import MessageLog
from trouter.core.terms import ROUTER_ROLES
from trouter.engine.ports import Budget
from trouter.hooks import Plugins
from trouter.management.ports import Rights
from trouter.records import Alarm
from trouter.security.counts import ConnectionCounts
from trouter.security.policy import Admission, Denial, Policy, Reason
from trouter.security.quotas import Alarm as QuotaAlarm
from trouter.security.quotas import QuotaBook, QuotaRule
from trouter.telemetry.recorder import Recorder
from trouter.telemetry.sampling import Sampler, Sampling

from .admitted import GONE, AdmittedConnection, OpenRequest, PolicedConnection, concerns, for_plugins
from .denial_text import closed
from .denials import CONNECTION_DENIED, DenialLog, Denied
from .policy_counts import VhostCounts
from .sanctions import BLOCK_HOST, LOCK_USER, SLOW_TENANT, Sanctions, Target

#: Alarms that are shown by name; further ones are only counted.
MAX_SHOWN: Final = 64
NO_SAMPLINGS: Final[Mapping[str, Sampling]] = MappingProxyType({})

log = logging.getLogger("trouter.POLICY")


#: The rights without a policy, and those of an unknown requester.
EVERYTHING: Final = Rights("admin")
NOTHING: Final = Rights("none", allow_admin_status_update=False, allow_dynamic_link_routes=False)
#: The rights of requests from users unknown here, by the policy's routerManagement.
RIGHTS_AT: Final = {
    level: NOTHING if level == "none" else Rights(level, allow_dynamic_link_routes=level in OPERATORS)
    for level in LEVELS
}


class Policing:
    """The policy of one router, and the connections that it has admitted."""

    def __init__(
        self,
        recorder: Recorder,
        plugins: Plugins,
        now: Callable[[], float] = trio.current_time,
        sanctions: Sanctions | None = None,
    ) -> None:
        self.policy = Policy.compile(PolicyEntity(), ())
        self._denials = DenialLog(recorder)
        self.counts = self._denials.counts
        self.vhosts = self._denials.vhosts
        self.quotas = QuotaBook(now, lambda: Budget(0), self._log_alarm)
        self._recorder = recorder
        self._plugins = plugins
        self._held: dict[int, AdmittedConnection] = {}
        #: The samplings of messages, by vhost.
        self.samplings = NO_SAMPLINGS
        self._sanctions = Sanctions(now) if sanctions is None else sanctions

    # --- sockets

    def accept(self, role: str, host: str) -> bool:
        """Count a new connection and return True if there is room for it; its end calls ``left``."""
        counts, entity = self.counts, self.policy.entity
        counts.connections_processed += 1
        reserve = entity.router_connections if role in ROUTER_ROLES and entity.max_connections else 0
        if counts.connections_current >= entity.max_connections + reserve:
            self.deny(Denied.ACCEPT, None, "policy:maxConnections", text=host)
            return False
        counts.connections_current += 1
        return True

    def left(self) -> None:
        """Uncount a connection that ``accept`` counted."""
        self.counts.connections_current -= 1

    # --- connections

    def admit(self, request: OpenRequest) -> Admission | None:
        """Return the terms of a connection that may open, None if it may not; then call ``hold``."""
        verdict = self._judge(self.policy, request)
        if isinstance(verdict, Admission):
            over = self._over(verdict, request)
            quota = "" if over else self.quotas.may_open(verdict.quotas, request.user, request.host)
            if not over and not quota:
                self._denials.allow("open", request, verdict, verdict.rule)
                return verdict
            denial = Denial(over[0] if over else Reason.QUOTA, verdict.vhost, verdict.group)
            self._deny_open(request, denial, quota or f"{verdict.vhost}:{verdict.group}:{'+'.join(over)}")
        else:
            self._deny_open(request, verdict, verdict.rule)
        return None

    def deny_tenant(self, request: OpenRequest, why: str) -> None:
        """Count and record the refusal of a connection without a tenant."""
        self._denials.deny(Denied.TENANT, request, Denial(Reason.NO_VHOST), f"tenant:{why}", request.hostname)

    def is_blocked(self, request: OpenRequest, admission: Admission, tenant: str = "") -> bool:
        """Return whether a decision blocks a connection that may open otherwise; count and record it if so."""
        held = AdmittedConnection(request, admission, GONE, request.name, tenant)
        blocked = self._block_on(held)
        if blocked:
            self._deny_by(blocked, held)
        return bool(blocked)

    def hold(
        self, request: OpenRequest, admission: Admission, connection: PolicedConnection, tenant: str = ""
    ) -> AdmittedConnection:
        """Register an admitted connection, until ``leave``."""
        held = self._held[request.number] = AdmittedConnection(request, admission, connection, request.name, tenant)
        if admission.vhost:
            self._denials.counts_of(admission.vhost).connections_approved += 1
            self._enter(held)
        self._bind(held)
        return held

    def leave(self, number: int, resources: tuple[int, int, int] = (0, 0, 0)) -> None:
        """Release an ended connection; do nothing if it was never held.

        ``resources``: the sessions, senders and receivers that it had at its end.
        """
        held = self._held.pop(number, None)
        if held is not None:
            counts = self.vhosts.get(held.admission.vhost) or VhostCounts()
            log.debug("[C%d] %s", number, closed(held.request.name, resources, counts, len(self._held)))
            held.connection = GONE  # so that the connection is freed at once
            self._unbind(held)
            self._forget(held)

    def held(self, number: int) -> AdmittedConnection | None:
        """Return the admitted connection with this number; None if there is none."""
        return self._held.get(number)

    def rights(self, number: int) -> Rights:
        """Return the management rights of a connection's user; connection 0 is the router itself."""
        if not number or not self.policy.entity.enable_vhost_policy:
            return EVERYTHING
        held = self._held.get(number)
        if held is None:
            return NOTHING
        if held.admission.unrestricted:  # a connection between routers, or ours to a broker without a policyVhost
            return RIGHTS_AT[self.policy.entity.router_management]
        settings = held.admission.settings
        return Rights(settings.management, settings.allow_admin_status_update, settings.allow_dynamic_link_routes)

    def may_send(self, number: int, address: str) -> bool:
        """Return whether the user of a connection may send to an address; connection 0 is the router itself."""
        held = self._held.get(number)
        if held is None:
            return not (number and self.policy.entity.enable_vhost_policy)
        return held.admission.may_send(address).allowed

    def uncovered(self, number: int, pattern: str, direction: str) -> str | None:
        """Return an address that a link route of a connection would take and its user may not use; None if none.

        PatternError if the pattern is invalid, or too complex for an answer.
        """
        held = self._held.get(number)
        if held is None:
            return pattern if number and self.policy.entity.enable_vhost_policy else None
        admission = held.admission
        rules = admission.sources if direction == "in" else admission.targets
        return rules.uncovered(pattern, admission.user_text)

    def _judge(self, policy: Policy, request: OpenRequest) -> Admission | Denial:
        """Return the policy's decision; a plugin may choose the vhost or the addresses."""
        policy_vhost, permissions = request.policy_vhost, request.permissions
        answer = self._plugins.vhost_policy(for_plugins(request))
        if answer is not None:
            if answer.denied or (answer.vhost and not policy.entity.enable_vhost_policy):
                return Denial(Reason.PLUGIN, answer.vhost if answer.vhost in policy.vhosts else "")
            policy_vhost = answer.vhost or policy_vhost
            permissions = permissions if answer.permissions is None else answer.permissions
        exempt = request.role == "inter-router" or (request.outgoing and request.role == "edge")
        return policy.admit(
            request.hostname,
            request.user,
            request.host,
            authenticated=request.authenticated,
            policy_vhost=None if exempt else policy_vhost,
            connector=request.outgoing or exempt,
            permissions=permissions,
        )

    def _over(self, admission: Admission, request: OpenRequest) -> tuple[Reason, ...]:
        counts = self.vhosts.get(admission.vhost) if admission.vhost else None
        open_now = ConnectionCounts() if counts is None else counts.open
        return open_now.over(admission.limits, request.user, request.host)

    def _enter(self, held: AdmittedConnection) -> None:
        """Count it in its vhost; one client may connect to two listeners from the same port."""
        request, counts = held.request, self._denials.counts_of(held.admission.vhost)
        held.name = request.name if request.name not in counts.open else f"{request.name}[C{request.number}]"
        counts.open.enter(held.name, request.user, request.host)

    def _bind(self, held: AdmittedConnection) -> None:
        """Apply the quotas of its admission."""
        quotas, request = (*held.admission.quotas, *self._slowing(held)), held.request
        if quotas:
            held.share = self.quotas.share(quotas, request.user, request.host, held.connection.received_bytes)

    def _unbind(self, held: AdmittedConnection) -> None:
        if held.share is not None:
            self.quotas.leave(held.share)
            held.share = None

    def _forget(self, held: AdmittedConnection) -> None:
        """Uncount it in its vhost; a removed vhost is forgotten with its last connection."""
        vhost = held.admission.vhost
        counts = self.vhosts.get(vhost)
        if counts is not None and vhost:
            counts.open.leave(held.name)
            self._tidy(vhost)

    def _tidy(self, vhost: str) -> None:
        counts = self.vhosts.get(vhost)
        if counts is not None and not len(counts.open) and vhost not in self.policy.vhosts:
            del self.vhosts[vhost]

    def sampler(self, held: AdmittedConnection, log: MessageLog | None) -> Sampler | None:
        """Return the tap that samples a connection's messages and passes them to ``log``; None for none."""
        sampling = self.samplings.get(held.admission.vhost)
        if sampling is None or held.request.role in ROUTER_ROLES:
            return None
        who = held.request
        about = {"conn": who.number, "vhost": held.admission.vhost, "user": who.user or None, "host": who.host}
        about["tenant"] = held.tenant or None
        return Sampler(sampling, about, self._recorder.emit, self.quotas.now, log)

    # --- decisions

    def follow_order(self, target: Target) -> None:
        """Apply a decision that was made or has ended to the open connections, except routers'."""
        for held in list(self._held.values()):
            if not concerns(target, held):
                continue
            if target.action == SLOW_TENANT:
                self._unbind(held)
                self._bind(held)
                self._follow(held)
            elif blocked := self._block_on(held):
                self._deny_by(blocked, held)
                held.connection.turn_out(CONNECTION_DENIED)

    def _block_on(self, held: AdmittedConnection) -> str:
        """Return the action that blocks a connection; empty for none."""
        request = held.request
        if request.role in ROUTER_ROLES or request.outgoing:
            return ""
        if self._sanctions.blocks_host(request.host):
            return BLOCK_HOST
        return LOCK_USER if self._sanctions.blocks_user(request.user, *held.scopes) else ""

    def _deny_by(self, action: str, held: AdmittedConnection) -> None:
        where = Denial(Reason.DECISION, held.admission.vhost, held.admission.group)
        self._denials.deny(Denied.ORDER, held.request, where, f"decision:{action}", held.request.hostname)

    def _slowing(self, held: AdmittedConnection) -> Iterator[QuotaRule]:
        """Yield the quotas that decisions add to a connection."""
        if held.request.role in ROUTER_ROLES:
            return
        for scope in held.scopes:
            rate = self._sanctions.rate(scope)
            if rate is not None:
                yield QuotaRule(scope, f"decision:{scope}", "", Quotas(max_messages_per_second=rate), enforced=True)

    # --- another policy

    def become(self, policy: Policy, samplings: Mapping[str, Sampling] = NO_SAMPLINGS) -> None:
        """Put another policy in force, also for open connections if their vhosts allow it (security.md 4.13)."""
        before, self.policy = self.policy, policy
        sampled, self.samplings = self.samplings, samplings
        if before is policy:
            return
        for vhost in list(self.vhosts):
            self._tidy(vhost)
        for held in list(self._held.values()):
            if self._stays(held, before, policy):
                continue
            verdict = self._judge(policy, held.request)
            if isinstance(verdict, Denial):
                self._deny_open(held.request, verdict, verdict.rule)
                held.connection.turn_out(CONNECTION_DENIED)
            elif verdict != held.admission or sampled.get(verdict.vhost) is not samplings.get(verdict.vhost):
                self._move(held, verdict)

    def look_up_again(self, policy: Policy) -> None:
        """Use the same policy with other addresses of its host names; it applies to new connections only."""
        self.policy = policy

    def _stays(self, held: AdmittedConnection, before: Policy, policy: Policy) -> bool:
        """Return whether the change does not apply to this connection: its vhost's applyTo is, or last was, "new"."""
        vhost = held.admission.vhost
        found = policy.vhosts.get(vhost) or before.vhosts.get(vhost)
        return found is not None and bool(vhost) and found.entity.apply_to == "new"

    def _move(self, held: AdmittedConnection, admission: Admission) -> None:
        """Apply other terms to a connection, in another vhost if necessary."""
        moved = held.admission.vhost != admission.vhost
        if moved:
            self._forget(held)
        requoted = held.admission.quotas != admission.quotas
        held.admission = admission
        if moved and admission.vhost:
            self._enter(held)
        if requoted:
            self._unbind(held)
            self._bind(held)
        self._follow(held)

    def _follow(self, held: AdmittedConnection) -> None:
        """Make a connection follow its current terms; close it if that fails."""
        try:
            held.connection.follow(held.admission)
        except Exception:
            log.exception("[C%d] cannot apply the changed policy, connection closed", held.request.number)
            held.connection.turn_out(CONNECTION_DENIED)

    # --- log and records

    def deny(
        self,
        what: Denied,
        held: AdmittedConnection | None,
        rule: str,
        *,
        text: str = "",
        address: str | None = None,
        direction: str | None = None,
    ) -> None:
        """Count, log and record a denial; ``text`` describes it in the log; ``held`` is None before admission."""
        if held is None:
            self._denials.deny(what, None, Denial(Reason.MAX_CONNECTIONS), rule, text, address, direction)
        else:
            admission = held.admission
            where = Denial(Reason.NO_GROUP, admission.vhost, admission.group)
            self._denials.deny(what, held.request, where, rule, text, address, direction)

    def _log_alarm(self, alarm: QuotaAlarm) -> None:
        """Log, count and record that a quota is met, or no longer is."""
        rule, vhost = alarm.rule.name(alarm.measure), alarm.rule.vhost
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
        if alarm.raised and (vhost in self.vhosts or vhost in self.policy.vhosts):
            self._denials.counts_of(vhost).quota_alarms += 1
        if self._recorder.active:
            subject = f"{rule} {alarm.who}".rstrip()
            self._recorder.emit(
                Alarm(
                    name="quota", severity="warning", subject=subject, state=state, value=held, limit=str(alarm.limit)
                )
            )

    def deny_management(self, number: int, what: str) -> None:
        """Count and log that the user of connection ``number`` requested more than its rights allow."""
        held = self._held.get(number)
        level = self.rights(number).level
        self.deny(Denied.MANAGEMENT, held, f"management:{level}", text=what)

    def _deny_open(self, request: OpenRequest, denial: Denial, rule: str) -> None:
        what = Denied.CONNECTOR if request.outgoing else Denied.OPEN
        self._denials.deny(what, request, denial, rule, request.hostname)

    def allow(
        self, operation: str, held: AdmittedConnection, rule: str, *, address: str | None, direction: str
    ) -> None:
        """Record that something was allowed."""
        self._denials.allow(operation, held.request, held.admission, rule, address, direction)

    # --- for management

    def quota_alarms(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the numbers of quota alarms by vhost: since the start, and those raised now."""
        names = dict.fromkeys((*self.policy.vhosts, *self.vhosts))
        counts = {name: self.vhosts[name].quota_alarms if name in self.vhosts else 0 for name in names}
        raised = self.quotas.raised_by_vhost()
        return counts, {name: raised[name] for name in names}

    def shown_policy(self) -> Mapping[str, object]:
        """Return the counters of ``policy``."""
        return {camel(name): count for name, count in asdict(self.counts).items()}

    def shown_vhosts(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield the attributes of ``vhostStats`` by vhost: those configured, then others with connections."""
        for name in dict.fromkeys((*self.policy.vhosts, *self.vhosts)):
            counts = self.vhosts.get(name) or VhostCounts()
            yield (
                name,
                {
                    "connectionsApproved": counts.connections_approved,
                    "connectionsDenied": counts.connections_denied,
                    "connectionsCurrent": len(counts.open),
                    "perUserState": counts.open.by_user(),
                    "perHostState": counts.open.by_host(),
                    "sessionDenied": counts.session_denied,
                    "senderDenied": counts.sender_denied,
                    "receiverDenied": counts.receiver_denied,
                    "maxMessageSizeDenied": counts.max_message_size_denied,
                    "quotaAlarms": counts.quota_alarms,
                    "quotaAlarmsRaised": list(islice(self.quotas.raised(name), MAX_SHOWN)),
                },
            )
