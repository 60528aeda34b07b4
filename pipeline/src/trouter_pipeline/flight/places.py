"""The places of readers: how many get messages at a time, and what becomes of one that stops taking them.

Nothing ends a call of Flight whose client neither takes the next block nor goes away, so such a reader cannot be sent
away: it loses its place to the next one that comes. What it costs stays, and so there are at most as many of these
calls as places.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Final

#: A reader that took no block for so many seconds gives its place to one that comes. Our own readers end a call
#: after `connectTimeoutS` (30).
STALLED_S: Final = 60.0


class NoPlace(Exception):
    """All places are taken, or this reader's was given to another; the text says so."""


class Place:
    """The place of one reader; `Places` gives and takes it."""

    def __init__(self, reader: str, now_s: float) -> None:
        self.reader = reader
        self.seen_s = now_s
        self.is_lost = False


class Places:
    """A number of places, and who has them."""

    def __init__(
        self,
        number: int,
        report: Callable[[str], None],
        *,
        stalled_s: float = STALLED_S,
        now_s: Callable[[], float] = monotonic,
    ) -> None:
        """Call ``report`` with a line for each reader that loses its place."""
        self._number = number
        self._report = report
        self._stalled_s = stalled_s
        self._now_s = now_s
        self._lock = threading.Lock()
        #: Those that have a place, by the time when they took their last block, and those that lost theirs.
        self._taken: dict[Place, None] = {}
        self._lost = 0

    def take(self, reader: str) -> Place:
        """Return a place for the reader at this address, of one that has stopped if need be; NoPlace."""
        with self._lock:
            now_s = self._now_s()
            if len(self._taken) >= self._number:
                self._free_one(now_s)
            place = Place(reader, now_s)
            self._taken[place] = None
            return place

    def _free_one(self, now_s: float) -> None:
        """Take the place of the reader that stopped first; NoPlace."""
        stopped = next(iter(self._taken))
        if self._lost >= self._number:
            raise NoPlace(
                f"{self._number} readers are served already, and {self._lost} others have stopped and keep their "
                "connections: try again"
            )
        if now_s - stopped.seen_s < self._stalled_s:
            raise NoPlace(f"{self._number} readers are served already: try again")
        del self._taken[stopped]
        stopped.is_lost = True
        self._lost += 1
        self._report(
            f"the reader at {stopped.reader} took no message for {now_s - stopped.seen_s:.0f} s, and lost its place "
            "to another one"
        )

    def keep(self, place: Place) -> None:
        """Say that a reader took a block, before it gets the next one; NoPlace if its place was given to another."""
        with self._lock:
            if place.is_lost:
                raise NoPlace(f"the reader took no message for {self._stalled_s:g} s, and lost its place: try again")
            del self._taken[place]
            self._taken[place] = None
            place.seen_s = self._now_s()

    def leave(self, place: Place) -> None:
        """Free a place, at the end of its call."""
        with self._lock:
            if place.is_lost:
                self._lost -= 1
            else:
                del self._taken[place]
