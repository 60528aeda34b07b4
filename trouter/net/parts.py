"""Parts that run for configured entities, and their change to another configuration: prepared, then applied.

A part runs for one entity. A change is prepared while everything continues; if that fails, it leaves no trace. Applying
it cannot fail and does not yield to other tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import trio

from trouter._bugs import BUGS

#: Host, port and name, and a number among entities with the same three: several may have no name and port 0.
Key = tuple[str, str, str, int]


class IdentifiedEntity(Protocol):
    """The attributes of an entity that identify its part."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> str: ...
    @property
    def name(self) -> str: ...


class Part(Protocol):
    """A part that runs for one entity."""

    #: Set once the part has ended completely.
    done: trio.Event

    async def run(self) -> None:
        """Work until ``stop``, and then until the part has ended completely."""

    def stop(self) -> None:
        """Accept no more work; work under way continues until it ends or is ended."""


class Pending(Protocol):
    """A prepared part of a change: exactly one of the two methods is called, once."""

    def apply(self) -> None:
        """Apply it; cannot fail."""

    def drop(self) -> None:
        """Undo the preparation."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a change that opened nothing, so that nothing is to be undone."""

    apply: Callable[[], None]

    def drop(self) -> None:
        """Do nothing."""


class Change:
    """A change whose parts are all prepared: ``apply`` it, or ``drop`` what was opened for it."""

    def __init__(self) -> None:
        self._parts: list[Pending] = []
        self._undo = ExitStack()

    def add(self, part: Pending) -> None:
        """Add a prepared part."""
        self._parts.append(part)
        self._undo.callback(part.drop)

    def apply(self) -> None:
        """Apply all parts."""
        self._undo.pop_all()
        for part in self._parts:
            part.apply()

    def drop(self) -> None:
        """Undo the preparation of all parts."""
        self._undo.close()


E = TypeVar("E", bound=IdentifiedEntity)
P = TypeVar("P", bound=Part)


class Parts(Generic[E, P]):
    """The parts of one kind: those that run, and those that were stopped and still serve peers."""

    def __init__(self) -> None:
        #: The running parts and their entities, in the order of the configuration.
        self.by_key: dict[Key, P] = {}
        self.entities: dict[Key, E] = {}
        self._retired: set[P] = set()
        self._nursery: trio.Nursery | None = None

    @property
    def running(self) -> list[P]:
        """Running parts, in the order of the configuration."""
        return list(self.by_key.values())

    @property
    def all(self) -> list[P]:
        """Running parts, then those that were stopped and have not ended yet."""
        return [*self.running, *self._retired]

    def find(self, entity: object) -> P | None:
        """Return the running part of this entity; None if there is none."""
        return next((self.by_key[key] for key, own in self.entities.items() if own == entity), None)

    def run_in(self, nursery: trio.Nursery) -> None:
        """Run future parts in this nursery."""
        self._nursery = nursery

    def stop(self) -> None:
        """Stop everything."""
        for key in list(self.by_key):
            self._retire(key)

    def replace_parts(self, wanted: dict[Key, E], fresh: dict[Key, P]) -> None:
        """Replace the running parts by those of ``wanted``, with a ``fresh`` part where there is one."""
        for key in list(self.by_key):
            if key not in wanted or key in fresh:
                self._retire(key)
        before, self.by_key = self.by_key, {}
        for key, entity in wanted.items():
            part = fresh.get(key)
            if part is None:
                part = before[key]
                if self.entities[key] != entity:
                    self.reconfigure(part, entity)
            else:
                self._begin(part)
            self.by_key[key] = part
        self.entities = wanted

    def announce(self, part: P) -> None:
        """Log a part that starts."""

    def reconfigure(self, part: P, entity: E) -> None:
        """Apply a changed entity to a running part."""

    def discard(self, part: P) -> None:
        """Undo the preparation of a part that never ran."""

    def _begin(self, part: P) -> None:
        self.announce(part)
        assert self._nursery is not None  # noqa: S101 - `run_in` comes before the first change
        self._nursery.start_soon(self._run, part)

    def _retire(self, key: Key) -> None:
        part = self.by_key.pop(key)
        self._retired.add(part)
        part.stop()

    async def _run(self, part: P) -> None:
        try:
            await part.run()
        except Exception as error:  # noqa: BLE001 - it is reported
            BUGS.report("internal error: a part of the router has ended (a listener, connector or record log)", error)
        finally:
            self._retired.discard(part)


@dataclass(frozen=True, slots=True)
class PendingParts(Generic[E, P]):
    """Prepared parts of one kind."""

    parts: Parts[E, P]
    wanted: dict[Key, E]
    fresh: dict[Key, P]

    def apply(self) -> None:
        self.parts.replace_parts(self.wanted, self.fresh)

    def drop(self) -> None:
        for part in self.fresh.values():
            self.parts.discard(part)


def keyed(entities: Iterable[E]) -> dict[Key, E]:
    """Return entities by the key that identifies each in another configuration."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found: dict[Key, E] = {}
    for entity in entities:
        what = (entity.host, entity.port, entity.name)
        found[*what, seen[what]] = entity
        seen[what] += 1
    return found
