"""What connections, sessions and links have in common: tasks wait on them, and all of them wake when it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from .errors import ClientError


class End:
    """Our end of something that lasts until one of the two sides, or an accident, ends it."""

    def __init__(self) -> None:
        self._changed = trio.lowlevel.ParkingLot()
        self._failure: ClientError | None = None
        self._closed = False
        self._waited_on: set[trio.lowlevel.ParkingLot] = set()

    @property
    def usable(self) -> bool:
        """Return whether neither side has ended it."""
        return self._failure is None and not self._closed

    def _check(self) -> None:
        """Raise what ended this; trio.ClosedResourceError if we did."""
        if self._failure is not None:
            raise self._failure.fresh()
        if self._closed:
            raise trio.ClosedResourceError(f"this {type(self).__name__.lower()} was closed")

    async def _until(self, condition: Callable[[], bool], lot: trio.lowlevel.ParkingLot | None = None) -> None:
        """Wait until ``condition`` holds; the code that changes it wakes ``lot``. Raises as ``_check``."""
        if lot is None:
            lot = self._changed
        while not condition():
            self._check()
            self._waited_on.add(lot)
            try:
                await lot.park()
            finally:
                if not lot:
                    self._waited_on.discard(lot)

    def _end(self, failure: ClientError | None) -> None:
        """It is over: because of ``failure``, or by our own wish. The first word counts."""
        if self.usable:
            self._failure = failure
            self._closed = failure is None
            self._wake_all()

    def _wake_all(self) -> None:
        self._changed.unpark_all()
        for lot in list(self._waited_on):
            lot.unpark_all()
