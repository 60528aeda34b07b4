"""Limits on connections before their open: their number, their rate, and the time that they may take."""

from __future__ import annotations

import ipaddress
import os
from contextlib import ExitStack
from dataclasses import replace
from typing import cast

import pytest

from tests.clock import Clock
from trouter.admission.handshakes import CURE, TOO_SLOW, HandshakeRules, Handshakes, Newcomer
from trouter.net.tallies import SharedMemory, Tallies
from trouter.net.view import ConnectionView

HOST = "192.0.2.1"
RULES = HandshakeRules()
ANYWHERE = ipaddress.ip_network("0.0.0.0/0")


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def handshakes(clock: Clock) -> Handshakes:
    return Handshakes(clock)


def take(handshakes: Handshakes, count: int, host: str = HOST, role: str = "normal") -> list[Newcomer]:
    taken = []
    for _ in range(count):
        assert handshakes.too_many(host, role) == ""
        taken.append(handshakes.begin_handshake(host, role))
    return taken


# Number


def test_twenty_of_a_host_and_no_more(handshakes: Handshakes) -> None:
    first, *_ = take(handshakes, 20)
    assert handshakes.too_many(HOST, "normal") == f"maxHandshakesPerHost 20 from {HOST}{CURE}"
    assert handshakes.too_many("192.0.2.2", "normal") == ""
    handshakes.end_handshake(first)
    handshakes.end_handshake(first)
    take(handshakes, 1)
    assert handshakes.too_many(HOST, "normal")


def test_a_network_of_64_bits_is_one_host(handshakes: Handshakes) -> None:
    for number in range(20):
        take(handshakes, 1, f"2001:db8::{number}")
    assert handshakes.too_many("2001:db8::ffff", "normal")
    assert not handshakes.too_many("2001:db8:0:1::", "normal")


def test_a_thousand_in_all_and_routers_are_counted_apart(handshakes: Handshakes) -> None:
    for number in range(1000):
        take(handshakes, 1, f"198.51.{number // 100}.{number % 100}")
    assert handshakes.too_many(HOST, "normal") == "maxHandshakes 1000"
    assert handshakes.too_many(HOST, "route-container") == "maxHandshakes 1000"
    take(handshakes, 10, role="inter-router")
    take(handshakes, 10, role="edge")
    assert handshakes.too_many(HOST, "edge") == f"maxHandshakesPerHost 20 from {HOST}{CURE}"


def test_no_count_is_left_of_ended_handshakes(handshakes: Handshakes) -> None:
    for newcomer in take(handshakes, 20):
        handshakes.end_handshake(newcomer)
    assert len(handshakes) == 0
    assert not handshakes._counts


def test_loopback_hosts_are_exempt_unless_the_exemptions_are_configured(handshakes: Handshakes) -> None:
    take(handshakes, 5000, "127.0.0.1")
    assert len(handshakes) == 0
    assert not any(handshakes.too_fast("::1") for _ in range(5000))
    handshakes.rules = replace(RULES, exempt=())
    take(handshakes, 20, "127.0.0.1")
    assert handshakes.too_many("127.0.0.1", "normal")
    handshakes.rules = replace(RULES, exempt=(ipaddress.ip_network("2001:db8::7"),))
    take(handshakes, 100, "2001:db8::7")
    take(handshakes, 20, "2001:db8::8")
    assert handshakes.too_many("2001:db8::8", "normal")


def test_zero_is_no_limit(handshakes: Handshakes) -> None:
    handshakes.rules = replace(RULES, max_handshakes=0, max_by_place=0, arrivals_per_second=0, least_rate=0)
    take(handshakes, 2000)
    assert not any(handshakes.too_fast(HOST) for _ in range(2000))


# Rate


def test_a_hundred_at_once_then_fifty_a_second(handshakes: Handshakes, clock: Clock) -> None:
    assert [handshakes.too_fast(HOST) for _ in range(100)] == [""] * 100
    assert handshakes.too_fast(HOST) == f"more than acceptRatePerHost 50 a second from {HOST}{CURE}"
    assert handshakes.too_fast("192.0.2.2") == ""
    clock.now_s += 1.0
    assert [bool(handshakes.too_fast(HOST)) for _ in range(60)] == [False] * 50 + [True] * 10
    clock.now_s += 3600.0
    assert [bool(handshakes.too_fast(HOST)) for _ in range(110)] == [False] * 100 + [True] * 10


