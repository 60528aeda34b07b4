"""The state of a soak, and the pace of its clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

import trio

from tests.chaos.traffic import RETRY_S
from tests.chaos.worlds import World
from trouter.client import ClientError
from trouter.tools.failures import ConnectionException, Timeout, as_text


@dataclass
class Soak:
    """The state of a soak: the routers, the rate, and the counts."""

    world: World
    rate: float
    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    churned: Counter[str] = field(default_factory=Counter)
    #: Clients that lost a connection or were refused and started again.
    interrupted: Counter[str] = field(default_factory=Counter)

    #: Entities created over management and not deleted yet: type and name.
    made: list[tuple[str, str]] = field(default_factory=list)

    def every(self, period_s: float) -> Beat:
        """Return numbers from 0, at rate 1 one every ``period_s`` seconds; a late number delays the next."""
        return Beat(period_s / self.rate)


class Beat:
    """Numbers from 0, each a period after the one before it."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._numbers = count()

    def __aiter__(self) -> Beat:
        return self

    async def __anext__(self) -> int:
        number = next(self._numbers)
        await trio.sleep(self._period_s if number else 0)
        return number


async def keep_up(soak: Soak, name: str, work: Callable[[Soak], Awaitable[None]]) -> None:
    """Run a client for ever; start it again when it loses its connection."""
    while True:
        try:
            await work(soak)
        except* (ClientError, ConnectionException, Timeout, OSError, trio.TooSlowError) as ended:
            soak.interrupted[f"{name}: {as_text(ended)}"] += 1
        await trio.sleep(RETRY_S)
