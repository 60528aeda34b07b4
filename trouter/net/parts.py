"""What runs for configured entities, and how it becomes what another configuration asks for: prepared, then applied.

A part stands for one entity. A change is prepared while everything goes on as before; what cannot be had is found out
then, and nothing is left of it. Applying it cannot fail and takes no turn of the scheduler.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import trio

log = logging.getLogger("trouter.SERVER")

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


class Pending(Protocol):
    """A part of a change, prepared: one of these is called, once."""

    def apply(self) -> None:
        """Let it be so; cannot fail."""

    def drop(self) -> None:
        """Let it be as if it had never been thought of."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a change for which nothing was opened, so that there is nothing to give back."""

    apply: Callable[[], None]

    def drop(self) -> None:
        """Leave everything as it is."""


class Change:
    """A change all of whose parts are prepared: ``apply`` it, or ``drop`` what was opened for it."""

    def __init__(self) -> None:
        self._parts: list[Pending] = []
        self._undo = ExitStack()

    def add(self, part: Pending) -> None:
        """Add a part, which is prepared."""
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


E = TypeVar("E", bound=Entity)
P = TypeVar("P", bound=Part)


class Parts(Generic[E, P]):
    """The parts of one kind: those that stand, and those that were stopped and still serve peers."""

    def __init__(self) -> None:
        #: What stands, and for what, in the order of the configuration.
        self.by_key: dict[Key, P] = {}
        self.entities: dict[Key, E] = {}
        self._retired: set[P] = set()
        self._nursery: trio.Nursery | None = None

    @property
    def standing(self) -> list[P]:
        """Return the parts that stand, in the order of the configuration."""
        return list(self.by_key.values())

    @property
    def all(self) -> list[P]:
        """Return those that stand, then those that have not ended yet."""
        return [*self.standing, *self._retired]

    def find(self, entity: object) -> P | None:
        """Return the part that stands for this entity."""
        return next((self.by_key[key] for key, own in self.entities.items() if own == entity), None)

    def run_in(self, nursery: trio.Nursery) -> None:
        """Run what will stand in this nursery."""
        self._nursery = nursery

    def stop(self) -> None:
        """Stop everything."""
        for key in list(self.by_key):
            self._retire(key)

    def become(self, wanted: dict[Key, E], fresh: dict[Key, P]) -> None:
        """Stand for ``wanted``, by a ``fresh`` part where there is one."""
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
        """Tell of a part that begins."""

    def reconfigure(self, part: P, entity: E) -> None:
        """Let a part that stands serve a changed entity."""

    def discard(self, part: P) -> None:
        """Give back what was opened for a part that never ran."""

    def _begin(self, part: P) -> None:
        self.announce(part)
        assert self._nursery is not None  # noqa: S101 - nothing is applied before
        self._nursery.start_soon(self._run, part)

    def _retire(self, key: Key) -> None:
        part = self.by_key.pop(key)
        self._retired.add(part)
        part.stop()

    async def _run(self, part: P) -> None:
        try:
            await part.run()
        except Exception:
            log.exception("internal error: a part of the router has ended (a listener, connector or record log)")
        finally:
            self._retired.discard(part)


@dataclass(frozen=True, slots=True)
class PendingParts(Generic[E, P]):
    """Parts that are ready to run."""

    parts: Parts[E, P]
    wanted: dict[Key, E]
    fresh: dict[Key, P]

    def apply(self) -> None:
        self.parts.become(self.wanted, self.fresh)

    def drop(self) -> None:
        for part in self.fresh.values():
            self.parts.discard(part)


def keyed(entities: Iterable[E]) -> dict[Key, E]:
    """Return entities by what makes them the same one in another configuration."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found: dict[Key, E] = {}
    for entity in entities:
        what = (entity.host, entity.port, entity.name)
        found[*what, seen[what]] = entity
        seen[what] += 1
    return found
