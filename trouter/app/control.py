"""The configuration in force, and how another comes into force: all of it or nothing (management.md 10).

One change at a time. Everything that may fail is done first, while the router goes on as before: sockets are bound,
files are opened, plugins are asked. Then all of it is applied in one step, in which nothing can fail and no other task
has a turn.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

import trio

from trouter import logs
from trouter.admission.decisions import Decisions
from trouter.admission.guard import Guard, Lockouts
from trouter.admission.host_names import HostNames
from trouter.admission.policing import Policing
from trouter.auth.auth_services import AuthServices
from trouter.backbone.topology import Topology
from trouter.config import (
    AutoLinkEntity,
    BindingEntity,
    ChangeRefused,
    Changes,
    Configuration,
    ConfigurationError,
    ConnectorEntity,
    Entity,
    EntityType,
    ExchangeEntity,
    LinkRouteEntity,
    PolicyEntity,
    Problem,
    RouterEntity,
    Updated,
    compare,
    created,
    deleted,
    row,
    updated,
)
from trouter.config.facts import listener_facts, router_facts
from trouter.config.findings import evaluate, ordered
from trouter.config.problems import Severity
from trouter.connections.connectors import Connectors
from trouter.connections.listen import ConnectionNumbers, Listener
from trouter.connections.listeners import Listeners
from trouter.connections.registry import Connections
from trouter.core.router import Router
from trouter.hooks import ConfigurationRefused, ListenerFacts, Plugins
from trouter.management.ports import ReloadReport, Rights
from trouter.net.parts import Change
from trouter.net.sockets import ListenError
from trouter.security.entries import EntryError
from trouter.security.policy import Policy
from trouter.telemetry.change_records import ChangeRecords
from trouter.telemetry.record_logs import RecordLogs
from trouter.telemetry.recorder import Recorder
from trouter.telemetry.sampling import Sampling, samplings_of
from trouter.tls.problems import TlsProblems
from trouter.tls.secure import Secure
from trouter.wire.performatives import Error

from .consumers import Consumers
from .exchanges import ConfiguredExchanges
from .routes import ConfiguredRoutes
from .rules import Rules
from .service import Service, service_of

BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
#: What the older router answers, and its tools expect, where a log file cannot be opened.
FAILED: Final = 500

#: What was found of files when the configuration was read: what is withheld for it now says more.
OVERTAKEN: Final = frozenset({"unreadable-file", "unknown-tls-version"})

log = logging.getLogger("trouter.MAIN")


class Unfit(Exception):
    """Something cannot be had; a line for each."""

    def __init__(self, lines: list[str], status: int) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.status = status


class Control:
    """What is configured now, and the only way to change it."""

    def __init__(
        self,
        configuration: Configuration,
        read: Callable[[], Configuration] | None,
        listeners: Listeners,
        connectors: Connectors,
        connections: Connections,
        numbers: ConnectionNumbers,
        router: Router,
        flush: Callable[[], None],
        plugins: Plugins,
        auth_services: AuthServices,
        secure: Secure,
        policing: Policing,
        record_logs: RecordLogs,
        recorder: Recorder,
        guard: Guard,
        topology: Topology | None = None,
    ) -> None:
        """``read`` gets the configuration for a reload, from where the present one came."""
        self.listeners = listeners
        self.connectors = connectors
        self.service = Service()
        self.stopping = False
        self._configuration = configuration
        self._read = read
        self._connections = connections
        self._numbers = numbers
        self._rules = Rules(router.table)
        self._routes = ConfiguredRoutes(router, flush)
        self._exchanges = ConfiguredExchanges(router, flush)
        self._plugins = plugins
        self._auth_services = auth_services
        self._secure = secure
        self._record_logs = record_logs
        self._guard = guard
        self._topology = topology
        self._lockouts = Lockouts(guard.lockout)
        self._change_records = ChangeRecords(recorder, connections)
        self._decisions = Decisions(guard.sanctions, policing, guard.lockout, self._change_records, flush)
        self.consumers = Consumers(router, plugins, policing, self._decisions, flush)
        self._one_at_a_time = trio.Lock()
        self._policing = policing
        self.host_names = HostNames()
        #: What is to be told of the configuration, once it was asked for.
        self._findings: tuple[Problem, ...] | None = None
        secure.take_up = self.take_up

    # --- what is

    @property
    def _withheld(self) -> frozenset[str]:
        return frozenset(problem.entity for problem in self.service.withheld)

    @property
    def configuration(self) -> Configuration:
        """What is in force now."""
        return self._configuration

    def connections(self) -> Connections:
        """The open connections, by number."""
        return self._connections

    def vhost_statistics(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        """What was let in and turned away under each vhost, by its name."""
        return self._policing.shown_vhosts()

    def rights(self, connection: int) -> Rights:
        """Return what the user of a connection may do in management; connection 0 is the router itself."""
        return self._policing.rights(connection)

    def may_send(self, connection: int, address: str) -> bool:
        """Whether the user of a connection may send to an address; connection 0 is the router itself."""
        return self._policing.may_send(connection, address)

    def denied(self, connection: int, what: str) -> None:
        """Report that the user of a connection asked for what it may not do."""
        self._policing.deny_management(connection, what)

    def topology(self) -> Topology | None:
        """The network, where the router belongs to one."""
        return self._topology

    def lockouts(self) -> Lockouts:
        """The users and hosts whose failed logins are remembered."""
        return self._lockouts

    def decisions(self) -> Decisions:
        """What was decided about users, hosts and tenants."""
        return self._decisions

    def tell_change(self, operation: str, kind: str, identity: str, values: Mapping[str, str]) -> None:
        """Record a change of an entity that no configuration creates."""
        self._change_records.done(operation, kind, identity, values)

    def status(self, entity: Entity) -> Mapping[str, object]:
        """What is observed of a connector, of configured routing and of the policy; nothing of what is withheld."""
        if isinstance(entity, LinkRouteEntity | AutoLinkEntity):
            return self._routes.status(entity)
        if isinstance(entity, ExchangeEntity | BindingEntity):
            return self._exchanges.status(entity)
        if isinstance(entity, PolicyEntity):
            return self._policing.shown_policy()
        connector = self.connectors.find(entity) if isinstance(entity, ConnectorEntity) else None
        if connector is None:
            return {}
        return {
            "failoverUrls": connector.failover_urls,
            "connectionStatus": connector.status,
            "connectionMsg": connector.message or None,
        }

    # --- beginning and end

    async def prepare_start(self) -> Change:
        """What the router starts with, to be applied once it runs; ListenError when a listener cannot stand."""
        try:
            return await self._prepare(self._configuration, Change(), starts=True)
        except Unfit as unfit:
            raise ListenError(*unfit.lines) from unfit

    def run_in(self, nursery: trio.Nursery) -> None:
        """Run the parts in this nursery."""
        self.listeners.run_in(nursery)
        self.connectors.run_in(nursery)
        nursery.start_soon(self._decisions.run)
        nursery.start_soon(self.consumers.run)
        self._consume()

    def _consume(self) -> None:
        """Let plugins take messages as they want to now."""
        configuration = self._configuration
        settings = configuration.router.plugin_settings
        self.consumers.become(self._plugins.consumers(router_facts(configuration), settings))

    def tell_start(self) -> None:
        """Let it be recorded that the first configuration is in force."""
        configuration = self._configuration
        self._change_records.reloaded(configuration.source, by="start", changed=len(configuration.entities))
        self._change_records.vhosts(None, configuration)

    def serve(self, configuration: Configuration, service: Service) -> None:
        """Note what is in service from now on, and log what is not and was not told of yet."""
        known = self.service.withheld
        self.service = service
        self._findings = None
        for problem in service.withheld:
            if problem not in known:
                log.critical("%s", problem)

    def findings(self) -> tuple[Problem, ...]:
        """Everything that is to be told of the configuration in force, the gravest first."""
        if self._findings is None:
            told = evaluate(self._configuration, self._plugins)
            unserved = {problem.entity for problem in self.service.withheld}
            rest = [
                one
                for one in told
                if not (one.severity is Severity.PROBLEM and (one.entity in unserved or one.point in OVERTAKEN))
            ]
            self._findings = ordered([*self.service.withheld, *rest])
        return self._findings

    async def take_up(self) -> None:
        """Put into service what can be served now and could not before."""
        with suppress(ChangeRefused):
            async with self._turn():
                await self._become(self._configuration, tells=False)

    def drain(self) -> None:
        """Make no more changes, and accept no more connections; the present ones go on."""
        self.stopping = True
        for listener in self.listeners.standing:
            listener.drain()

    def stop(self, error: Error) -> None:
        """End everything, and send ``error`` to every peer that is connected."""
        listeners = self.listeners.all
        self.listeners.stop()
        self.connectors.stop()
        for peer in [peer for listener in listeners if isinstance(listener, Listener) for peer in listener.peers]:
            peer.force_close(error)
        for connection in list(self._connections.values()):
            if not connection.closing:
                connection.force_close(error)

    async def wait_done(self) -> None:
        """Wait until the last connection has gone."""
        for done in [*(each.done for each in self.listeners.all), *(each.done for each in self.connectors.all)]:
            await done.wait()

    # --- changes

    async def create(self, kind: EntityType, name: str | None, attributes: Mapping[str, object]) -> Entity:
        """Make an entity and put it into service; ChangeRefused, and nothing of it is left."""
        records = self._change_records.telling("CREATE", kind.full_name, name or "", attributes)
        async with self._turn():
            with records as change:
                configuration, entity = created(self._configuration, kind, name, attributes)
                await self._become(configuration)
                change.after = entity
            log.info("created %s", entity.identity)
            return entity

    async def update(self, entity: Entity, attributes: Mapping[str, object]) -> Entity:
        """Change attributes of an entity; ChangeRefused, and it is as it was."""
        records = self._change_records.telling("UPDATE", entity.type.full_name, entity.identity, attributes)
        async with self._turn():
            with records as change:
                change.before = present = self._present(entity)
                shown = {**row(present), **self.status(present)}
                configuration, changed = updated(self._configuration, present, attributes, shown)
                await self._become(configuration)
                change.after = changed
            log.info("updated %s", changed.identity)
            return changed

    async def delete(self, entity: Entity) -> None:
        """Take an entity out of service; connections that came through it stay. ChangeRefused."""
        records = self._change_records.telling("DELETE", entity.type.full_name, entity.identity, {})
        async with self._turn():
            with records as change:
                change.before = present = self._present(entity)
                await self._become(deleted(self._configuration, present))
            log.info("deleted %s", present.identity)

    async def reload(self) -> ReloadReport:
        """Read the configuration again and follow it; ChangeRefused with every problem, and then nothing changed.

        What was created since, and does not stand there, is deleted: afterwards the file is the truth again.
        """
        try:
            async with self._turn():
                return await self._reload()
        except ChangeRefused as refused:
            log.error("Reload refused, nothing was changed:")
            for line in refused.description.splitlines():
                log.error("%s", line)
            errors = len(refused.description.splitlines())
            self._change_records.reloaded(self._configuration.source, by="signal", errors=errors)
            raise

    async def _reload(self) -> ReloadReport:
        read, present = self._read, self._configuration
        if read is None:
            raise ChangeRefused(FORBIDDEN, "this router was not started from a configuration that can be read again")
        try:
            changes = await trio.to_thread.run_sync(lambda: compare(present, read()), abandon_on_cancel=True)
        except ConfigurationError as error:
            raise ChangeRefused(BAD_REQUEST, "\n".join(str(problem) for problem in error.problems)) from error
        await self._become(changes.configuration, asks_plugins=True)
        report = report_of(changes)
        count = len(report.created) + len(report.updated) + len(report.deleted)
        self._change_records.reloaded(changes.configuration.source, by="signal", changed=count)
        tell(report, self._configuration.source)
        return report

    async def _prepare_policy(self, configuration: Configuration) -> PendingPolicy:
        """Compile what is configured, and look up the host names in it; the one in force where nothing changed."""
        entity, vhosts, before = configuration.policy, configuration.vhosts, self._policing.policy
        if entity is before.entity and list(map(id, vhosts)) == [id(one.entity) for one in before.vhosts.values()]:
            return PendingPolicy(self._policing, before, self._policing.samplings)
        policy = await trio.to_thread.run_sync(lambda: Policy.compile(entity, vhosts, previous=before))
        enforced = vhosts if entity.enable_vhost_policy else ()
        samplings = await trio.to_thread.run_sync(samplings_of, enforced, trio.current_time())
        if policy.host_names:
            policy = policy.with_addresses(await self.host_names.look_up(policy.host_names))
        return PendingPolicy(self._policing, policy, samplings)

    def _refused(self, listener: ListenerFacts, configuration: Configuration) -> tuple[str, ...]:
        """What is wrong with the mechanisms of a listener, a sentence each."""
        unknown = self._plugins.unknown(listener) if configuration.router.secure_defaults else ()
        return (*self._plugins.conflicts(listener), *unknown)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with self._one_at_a_time:
            self._check_running()
            yield

    def _check_running(self) -> None:
        if self.stopping:
            raise ChangeRefused(FORBIDDEN, "the router is shutting down")

    def _present(self, entity: Entity) -> Entity:
        """The entity as it is now: another change may have come first."""
        return self._configuration.find(entity.identity) or entity

    async def _become(self, configuration: Configuration, *, asks_plugins: bool = False, tells: bool = True) -> None:
        """Follow ``configuration``; ChangeRefused, and everything is as it was."""
        change = Change()
        try:
            await self._prepare(configuration, change, logs_too=True, asks_plugins=asks_plugins)
        except Unfit as unfit:
            raise ChangeRefused(unfit.status, "\n".join(unfit.lines)) from unfit
        if self.stopping:
            change.drop()
            self._check_running()
        change.apply()
        self._change_records.vhosts(self._configuration, configuration)
        self._configuration = configuration
        if asks_plugins:
            self._consume()
        for warning in configuration.warnings if tells else ():
            log.warning("%s", warning)

    async def _prepare(
        self,
        configuration: Configuration,
        change: Change,
        *,
        starts: bool = False,
        logs_too: bool = False,
        asks_plugins: bool = False,
    ) -> Change:
        """Prepare every part, and find out all that is wrong; Unfit, and nothing is open."""
        problems: list[Unfit] = []

        @contextmanager
        def collecting() -> Iterator[None]:
            try:
                yield
            except ListenError as error:
                problems.append(Unfit(list(error.lines), BAD_REQUEST))
            except ConfigurationError as error:
                problems.append(Unfit([problem.message for problem in error.problems], FAILED))
            except EntryError as error:
                problems.append(Unfit([str(error)], BAD_REQUEST))
            except ConfigurationRefused as error:
                problems.append(Unfit(list(error.problems), BAD_REQUEST))
            except TlsProblems as error:
                problems.append(Unfit(list(error.lines), BAD_REQUEST))

        try:
            service = service_of(configuration)
            with collecting():
                tolerant = starts and not configuration.router.secure_defaults
                secure = await self._secure.prepare(configuration, tolerant=tolerant)
                change.add(secure)
                service = service_of(configuration, secure.faults)
                if not starts:
                    new = [each for each in service.withheld if each.entity not in self._withheld]
                    problems += [Unfit([str(each)], BAD_REQUEST) for each in new if secure.faults]
            with collecting():
                change.add(await self.listeners.prepare(service.listeners))
            with collecting():
                change.add(await self._prepare_policy(configuration))
            change.add(self.connectors.prepare(service.connectors))
            change.add(self._rules.prepare(configuration.addresses))
            change.add(self._auth_services.prepare(configuration.auth_services))
            change.add(PendingService(self, configuration, service))
            with collecting():
                change.add(await self._record_logs.prepare(configuration.record_logs))
            change.add(PendingGuard(self._guard, configuration.router))
            resumable = configuration.router.allow_resumable_link_route
            change.add(self._routes.prepare(configuration.link_routes, configuration.auto_links, resumable=resumable))
            change.add(self._exchanges.prepare(configuration.exchanges, configuration.bindings))
            if logs_too:
                with collecting():
                    change.add(logs.prepare(configuration.logs, configuration.router))
                    change.add(PendingTraces(self._connections))
            if not asks_plugins:
                facts = (listener_facts(entity) for entity in service.listeners)
                conflicts = [line for each in facts for line in self._refused(each, configuration)]
                if conflicts:
                    problems.append(Unfit(conflicts, BAD_REQUEST))
            elif not problems:  # last, because asking is changing
                with collecting():
                    change.add(PendingPlugins(self._plugins, self._configuration, configuration))
            if problems:
                lines = [line for problem in problems for line in problem.lines]
                raise Unfit(lines, min(problem.status for problem in problems))
        except BaseException:
            change.drop()
            raise
        return change


class PendingPolicy:
    """A policy that is compiled; it comes last, as connections that are there may end for it."""

    def __init__(self, policing: Policing, policy: Policy, samplings: Mapping[str, Sampling]) -> None:
        self._policing = policing
        self._policy = policy
        self._samplings = samplings

    def apply(self) -> None:
        self._policing.become(self._policy, self._samplings)

    def drop(self) -> None:
        """Drop the change; nothing was opened, so nothing is to be closed."""


class PendingService:
    """What is in service, and word of what is withheld."""

    def __init__(self, control: Control, configuration: Configuration, service: Service) -> None:
        self._control = control
        self._configuration = configuration
        self._service = service

    def apply(self) -> None:
        self._control.serve(self._configuration, self._service)

    def drop(self) -> None:
        """Drop the change; nothing was opened, so nothing is to be closed."""


class PendingGuard:
    """Other numbers for those at the door; what was counted stays."""

    def __init__(self, guard: Guard, router: RouterEntity) -> None:
        self._guard = guard
        self._router = router

    def apply(self) -> None:
        self._guard.configure(self._router)

    def drop(self) -> None:
        """Drop the change; nothing was opened, so nothing is to be closed."""


class PendingTraces:
    """Connections that are open follow the level of their frames' module; comes after the log."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def apply(self) -> None:
        self._connections.follow_log()

    def drop(self) -> None:
        """Drop the change; nothing was opened, so nothing is to be closed."""


