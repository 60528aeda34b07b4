"""A sink in a process of its own, and load that runs against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from trouter.load.led import Led
from trouter.load.plan import Load
from trouter.load.report import LoadReport


@dataclass(frozen=True, slots=True)
class Sink:
    """A sink; ``port`` is the port to send to, ``finish`` ends it and returns its report."""

    led: Led
    port: int

    def finish(self) -> LoadReport:
        self.led.send_go()
        return self.led.report()


StartSink = Callable[[Load], Sink]


@pytest.fixture
def start_sink() -> Iterator[StartSink]:
    started: list[Led] = []

    def start(load: Load) -> Sink:
        led = Led("sink", load)
        started.append(led)
        port = led.ready()["port"]
        led.send_go()
        return Sink(led, port)

    yield start
    for led in started:
        led.kill()
        led.end_process()


@pytest.fixture
def sink(start_sink: StartSink) -> Sink:
    return start_sink(Load(port=0, session_frames=0))
