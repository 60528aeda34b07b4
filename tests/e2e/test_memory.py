"""A router process near its memory limit, which the test sets close to the memory that the process uses."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.routers import RunningRouter, running
from trouter.admission.memory import OPERATORS
from trouter.policy.kinds import TOO_MANY_LINKS
from trouter.wire.performatives import Attach, Begin, Close, Detach, Flow, Source, Target

CONFIGURATION = """
router {{ id: R{limit} }}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: ANONYMOUS
    linkCapacity: 10
    idleTimeoutSeconds: 0
    maxSessions: 32768
}}
"""
#: Bytes of the session window while the router has room.
WINDOW_BYTES = 8 << 20


class Limited:
    """A router whose limit can be set relative to its memory."""

    def __init__(self, router: RunningRouter) -> None:
        self.router = router
        self.port = router.port
        self._reloads = 0

    def take(self, percent: int) -> None:
        """Set the limit so that the process uses ``percent`` of it now."""
        self.allow(self.router.resident_bytes() * 100 // percent)

    def allow(self, octets: int) -> int:
        """Let the process take so many bytes more; return them."""
        self._limit(f", maxMemoryBytes: {octets}")
        return octets

    def be_free(self) -> None:
        self._limit("")

    def _limit(self, limit: str) -> None:
        self.router.configuration.write_text(CONFIGURATION.format(limit=limit))
        self._reloads += 1
        self.router.process.send_signal(signal.SIGHUP)
        self.router.wait_for_line(r"MAIN \(info\) Reloaded", self._reloads)


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Limited]:
    with running(CONFIGURATION.format(limit=""), tmp_path) as router:
        yield Limited(router)


def test_few_clients_may_connect_above_the_second_mark_and_connected_clients_go_on(limited: Limited) -> None:
    """Without a policy every client of this machine counts as an operator."""
    with Peer(limited.port) as peer, ExitStack() as stack:
        limited.take(95)
        limited.router.wait_for_line("ALARM memory raised: .* the mark is 90")
        for _ in range(OPERATORS):
            stack.enter_context(Peer(limited.port)).be_heard()
        with Peer(limited.port, opened=False) as refused:
            refused.expect_end_of_stream()
        limited.router.wait_for_line("refused: 90 percent of maxMemoryBytes")
        receiver, sender = peer.attach_receiver("a", credit=10), peer.attach_sender("a")
        peer.send_message(sender, b"goes on", settled=True)
        assert peer.take_message(receiver)
        limited.be_free()
        limited.router.wait_for_line("ALARM memory cleared: .* the mark is 90")
        with Peer(limited.port):
            pass
    assert len(limited.router.matching("ALARM memory raised: .* the mark is 90")) == 1
    assert len(limited.router.matching("ALARM memory cleared: .* the mark is 90")) == 1


def test_no_client_gets_a_third_link_above_the_mark_before_and_requests_are_answered(limited: Limited) -> None:
    with Peer(limited.port) as peer, Peer(limited.port) as other:
        limited.take(70)
        receivers = [peer.attach_receiver(f"a{number}") for number in range(3)]
        limited.take(88)
        limited.router.wait_for_line("ALARM memory raised: .* the mark is 85")
        refused = peer.attach(Attach("fourth", 7, True, source=Source("b"), target=Target()))
        assert refused.source is None
        assert peer.expect(Detach).error == TOO_MANY_LINKS
        limited.router.wait_for_line("DENY AMQP Attach receiver link 'b' .* based on 'maxMemoryBytes'")
        sender = other.attach_sender("a0")
        other.attach_receiver(None, dynamic=True)
        peer.grant(receivers[0], 1)
        other.send_message(sender, b"x", settled=True)
        assert peer.take_message(receivers[0])
        assert other.attach(Attach("third", 7, True, source=Source("b"), target=Target())).source is None
        limited.be_free()
        limited.router.wait_for_line("ALARM memory cleared: .* the mark is 85")
        peer.attach_receiver("c")


class Feeder:
    """A client that sends one long message, piece by piece, for which no receiver has credit."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        address = f"kept by {peer.number}"
        peer.attach_receiver(address)
        self._link = peer.attach_sender(address)
        self._first = True

    def keep(self, count: int) -> int:
        """Make the router keep ``count`` more bytes, as far as the window permits; return how many it does."""
        left = count
        while left and self.peer.window:
            left -= self.send(min(left, 16_000))
        self.peer.be_heard()
        return count - left

    def send(self, count: int) -> int:
        self.peer.transfer(self._link, bytes(count), more=True, first=self._first)
        self._first = False
        return count