class PendingPlugins:
    """Plugins take over what they are asked about, so this comes last; ConfigurationRefused when one does not."""

    def __init__(self, plugins: Plugins, old: Configuration, new: Configuration) -> None:
        self._plugins = plugins
        self._old = old
        try:
            plugins.configure(router_facts(new), new.router.plugin_settings)
        except ConfigurationRefused:
            self.drop()
            raise

    def apply(self) -> None:
        """Do nothing: the change is in force already."""

    def drop(self) -> None:
        with suppress(ConfigurationRefused):  # a plugin that cannot go back keeps what it has
            self._plugins.configure(router_facts(self._old), self._old.router.plugin_settings)


def report_of(changes: Changes) -> ReloadReport:
    """What is told of a reload."""
    return ReloadReport(
        created=tuple(entity.identity for entity in changes.created),
        updated=tuple(_updated(each) for each in changes.updated),
        deleted=tuple(entity.identity for entity in changes.deleted),
        kept=changes.kept,
        restart=changes.restart,
    )


def _updated(each: Updated) -> str:
    return f"{each.new.identity}: {', '.join(each.attributes)}"


def tell(report: ReloadReport, source: str) -> None:
    """Log what a reload did."""
    log.info(
        "Reloaded %s: %d created, %d updated, %d deleted, %d kept",
        source,
        len(report.created),
        len(report.updated),
        len(report.deleted),
        report.kept,
    )
    for what, lines in (("created", report.created), ("updated", report.updated), ("deleted", report.deleted)):
        for line in lines:
            log.info("%s %s", what, line)
    for line in report.restart:
        log.warning("needs a restart: %s", line)
