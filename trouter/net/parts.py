"""What runs for configured entities, and how it becomes what another configuration asks for: prepared, then applied.

A part stands for one entity. A change is prepared while everything goes on as before; what cannot be had is found out
then, and nothing is left of it. Applying it cannot fail and takes no turn of the scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import trio

#: Host, port and name, and which of those it is that have all of these in common: several may have no name and port 0.
Key = tuple[str, str, str, int]


class Entity(Protocol):
    """What a part stands for."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> str: ...
    @property
    def name(self) -> str: ...


class Part(Protocol):
    """What runs for one entity."""

    #: Set when nothing of it is left.
    done: trio.Event

    async def run(self) -> None:
        """Work until ``stop``, and then until nothing of it is left."""

    def stop(self) -> None:
        """Take on no more; what is under way goes on until it ends or is ended."""

    def close(self) -> None:
        """Give back what was opened for it; ``run`` was never called."""


class Pending(Protocol):
    """A part of a change, prepared: one of these is called, once."""

    def apply(self) -> None:
        """Let it be so; cannot fail."""

    def drop(self) -> None:
        """Let it be as if it had never been thought of."""


E = TypeVar("E", bound=Entity)
P = TypeVar("P", bound=Part)


class Parts(Generic[E, P]):
    """The parts of one kind: those that stand, and those that were stopped and still serve somebody."""

    def __init__(self, configure: Callable[[P, E], None], announce: Callable[[P], None]) -> None:
        """``configure`` lets a part that stands serve a changed entity; ``announce`` tells of one that begins."""
        self._standing: dict[Key, tuple[E, P]] = {}
        self._retired: set[P] = set()
        self._nursery: trio.Nursery | None = None
        self._configure = configure
        self._announce = announce

    @property
    def standing(self) -> list[P]:
        """In the order of the configuration."""
        return [part for _, part in self._standing.values()]

    @property
    def all(self) -> list[P]:
        """Those that stand, then those that have not ended yet."""
        return [*self.standing, *self._retired]

    def find(self, entity: object) -> P | None:
        """The part that stands for this entity."""
        return next((part for own, part in self._standing.values() if own == entity), None)

    def run_in(self, nursery: trio.Nursery) -> None:
        """Run what stands, and what will, in this nursery."""
        self._nursery = nursery
        for part in self.standing:
            nursery.start_soon(self._run, part)

    def close(self) -> None:
        """Close what stands and was never run."""
        for part in self.standing:
            part.close()

    def stop(self) -> None:
        """Stop everything."""
        for key in list(self._standing):
            self._retire(key)

    def entity_of(self, key: Key) -> E | None:
        """What stands under this key."""
        own = self._standing.get(key)
        return None if own is None else own[0]

    def become(self, wanted: dict[Key, E], fresh: dict[Key, P]) -> None:
        """Stand for ``wanted``, by ``fresh`` parts where there is one."""
        for key in list(self._standing):
            if key not in wanted or key in fresh:
                self._retire(key)
        before, self._standing = self._standing, {}
        for key, entity in wanted.items():
            if key in fresh:
                part = fresh[key]
                self._announce(part)
                if self._nursery is not None:
                    self._nursery.start_soon(self._run, part)
            else:
                old, part = before[key]
                if old != entity:
                    self._configure(part, entity)
            self._standing[key] = (entity, part)

    def _retire(self, key: Key) -> None:
        _, part = self._standing.pop(key)
        self._retired.add(part)
        part.stop()

    async def _run(self, part: P) -> None:
        try:
            await part.run()
        finally:
            self._retired.discard(part)


@dataclass(frozen=True, slots=True)
class PendingParts:
    """Parts that are ready to run."""

    parts: Parts[Any, Any]
    wanted: dict[Key, Any]
    fresh: dict[Key, Any]

    def apply(self) -> None:
        self.parts.become(self.wanted, self.fresh)

    def drop(self) -> None:
        for part in self.fresh.values():
            part.close()


def keyed(entities: Iterable[E]) -> dict[Key, E]:
    """Entities by what makes them the same one in another configuration."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found: dict[Key, E] = {}
    for entity in entities:
        what = (entity.host, entity.port, entity.name)
        found[*what, seen[what]] = entity
        seen[what] += 1
    return found
