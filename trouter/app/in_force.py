"""The configuration in force, which is replaced as a whole or not at all (management.md 10).

Changes come one at a time. ``preparing`` prepares a change while the router goes on as before; then all of it is
applied in one step, in which nothing can fail and no other task runs.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from trouter.columns.router import UplinkFacts
from trouter.config import ChangeRefused, Configuration, ListenerEntity, Problem, compare
from trouter.config.changes import lasting_warnings
from trouter.config.facts import router_facts
from trouter.config.workers import joins_workers
from trouter.connections.listeners import Standing
from trouter.net.parts import Change
from trouter.net.reach import Reach
from trouter.net.sockets import ListenError
from trouter.telemetry.change_records import ChangeRecords
from trouter.telemetry.tracing import MessageSpans
from trouter.wire.performatives import Error

from .consumers import Consumers
from .draining import Drain
from .findings import RouterFindings
from .parts import ConfiguredParts
from .pending import Unfit
from .preparing import Occasion, Preparation
from .service import Service

FORBIDDEN: Final = 403

log = logging.getLogger("trouter.MAIN")


class ConfigurationInForce:
    """The configuration that a process serves, and the parts that run for it.

    Each worker of a router serves its part of one configuration.
    """

    def __init__(
        self,
        configuration: Configuration,
        parts: ConfiguredParts,
        make_listener: Callable[[ConfigurationInForce, ListenerEntity, list[socket.socket]], Standing],
        records: ChangeRecords,
        consumers: Consumers,
        drain: Drain,
        spans: MessageSpans,
        findings: RouterFindings,
        reach: Reach,
    ) -> None:
        """``configuration`` is that of the whole router, of which ``reach`` knows this process's part.

        ``make_listener`` returns a listener on sockets that are bound, which may show this object.
        """
        self.parts = parts
        self.drain = drain
        #: The process ends, and takes no changes any more.
        self.stopping = False
        self.service = Service()
        #: The configuration of the router, and this process's part of it; often the same object.
        self.whole = configuration
        self.configuration = reach.part_of(configuration)
        #: The number of changes so far that came into force; the same configuration put into force again is none.
        self.revision = 0
        self._make_listener = make_listener
        self._records = records
        self._consumers = consumers
        self._spans = spans
        self._findings = findings
        self._reach = reach
        self._one_at_a_time = trio.Lock()

    def findings(self) -> tuple[Problem, ...]:
        """Return the findings about the configuration and what is down of it, the most severe first."""
        return self._findings.list_findings(self.configuration, self.service)

    def uplink(self) -> UplinkFacts | None:
        """Return whether an edge router has an uplink that it can use; None on other routers."""
        return self._findings.uplink()

    # --- beginning and end

    async def prepare_start(self) -> Change:
        """Return the first change, to be applied once the router runs; ListenError if the configuration is unfit."""
        try:
            return await self._prepare(self.configuration, Occasion.START)
        except Unfit as unfit:
            raise ListenError(*unfit.lines) from unfit

    def run_in(self, nursery: trio.Nursery) -> None:
        """Run the parts in ``nursery``, and subscribe the consumers of plugins."""
        self.parts.run_in(nursery)
        self._start_consumers()

    def services(self) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
        """Yield the names of what runs as long as the router, and what is to be run."""
        yield "the consumers of plugins", self._consumers.run
        yield "the drain", self.drain.run

    def _start_consumers(self) -> None:
        """Subscribe the consumers, and trace by the tracer, that the plugins want with the present configuration."""
        configuration = self.configuration
        settings = configuration.router.plugin_settings
        plugins, facts = self.parts.plugins, router_facts(configuration)
        self._consumers.replace_consumers(plugins.consumers(facts, settings))
        self._spans.trace_by(plugins.message_tracer(facts, settings))

    def record_start(self) -> None:
        """Record that the first configuration is in force."""
        configuration = self.configuration
        self._records.reloaded(configuration.source, by="start", changed=len(configuration.entities))
        self._records.vhosts(None, configuration)

    def refuse_work(self) -> None:
        """Refuse further changes and connections, because the process ends; the present connections go on."""
        self.stopping = True
        self.parts.refuse_clients()

    def stop(self, error: Error) -> None:
        """End listeners, connectors and connections; send ``error`` to every connected peer."""
        self.parts.end_connections(error)
        self._spans.trace_by(None)

    # --- changes

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Let no other task change the configuration during the block; ChangeRefused if the process ends."""
        async with self._one_at_a_time:
            self._check_running()
            yield

    def _check_running(self) -> None:
        if self.stopping:
            raise ChangeRefused(FORBIDDEN, "the router is shutting down")

    async def repeat(self) -> None:
        """Put the present configuration into force again: other parts of it may be served now; ChangeRefused."""
        await self.replace(self.whole, logs_warnings=False)

    async def replace(
        self, whole: Configuration, occasion: Occasion = Occasion.REQUEST, *, logs_warnings: bool = True
    ) -> None:
        """Prepare and apply this process's part of the configuration ``whole``; ChangeRefused, and nothing changed.

        To be called during a ``turn``.
        """
        configuration = self._part_of(whole)
        try:
            change = await self._prepare(configuration, occasion)
        except Unfit as unfit:
            raise ChangeRefused(unfit.status, "\n".join(unfit.lines)) from unfit
        if self.stopping:
            change.drop()
            self._check_running()
        change.apply()
        self.revision += whole is not self.whole
        self._records.vhosts(self.configuration, configuration)
        for warning in whole.warnings if logs_warnings else ():
            log.warning("%s", warning)
        is_part = configuration is not whole
        if occasion is Occasion.REQUEST:  # what was found in the file stays true of the parts that stay
            whole = whole.with_warnings(lasting_warnings(self.whole, whole))
        self.whole = whole
        self.configuration = configuration.with_warnings(whole.warnings) if is_part else whole
        if occasion is Occasion.RELOAD:
            self._start_consumers()

    def _part_of(self, whole: Configuration) -> Configuration:
        """Return this process's part of a configuration, with the entities that are in force as far as they stay."""
        part = self._reach.part_of(whole)
        return part if part is whole else compare(self.configuration, part).configuration

    async def _prepare(self, configuration: Configuration, occasion: Occasion) -> Change:
        """Return the prepared change to ``configuration``; Unfit."""
        withheld = frozenset(problem.entity for problem in self.service.withheld)
        return await Preparation(self.parts, self, occasion).prepare(self.configuration, configuration, withheld)

    def serve(self, service: Service) -> None:
        """Replace the entities in service; log those that are newly withheld."""
        known = self.service.withheld
        self.service = service
        for problem in service.withheld:
            if problem not in known:
                log.critical("%s", problem)

    def is_spare(self, entity: ListenerEntity) -> bool:
        """Return whether the router may start although a listener cannot be opened: any of the file but the first."""
        return not joins_workers(entity) and entity.identity != self.whole.listeners[0].identity

    async def open_closed(self) -> None:
        """Try to open the listeners whose addresses could not be bound."""
        if self.parts.listeners.closed and not self.stopping:
            async with self._one_at_a_time:
                if not self.stopping:
                    await self.parts.listeners.open_closed(self.make_listener)

    def make_listener(self, entity: ListenerEntity, sockets: list[socket.socket]) -> Standing:
        """Return a listener on ``sockets``; one for HTTP shows this object."""
        return self._make_listener(self, entity, sockets)
