"""The providers of the router's own row, its log, its memory, its network and its policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import trouter
from trouter.columns.network import NodeFacts
from trouter.columns.process import MemoryPool, ModuleCounts
from trouter.columns.router import ROUTER, ProcessFacts
from trouter.columns.rows import Rows
from trouter.config.changes import row as entity_row
from trouter.config.problems import Problem
from trouter.config.schema import EntityType
from trouter.core.allocations import owners
from trouter.core.router import Router
from trouter.management.kinds import SELF
from trouter.management.ports import ControlPort, Holdups, LogBookPort

from .base import Fixed, Provider, Row, identified
from .pools import NAMES, limits

#: The router's identity in its type; among all entities it is ``router/ID``.
ROUTER_IDENTITY: Final = "1"
_STATM: Final = Path("/proc/self/statm")


class RouterItself(Provider):
    """``router``, a single row; its key is the router's id."""

    def __init__(self, kind: EntityType, router: Router, control: ControlPort, now: Callable[[], float]) -> None:
        super().__init__(kind)
        self._router = router
        self._control = control
        self._now = now
        self._started_at_s = now()
        self._rows = Rows(ROUTER, router)

    def keys(self) -> tuple[str]:
        return (self._router.table.router_id,)

    def row(self, key: str) -> Row | None:
        return {
            **entity_row(self._control.configuration.router),
            **self._rows.row(self._facts()),
            "name": key,
            "identity": ROUTER_IDENTITY,
            "id": key,
            "mode": self._router.table.mode,
            "area": "0",
            "workerThreads": 1,
            "version": trouter.__version__,
            "hostName": os.uname().nodename,
        }

    def _facts(self) -> ProcessFacts:
        configuration = self._control.configuration
        topology = self._control.running.topology()
        drain = self._control.drain_report()
        return ProcessFacts(
            connections=len(self._control.running.connections()),
            link_routes=len(configuration.link_routes),
            auto_links=len(configuration.auto_links),
            uptime_s=self._now() - self._started_at_s,
            memory_bytes=virtual_bytes(),
            duplicate_ids=None if topology is None else list(topology.duplicate_ids),
            mesh_faults=None if topology is None else dict(topology.faults),
            handshakes_refused=self._control.running.handshakes_refused(),
            uplink=self._control.uplink(),
            drain_state=drain.state,
            drain_left=drain.left,
            **self._control.running.router_counts(),
        )

    def plain_row(self, key: str) -> Row | None:
        row = self.row(key)
        return None if row is None else {**row, "name": f"router/{key}", "identity": f"router/{key}"}

    def by_identity(self, identity: str) -> str | None:
        key = self._router.table.router_id
        return key if identity in (ROUTER_IDENTITY, f"router/{key}") else None

    def by_name(self, name: str) -> tuple[str, ...]:
        key = self._router.table.router_id
        return (key,) if name in (key, f"router/{key}") else ()


def virtual_bytes() -> int | None:
    """Return the size of the process's address space in bytes; None if the system does not give it."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


class ManagementNode(Fixed):
    """``management``, the node that answers."""

    def rows(self) -> Mapping[str, Row]:
        return {SELF: {"name": SELF, "identity": SELF, "type": self.kind.full_name}}

    def by_identity(self, identity: str) -> str | None:
        return identity if identity == SELF else None


def log_counts(book: LogBookPort) -> Iterator[tuple[str, ModuleCounts]]:
    """Yield the events of each module, whether they were written or not."""
    for module, by_level in book.counts().items():
        yield module, ModuleCounts(module, by_level)


def pools(router: Router, control: ControlPort) -> Iterator[tuple[str, MemoryPool]]:
    """Yield the router's objects by kind, under the names of Qpid Dispatch's pools; a pool may be empty."""
    engines = [each.engine for each in control.running.connections().values()]
    held = {name: (size_bytes, count) for name, size_bytes, count in owners(router, engines)}
    for name in NAMES:
        yield name, MemoryPool(name, *held.get(name, (0, 0)), *limits(name))


def findings(control: ControlPort) -> Iterator[tuple[int, Problem]]:
    """Yield the findings about the configuration in force, by number; the most severe first."""
    yield from enumerate(control.findings(), 1)


def nodes(control: ControlPort) -> Iterable[tuple[str, NodeFacts]]:
    """Return the routers of the network; none for a standalone or edge router."""
    topology = control.running.topology()
    return () if topology is None else topology.nodes()


def changes(control: ControlPort) -> Iterable[tuple[int, object]]:
    """Return the last changes of the network by number, the oldest first."""
    topology = control.running.topology()
    return () if topology is None else topology.changes()


class Lifted(Provider):
    """``authLockout`` and ``decision``, which a DELETE lifts. There may be many, so each row is made on demand."""

    def __init__(self, kind: EntityType, rows: Rows, holdups: Callable[[], Holdups]) -> None:
        super().__init__(kind)
        self._rows = rows
        self._holdups = holdups

    def keys(self) -> Sequence[Any]:
        return self._holdups().list_keys()

    def row(self, key: Any) -> Row | None:
        holdups = self._holdups()
        facts = holdups.find_facts(key)
        return None if facts is None else identified(self.kind, holdups.identity_of(key), self._rows.row(facts))

    def by_identity(self, identity: str) -> Any | None:
        if not identity.startswith(f"{self.kind.short}/"):
            return None
        identity_of = self._holdups().identity_of
        return next((key for key in self.keys() if identity_of(key) == identity), None)

    def by_name(self, name: str) -> Sequence[Any]:
        found = self.by_identity(name)
        return () if found is None else (found,)

    def remove_entity(self, key: Any) -> bool:
        """Remove the entity; return whether it existed."""
        return self._holdups().lift_holdup(key)
