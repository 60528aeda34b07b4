"""Fleets against a sink and a router, over real sockets between real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.load.conftest import Sink, StartSink
from tests.routers import RunningRouter, router, start_router
from trouter.cli import main
from trouter.load.led import Led
from trouter.load.plan import Load, LoadError
from trouter.load.pump import Wire
from trouter.load.roles import HandshakeFleet, SendFleet, SinkFleet

__all__ = ["router", "start_router"]

CLOSE_FRAME_BYTES = 12
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "load",
    [
        Load(count=1),
        Load(count=5000),
        Load(count=300, window=1, latency=True),
        Load(count=500, window=7),
        Load(count=2000, presettled=True),
        Load(count=200, size=10_000),
        Load(count=30, size=1_000_000),
        Load(count=3, size=5_000_000, window=2),
        Load(count=50, size=5000, frame_bytes=512),
        Load(count=1000, connections=3, addresses=7),
        Load(count=1000, connections=3, addresses=2),
        Load(count=1000, addresses=40, anonymous=True),
        Load(count=1000, connections=3, addresses=3, rate=50_000),
    ],
)
def test_every_sent_message_arrives(load: Load, sink: Sink) -> None:
    sent = SendFleet(replace(load, port=sink.port)).run()
    received = sink.finish()
    kind = "presettled" if load.presettled else "accepted"
    assert sent.messages == received.messages == load.count
    assert sent.outcomes == received.outcomes == {kind: load.count}
    assert sent.body_bytes == received.body_bytes > load.count * load.size
    assert received.wire_bytes_in - sent.wire_bytes_out == load.connections * CLOSE_FRAME_BYTES
    assert sent.seconds > 0
    assert bool(sent.latency_us) == load.latency


def test_a_sender_that_keeps_a_pace_is_no_faster(sink: Sink) -> None:
    sent = SendFleet(Load(port=sink.port, count=101, rate=1000)).run()
    assert sent.seconds >= 0.1


class CountedFleet(SendFleet):
    """A fleet that counts the messages of each connection."""

    def __init__(self, load: Load) -> None:
        super().__init__(load)
        self.each: Counter[Wire] = Counter()

    def _drive(self, wire: Wire) -> None:
        begun = self.tally.begun
        super()._drive(wire)
        self.each[wire] += self.tally.begun - begun


def test_a_sender_that_keeps_a_pace_sends_as_much_on_each_connection(sink: Sink) -> None:
    fleet = CountedFleet(Load(port=sink.port, count=300, connections=5, addresses=5, rate=50_000))
    assert fleet.run().messages == 300
    assert max(fleet.each.values()) <= 1.2 * min(fleet.each.values())


class TickingFleet(SendFleet):
    """A fleet that counts how often it looks for heartbeats that are due before it is prepared."""

    looks = 0

    def _tick_if_due(self, now_s: float) -> None:
        self.looks += not self.tally.begun
        super()._tick_if_due(now_s)


def test_a_fleet_looks_for_due_heartbeats_after_each_connection_that_it_opens(sink: Sink) -> None:
    fleet = TickingFleet(Load(port=sink.port, count=1, connections=30, addresses=30))
    fleet.run()
    assert fleet.looks >= 30


def test_a_small_credit_is_renewed(start_sink: StartSink) -> None:
    sink = start_sink(Load(port=0, credit=1, session_frames=2))
    assert SendFleet(Load(port=sink.port, count=100, size=40_000)).run().outcomes == {"accepted": 100}
    assert sink.finish().messages == 100


def test_time_ends_a_load_and_every_outcome_is_awaited(sink: Sink) -> None:
    sent = SendFleet(Load(port=sink.port, seconds=0.05)).run()
    assert sent.messages == sent.outcomes["accepted"] == sink.finish().messages > 0


@pytest.mark.parametrize("at_once", [1, 16, 64])
def test_handshakes_are_counted_to_the_last(sink: Sink, at_once: int) -> None:
    assert HandshakeFleet(Load(port=sink.port, count=50, handshakes_at_once=at_once)).run().messages == 50
    assert sink.finish().messages == 0


def test_a_held_connection_is_there_until_the_harness_lets_go(start_router: Callable[[str], RunningRouter]) -> None:
    router = start_router("router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n")
    for bare in (True, False):
        before = router.open_files()
        with Led("hold", Load(port=router.port, connections=20, addresses=20, bare=bare)) as held:
            held.ready()
            assert router.open_files() >= before + 20
            held.send_go()
            held.send_go()
            assert held.report().connections == 20


@pytest.mark.parametrize("load", [Load(count=2000), Load(count=20, size=200_000), Load(count=500, addresses=5)])
def test_a_pair_through_a_router(load: Load, router: RunningRouter, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--count", str(load.count), "--size", str(load.size), "--addresses", str(load.addresses), "--json"]
    assert main(["bench", "pair", "--port", str(router.port), *words]) == 0
    reports = json.loads(capsys.readouterr().out)
    for role in ("send", "receive"):
        assert reports[role]["messages"] == load.count
        assert reports[role]["outcomes"] == {"accepted": load.count}


def test_a_stalled_receiver_takes_its_credit_and_no_more(router: RunningRouter) -> None:
    here = Load(port=router.port, credit=10)
    with Led("receive", replace(here, stalled=True)) as receiver:
        receiver.ready()
        receiver.send_go()
        with Led("send", replace(here, count=11)) as sender:
            sender.ready()
            sender.send_go()
            receiver.send_go()
            stalled = receiver.report()
            assert 0 <= stalled.messages <= 10
            assert stalled.outcomes == {}
            sender.kill()


def test_a_led_sender_whose_harness_is_gone_ends(start_sink: StartSink) -> None:
    sink = start_sink(Load(port=0, credit=1, stalled=True))
    sender = Led("send", Load(port=sink.port, count=2))
    sender.ready()
    sender.send_go()
    sender.end_process()
    assert sender.process.returncode == 1


def test_an_interrupted_receiver_prints_its_count(router: RunningRouter) -> None:
    command = [sys.executable, "-m", "trouter", "bench", "receive", "--port", str(router.port), "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as receiver:
        router.wait_for_line("Link attached: dir=out")
        assert SendFleet(Load(port=router.port, count=3)).run().outcomes == {"accepted": 3}
        os.kill(receiver.pid, signal.SIGINT)
        output, _ = receiver.communicate()
    assert json.loads(output)["messages"] == 3


def test_a_server_that_goes_away_ends_the_load(start_sink: StartSink) -> None:
    sink = start_sink(Load(port=0, credit=1, stalled=True))
    sender = Led("send", Load(port=sink.port, count=2))
    sender.ready()
    sender.send_go()
    sink.led.kill()
    with pytest.raises(LoadError, match="the connection ended: the peer closed it"):
        sender.report()
    sender.end_process()
    assert sender.process.returncode == 1


def test_a_missing_router_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    unused = SinkFleet(Load(port=0))
    port = unused.port
    unused._close()
    assert main(["bench", "send", "--port", str(port), "--count", "1"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"trouter bench send: cannot connect to amqp://127.0.0.1:{port}: ")
    assert output.err.count("\n") == 1


def test_a_port_in_use_is_one_line(sink: Sink, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "sink", "--port", str(sink.port), "--count", "1"]) == 1
    assert f"cannot listen on 127.0.0.1:{sink.port}: " in capsys.readouterr().err
