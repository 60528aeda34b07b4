"""Makes the backbone and calls it once a second."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import trio

from trouter.config import RouterEntity
from trouter.core.router import Router
from trouter.mesh.hellos import TICK_S
from trouter.mesh.mesh import Timers
from trouter.net.hub import Hub
from trouter.telemetry.recorder import Recorder

from .backbone import Backbone

#: Added to the time at which a neighbour counts as silent, so that the check comes after it.
_AFTER_S: Final = 0.001


def make_backbone(router: Router, entity: RouterEntity, calendar: Callable[[], float], recorder: Recorder) -> Backbone:
    """Return the backbone of ``router``; ``calendar`` returns seconds since 1970.

    Other routers distinguish starts of this one by the instance, so that is the time in milliseconds.
    """
    timers = Timers(
        hello_interval_s=float(entity.hello_interval_seconds),
        hello_max_age_s=float(entity.hello_max_age_seconds),
        ra_interval_s=float(entity.ra_interval_seconds),
        ra_interval_flux_s=float(entity.ra_interval_flux_seconds),
        remote_ls_max_age_s=float(entity.remote_ls_max_age_seconds),
    )
    return Backbone(router, int(calendar() * 1000), timers, trio.current_time, recorder, calendar)


async def keep_in_touch(backbone: Backbone, hub: Hub) -> None:
    """Tick at the same moment of every second, however long a tick takes.

    Between ticks, check silent neighbours, and advertise changes of the addresses soon.
    """
    due_s = trio.current_time()
    nap = trio.CancelScope()

    def wake(when_s: float) -> None:
        nap.deadline = min(nap.deadline, when_s)

    backbone.on_news = wake
    while True:
        hub.update_clock()
        backbone.tick()
        hub.flush()
        due_s = next_due_s(due_s, trio.current_time())
        while trio.current_time() < due_s:
            silent_s = backbone.silent_at_s + _AFTER_S
            nap = trio.CancelScope(deadline=min(due_s, silent_s, backbone.news_at_s))
            with nap:
                await trio.sleep_forever()
            now_s = trio.current_time()
            hub.update_clock()
            if now_s >= silent_s:
                backbone.check_silence()
            if now_s >= backbone.news_at_s:
                backbone.advertise_news()
            hub.flush()


def next_due_s(due_s: float, now_s: float) -> float:
    """Return the time of the tick after the one due at ``due_s``, in seconds; missed ticks are left out."""
    return due_s + TICK_S * (math.floor((now_s - due_s) / TICK_S) + 1)
