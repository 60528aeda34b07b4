"""Limit the logins that are checked at a time; further ones wait, in the order in which they came.

Of a host whose failures count there are as many as delay the next login, so a client cannot have many passwords
checked before its first failure counts. Of all other hosts there are ``LOGINS_AT_ONCE`` with each plugin: when
hundreds of clients come at once, checks that take a while have their time limits only while they are made.
"""

from __future__ import annotations

from typing import Final

import trio

#: Logins with one plugin that are checked at a time, fewer than a plugin refuses as too many.
LOGINS_AT_ONCE: Final = 32


class Turns:
    """Turns by place or plugin; one without waiting or running logins has no entry."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def __len__(self) -> int:
        return len(self._places)

    @property
    def waiting(self) -> int:
        """The logins that wait for their turn."""
        return sum(len(place.waiting) for place in self._places.values())

    def hold_turn(self, place: str, limit: int) -> HeldTurn:
        """Hold one of the ``limit`` turns of ``place`` within the block; wait until one is free."""
        return HeldTurn(self._places, place, limit)


class _Place:
    """The turns of one place: those that are held, and the tasks that wait."""

    __slots__ = ("held", "waiting")

    def __init__(self) -> None:
        self.held = 0
        self.waiting = trio.lowlevel.ParkingLot()


class HeldTurn:
    """A turn of a place within a block. Without waiting it costs no checkpoint: most logins wait for nobody."""

    __slots__ = ("_limit", "_name", "_places")

    def __init__(self, places: dict[str, _Place], name: str, limit: int) -> None:
        self._places = places
        self._name = name
        self._limit = limit

    async def __aenter__(self) -> None:
        place = self._places.get(self._name)
        if place is None:
            place = self._places[self._name] = _Place()
        while place.waiting and place.held < self._limit:  # there are more turns than before
            place.held += 1
            place.waiting.unpark()
        if place.held and place.held >= self._limit:
            await place.waiting.park()  # who gives back its turn leaves it to this task
        else:
            place.held += 1

    async def __aexit__(self, *_: object) -> None:
        place = self._places[self._name]
        if place.waiting and place.held <= max(self._limit, 1):
            place.waiting.unpark()
            return
        place.held -= 1
        if not place.held:
            del self._places[self._name]
