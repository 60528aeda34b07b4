"""The policy in force, its counters, and the connections that it applies to.

Every denial goes through ``Policing.deny``, whatever denied it, and so to ``denials.DenialLog`` (security.md 4.9).
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
from trouter.config.entities.group import LEVELS
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

#: Alarms that are shown by name; what is beyond is counted only.
MAX_SHOWN: Final = 64
NO_SAMPLINGS: Final[Mapping[str, Sampling]] = MappingProxyType({})

log = logging.getLogger("trouter.POLICY")


#: Where no policy is in force, or the requester is not known.
EVERYTHING: Final = Rights("admin")
NOTHING: Final = Rights("none", allow_admin_status_update=False, allow_dynamic_link_routes=False)
#: What requests may do whose user is not known here, by the policy's routerManagement.
RIGHTS_AT: Final = {level: NOTHING if level == "none" else Rights(level) for level in LEVELS}


class Policing:
    """The policy of one router, and what it has admitted and denied."""

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
        #: What is recorded of messages, by vhost.
        self.samplings = NO_SAMPLINGS
        self._sanctions = Sanctions(now) if sanctions is None else sanctions

    # --- sockets

    def accept(self, role: str, host: str) -> bool:
        """Count a connection that comes in, if there is room for one more; ``left`` when it has gone."""
        counts, entity = self.counts, self.policy.entity
        counts.connections_processed += 1
        reserve = entity.router_connections if role in ROUTER_ROLES and entity.max_connections else 0
        if counts.connections_current >= entity.max_connections + reserve:
            self.deny(Denied.ACCEPT, None, "policy:maxConnections", text=host)
            return False
        counts.connections_current += 1
        return True

    def left(self) -> None:
        """Count a connection no longer that was counted by ``accept``."""
        self.counts.connections_current -= 1

    # --- connections

    def admit(self, request: OpenRequest) -> Admission | None:
        """Return the terms under which a connection may open, if it may; ``hold`` it then."""
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
        """Refuse a connection through a multi-tenant listener that has no tenant."""
        self._denials.deny(Denied.TENANT, request, Denial(Reason.NO_VHOST), f"tenant:{why}", request.hostname)

    def is_blocked(self, request: OpenRequest, admission: Admission, tenant: str = "") -> bool:
        """Return whether a decision keeps out a connection that may open otherwise; counted and told if so."""
        held = AdmittedConnection(request, admission, GONE, request.name, tenant)
        blocked = self._block_on(held)
        if blocked:
            self._deny_by(blocked, held)
        return bool(blocked)

    def hold(
        self, request: OpenRequest, admission: Admission, connection: PolicedConnection, tenant: str = ""
    ) -> AdmittedConnection:
        """Count a connection that was admitted, until ``leave``."""
        held = self._held[request.number] = AdmittedConnection(request, admission, connection, request.name, tenant)
        if admission.vhost:
            self._denials.counts_of(admission.vhost).connections_approved += 1
            self._enter(held)
        self._bind(held)
        return held

    def leave(self, number: int, resources: tuple[int, int, int] = (0, 0, 0)) -> None:
        """Release a connection that has gone; nothing happens if it was never held.

        ``resources``: sessions, senders and receivers that it had at its end.
        """
        held = self._held.pop(number, None)
        if held is not None:
            log.debug("[C%d] %s", number, closed(held.request.name, resources, held.denials, len(self._held)))
            held.connection = GONE  # so that it goes at once, with all that refers to it
            self._unbind(held)
            self._forget(held)

    def held(self, number: int) -> AdmittedConnection | None:
        """Return the connection of this number, if it is in."""
        return self._held.get(number)

    def rights(self, number: int) -> Rights:
        """Return what the user of a connection may do in management; connection 0 is the router itself."""
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

    def _judge(self, policy: Policy, request: OpenRequest) -> Admission | Denial:
        """Return the decision of the policy; a plugin may already have chosen the vhost or the addresses."""
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
        """Count it among its vhost's; one client may come to two listeners from the same port."""
        request, counts = held.request, self._denials.counts_of(held.admission.vhost)
        held.name = request.name if request.name not in counts.open else f"{request.name}[C{request.number}]"
        counts.open.enter(held.name, request.user, request.host)

    def _bind(self, held: AdmittedConnection) -> None:
        """Hold it to the quotas of its admission."""
        quotas, request = (*held.admission.quotas, *self._slowing(held)), held.request
        if quotas:
            held.share = self.quotas.share(quotas, request.user, request.host, held.connection.received_bytes)

    def _unbind(self, held: AdmittedConnection) -> None:
        if held.share is not None:
            self.quotas.leave(held.share)
            held.share = None

    def _forget(self, held: AdmittedConnection) -> None:
        """Count it among its vhost's no longer; a vhost that is gone is forgotten with its last connection."""
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
        """Return what records messages that come on a connection, and tells ``log`` of them; None for nothing."""
        sampling = self.samplings.get(held.admission.vhost)
        if sampling is None or held.request.role in ROUTER_ROLES:
            return None
        who = held.request
        about = {"conn": who.number, "vhost": held.admission.vhost, "user": who.user or None, "host": who.host}
        about["tenant"] = held.tenant or None
        return Sampler(sampling, about, self._recorder.emit, self.quotas.now, log)

    # --- decisions

    def follow_order(self, target: Target) -> None:
        """Hold the present connections, other than routers', to a decision that was made or has ended."""
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
        """Return the decision that blocks a connection, by its name; empty for none."""
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
        """Return what decisions add to the quotas of a connection."""
        if held.request.role in ROUTER_ROLES:
            return
        for scope in held.scopes:
            rate = self._sanctions.rate(scope)
            if rate is not None:
                yield QuotaRule(scope, f"decision:{scope}", "", Quotas(max_messages_per_second=rate), enforced=True)

    # --- another policy

    def become(self, policy: Policy, samplings: Mapping[str, Sampling] = NO_SAMPLINGS) -> None:
        """Put another policy in force, also for open connections as far as their vhosts say (security.md 4.13)."""
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
        """Use the same policy with other addresses for its host names; only new connections are judged by them."""
        self.policy = policy

    def _stays(self, held: AdmittedConnection, before: Policy, policy: Policy) -> bool:
        """Return whether the change is not for this connection: its vhost has it so, or had it so and is gone."""
        vhost = held.admission.vhost
        found = policy.vhosts.get(vhost) or before.vhosts.get(vhost)
        return found is not None and bool(vhost) and found.entity.apply_to == "new"

    def _move(self, held: AdmittedConnection, admission: Admission) -> None:
        """Go on under other terms, in another vhost if need be."""
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
        """Let a connection go by its terms as they are now."""
        try:
            held.connection.follow(held.admission)
        except Exception:
            log.exception("[C%d] cannot apply the changed policy, connection closed", held.request.number)
            held.connection.turn_out(CONNECTION_DENIED)

    # --- what is logged and recorded

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
        """Count, log and record a denial; ``text`` says more of it in the log; ``held`` is None before admission."""
        if held is None:
            self._denials.deny(what, None, Denial(Reason.MAX_CONNECTIONS), rule, text, address, direction)
        else:
            if what.value.vhost:
                held.denials[what.value.vhost] = held.denials.get(what.value.vhost, 0) + 1
            admission = held.admission
            where = Denial(Reason.NO_GROUP, admission.vhost, admission.group)
            self._denials.deny(what, held.request, where, rule, text, address, direction)

    def _log_alarm(self, alarm: QuotaAlarm) -> None:
        """A quota is met, or is not any more: once each."""
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
        """Count and log that the user of connection ``number`` asked for what it may not do."""
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

    # --- what management shows

    def quota_alarms(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return alarms about quotas by vhost: since the start, and those raised now."""
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
