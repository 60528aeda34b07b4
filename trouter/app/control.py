"""The configuration in force and its changes, each applied as a whole or not at all (management.md 10).

Changes come one at a time. ``preparing`` prepares a change while the router goes on as before; then all of it is
applied in one step, in which nothing can fail and no other task runs.

In a router with several workers each has its part of one configuration in force. The first worker alone changes it,
and publishes it; the others adopt it.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio

from trouter.backbone.uplinks import Uplinks
from trouter.columns.router import UplinkFacts
from trouter.config import (
    AutoLinkEntity,
    BindingEntity,
    ChangeRefused,
    Configuration,
    ConfigurationError,
    ConnectorEntity,
    Entity,
    EntityType,
    ExchangeEntity,
    LinkRouteEntity,
    ListenerEntity,
    PolicyEntity,
    Problem,
    RecordLogEntity,
    SslProfileEntity,
    compare,
    created,
    deleted,
    row,
    updated,
)
from trouter.config.changes import lasting_warnings
from trouter.config.facts import router_facts
from trouter.config.findings import OVERTAKEN, evaluate, judged, ordered
from trouter.config.problems import Severity
from trouter.connections.connectors import Connectors
from trouter.connections.listen import Listener
from trouter.connections.listeners import Listeners, Standing
from trouter.management.ports import REQUESTER, DrainReport, ReloadReport
from trouter.net.parts import Change
from trouter.net.reach import Reach
from trouter.net.sockets import ListenError
from trouter.telemetry.change_records import ChangeRecords
from trouter.telemetry.clocks import now_us
from trouter.telemetry.tracing import MessageSpans
from trouter.wire.performatives import Error

from .certificate_findings import certificate_findings
from .consumers import Consumers
from .draining import Drain
from .link_findings import auto_link_findings, connector_findings, refusal_findings
from .pending import Unfit
from .preparing import BAD_REQUEST, ConfiguredParts, Occasion, Preparation
from .reload_report import log_changes, log_reload, report_of
from .routes import ConfiguredRoutes
from .running import Running
from .service import Service
from .uplink_findings import uplink_fault, uplink_findings
from .worker_findings import worker_findings

FORBIDDEN: Final = 403

log = logging.getLogger("trouter.MAIN")


class Control:
    """The configuration in force, and the only way to change it."""

    def __init__(
        self,
        configuration: Configuration,
        read: Callable[[], Configuration] | None,
        parts: ConfiguredParts,
        make_listener: Callable[[Control, ListenerEntity, list[socket.socket]], Standing],
        records: ChangeRecords,
        consumers: Consumers,
        running: Running,
        drain: Drain,
        spans: MessageSpans,
        reach: Reach,
        uplinks: Uplinks | None = None,
    ) -> None:
        """``configuration`` is that of the whole router, of which ``reach`` knows this process's part.

        ``read`` returns it for a reload, from the source of the present one; None if it has none. ``make_listener``
        returns a listener on sockets that are bound, which may show this object.
        """
        self.service = Service()
        self.running = running
        self.drain = drain
        self.stopping = False
        #: The configuration of the router, and this process's part of it, which is in force; often the same object.
        self._whole = configuration
        self._configuration = reach.part_of(configuration)
        self._read = read
        self._parts = parts
        self._make_listener = make_listener
        self._change_records = records
        self._consumers = consumers
        self._spans = spans
        self._uplinks = uplinks
        self._reach = reach
        self._one_at_a_time = trio.Lock()
        #: Cache of the findings about the configuration; None until they are first evaluated for it.
        self._findings: tuple[Problem, ...] | None = None

    @property
    def listeners(self) -> Listeners:
        """The open listeners, and closed ones that still serve peers."""
        return self._parts.listeners

    @property
    def connectors(self) -> Connectors:
        """The connectors that dial, and removed ones that still serve a peer."""
        return self._parts.connectors

    @property
    def routes(self) -> ConfiguredRoutes:
        """The link routes and auto links."""
        return self._parts.routes

    # --- the present state

    def uplink(self) -> UplinkFacts | None:
        """Return whether an edge router has an uplink that it can use; None on other routers."""
        if self._uplinks is None:
            return None
        fault = uplink_fault(self._uplinks, self.connectors.running)
        return UplinkFacts(fault, (self._uplinks.down_since_us or now_us()) if fault else 0)

    @property
    def _withheld(self) -> frozenset[str]:
        return frozenset(problem.entity for problem in self.service.withheld)

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self._configuration

    @property
    def behind(self) -> Mapping[int, str]:
        """The workers that serve with another configuration than this one, and why; see ``Reach``."""
        return self._reach.behind

    def record_change(self, operation: str, kind: str, identity: str, values: Mapping[str, str]) -> None:
        """Record a change of an entity that is not part of the configuration."""
        self._change_records.done(operation, kind, identity, values)

    def status(self, entity: Entity) -> Mapping[str, object]:
        """Return the observed attributes of an entity; none for one that is withheld or has none."""
        if isinstance(entity, LinkRouteEntity | AutoLinkEntity):
            return self._parts.routes.status(entity)
        if isinstance(entity, ExchangeEntity | BindingEntity):
            return self._parts.exchanges.status(entity)
        if isinstance(entity, PolicyEntity):
            return self._parts.policy.shown_policy()
        if isinstance(entity, RecordLogEntity):
            return self._parts.record_logs.status(entity)
        if isinstance(entity, SslProfileEntity):
            return self._parts.secure.status(entity)
        connector = self.connectors.find(entity) if isinstance(entity, ConnectorEntity) else None
        if connector is None:
            return {}
        return {
            "failoverUrls": connector.failover_urls,
            "connectionStatus": connector.status,
            "connectionMsg": connector.message or None,
            "connectionAttempts": connector.attempts,
            "downSince": connector.down_since_us // 1000 or None,
        }

    # --- beginning and end

    async def prepare_start(self) -> Change:
        """Return the first change, to be applied once the router runs; ListenError if the configuration is unfit."""
        try:
            return await self._prepare(self._configuration, Occasion.START)
        except Unfit as unfit:
            raise ListenError(*unfit.lines) from unfit

    def run_in(self, nursery: trio.Nursery) -> None:
        """Run listeners, connectors and consumers in ``nursery``."""
        self.listeners.run_in(nursery)
        self.connectors.run_in(nursery)
        nursery.start_soon(self._consumers.run)
        nursery.start_soon(self.drain.run)
        self._consume()

    def _consume(self) -> None:
        """Subscribe the consumers, and trace by the tracer, that the plugins want with the present configuration."""
        configuration = self._configuration
        settings = configuration.router.plugin_settings
        plugins, facts = self._parts.plugins, router_facts(configuration)
        self._consumers.replace_consumers(plugins.consumers(facts, settings))
        self._spans.trace_by(plugins.message_tracer(facts, settings))

    def record_start(self) -> None:
        """Record that the first configuration is in force."""
        configuration = self._configuration
        self._change_records.reloaded(configuration.source, by="start", changed=len(configuration.entities))
        self._change_records.vhosts(None, configuration)

    def serve(self, configuration: Configuration, service: Service) -> None:
        """Replace the entities in service; log those that are newly withheld."""
        known = self.service.withheld
        self.service = service
        self._findings = None
        for problem in service.withheld:
            if problem not in known:
                log.critical("%s", problem)

    def make_listener(self, entity: ListenerEntity, sockets: list[socket.socket]) -> Standing:
        """Return a listener on ``sockets``; one for HTTP shows this object."""
        return self._make_listener(self, entity, sockets)

    def findings(self) -> tuple[Problem, ...]:
        """Return the findings about the configuration in force and what is down of it, the most severe first."""
        if self._findings is None:
            found = evaluate(self._configuration, self._parts.plugins)
            unserved = {problem.entity for problem in self.service.withheld}
            rest = [
                one
                for one in found
                if not (one.severity is Severity.PROBLEM and (one.entity in unserved or one.point in OVERTAKEN))
            ]
            self._findings = judged(self._configuration, [*self.service.withheld, *rest])
        router, connectors = self._configuration.router, self.connectors.running
        down = [*self.drain.findings(router), *connector_findings(connectors)]
        down += certificate_findings(self._configuration.ssl_profiles, self._parts.secure.left())
        down += auto_link_findings(self.routes.auto_links.values())
        down += refusal_findings((each.entity for each in self.listeners.running), self._parts.guard.refusals)
        if self._uplinks is not None:
            down += uplink_findings(router, self._uplinks, connectors)
        down += worker_findings(router, self._reach.behind)
        return ordered([*self._findings, *down]) if down else self._findings

    async def retry_withheld(self) -> None:
        """Put into service the withheld parts that can be served now."""
        with suppress(ChangeRefused):
            async with self._turn():
                await self._put_in_force(self._whole, logs_warnings=False)

    async def start_drain(self, over_s: float) -> DrainReport:
        """Close the listeners of clients, and their connections over ``over_s`` seconds; ChangeRefused."""
        async with self._turn():
            self.drain.start(over_s, REQUESTER.get())
            try:
                await self._put_in_force(self._whole, logs_warnings=False)
            except ChangeRefused:
                self.drain.cancel()
                raise
            return self.drain.report()

    async def cancel_drain(self) -> DrainReport:
        """Open the listeners again; ChangeRefused if one cannot be opened: then the drain goes on."""
        async with self._turn():
            self.drain.reopens = True
            try:
                await self._put_in_force(self._whole, logs_warnings=False)
            finally:
                self.drain.reopens = False
            self.drain.cancel()
            return self.drain.report()

    def drain_report(self) -> DrainReport:
        """Return the state of the drain."""
        return self.drain.report()

    def refuse_work(self) -> None:
        """Refuse further changes and connections, because the process ends; the present connections go on."""
        self.stopping = True
        for listener in self.listeners.running:
            listener.drain()

    def stop(self, error: Error) -> None:
        """End listeners, connectors and connections; send ``error`` to every connected peer."""
        listeners = self.listeners.all
        self.listeners.stop()
        self.connectors.stop()
        for listener in listeners:
            if isinstance(listener, Listener):
                listener.end_peers(error)
        for connection in list(self._parts.connections.values()):
            if not connection.closing:
                connection.force_close(error)
        self._spans.trace_by(None)

    async def wait_done(self) -> None:
        """Wait until every listener and connector has ended its last connection."""
        for done in [*(each.done for each in self.listeners.all), *(each.done for each in self.connectors.all)]:
            await done.wait()

    # --- changes

    async def create(self, kind: EntityType, name: str | None, attributes: Mapping[str, object]) -> Entity:
        """Return an entity that was created and put into service; ChangeRefused, and nothing changed."""
        self._check_changeable()
        records = self._change_records.recording("CREATE", kind.full_name, name or "", attributes)
        async with self._turn():
            with records as change:
                whole, entity = created(self._whole, kind, name, attributes)
                await self._put_in_force(whole)
                change.after = entity
            log.info("created %s", entity.identity)
            await self.publish()
            return entity

    async def update(self, entity: Entity, attributes: Mapping[str, object]) -> Entity:
        """Change attributes of an entity and return the changed one; ChangeRefused, and nothing changed."""
        self._check_changeable()
        records = self._change_records.recording("UPDATE", entity.type.full_name, entity.identity, attributes)
        async with self._turn():
            with records as change:
                change.before = present = self._present(entity)
                shown = {**row(present), **self.status(entity)}
                whole, changed = updated(self._whole, present, attributes, shown)
                await self._put_in_force(whole)
                change.after = changed
            log.info("updated %s", changed.identity)
            await self.publish()
            return changed

    async def delete(self, entity: Entity) -> None:
        """Take an entity out of service; connections that came through it stay. ChangeRefused, and nothing changed."""
        self._check_changeable()
        records = self._change_records.recording("DELETE", entity.type.full_name, entity.identity, {})
        async with self._turn():
            with records as change:
                change.before = present = self._present(entity)
                await self._put_in_force(deleted(self._whole, present))
            log.info("deleted %s", present.identity)
            await self.publish()

    async def reload(self) -> ReloadReport:
        """Read the configuration again, apply it, return a report; ChangeRefused with all problems, nothing changed.

        Entities that management created and the file lacks are deleted: afterwards the file describes the router.
        """
        self._check_changeable()
        try:
            async with self._turn():
                report = await self._reload()
                await self.publish(reloaded=True)
                return report
        except ChangeRefused as refused:
            log.error("Reload refused, nothing was changed:")
            for line in refused.description.splitlines():
                log.error("%s", line)
            errors = len(refused.description.splitlines())
            self._change_records.reloaded(self._configuration.source, by="signal", errors=errors)
            raise

    async def _reload(self) -> ReloadReport:
        read, present = self._read, self._whole
        if read is None:
            raise ChangeRefused(FORBIDDEN, "this router was not started from a configuration that can be read again")
        try:
            changes = await trio.to_thread.run_sync(lambda: compare(present, read()), abandon_on_cancel=True)
        except ConfigurationError as error:
            raise ChangeRefused(BAD_REQUEST, "\n".join(str(problem) for problem in error.problems)) from error
        await self._put_in_force(changes.configuration, Occasion.RELOAD)
        report = report_of(changes)
        count = len(report.created) + len(report.updated) + len(report.deleted)
        self._change_records.reloaded(changes.configuration.source, by="signal", changed=count)
        log_reload(report, self._configuration.source)
        return report

    async def publish(self, *, reloaded: bool = False) -> None:
        """Have the other workers adopt the configuration, if this one is the first of several."""
        if not self._reach.why_fixed:
            await self._reach.publish(self._whole, reloaded=reloaded)

    async def adopt(self, whole: Configuration, *, reloaded: bool) -> None:
        """Put into force here what is in force in the first worker; ChangeRefused, and nothing changed.

        ``reloaded``: its file was read again, so the files that it names are read again too.
        """
        async with self._turn():
            changes = await trio.to_thread.run_sync(compare, self._whole, whole)
            await self._put_in_force(changes.configuration, Occasion.RELOAD if reloaded else Occasion.REQUEST)
            report = report_of(changes)
            if reloaded:
                log_reload(report, whole.source)
            else:
                log_changes(report)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with self._one_at_a_time:
            self._check_running()
            yield

    def _check_running(self) -> None:
        if self.stopping:
            raise ChangeRefused(FORBIDDEN, "the router is shutting down")

    def _check_changeable(self) -> None:
        """Check that the configuration may be changed here; ChangeRefused."""
        if self._reach.why_fixed:
            raise ChangeRefused(FORBIDDEN, self._reach.why_fixed)

    def _present(self, entity: Entity) -> Entity:
        """Return the entity as it is now: another change may have been applied while this one waited."""
        return self._whole.find(entity.identity) or entity

    def _part_of(self, whole: Configuration) -> Configuration:
        """Return this process's part of a configuration, with the entities that are in force as far as they stay."""
        part = self._reach.part_of(whole)
        return part if part is whole else compare(self._configuration, part).configuration

    async def _put_in_force(
        self, whole: Configuration, occasion: Occasion = Occasion.REQUEST, *, logs_warnings: bool = True
    ) -> None:
        """Prepare and apply this process's part of the configuration ``whole``; ChangeRefused, and nothing changed."""
        configuration = self._part_of(whole)
        try:
            change = await self._prepare(configuration, occasion)
        except Unfit as unfit:
            raise ChangeRefused(unfit.status, "\n".join(unfit.lines)) from unfit
        if self.stopping:
            change.drop()
            self._check_running()
        change.apply()
        self._change_records.vhosts(self._configuration, configuration)
        for warning in whole.warnings if logs_warnings else ():
            log.warning("%s", warning)
        is_part = configuration is not whole
        if occasion is Occasion.REQUEST:  # what was found in the file stays true of the parts that stay
            whole = whole.with_warnings(lasting_warnings(self._whole, whole))
        self._whole = whole
        self._configuration = configuration.with_warnings(whole.warnings) if is_part else whole
        if occasion is Occasion.RELOAD:
            self._consume()

    async def _prepare(self, configuration: Configuration, occasion: Occasion) -> Change:
        """Return the prepared change to ``configuration``; Unfit."""
        preparation = Preparation(self._parts, self, occasion)
        return await preparation.prepare(self._configuration, configuration, self._withheld)
