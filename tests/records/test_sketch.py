"""The buckets follow the manual's formula, and none is too wide; sketches and clocks in telemetry."""

from __future__ import annotations

import random

import pytest
import trio

from tests.routers import DEADLINE_S
from trouter.core.counters import Latency
from trouter.core.router import Router
from trouter.hooks import CertificateFacts, Plugins, SslProfileFacts, hookimpl
from trouter.records import Alarm, ClockStep, PluginFault, Record
from trouter.records.sketch import bucket_of, merged, middle_of
from trouter.records.stream import RecordQueue
from trouter.telemetry.observers import Observers
from trouter.telemetry.periodic import STEP_US, Sketches, Telemetry
from trouter.telemetry.recorder import Recorder


def test_the_middle_of_a_bucket_is_at_most_a_64th_off() -> None:
    lucky = random.Random(64)
    values = [*range(5000), *(lucky.randrange(1 << lucky.randrange(1, 50)) for _ in range(20_000))]
    for value in values:
        assert abs(middle_of(bucket_of(value)) - value) <= value / 64


def test_buckets_are_in_the_order_of_their_values_without_gaps() -> None:
    buckets = [bucket_of(value) for value in range(20_000)]
    assert sorted(set(buckets)) == list(range(buckets[-1] + 1))
    assert buckets == sorted(buckets)


def test_counts_of_one_bucket_are_added() -> None:
    assert merged([(7, 2), (3, 1), (7, 5), (9, 0)]) == ([3, 7], [1, 7])


def test_a_sketch_shows_new_latencies_by_class_of_address() -> None:
    latency = Latency()
    sketches = Sketches(latency)
    latency.count_delivery(0, 0x24, 0.002)
    latency.count_delivery(0, 0x26, 0.002)
    latency.count_delivery(0, 0x24, 99.0)
    latency.count_delivery(4, 0x24, 0.0)
    mobile, anonymous = sketches.take_sketches(1)
    assert (mobile.family, mobile.cnt, mobile.bc) == ("mobile", 3, [2, 1])
    assert mobile.bi == [bucket_of(2500), bucket_of(10_000_000) + 1]
    assert (anonymous.family, anonymous.bi) == ("anonymous", [bucket_of(1000)])
    assert sketches.take_sketches(2) == []


@pytest.fixture
def stream() -> RecordQueue:
    return RecordQueue(lambda: None)


@pytest.fixture
def telemetry(stream: RecordQueue) -> Telemetry:
    recorder = Recorder()
    recorder.add(stream)
    return Telemetry(Router("R"), recorder, Plugins(), lambda: 1, lambda: 2)


async def test_a_step_of_the_clock_is_reported_once(telemetry: Telemetry, stream: RecordQueue) -> None:
    telemetry._offset_us -= 2 * STEP_US
    await telemetry._record_counts()
    await telemetry._record_counts()
    (step,) = [record for record in stream.take_records().records if isinstance(record, ClockStep)]
    assert abs(step.new_offset - step.old_offset - 2 * STEP_US) < STEP_US


class Broken:
    @hookimpl
    def map_uid(self) -> str:
        raise LookupError

    @hookimpl
    def observe(self, record: object) -> None:
        raise LookupError


async def test_faults_of_plugins_are_reported_by_hook_and_plugin(telemetry: Telemetry, stream: RecordQueue) -> None:
    plugins = telemetry._plugins
    plugins.add(Broken(), "broken")
    for _ in range(3):
        plugins.map_uid(CertificateFacts("CN=x", b""), SslProfileFacts("p"))
        plugins.observe({"k": "alarm"})
    await telemetry._record_counts()
    await telemetry._record_counts()
    (fault,) = [record for record in stream.take_records().records if isinstance(record, PluginFault)]
    assert (fault.hook, fault.count, fault.verdict) == ("map_uid", 3, "denied")
    assert (fault.plugin, fault.exception) == ("broken", "LookupError")


class Faults:
    """A sink for faults of plugins."""

    def __init__(self) -> None:
        self.reported: list[PluginFault] = []
        self.came = trio.Event()

    def put(self, record: Record) -> None:
        if isinstance(record, PluginFault):
            self.reported.append(record)
            self.came.set()


async def test_faults_in_observing_are_reported_to_plugins_that_do_not_observe(nursery: trio.Nursery) -> None:
    recorder, plugins, faults = Recorder(), Plugins(), Faults()
    plugins.add(Broken(), "broken")
    recorder.add(faults)
    observers = Observers(plugins, recorder)
    observers.update_kinds()
    nursery.start_soon(observers.run)
    recorder.emit(Alarm(name="n", severity="warning", subject="s", state="raised"))
    with trio.fail_after(DEADLINE_S):
        await faults.came.wait()
    (fault,) = faults.reported
    assert (fault.hook, fault.count, fault.verdict) == ("observe", 1, "ignored")
    assert (fault.plugin, fault.exception) == ("broken", "LookupError")
    nursery.cancel_scope.cancel()
