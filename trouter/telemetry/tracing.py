"""The way of ended spans from the core to the tracer of a plugin, in batches."""

from __future__ import annotations

from typing import Final

import trio

from trouter.core.ports import SharedState
from trouter.core.tracing import Source, Tracing
from trouter.engine.ports import LinkPort
from trouter.hooks import MessageTracer, Plugins
from trouter.net.timers import NEVER, TimerQueue
from trouter.net.view import owner_of

#: Seconds from the end of a first span to the batch with it.
PERIOD_S: Final = 0.1


class MessageSpans:
    """The spans of one router's messages; its timer runs only while a span waits."""

    def __init__(self, shared: SharedState, plugins: Plugins, timers: TimerQueue) -> None:
        self._shared = shared
        self._plugins = plugins
        self._timers = timers
        self._timer = timers.add("export of spans", self._export)
        self._tracer: MessageTracer | None = None

    def trace_by(self, tracer: MessageTracer | None) -> None:
        """Make spans for ``tracer`` from now on; none for None."""
        self.flush()
        self._tracer = tracer
        self._shared.tracing = (
            None
            if tracer is None
            else Tracing(tracer.ratio, tracer.one_in, tracer.propagates, describe_source, self._wake)
        )

    def flush(self) -> None:
        """Pass the spans that wait to the tracer."""
        tracing, tracer = self._shared.tracing, self._tracer
        if tracing is None or tracer is None:
            return
        spans, dropped = tracing.take_ended(), tracing.dropped
        tracing.dropped = 0
        if spans or dropped:
            self._plugins.objects.export_spans(tracer, spans, dropped)

    def _wake(self) -> None:
        self._timers.advance(self._timer, trio.current_time() + PERIOD_S)

    def _export(self, _: float) -> float:
        self.flush()
        return NEVER


def describe_source(link: LinkPort) -> Source:
    """Return the container and the number of the connection of a link."""
    owner = owner_of(link)
    if owner is None:
        return "", 0
    remote = owner.engine.remote_open
    return "" if remote is None else remote.container_id, owner.number
