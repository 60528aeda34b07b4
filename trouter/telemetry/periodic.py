"""Periodic records: the counts of links, the latency of deliveries, and steps of the clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import trio

from trouter.core.counters import ADDRESS_CLASSES, BOUNDS_S, Latency
from trouter.core.router import Router
from trouter.core.times import TimesByAddress
from trouter.hooks import Culprit, Plugins
from trouter.records import ClockStep, LatencySketch, PluginFault
from trouter.records.sketch import BITS, bucket_of, merged

from .clocks import mono_us, now_us
from .recorder import Recorder

#: Interval of the work, and links per turn of the event loop: about a millisecond.
PERIOD_S: Final = 1.0
PORTION: Final = 256
#: Interval of the counts of links, unless configured.
DEFAULT_INTERVAL_S: Final = 60
#: A larger change of the clocks' offset is a step.
STEP_US: Final = 500_000

#: The bucket of each bound of the core's histograms, and one for times above the last.
_BUCKETS: Final = tuple(bucket_of(round(bound * 1_000_000)) for bound in BOUNDS_S)
_ABOVE: Final = _BUCKETS[-1] + 1


class Telemetry:
    """The periodic work while there are takers of records, about once a second."""

    def __init__(
        self,
        router: Router,
        recorder: Recorder,
        plugins: Plugins,
        interval_s: Callable[[], int | None],
        addresses: Callable[[], int],
    ) -> None:
        """``interval_s`` returns the seconds between counts of a link, ``addresses`` how many addresses to time."""
        self._router = router
        self._addresses = addresses
        self._recorder = recorder
        self._plugins = plugins
        self._faults = Counter(plugins.culprits)
        self._interval_s = interval_s
        self._due = 0.0
        self._sketches = Sketches(router.latency)
        self._sketched_at_s = 0.0
        self._offset_us = _offset_us()

    def begin_timing(self) -> None:
        """Time addresses from now on, if that is wanted."""
        self._time_addresses(self._addresses())

    async def work(self) -> None:
        """Do the work of each second; to be called every ``PERIOD_S``."""
        self._recorder.repeats.write()
        if self._recorder.active:
            await self._record_counts()
        else:
            self._idle()

    def record_last_second(self) -> None:
        """Record what has accumulated since the last second."""
        self._recorder.repeats.write_all()
        self._record_faults()
        self._record_latency()

    async def _record_counts(self) -> None:
        self._check_clock()
        self._record_faults()
        self._time_addresses(self._addresses())
        interval_s = self._interval_s() or DEFAULT_INTERVAL_S
        self._due = min(self._due + len(self._router.links) * PERIOD_S / interval_s, len(self._router.links))
        while self._due >= 1:
            portion = min(PORTION, int(self._due))
            self._due -= portion
            self._recorder.links.record_counts(self._router, portion)
            await trio.lowlevel.checkpoint()
        if trio.current_time() - self._sketched_at_s >= interval_s:
            self._record_latency()

    def _idle(self) -> None:
        """Drop what has accumulated: a later taker gets none of it."""
        self._time_addresses(0)
        self._recorder.links.forget_links()
        self._sketches.begin_at(now_us())
        self._sketched_at_s = trio.current_time()
        self._offset_us = _offset_us()
        self._faults = Counter(self._plugins.culprits)

    def _record_faults(self) -> None:
        """Record faults of plugins, except those of observing, which ``Observers`` records."""
        faults = Counter(self._plugins.culprits)
        for culprit, count in (faults - self._faults).items():
            if culprit.hook != "observe":
                self._recorder.emit(fault_record(culprit, "denied", count))
        self._faults = faults

    def _record_latency(self) -> None:
        self._sketched_at_s = trio.current_time()
        since_us, at_us = self._sketches.since_us, now_us()
        for sketch in self._sketches.take_sketches(at_us):
            self._recorder.emit(sketch)
        times: TimesByAddress | None = self._router.shared.times
        for address, each in () if times is None else times.collect_times():
            buckets, counts = merged(enumerate(each.counts))
            sketch = _sketch(since_us, at_us, buckets, counts, addr=address, min=each.smallest, max=each.largest)
            self._recorder.emit(sketch)

    def _time_addresses(self, max_addresses: int) -> None:
        """Count the latencies of up to ``max_addresses`` addresses from now on; 0 for none."""
        shared = self._router.shared
        if shared.times is None:
            shared.times = TimesByAddress(max_addresses) if max_addresses else None
        elif max_addresses:
            shared.times.max_addresses = max_addresses
        else:
            shared.times.collect_times()
            shared.times = None

    def _check_clock(self) -> None:
        offset_us = _offset_us()
        if abs(offset_us - self._offset_us) > STEP_US:
            self._recorder.emit(ClockStep(old_offset=self._offset_us, new_offset=offset_us))
            self._offset_us = offset_us


class Sketches:
    """The growth of the core's latency histograms since they were last read."""

    def __init__(self, latency: Latency) -> None:
        self._latency = latency
        self._counts = _counts_of(latency)
        self.since_us = now_us()

    def begin_at(self, at_us: int) -> None:
        """Start anew at ``at_us``."""
        self._counts = _counts_of(self._latency)
        self.since_us = at_us

    def take_sketches(self, at_us: int) -> list[LatencySketch]:
        """Return a sketch for each class of addresses with deliveries since the last call."""
        before, since_us = self._counts, self.since_us
        self.begin_at(at_us)
        sketches = []
        for family in ADDRESS_CLASSES:
            deltas = [now - then for now, then in zip(self._counts[family], before[family], strict=True)]
            buckets, counts = merged(zip((*_BUCKETS, _ABOVE), deltas, strict=True))
            if counts:
                sketches.append(_sketch(since_us, at_us, buckets, counts, family=family, rounded=True))
        return sketches


def _sketch(since_us: int, at_us: int, buckets: list[int], counts: list[int], **more: Any) -> LatencySketch:
    """Return the record of a histogram in microseconds; ``more`` names its deliveries."""
    cnt = sum(counts)
    return LatencySketch(t0=since_us, t1=at_us, unit="us", bits=BITS, bi=buckets, bc=counts, cnt=cnt, **more)


def fault_record(culprit: Culprit, verdict: str, count: int) -> PluginFault:
    """Return the record of ``count`` faults of one kind."""
    hook, plugin, exception = culprit
    return PluginFault(hook=hook, verdict=verdict, count=count, plugin=plugin or None, exception=exception or None)


def _counts_of(latency: Latency) -> dict[str, list[int]]:
    """Return histograms of deliveries by latency for each class of addresses, over all outcomes."""
    counts = {family: [0] * (len(BOUNDS_S) + 1) for family in ADDRESS_CLASSES}
    for (family, _), histogram in latency.snapshot().items():
        counts[family] = [total + more for total, more in zip(counts[family], histogram.counts, strict=True)]
    return counts


def _offset_us() -> int:
    """Return the system clock's offset from the monotonic clock, in microseconds."""
    return now_us() - mono_us()
