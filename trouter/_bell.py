"""A bell that wakes one task."""

from __future__ import annotations

import trio


class Bell:
    """Wakes a task: a ring that comes before the task waits is not lost, and several count as one."""

    __slots__ = ("_rung",)

    def __init__(self) -> None:
        self._rung = trio.Event()

    def ring(self) -> None:
        """Wake the task, now or as soon as it waits."""
        self._rung.set()

    async def wait(self) -> None:
        """Wait for a ring."""
        await self._rung.wait()
        self._rung = trio.Event()
