"""The text of /metrics, made once for all that wait, so that scraping cannot use up the router's time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import trio

#: The pause between two texts, in multiples of the time that the last one took.
PAUSE: Final = 9


class Scrapes:
    """Makes texts, one at a time and for at most a tenth of the time; requests that wait share a text."""

    def __init__(
        self,
        gather: Callable[[], Awaitable[Mapping[int, bytes | None]]],
        make: Callable[[Mapping[int, bytes | None]], bytes],
    ) -> None:
        """``gather`` waits for what other processes have of the text, and ``make`` makes the text with it."""
        self._gather = gather
        self._make = make
        self._text = b""
        self._number = 0
        self._not_before_s = 0.0
        self._turn = trio.Lock()

    async def text(self) -> bytes:
        """Return a text that was begun after the call."""
        begun = self._number
        async with self._turn:
            if self._number > begun:
                return self._text
            await trio.sleep_until(self._not_before_s)
            others = await self._gather()
            start_s = time.perf_counter()
            try:
                self._text = self._make(others)
                self._number += 1
            finally:
                self._not_before_s = trio.current_time() + PAUSE * (time.perf_counter() - start_s)
            return self._text
