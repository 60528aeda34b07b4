"""Changes of the configuration in force, ordered by management, by HUP, or by another worker.

In a router with several workers the first one alone changes the configuration, and publishes it; the others adopt it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import trio

from trouter.columns.router import UplinkFacts
from trouter.config import (
    ChangeRefused,
    Configuration,
    ConfigurationError,
    Entity,
    EntityType,
    Problem,
    compare,
    created,
    deleted,
    row,
    updated,
)
from trouter.management.ports import REQUESTER, DrainReport, PlanReport, ReloadReport
from trouter.net.reach import Reach
from trouter.telemetry.change_records import ChangeRecords

from .checking import check_text
from .in_force import FORBIDDEN, ConfigurationInForce
from .network_changes import NetworkChanges
from .preparing import BAD_REQUEST, Occasion
from .reload_report import log_changes, log_reload, report_of
from .running import Running

log = logging.getLogger("trouter.MAIN")


class Control:
    """The only way to change the configuration in force; see ``management.ports.ControlPort``."""

    def __init__(
        self,
        in_force: ConfigurationInForce,
        read: Callable[[], Configuration] | None,
        records: ChangeRecords,
        running: Running,
        reach: Reach,
    ) -> None:
        """``read`` returns the configuration for a reload, from the source of the present one; None if it has none."""
        self.running = running
        self._in_force = in_force
        self._read = read
        self._records = records
        self._reach = reach
        #: Changes of the configuration as a whole that come over the network.
        self.network_changes = NetworkChanges(in_force, reach, records, has_file=read is not None)

    # --- what management shows

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self._in_force.configuration

    @property
    def behind(self) -> Mapping[int, str]:
        """The workers that serve with another configuration than this one, and why; see ``Reach``."""
        return self._reach.behind

    def status(self, entity: Entity) -> Mapping[str, object]:
        """Return the observed attributes of an entity; none for one that is withheld or has none."""
        status = self._in_force.parts.status(entity)
        return (
            {**status, "policyDigest": self.configuration.policy_digest}
            if entity is self.configuration.policy
            else status
        )

    def findings(self) -> tuple[Problem, ...]:
        """Return the findings about the configuration in force and what is down of it, the most severe first."""
        return self._in_force.findings()

    def uplink(self) -> UplinkFacts | None:
        """Return whether an edge router has an uplink that it can use; None on other routers."""
        return self._in_force.uplink()

    def drain_report(self) -> DrainReport:
        """Return the state of the drain."""
        return self._in_force.drain.report()

    def record_change(self, operation: str, kind: str, identity: str, values: Mapping[str, str]) -> None:
        """Record a change of an entity that is not part of the configuration."""
        self._records.done(operation, kind, identity, values)

    # --- the same configuration, with other parts of it in service

    async def retry_withheld(self) -> None:
        """Put into service the withheld parts that can be served now."""
        with suppress(ChangeRefused):
            async with self._in_force.turn():
                await self._in_force.repeat()

    async def start_drain(self, over_s: float) -> DrainReport:
        """Close the listeners of clients, and their connections over ``over_s`` seconds; ChangeRefused."""
        drain = self._in_force.drain
        async with self._in_force.turn():
            drain.start(over_s, REQUESTER.get())
            try:
                await self._in_force.repeat()
            except ChangeRefused:
                drain.cancel()
                raise
            return drain.report()

    async def cancel_drain(self) -> DrainReport:
        """Open the listeners again; ChangeRefused if one cannot be opened: then the drain goes on."""
        drain = self._in_force.drain
        async with self._in_force.turn():
            drain.reopens = True
            try:
                await self._in_force.repeat()
            finally:
                drain.reopens = False
            drain.cancel()
            return drain.report()

    # --- another configuration

    async def create(self, kind: EntityType, name: str | None, attributes: Mapping[str, object]) -> Entity:
        """Return an entity that was created and put into service; ChangeRefused, and nothing changed."""
        self._check_changeable()
        records = self._records.recording("CREATE", kind.full_name, name or "", attributes)
        async with self._changing():
            with records as change:
                whole, entity = created(self._in_force.whole, kind, name, attributes)
                await self._in_force.replace(whole)
                change.after = entity
            log.info("created %s", entity.identity)
            return entity

    async def update(self, entity: Entity, attributes: Mapping[str, object]) -> Entity:
        """Change attributes of an entity and return the changed one; ChangeRefused, and nothing changed."""
        self._check_changeable()
        records = self._records.recording("UPDATE", entity.type.full_name, entity.identity, attributes)
        async with self._changing():
            with records as change:
                change.before = present = self._present(entity)
                shown = {**row(present), **self.status(entity)}
                whole, changed = updated(self._in_force.whole, present, attributes, shown)
                await self._in_force.replace(whole)
                change.after = changed
            log.info("updated %s", changed.identity)
            return changed

    async def delete(self, entity: Entity) -> None:
        """Take an entity out of service; connections that came through it stay. ChangeRefused, and nothing changed."""
        self._check_changeable()
        records = self._records.recording("DELETE", entity.type.full_name, entity.identity, {})
        async with self._changing():
            with records as change:
                change.before = present = self._present(entity)
                await self._in_force.replace(deleted(self._in_force.whole, present))
            log.info("deleted %s", present.identity)

    async def check(self, text: str, name: str, *, may_change: bool) -> PlanReport:
        """Return what a reload of ``text`` would change, and the findings about it; see ``ControlPort``."""
        present = self._in_force.whole
        report = await trio.to_thread.run_sync(
            lambda: check_text(present, text, name, may_change=may_change), abandon_on_cancel=True
        )
        if not may_change:  # nor is the file compared with a text that may have guessed passwords
            return replace(report, refusals=(*report.refusals, "a change needs the management level admin"))
        return await self.network_changes.complete(report, text)

    async def reload(self) -> ReloadReport:
        """Read the configuration again, apply it, return a report; ChangeRefused with all problems, nothing changed.

        Entities that management created and the file lacks are deleted: afterwards the file describes the router.
        """
        self._check_changeable()
        try:
            async with self._changing(reloaded=True):
                return await self._reload()
        except ChangeRefused as refused:
            log.error("Reload refused, nothing was changed:")
            for line in refused.description.splitlines():
                log.error("%s", line)
            errors = len(refused.description.splitlines())
            self._records.reloaded(self.configuration.source, by="signal", errors=errors)
            raise

    async def _reload(self) -> ReloadReport:
        read, present = self._read, self._in_force.whole
        if read is None:
            raise ChangeRefused(FORBIDDEN, "this router was not started from a configuration that can be read again")
        try:
            changes = await trio.to_thread.run_sync(lambda: compare(present, read()), abandon_on_cancel=True)
        except ConfigurationError as error:
            raise ChangeRefused(BAD_REQUEST, "\n".join(str(problem) for problem in error.problems)) from error
        await self._in_force.replace(changes.configuration, Occasion.RELOAD)
        report = report_of(changes)
        count = len(report.created) + len(report.updated) + len(report.deleted)
        self._records.reloaded(changes.configuration.source, by="signal", changed=count)
        log_reload(report, self.configuration.source)
        return report

    @asynccontextmanager
    async def _changing(self, *, reloaded: bool = False) -> AsyncIterator[None]:
        """Take the turn for a change, and publish what is in force after it; ChangeRefused."""
        async with self._in_force.turn():
            yield
            await self.publish(reloaded=reloaded)

    def _check_changeable(self) -> None:
        """Check that the configuration may be changed here; ChangeRefused."""
        if self._reach.why_fixed:
            raise ChangeRefused(FORBIDDEN, self._reach.why_fixed)

    def _present(self, entity: Entity) -> Entity:
        """Return the entity as it is now: another change may have been applied while this one waited."""
        return self._in_force.whole.find(entity.identity) or entity

    # --- the configuration that all workers have

    async def publish(self, *, reloaded: bool = False) -> None:
        """Have the other workers adopt the configuration, if this one is the first of several."""
        if not self._reach.why_fixed:
            await self._reach.publish(self._in_force.whole, reloaded=reloaded)

    async def adopt(self, whole: Configuration, *, reloaded: bool) -> None:
        """Put into force here what is in force in the first worker; ChangeRefused, and nothing changed.

        ``reloaded``: its file was read again, so the files that it names are read again too.
        """
        async with self._in_force.turn():
            changes = await trio.to_thread.run_sync(compare, self._in_force.whole, whole)
            await self._in_force.replace(changes.configuration, Occasion.RELOAD if reloaded else Occasion.REQUEST)
            report = report_of(changes)
            if reloaded:
                log_reload(report, whole.source)
            else:
                log_changes(report)
