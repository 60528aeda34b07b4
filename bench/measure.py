"""Make one measurement: put a load on a server, and read its CPU clock before and after."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any, Final

from trouter.load.led import Led
from trouter.load.plan import Load
from trouter.load.report import LoadReport

from .servers import Server

PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: the server's CPU time for each message, and messages a second."""

    cpu_us: float
    per_second: float
    messages: int
    latency_us: float | None = None
    #: The latency that a hundredth of the messages exceeds.
    slow_latency_us: float | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """The minimum, the median and the maximum of several runs."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        return cls(min(values), median(values), max(values))


def measured_apart(module: ModuleType, *words: str) -> dict[str, Any]:
    """Run a module of the bench in a process of its own; return the figures that it prints."""
    command = [sys.executable, "-m", module.__name__, *words]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sample_of(cpu_ns: int, sent: LoadReport, per_second: float) -> Sample:
    latency_us = sent.latency_us
    return Sample(cpu_ns / 1e3 / sent.messages, per_second, sent.messages, latency_us.get("p50"), latency_us.get("p99"))


def pair(server: Server, load: Load, settle: Callable[[Server], None] = lambda _: None) -> Sample:
    """Measure a sender and a receiver process, from before the first message until the last is received.

    ``settle`` may wait before that until the links are attached for good.
    """
    return pair_through(server, server, load, settle)


def pair_through(
    server: Server, router: Server, load: Load, settle: Callable[[Server], None] = lambda _: None
) -> Sample:
    """Measure as ``pair``, with the sender at ``server``, whose clock is read, and the receiver at ``router``."""
    with Led("receive", replace(load, port=router.port, count=0, seconds=0.0, latency=False)) as receiver:
        receiver.ready()
        receiver.send_go()
        with Led("send", replace(load, port=server.port)) as sender:
            sender.ready()
            settle(server)
            before_ns = server.cpu_ns()
            sender.send_go()
            sent = sender.report(load.seconds + PATIENCE_S)
            receiver.send_go()
            received = receiver.report(PATIENCE_S)
            cpu_ns = server.cpu_ns() - before_ns
    return sample_of(cpu_ns, sent, received.messages_per_second)


def pair_across(near: Server, far: Server, load: Load) -> Sample:
    """Measure as ``pair``, with the sender at one router and the receiver at another; CPU is the mean of both."""
    before_ns = far.cpu_ns()
    sample = pair_through(near, far, load)
    far_us = (far.cpu_ns() - before_ns) / 1e3
    return replace(sample, cpu_us=(sample.cpu_us + far_us / sample.messages) / 2)


def into(server: Server, load: Load) -> Sample:
    """Measure a sender process alone; its receivers are attached already."""
    with Led("send", replace(load, port=server.port)) as sender:
        sender.ready()
        before_ns = server.cpu_ns()
        sender.send_go()
        sent = sender.report(load.seconds + PATIENCE_S)
        cpu_ns = server.cpu_ns() - before_ns
    return sample_of(cpu_ns, sent, sent.messages_per_second)


def handshakes(server: Server, seconds: float, at_once: int = 16) -> Sample:
    """Measure connections that are opened and closed, so many at a time."""
    load = Load(port=server.port, seconds=seconds, handshakes_at_once=at_once)
    with Led("handshakes", load) as clients:
        clients.ready()
        before_ns = server.cpu_ns()
        clients.send_go()
        done = clients.report(seconds + PATIENCE_S)
        cpu_ns = server.cpu_ns() - before_ns
    return sample_of(cpu_ns, done, done.messages_per_second)


def interleaved(repetitions: int, subjects: dict[str, Callable[[], Sample]]) -> dict[str, list[Sample]]:
    """Run each subject once in each repetition, in alternating order, so that drift affects all alike."""
    samples: dict[str, list[Sample]] = {name: [] for name in subjects}
    order = list(subjects)
    for _ in range(repetitions):
        for name in order:
            samples[name].append(subjects[name]())
        order.reverse()
    return samples


def ratios(over: list[Sample], under: list[Sample]) -> Spread:
    """Return the ratio of CPU per message of two subjects, repetition by repetition."""
    return Spread.of([above.cpu_us / below.cpu_us for above, below in zip(over, under, strict=True)])
