"""The router as its HTTP listeners see it: figures, health, and connections that come through WebSockets."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from itertools import product
from typing import Final

import trio

import trouter
from trouter import _twin, logs
from trouter._bugs import BUGS
from trouter.backbone.backbone import Backbone
from trouter.columns.router import ROUTER, ProcessFacts
from trouter.columns.rows import Rows
from trouter.config import AutoLinkEntity, LinkRouteEntity, ListenerEntity
from trouter.config.facts import listener_facts
from trouter.config.findings import brief, counted
from trouter.config.problems import Severity
from trouter.config.workers import FIRST, joins_workers
from trouter.connections.listen import Listener
from trouter.core.addresses import temporary_token
from trouter.core.allocations import owners
from trouter.core.autolinks import ACTIVE
from trouter.core.counters import BOUNDS_S
from trouter.core.egress import Egress
from trouter.core.inprocess import InsideMessage
from trouter.core.router import Router
from trouter.core.tenants import Tenant
from trouter.engine.ports import Budget
from trouter.hooks import PeerFacts
from trouter.http.figures import (
    AddressFigures,
    CertificateExpiry,
    ConnectorFigures,
    Figures,
    ListenerFigures,
    MemoryOwner,
    NetworkFigures,
    RouteFigures,
    TenantFigures,
)
from trouter.http.ports import Secured
from trouter.net.turns import TaskTurns, Turn, host_key
from trouter.net.workers import ANSWERED_WITHIN_S, METRICS, READY, Workers
from trouter.telemetry.refusals import BLOCKED, LIMIT, PROXY_HEADER, REASONS
from trouter.wire.constants import AMQP_VALUE
from trouter.wire.message import section

from .in_force import ConfigurationInForce

#: The answer of another worker that is ready.
OK: Final = "OK"

#: Outcome of a tenant's deliveries -> its counter.
_ENDS: Final = {
    **{each: each for each in ("accepted", "rejected", "released", "modified", "presettled")},
    "dropped": "dropped_presettled",
}


class RouterSite:
    """One router, as all its HTTP listeners share it."""

    def __init__(
        self,
        router: Router,
        in_force: ConfigurationInForce,
        make_gate: Callable[[ListenerEntity], Listener],
        turns: TaskTurns,
        budget: Budget,
        backbone: Backbone | None,
        workers: Workers | None = None,
    ) -> None:
        """``make_gate`` returns the listener that admits the clients of an HTTP listener's WebSockets.

        ``workers`` are those of a router of several processes.
        """
        self._workers = workers
        self._router = router
        self._in_force = in_force
        self._turns = turns
        self._budget = budget
        self._backbone = backbone
        self._make_gate = make_gate
        self._gates: dict[str, Listener] = {}
        self._began_s = trio.current_time()

    def ready(self) -> bool:
        """Return whether everything configured is served and the router is not stopping."""
        return not self.reasons()

    def reasons(self) -> tuple[str, ...]:
        """Return why the router is not ready, a line each: it stops, or a configured entity is not served."""
        stops = ("the router is stopping",) if self._in_force.stopping else ()
        found = [finding for finding in self._in_force.findings() if finding.severity is Severity.PROBLEM]
        return (*stops, *self._in_force.drain.reasons(), *map(brief, found))

    async def reasons_of_workers(self) -> tuple[str, ...]:
        """Return why other workers are not ready, a line each; empty if they are, or the router is one process."""
        given = await self._ask_workers(READY)
        lines = {number: (text or b"does not answer").decode().splitlines() for number, text in given.items()}
        return tuple(f"worker {number}: {line}" for number, found in lines.items() for line in found if line != OK)

    async def _ask_workers(self, what: str, request: bytes = b"") -> dict[int, bytes | None]:
        """Return the answers of the other workers by number, None for one that does not answer."""
        workers = self._workers
        if workers is None:
            return {}
        found: dict[int, bytes | None] = {number: None for number in workers.ids if number != workers.number}

        async def ask(number: int) -> None:
            with suppress(OSError):
                found[number] = await workers.ask(number, what, request, limit_s=ANSWERED_WITHIN_S)

        async with trio.open_nursery() as nursery:
            for number in found:
                nursery.start_soon(ask, number)
        return found

    async def answer_ready(self, _: bytes) -> bytes:
        """Return to another worker why this one is not ready, a line each; or that it is."""
        await trio.lowlevel.checkpoint()
        return "\n".join(self.reasons() or (OK,)).encode()

    async def answer_metrics(self, tenant: bytes) -> bytes:
        """Return the text of /metrics of this worker to another one."""
        await trio.lowlevel.checkpoint()
        return self._own_exposition(tenant.decode())

    def refuses_clients(self, entity: ListenerEntity) -> str:
        """Return why no new client may come through a listener: the router drains; empty if one may."""
        return "the router is draining" if self._in_force.drain.active and entity.clients_leave else ""

    def live(self) -> bool:
        """Return True: the answer shows that the event loop runs, and no more."""
        return True

    async def healthy(self) -> bool:
        """Return whether a message to an address inside the router arrives."""
        await trio.lowlevel.checkpoint()
        echo = Echo()
        address = f"_local/temp.{temporary_token()}"
        subscription = self._router.inside.subscribe(address, echo)
        try:
            self._router.inside.send_message(address, Echo.MESSAGE)
        finally:
            self._router.inside.unsubscribe(subscription)
        return echo.heard == 1

    def turns_away(self, remote: tuple[str, int], listener: str, full: Callable[[], str]) -> bool:
        """Return whether a new connection is to be closed at once; ``full`` returns a reason or an empty string."""
        guard, host = self._in_force.parts.guard, remote[0]
        blocked = guard.blocking_reason(host, "normal")
        why = blocked or guard.handshakes.too_fast(host) or full()
        if why:
            guard.refusals.count_refused(listener, BLOCKED if blocked else LIMIT)
        return guard.refuses_connection(*remote, why)

    def refuses_header(self, remote: tuple[str, int], listener: str, why: str) -> None:
        """Note that a connection without a valid PROXY header is closed."""
        self._in_force.parts.guard.refusals.count_refused(listener, PROXY_HEADER)
        self._in_force.parts.guard.refuses_connection(*remote, why)

    def refuses_upgrade(self, remote: tuple[str, int], listener: str, why: str) -> None:
        """Note that a connection is refused a WebSocket because its listener has too many."""
        self._in_force.parts.guard.refusals.count_refused(listener, LIMIT)
        self._in_force.parts.guard.refuses_connection(*remote, why)

    def turn(self, host: str) -> Turn:
        """Return the turns of a task that works for a client on ``host``."""
        return Turn(self._turns, host_key(host))

    async def secure(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, timeout_s: float, turn: Turn
    ) -> Secured | None:
        """Return the stream of an accepted socket, with TLS if the client begins it; None if the handshake failed."""
        loopback = ip_address(remote[0].partition("%")[0]).is_loopback
        facts = PeerFacts(0, listener_facts(entity), *remote, encrypted=False, loopback=loopback)
        refused = partial(self._in_force.parts.guard.refusals.count_refused, entity.name)
        met = await self._in_force.parts.secure.accept(sock, facts, entity, timeout_s, turn, refused)
        if met is None:
            return None
        from trouter.tls.stream import SecureStream  # noqa: PLC0415

        facts, security = met
        below = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        return Secured(SecureStream(below, security.channel, security.early), met if facts.encrypted else None)

    async def serve_amqp(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, below: object | None
    ) -> None:
        """Serve a client that came through a WebSocket until it ends; close it at once if the router is stopping."""
        if self._in_force.stopping:
            sock.close()
            return
        gate = self._gates.get(entity.identity)
        if gate is None or gate.entity != entity:
            gate = self._gates[entity.identity] = self._make_gate(entity)
            running = {listener.entity.identity for listener in self._in_force.parts.listeners.running}
            self._gates = {identity: each for identity, each in self._gates.items() if identity in running}
        await gate.serve_socket(sock, remote, below if isinstance(below, tuple) else None)

    async def metrics_of_workers(self, tenant: str) -> dict[int, bytes | None]:
        """Return the texts of /metrics of the other workers by number, None for one that does not answer."""
        return await self._ask_workers(METRICS, tenant.encode())

    def exposition(self, tenant: str, others: Mapping[int, bytes | None]) -> bytes:
        """Return the text of /metrics, of the whole router or of ``tenant`` if that is not empty.

        ``others`` are the texts of the other workers.
        """
        own = self._own_exposition(tenant)
        if self._workers is None:
            return own
        from trouter.http.metrics import exposition_of_workers  # noqa: PLC0415  # only once it is asked for

        return exposition_of_workers(dict(sorted({self._workers.number: own, **others}.items())))

    def _own_exposition(self, tenant: str) -> bytes:
        """Return the text of /metrics of this process."""
        from trouter.http.metrics import exposition, tenant_exposition  # noqa: PLC0415  # only once it is asked for

        return tenant_exposition(self.tenant(tenant)) if tenant else exposition(self.figures())

    def figures(self) -> Figures:
        """Return the present figures of the router."""
        parts, budget, uplink = self._in_force.parts, self._budget, self._in_force.uplink()
        quota_alarms, quota_alarms_raised = parts.policy.quota_alarms()
        engines = [each.engine for each in parts.connections.values()]
        return Figures(
            totals=self._totals(),
            version=trouter.__version__,
            twin=_twin.running(),
            uptime_s=trio.current_time() - self._began_s,
            policy_digest=self._in_force.configuration.policy_digest,
            ready=self.ready(),
            draining=self._in_force.drain.active,
            drain_left=self._in_force.drain.report().left,
            findings=counted(self._in_force.findings()),
            listeners=[
                ListenerFigures(each.entity.name, len(each.peers), each.accepted, each.refused)
                for each in parts.listeners.running
                if not joins_workers(each.entity)
            ],
            connectors=self._connectors(),
            auto_links=[
                self._route_figures(entity, auto.state == ACTIVE, auto.attempts)
                for entity, auto in parts.routes.auto_links.values()
            ],
            link_routes=[
                self._route_figures(entity, self._router.routes.is_active(route))
                for entity, route in parts.routes.routes.values()
                if self._workers is None or self._workers.number == FIRST  # the others reach brokers through it
            ],
            uplink_down_since_s=None if uplink is None else uplink.down_since_us / 1e6,
            turned_away=parts.guard.turned_away,
            handshakes_open=len(parts.guard.handshakes),
            logins_waiting=parts.guard.turns.waiting,
            refused=self._refused(),
            locked=parts.guard.lockout.count_locked(),
            vhost_connections=self._vhost_connections(),
            quota_alarms=quota_alarms,
            quota_alarms_raised=quota_alarms_raised,
            deliveries=self._router.outcomes.snapshot(),
            latency_bounds_s=BOUNDS_S,
            settle_latency=self._router.latency.snapshot(),
            memory=[MemoryOwner(*owner) for owner in owners(self._router, engines)],
            held_bytes=budget.held,
            held_limit_bytes=budget.limit,
            log_events=_log_events(),
            log_lines_lost=logs.book.lost,
            bugs=BUGS.total,
            certificates=[CertificateExpiry(*each) for each in parts.secure.ends()],
            addresses=[
                AddressFigures(name, deliveries, present)
                for name, (deliveries, present) in self._router.table.counts.sums(
                    self._router.table.entries, self._router.links.values()
                ).items()
            ],
            tenants=self._tenants(list(self._router.table.tenants)),
            network=self._network(),
        )

    def _refused(self) -> Mapping[tuple[str, str], int]:
        """Return the refused handshakes of each listener by reason, zeros too: a counter must be there to grow."""
        names = [each.entity.name for each in self._in_force.parts.listeners.running]
        return dict.fromkeys(product(names, REASONS), 0) | dict(self._in_force.parts.guard.refusals.counts)

    def _route_figures(self, entity: LinkRouteEntity | AutoLinkEntity, up: bool, attempts: int = 0) -> RouteFigures:
        return RouteFigures(entity.name, up, self._in_force.parts.routes.down_since_us(entity, up=up) / 1e6, attempts)

    def _network(self) -> NetworkFigures:
        backbone = self._backbone
        if backbone is None:
            return NetworkFigures()
        topology = backbone.topology
        return NetworkFigures(
            known=topology.known_count,
            reachable=topology.reachable_count,
            neighbours=topology.neighbour_count,
            duplicate_ids=len(topology.duplicate_ids),
            changes=topology.count,
            control_in=backbone.taken,
            control_out=backbone.sent,
            faults=topology.faults,
        )

    def tenant(self, name: str) -> TenantFigures:
        """Return the present figures of a tenant, zeros before its first connection."""
        known = self._router.table.tenants.get(name)
        return TenantFigures(name) if known is None else self._tenants((known,))[0]

    def _tenants(self, tenants: Collection[Tenant]) -> list[TenantFigures]:
        """Return the figures of tenants with one pass over all links and addresses, without tenants with none."""
        if not tenants:
            return []
        owners = {number: each for each in tenants for number in each.connections}
        spaces = {each.space: each for each in tenants}
        links: Counter[Tenant] = Counter()
        ended = {each: Counter(each.past) for each in tenants}
        for endpoint in self._router.links.values():
            owner = owners.get(endpoint.connection_number)
            if owner is not None:
                links[owner] += 1
                if not isinstance(endpoint, Egress):
                    ended[owner].update(endpoint.counters.as_dict())
        heads = (key[2:].partition("/")[0] for key in self._router.table.entries if key.startswith("M"))
        addresses = Counter(head for head in heads if head in spaces)
        return [
            TenantFigures(
                each.name,
                len(each.connections),
                links[each],
                addresses[each.space],
                {outcome: ended[each][counted] for outcome, counted in _ENDS.items()},
            )
            for each in tenants
        ]

    def _totals(self) -> dict[str, int]:
        configuration = self._in_force.configuration
        rows = Rows(ROUTER, self._router)
        facts = ProcessFacts(
            connections=len(self._in_force.parts.connections),
            link_routes=len(configuration.link_routes),
            auto_links=len(configuration.auto_links),
        )
        return {each.series.name: int(rows.value(facts, each.name)) for each in ROUTER if each.series is not None}

    def _connectors(self) -> list[ConnectorFigures]:
        return [
            ConnectorFigures(each.entity.name, each.is_up, each.down_since_us / 1e6, each.attempts)
            for each in self._in_force.parts.connectors.running
            if not joins_workers(each.entity)
        ]

    def _vhost_connections(self) -> Mapping[str, int]:
        known = dict.fromkeys((vhost.hostname for vhost in self._in_force.configuration.vhosts), 0)
        counts: Counter[str] = Counter(known)
        for connection in self._in_force.parts.connections.values():
            remote = connection.engine.remote_open
            name = remote.hostname if remote is not None else None
            counts[name if name in known and name is not None else ""] += 1
        return counts


class Echo:
    """Receiver of the message that a health check sends to itself."""

    MESSAGE: Final = section(AMQP_VALUE, None)

    def __init__(self) -> None:
        self.heard = 0

    def receive(self, received: InsideMessage) -> None:
        received.settle()
        self.heard += received.message == self.MESSAGE


def _log_events() -> dict[tuple[str, str], int]:
    """Return the events of the log by module and level."""
    return {(module, level): count for module, levels in logs.book.counts().items() for level, count in levels.items()}
