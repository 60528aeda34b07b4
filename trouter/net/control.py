"""The configuration in force, and how another comes into force: all of it or nothing (management.md 10).

One change at a time. Everything that may fail is done first, while the router goes on as before: sockets are bound,
files are opened, plugins are asked. Then all of it is applied in one step, in which nothing can fail and no other task
has a turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack

import trio

from trouter.config import Configuration
from trouter.core.table import AddressRule, AddressTable
from trouter.hooks import Plugins

from .listeners import Listeners
from .parts import Pending
from .service import Service, service_of

log = logging.getLogger("trouter.MAIN")


class Change:
    """A change that is prepared: ``apply`` it, or ``drop`` what was opened for it."""

    def __init__(self) -> None:
        self._parts: list[Pending] = []
        self._undo = ExitStack()

    def add(self, part: Pending) -> None:
        """One more part, which is prepared."""
        self._parts.append(part)
        self._undo.callback(part.drop)

    def apply(self) -> None:
        """Let it be so."""
        self._undo.pop_all()
        for part in self._parts:
            part.apply()

    def drop(self) -> None:
        """Leave everything as it is."""
        self._undo.close()


class PendingRules:
    """Address rules that will hold for addresses which come into being afterwards."""

    def __init__(self, table: AddressTable, old: Iterable[AddressRule], new: Iterable[AddressRule]) -> None:
        self._table = table
        self._old = tuple(old)
        self._new = tuple(new)

    def apply(self) -> None:
        for rule in self._new:
            self._table.add_rule(rule)

    def drop(self) -> None:
        """Nothing was opened."""


class ChangeRefused(Exception):
    """Nothing was changed; why."""


class Control:
    """What is configured now, and the only way to change it."""

    def __init__(
        self,
        configuration: Configuration,
        listeners: Listeners,
        table: AddressTable,
        plugins: Plugins,
        read: Callable[[], Configuration] | None = None,
    ) -> None:
        """``read`` gets the configuration for a reload, from where the present one came."""
        self.configuration = configuration
        self.listeners = listeners
        self._table = table
        self._plugins = plugins
        self._read = read
        self._service = Service((), ())
        self._one_at_a_time = trio.Lock()
        self._stopping = False

    def run_in(self, nursery: trio.Nursery) -> None:
        """Run the parts in this nursery."""
        self.listeners.run_in(nursery)

    async def prepare_start(self) -> Change:
        """What the router starts with, to be applied once it runs; ListenError when a listener cannot stand."""
        return await self._prepare(service_of(self.configuration))

    def stop(self) -> None:
        """Change nothing any more, and take in nobody."""
        self._stopping = True
        self.listeners.stop()

    async def reload(self) -> None:
        """Read the configuration again and follow it; ChangeRefused with every problem, and then nothing changed."""
        async with self._one_at_a_time:
            if self._stopping:
                raise ChangeRefused("the router is shutting down")

    async def _prepare(self, service: Service) -> Change:
        change = Change()
        try:
            change.add(await self.listeners.prepare(service.listeners))
            change.add(PendingRules(self._table, self._service.rules, service.rules))
        except BaseException:
            change.drop()
            raise
        return change