def test_arrivals_at_all_workers_count_together(clock: Clock) -> None:
    with ExitStack() as stack:
        shared = SharedMemory(2)
        stack.callback(shared.close)
        workers = []
        for place in (1, 2):
            tallies = Tallies(os.dup(shared.descriptor), place, 2, clock)
            stack.callback(tallies.close)
            workers.append(Handshakes(clock, tallies=tallies))

        def come(count: int) -> int:
            """Return how many of so many connections at each worker may stay."""
            come = 0
            for each in workers * count:
                clock.now_s += 1e-7  # as time passes between two
                come += not each.too_fast(HOST)
            return come

        assert come(100) == 100
        assert come(10) == 0
        clock.now_s += 1.0
        workers[0].count_failed_login(HOST)
        assert come(50) == 40
        assert not workers[1].too_fast("192.0.2.2")


def test_places_are_forgotten_once_they_may_open_as_many_as_at_first(handshakes: Handshakes, clock: Clock) -> None:
    for number in range(100):
        clock.now_s += 1.0
        handshakes.too_fast(f"198.51.100.{number}")
    assert len(handshakes._arrivals) == 1


def test_a_failed_handshake_counts_as_more_than_one_arrival(handshakes: Handshakes, clock: Clock) -> None:
    for _ in range(9):
        assert handshakes.too_fast(HOST) == ""
        handshakes.count_failed_login(HOST)
    assert [bool(handshakes.too_fast(HOST)) for _ in range(2)] == [False, True]
    handshakes.count_failed_login(HOST)  # the host's count of free arrivals is negative now
    assert handshakes.too_fast("192.0.2.2") == ""
    clock.now_s += 0.2
    assert handshakes.too_fast(HOST)
    clock.now_s += 0.02
    assert handshakes.too_fast(HOST) == ""


def test_a_host_with_failed_handshakes_owes_no_more_than_one_burst(handshakes: Handshakes, clock: Clock) -> None:
    for _ in range(1000):
        handshakes.count_failed_login(HOST)
    assert handshakes.too_fast(HOST)
    clock.now_s += 2.03
    assert handshakes.too_fast(HOST) == ""


@pytest.mark.parametrize("rules", [replace(RULES, arrivals_per_second=0), replace(RULES, exempt=(ANYWHERE,))])
def test_an_exempt_host_owes_no_arrivals(handshakes: Handshakes, rules: HandshakeRules) -> None:
    handshakes.rules = rules
    for _ in range(1000):
        handshakes.count_failed_login(HOST)
    assert not handshakes._arrivals
    assert handshakes.too_fast(HOST) == ""


def test_arrivals_are_remembered_of_so_many_hosts(handshakes: Handshakes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trouter.admission.handshakes.MAX_PLACES", 10)
    for number in range(100):
        handshakes.too_fast(f"198.51.100.{number}")
    assert len(handshakes._arrivals) == 10


# Time


class Slow:
    """A connection that has sent so many octets."""

    def __init__(self, octets: int) -> None:
        self.octets = octets
        self.aborted = ""

    def received_bytes(self) -> int:
        return self.octets

    def abort_connection(self, why: str) -> None:
        self.aborted = why


def watched(handshakes: Handshakes, newcomer: Newcomer, octets: int) -> Slow:
    """Return a connection of the newcomer, which is aborted if it is too slow."""
    connection = Slow(octets)
    handshakes.watch_handshake(newcomer, cast("ConnectionView", connection))
    return connection


def is_aborted(handshakes: Handshakes, connection: Slow) -> bool:
    handshakes.abort_slow()
    return connection.aborted == TOO_SLOW


@pytest.mark.parametrize(("octets", "seconds", "slow"), [
    (1, 2.0, False), (1, 2.1, True), (8, 2.1, False), (8, 2.2, True), (64, 3.0, False), (63, 3.0, True),
    (512, 9.9, False), (500, 9.9, True), (0, 9.9, False),
])  # fmt: skip
def test_64_octets_a_second_after_two_seconds(
    handshakes: Handshakes, clock: Clock, octets: int, seconds: float, slow: bool
) -> None:
    (newcomer,) = take(handshakes, 1)
    connection = watched(handshakes, newcomer, octets)
    clock.now_s += seconds
    assert is_aborted(handshakes, connection) is slow


def test_time_spent_waiting_for_the_router_does_not_make_a_peer_slow(handshakes: Handshakes, clock: Clock) -> None:
    (newcomer,) = take(handshakes, 1)
    connection = watched(handshakes, newcomer, 100)
    clock.now_s += 1.0
    newcomer.note_wait(clock.now_s)
    clock.now_s += 30.0
    assert not is_aborted(handshakes, connection)
    newcomer.note_answer(clock.now_s)
    clock.now_s += 2.5
    assert not is_aborted(handshakes, connection)
    clock.now_s += 0.1
    assert is_aborted(handshakes, connection)


def test_a_peer_past_its_open_has_no_deadline(handshakes: Handshakes, clock: Clock) -> None:
    (newcomer,) = take(handshakes, 1)
    connection = watched(handshakes, newcomer, 1)
    handshakes.end_handshake(newcomer)
    clock.now_s += 1000.0
    assert not is_aborted(handshakes, connection)
