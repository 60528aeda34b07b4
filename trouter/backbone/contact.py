"""Makes the backbone, and calls it by the clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import trio

from trouter.config import RouterEntity
from trouter.core.router import Router
from trouter.mesh.hellos import TICK_S
from trouter.mesh.mesh import Timers
from trouter.net.timers import TimerQueue
from trouter.telemetry.recorder import Recorder

from .backbone import Backbone

#: Added to the time at which a neighbour counts as silent, so that the check comes after it.
_AFTER_S: Final = 0.001


def make_backbone(
    router: Router, entity: RouterEntity, calendar: Callable[[], float], recorder: Recorder, queue: TimerQueue
) -> Backbone:
    """Return the backbone of ``router``, which ``queue`` calls; ``calendar`` returns seconds since 1970.

    Other routers distinguish starts of this one by the instance, so that is the time in milliseconds.
    """
    timers = Timers(
        hello_interval_s=float(entity.hello_interval_seconds),
        hello_max_age_s=float(entity.hello_max_age_seconds),
        ra_interval_s=float(entity.ra_interval_seconds),
        ra_interval_flux_s=float(entity.ra_interval_flux_seconds),
        remote_ls_max_age_s=float(entity.remote_ls_max_age_seconds),
    )

    def make(wake: Callable[[float], None]) -> Backbone:
        return Backbone(router, int(calendar() * 1000), timers, trio.current_time, wake, recorder, calendar)

    return MeshClock(queue, make).backbone


class MeshClock:
    """Calls a backbone at the same moment of every second, however long a call takes.

    Between these calls it checks silent neighbours, advertises changes of addresses soon, and works on large messages.
    """

    def __init__(self, queue: TimerQueue, make: Callable[[Callable[[float], None]], Backbone]) -> None:
        """Make the backbone with ``make``, which gets the function that wakes this object at a time."""
        self._queue = queue
        self._timer = queue.add("network of routers", self._do, 0.0)
        #: When the next call of the second is due; None before the first.
        self._tick_s: float | None = None
        self.backbone = make(self._wake)

    def _wake(self, when_s: float) -> None:
        self._queue.advance(self._timer, when_s)

    def _do(self, now_s: float) -> float:
        backbone, tick_s = self.backbone, self._tick_s
        if tick_s is None or now_s >= tick_s:
            backbone.tick()
            self._tick_s = tick_s = next_due_s(now_s if tick_s is None else tick_s, trio.current_time())
        else:
            if now_s >= backbone.silent_at_s + _AFTER_S:
                backbone.check_silence()
            if now_s >= backbone.news_at_s:
                backbone.advertise_news()
            backbone.do_pieces()
        return min(tick_s, backbone.silent_at_s + _AFTER_S, backbone.news_at_s)


def next_due_s(due_s: float, now_s: float) -> float:
    """Return the time of the tick after the one due at ``due_s``, in seconds; missed ticks are left out."""
    return due_s + TICK_S * (math.floor((now_s - due_s) / TICK_S) + 1)