def test_all_connections_together_keep_no_more_than_a_quarter_of_the_memory(limited: Limited) -> None:
    budget = limited.allow(240_000_000) // 4
    with ExitStack() as stack:
        feeders = [Feeder(stack.enter_context(Peer(limited.port))) for _ in range(2 + budget // WINDOW_BYTES)]
        last, before_last = feeders.pop(), feeders.pop()

        def window_after(frames: int) -> int:
            for _ in range(frames):
                last.send(0)
            last.peer.be_heard()
            return last.peer.window

        kept = 0
        for each in feeders:
            kept += each.keep(budget // 2 - kept)
        assert kept == budget // 2
        whole = last.peer.window
        assert window_after(whole * 2 // 3) > whole * 2 // 3  # up to half of the budget the window opens again
        frames = last.peer.window
        kept += before_last.keep(budget % 2 + 1)
        assert window_after(frames * 2 // 3) == frames - frames * 2 // 3  # and beyond that an eighth as far
        for each in (*feeders, before_last):
            kept += each.keep(budget - kept)
        assert kept == budget
        last.send(1)
        end = last.peer.expect_session_end()
        assert end is not None
        assert end.condition == "amqp:resource-limit-exceeded"
        before_last.peer.be_heard()


def begin_many(peer: Peer, count: int) -> None:
    """Begin ``count`` sessions besides the one on channel 0, and wait for the router's answers."""
    for channel in range(1, count + 1):
        peer.say(Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10), channel=channel)
    for _ in range(count):
        peer.expect(Begin)


def test_a_client_that_begins_sessions_until_memory_runs_out_loses_its_connection(limited: Limited) -> None:
    with Peer(limited.port) as greedy, Peer(limited.port) as other:
        begin_many(greedy, 5000)
        limited.take(95)
        close = greedy.expect(Close)
        assert close.error is not None
        assert close.error.condition == "amqp:resource-limit-exceeded"
        limited.router.wait_for_line(rf"\[C{greedy.number}\] Connection closed: it uses \d+ bytes")
        other.be_heard()


def test_a_session_without_a_link_has_no_task(limited: Limited) -> None:
    with Peer(limited.port) as peer:
        begin_many(peer, 500)
        peer.attach_receiver("a")
        limited.router.process.send_signal(signal.SIGUSR1)
        dumped = Path(limited.router.wait_for_line(r"MAIN \(info\) The state was written to (.+)")[1])
        text = dumped.read_text(encoding="utf-8")
        dumped.unlink()
        assert text.count("  session channel=") == 501
        assert "Sessions._serve_inbox" not in text


def test_only_the_user_with_the_most_memory_gets_no_credit_above_the_first_mark(limited: Limited) -> None:
    with Peer(limited.port) as slow, Peer(limited.port) as large, Peer(limited.port) as small:
        slow_receiver = slow.attach_receiver("large")
        sender = large.attach_sender("large")
        for _ in range(5):
            large.send_message(sender, b"x" * 10_000, settled=True)
        large.be_heard()
        limited.take(85)
        limited.router.wait_for_line("ALARM memory raised: .* the mark is 80")
        for _ in range(sender.credit):
            large.send_message(sender, b"x" * 100, settled=True)
        large.be_heard()
        assert sender.credit == 0
        receiver, other = small.attach_receiver("small", credit=100), small.attach_sender("small")
        for _ in range(30):  # three times its credit
            small.send_message(other, b"x", settled=True)
            small.take_message(receiver)
            small.be_heard()
        large.be_heard()
        assert sender.credit == 0
        slow.grant(slow_receiver, 100)  # the messages are read: the router keeps nothing of the sender any more
        while sender.credit == 0:
            said = large.next()
            if isinstance(said, Flow):
                large.take_flow(said)
