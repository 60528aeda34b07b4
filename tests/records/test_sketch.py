"""Buckets are what the formula in the manual says, and none of them is too wide; sketches and clocks in telemetry."""

from __future__ import annotations

import random

import pytest

from trouter.core.latency import Latency
from trouter.core.router import Router
from trouter.hooks import Plugins
from trouter.net.recorder import Recorder
from trouter.net.telemetry import STEP_US, Sketches, Telemetry
from trouter.records import ClockStep, PluginFault
from trouter.records.sketch import bucket_of, merged, middle_of
from trouter.records.stream import Stream


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


def test_a_sketch_tells_what_is_new_by_class_of_address() -> None:
    latency = Latency()
    sketches = Sketches(latency)
    latency.count(0, 0x24, 0.002)
    latency.count(0, 0x26, 0.002)
    latency.count(0, 0x24, 99.0)
    latency.count(4, 0x24, 0.0)
    mobile, anonymous = sketches.take(1)
    assert (mobile.family, mobile.cnt, mobile.bc) == ("mobile", 3, [2, 1])
    assert mobile.bi == [bucket_of(2500), bucket_of(10_000_000) + 1]
    assert (anonymous.family, anonymous.bi) == ("anonymous", [bucket_of(1000)])
    assert sketches.take(2) == []


@pytest.fixture
def stream() -> Stream:
    return Stream(lambda: None)


@pytest.fixture
def telemetry(stream: Stream) -> Telemetry:
    recorder = Recorder()
    recorder.add(stream)
    return Telemetry(Router("R"), recorder, Plugins(), lambda: 1)


async def test_a_step_of_the_clock_is_told_once(telemetry: Telemetry, stream: Stream) -> None:
    telemetry._offset_us -= 2 * STEP_US
    await telemetry._look()
    await telemetry._look()
    (step,) = [record for record in stream.take().records if isinstance(record, ClockStep)]
    assert abs(step.new_offset - step.old_offset - 2 * STEP_US) < STEP_US


async def test_faults_of_plugins_are_told_by_hook(telemetry: Telemetry, stream: Stream) -> None:
    telemetry._plugins.faults.update({"open_sasl": 3, "observe": 5})
    await telemetry._look()
    await telemetry._look()
    faults = [record for record in stream.take().records if isinstance(record, PluginFault)]
    assert [(fault.hook, fault.count, fault.verdict) for fault in faults] == [("open_sasl", 3, "denied")]
