"""The policy of one router: the one in force, and the connections that it has admitted.

`judge` decides, `book` counts, `record` writes what was decided; here the three are applied to what a router does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import islice
from types import MappingProxyType
from typing import Final

from trouter.columns.security import VhostCounts, VhostFacts
from trouter.config.entities import PolicyEntity, Quotas
from trouter.config.hosts import place_of
from trouter.config.schema import camel
from trouter.core.terms import ROUTER_ROLES
from trouter.engine.ports import Budget
from trouter.hooks import Plugins
from trouter.management.ports import Rights
from trouter.net.tallies import Tallies
from trouter.net.view import ConnectionView
from trouter.telemetry.recorder import Recorder
from trouter.telemetry.sampling import Sampling
from trouter.telemetry.user_keys import user_key
from trouter.wire.performatives import Error

from .book import Book, QuotaAlarm
from .closed import ClosedServices
from .compiled import Policy
from .connection_policy import ConnectionPolicy, PolicyInForce, scopes_of
from .judge import (
    EVERYTHING,
    Admission,
    Verdict,
    deny_consumer,
    deny_management,
    deny_user,
    judge_accept,
    judge_counts,
    judge_decisions,
    judge_open,
    judge_tenant,
    rights_of,
)
from .kinds import CONNECTION_DENIED, USER_DENIED
from .quota_rules import QuotaRule
from .record import PolicyRecord, closed_line
from .requests import OpenRequest
from .sanctions import BLOCK_HOST, LOCK_USER, SLOW_TENANT, Sanctions, SanctionTarget

#: Alarms that are shown by name; further ones are only counted.
MAX_SHOWN: Final = 64
#: The key by which all workers count their connections.
_SOCKETS: Final = "connections"
NO_SAMPLINGS: Final[Mapping[str, Sampling]] = MappingProxyType({})

log = logging.getLogger("trouter.POLICY")


class RouterPolicy:
    """The policy of one router, and the connections that it has admitted. ``now`` returns the time in seconds."""

    def __init__(
        self,
        recorder: Recorder,
        plugins: Plugins,
        now: Callable[[], float],
        sanctions: Sanctions | None = None,
        tallies: Tallies | None = None,
        siblings: Collection[str] = (),
    ) -> None:
        """``tallies``: the counts of all workers; None for a router of one process. ``siblings``: the other workers."""
        self._tallies = tallies
        self._closed = ClosedServices(siblings) if siblings else None
        self.book = Book(now, lambda: Budget(0), self._note_alarm, tallies)
        self._record = PolicyRecord(recorder)
        self._in_force = PolicyInForce(
            Policy.compile(PolicyEntity(), ()), NO_SAMPLINGS, self.book, self._record, recorder, plugins
        )
        self._plugins = plugins
        #: The admitted connections and their policies, by number.
        self._connections: dict[int, ConnectionView] = {}
        self._admitted: dict[int, ConnectionPolicy] = {}
        self._sanctions = Sanctions(now) if sanctions is None else sanctions

    @property
    def compiled(self) -> Policy:
        """The policy in force."""
        return self._in_force.policy

    @property
    def samplings(self) -> Mapping[str, Sampling]:
        """The samplings of messages, by vhost."""
        return self._in_force.samplings

    # --- sockets

    def accept_socket(self, role: str, host: str, *, sibling: bool = False) -> bool:
        """Count a new connection and return True if there is room for it; its end calls ``release_socket``.

        Those of ``sibling`` workers belong to the router: they are neither limited nor counted.
        """
        if sibling:
            return True
        counts = self._record.counts
        counts.connections_processed += 1
        open_now = counts.connections_current if self._tallies is None else self._tallies.raise_count(_SOCKETS) - 1
        verdict = judge_accept(self.compiled, host, open_now, router=role in ROUTER_ROLES)
        if not verdict.allowed:
            if self._tallies is not None:
                self._tallies.lower_count(_SOCKETS)
            self._record.record_verdict(verdict, None)
            return False
        counts.connections_current += 1
        return True

    def release_socket(self, *, sibling: bool = False) -> None:
        """Uncount a connection that ``accept_socket`` counted."""
        if sibling:
            return
        self._record.counts.connections_current -= 1
        if self._tallies is not None:
            self._tallies.lower_count(_SOCKETS)

    # --- connections

    def judge_open(self, request: OpenRequest) -> Verdict:
        """Return whether a connection may open, and its terms; count and record that. ``admit_connection`` follows."""
        host = self.compiled.counted_host(request.remote_host)
        verdict, quotas = judge_counts(self._judge_request(request), request, host, self.book)
        if quotas is not None:
            self.book.note_answer(quotas)
        self._record.record_verdict(verdict, request)
        return verdict

    def release_place(self) -> None:
        """Give back the place of a connection that ``judge_open`` has allowed, and that was not admitted after all."""
        self.book.release_place()

    def judge_decisions(self, request: OpenRequest, admission: Admission, tenant: str = "") -> Verdict:
        """Return whether a connection that may open otherwise is blocked by a decision; record it if so."""
        blocked = self._blocking_action(request, scopes_of(admission, tenant))
        verdict = judge_decisions(request, admission, blocked)
        if not verdict.allowed:
            self._record.record_verdict(verdict, request)
        return verdict

    def deny_tenant(self, request: OpenRequest, why: str, error: Error) -> None:
        """Count and record the refusal of a connection without a tenant."""
        self._record.record_verdict(judge_tenant(request, why, error), request)

    def deny_user(self, request: OpenRequest) -> Error:
        """Count and record the refusal of a user that the listener does not allow; return the peer's error."""
        self._record.record_verdict(deny_user(request), request)
        return USER_DENIED

    def admit_connection(
        self,
        request: OpenRequest,
        admission: Admission,
        connection: ConnectionView,
        tenant: str = "",
        *,
        stamps: bool = False,
    ) -> ConnectionPolicy:
        """Return the policy of a connection that may open, and count the connection, until ``leave``."""
        rules = self._quotas_of(request, admission, tenant)
        counted = self.book.count_connection(
            request.name,
            admission.vhost,
            rules,
            request.user,
            self.compiled.counted_host(request.remote_host),
            connection.received_bytes,
            request.connection_id,
        )
        if admission.vhost:
            self._record.counts_of(admission.vhost).connections_approved += 1
        made = ConnectionPolicy(self._in_force, request, admission, counted, tenant=tenant, stamps=stamps)
        self._admitted[request.connection_id] = made
        self._connections[request.connection_id] = connection
        return made

    def release_connection(self, number: int, resources: tuple[int, int, int] = (0, 0, 0)) -> None:
        """Release an ended connection; do nothing if it was never admitted.

        ``resources``: the sessions, senders and receivers that it had at its end.
        """
        admitted = self._admitted.pop(number, None)
        if admitted is not None:
            vhost = admitted.admission.vhost
            counts = self._record.vhosts.get(vhost) or VhostCounts()
            log.debug("[C%d] %s", number, closed_line(admitted.request.name, resources, counts, len(self._admitted)))
            del self._connections[number]
            self.book.release_share(admitted.counted)
            self._forget_unused(vhost)

    def policy_of(self, number: int) -> ConnectionPolicy | None:
        """Return the policy of the admitted connection with this number; None if there is none."""
        return self._admitted.get(number)

    def _judge_request(self, request: OpenRequest) -> Verdict:
        """Return the policy's decision, without counts; a plugin may choose the vhost or the addresses."""
        verdict = judge_open(self.compiled, request, self._plugins.vhost_policy(request))
        admission = verdict.admission
        if self._closed is None or admission is None or admission.unrestricted:
            return verdict
        if rights_of(self.compiled, admission) == EVERYTHING:
            return verdict
        return verdict._replace(admission=replace(admission, closed=self._closed))

    def _quotas_of(self, request: OpenRequest, admission: Admission, tenant: str) -> tuple[QuotaRule, ...]:
        """Return the quotas of a connection, with those that decisions add."""
        if request.role in ROUTER_ROLES:
            return admission.quotas
        slowed = ((scope, self._sanctions.rate_limit(scope)) for scope in scopes_of(admission, tenant))
        return (*admission.quotas, *(_slow(scope, rate) for scope, rate in slowed if rate is not None))

    def _forget_unused(self, vhost: str) -> None:
        """Forget the counters of a vhost that is not configured, with its last connection."""
        if vhost not in self.compiled.vhosts and not len(self.book.connections_of(vhost)):
            self._record.vhosts.pop(vhost, None)

    # --- management and consumers

    def rights_of(self, number: int) -> Rights:
        """Return the management rights of a connection's user; connection 0 is the router itself."""
        return rights_of(self.compiled, self._admission_of(number)) if number else EVERYTHING

    def may_send(self, number: int, address: str) -> bool:
        """Return whether the user of a connection may send to an address; connection 0 is the router itself."""
        admission = self._admission_of(number)
        if admission is None:
            return not (number and self.compiled.entity.enable_vhost_policy)
        return admission.may_send(address).allowed

    def find_uncovered(self, number: int, pattern: str, direction: str) -> str | None:
        """Return an address that a link route of a connection would take and its user may not use; None if none.

        PatternError if the pattern is invalid, or too complex for an answer.
        """
        admission = self._admission_of(number)
        if admission is None:
            return pattern if number and self.compiled.entity.enable_vhost_policy else None
        rules = admission.sources if direction == "in" else admission.targets
        return rules.find_uncovered(pattern, admission.user_text)

    def deny_management(self, number: int, what: str) -> None:
        """Count and log that the user of connection ``number`` requested more than its rights allow."""
        admitted = self._admitted.get(number)
        admission = None if admitted is None else admitted.admission
        verdict = deny_management(self.rights_of(number), admission, what)
        self._record.record_verdict(verdict, None if admitted is None else admitted.request)

    def user_key_of(self, number: int) -> Hashable | None:
        """Return the key of the user of connection ``number``; None for a router, which carries requests of many."""
        admitted = self._admitted.get(number)
        if admitted is None or admitted.request.role in ROUTER_ROLES:
            return None
        return user_key(admitted.admission.vhost, admitted.request.user, admitted.request.remote_host)

    def tell_repeated(self, number: int, what: str, write: Callable[[int], None]) -> None:
        """Write lines about ``what`` the user of connection ``number`` may repeat at will; see ``PolicyRecord``."""
        admitted = self._admitted.get(number)
        if admitted is None:
            write(1)
        else:
            self._record.tell_repeated(what, admitted.admission.vhost, admitted.request, write)

    def deny_consumer(self, admitted: ConnectionPolicy | None, address: str) -> None:
        """Count and record that a consumer refuses a message of a connection, None if it is unknown."""
        admission, request = (None, None) if admitted is None else (admitted.admission, admitted.request)
        self._record.record_verdict(deny_consumer(admission, address), request)

    def _admission_of(self, number: int) -> Admission | None:
        admitted = self._admitted.get(number)
        return None if admitted is None else admitted.admission

    # --- decisions

    def apply_decision(self, target: SanctionTarget) -> None:
        """Apply a decision that was made or has ended to the open connections, except routers'."""
        for admitted in list(self._admitted.values()):
            if not _concerns(target, admitted):
                continue
            request, admission = admitted.request, admitted.admission
            if target.action == SLOW_TENANT:
                rules = self._quotas_of(request, admission, admitted.tenant)
                self.book.move_connection(
                    admitted.counted, admission.vhost, rules, self._connections[request.connection_id].received_bytes
                )
                self._apply_terms(admitted)
            elif blocked := self._blocking_action(request, admitted.scopes):
                self._record.record_verdict(judge_decisions(request, admission, blocked), request)
                self._connections[request.connection_id].turn_out(CONNECTION_DENIED)

    def _blocking_action(self, request: OpenRequest, scopes: tuple[str, ...]) -> str:
        """Return the action that blocks a connection; empty for none."""
        if request.role in ROUTER_ROLES or request.outgoing:
            return ""
        if self._sanctions.blocks_host(request.remote_host):
            return BLOCK_HOST
        return LOCK_USER if self._sanctions.blocks_user(request.user, *scopes) else ""

    # --- another policy

    def replace_policy(self, policy: Policy, samplings: Mapping[str, Sampling] = NO_SAMPLINGS) -> None:
        """Put another policy in force, also for open connections if their vhosts allow it (security.md 4.13)."""
        in_force = self._in_force
        before, sampled = in_force.policy, in_force.samplings
        in_force.policy, in_force.samplings = policy, samplings
        if before is policy:
            return
        for vhost in list(self._record.vhosts):
            self._forget_unused(vhost)
        for admitted in list(self._admitted.values()):
            if self._keeps_admission(admitted, before, policy):
                continue
            verdict = self._judge_request(admitted.request)
            if verdict.admission is None:
                self._record.record_verdict(verdict, admitted.request)
                self._connections[admitted.request.connection_id].turn_out(CONNECTION_DENIED)
            elif verdict.admission != admitted.admission or (
                sampled.get(verdict.vhost) is not samplings.get(verdict.vhost)
            ):
                self._move_connection(admitted, verdict.admission)

    def replace_addresses(self, policy: Policy) -> None:
        """Use the same policy with other addresses of its host names; it applies to new connections only."""
        self._in_force.policy = policy

    def _keeps_admission(self, admitted: ConnectionPolicy, before: Policy, policy: Policy) -> bool:
        """Return whether the change does not apply to this connection: its vhost's applyTo is, or last was, "new"."""
        vhost = admitted.admission.vhost
        found = policy.vhosts.get(vhost) or before.vhosts.get(vhost)
        return found is not None and bool(vhost) and found.entity.apply_to == "new"

    def _move_connection(self, admitted: ConnectionPolicy, admission: Admission) -> None:
        """Apply other terms to a connection, in another vhost if necessary."""
        left = admitted.admission.vhost
        admitted.admission = admission
        rules = self._quotas_of(admitted.request, admission, admitted.tenant)
        self.book.move_connection(
            admitted.counted, admission.vhost, rules, self._connections[admitted.request.connection_id].received_bytes
        )
        if left != admission.vhost:
            self._forget_unused(left)
        if admission.vhost:
            self._record.counts_of(admission.vhost)
        self._apply_terms(admitted)

    def _apply_terms(self, admitted: ConnectionPolicy) -> None:
        """Make a connection follow its current terms; close it if that fails."""
        connection = self._connections[admitted.request.connection_id]
        try:
            connection.follow_policy(admitted.admission.vhost)
        except Exception:
            log.exception("[C%d] cannot apply the changed policy, connection closed", admitted.request.connection_id)
            connection.turn_out(CONNECTION_DENIED)

    def _note_alarm(self, alarm: QuotaAlarm) -> None:
        """Record that a quota is met, or no longer is."""
        self._record.record_alarm(alarm, configured=alarm.rule.vhost in self.compiled.vhosts)

    # --- for management

    def quota_alarms(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the numbers of quota alarms by vhost: since the start, and those raised now."""
        names = dict.fromkeys((*self.compiled.vhosts, *self._record.vhosts))
        counts = {name: self._record.vhosts[name].quota_alarms if name in self._record.vhosts else 0 for name in names}
        raised = self.book.raised_by_vhost()
        return counts, {name: raised[name] for name in names}

    def shown_policy(self) -> Mapping[str, object]:
        """Return the counters of ``policy``."""
        return {camel(name): count for name, count in asdict(self._record.counts).items()}

    def shown_vhosts(self) -> Iterator[tuple[str, VhostFacts]]:
        """Yield the vhosts by name: those configured, then others with connections."""
        for name in dict.fromkeys((*self.compiled.vhosts, *self._record.vhosts)):
            counts, connections = self._record.vhosts.get(name) or VhostCounts(), self.book.connections_of(name)
            alarms = list(islice(self.book.alarms_of(name), MAX_SHOWN))
            yield (
                name,
                VhostFacts(name, counts, len(connections), connections.by_user(), connections.by_host(), alarms),
            )


def _slow(scope: str, rate: int) -> QuotaRule:
    """Return the quota by which a decision slows a tenant or vhost down."""
    return QuotaRule(scope, f"decision:{scope}", "", Quotas(max_messages_per_second=rate), enforced=True)


def _concerns(target: SanctionTarget, admitted: ConnectionPolicy) -> bool:
    """Return whether a decision applies to a connection."""
    if target.action == BLOCK_HOST:
        return place_of(admitted.request.remote_host) == target.subject
    if target.action == SLOW_TENANT:
        return target.subject in admitted.scopes
    return admitted.request.user == target.subject
