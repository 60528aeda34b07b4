"""The base of connections, sessions and links: tasks wait on them, and all wake when they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from .errors import ClientError


class Closable:
    """Our side of a connection, session or link, until either side ends it or it fails. ``kind`` is what errors say."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._changed = trio.lowlevel.ParkingLot()
        self._failure: ClientError | None = None
        self._closed = False
        self._waited_on: set[trio.lowlevel.ParkingLot] = set()

    @property
    def usable(self) -> bool:
        """True if neither side has ended it."""
        return self._failure is None and not self._closed

    def _check_usable(self) -> None:
        """Raise the error that ended this; trio.ClosedResourceError if we ended it."""
        if self._failure is not None:
            raise self._failure.copy_for_raise()
        if self._closed:
            raise trio.ClosedResourceError(f"this {self._kind} was closed")

    async def _wait_until(self, condition: Callable[[], bool], lot: trio.lowlevel.ParkingLot | None = None) -> None:
        """Wait until ``condition`` holds; the code that changes it wakes ``lot``. Raises as ``_check_usable``."""
        if lot is None:
            lot = self._changed
        while not condition():
            self._check_usable()
            self._waited_on.add(lot)
            try:
                await lot.park()
            finally:
                if not lot:
                    self._waited_on.discard(lot)

    def _end(self, failure: ClientError | None) -> None:
        """End it: because of ``failure``, or by our own wish if None. Only the first call counts."""
        if self.usable:
            self._failure = failure
            self._closed = failure is None
            self._wake_all()

    def _wake_all(self) -> None:
        self._changed.unpark_all()
        for lot in list(self._waited_on):
            lot.unpark_all()
