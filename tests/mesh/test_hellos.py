"""How soon routers become neighbours: the first hellos, the messages right after them, and their clock."""

from __future__ import annotations

import pytest

from tests.mesh.test_mesh import BOOT, LINKS_ASKED, ME, Bench
from trouter.mesh.events import NeighbourDown, Send
from trouter.mesh.knowledge import NEWS_PER_TICK, Timers
from trouter.mesh.mesh import Mesh
from trouter.mesh.messages import (
    ALL_ADDRESSES_TO,
    ALL_ROUTERS_TO,
    HELLO_TO,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
)
from trouter.mesh.requests import UNDER_WAY_S


def hello(*seen: str, over: int = 1) -> Send:
    return Send(Hello(ME, BOOT, seen), HELLO_TO, over)


def sends(bench: Bench) -> list[Send]:
    return [event for event in bench.take_events() if isinstance(event, Send)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- the first hellos


def test_a_new_link_carries_a_hello_at_once(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    assert bench.take_events() == [hello()]


def test_a_first_hello_is_answered_at_once_and_once(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.take_events()
    bench.hello(seen=())
    assert bench.take_events() == [hello("R2")]
    for _ in range(10):
        bench.hello(seen=())
    assert bench.take_events() == []


def test_the_question_for_links_goes_behind_the_hello_that_confirms(bench: Bench) -> None:
    """A router that does not know yet that this one is its neighbour has no path for the answer."""
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.take_events()
    bench.hello()
    advertised = Send(RouterAdvertisement(ME, BOOT, 1, 0), ALL_ROUTERS_TO)
    assert sends(bench) == [hello("R2"), LINKS_ASKED, advertised]


def test_a_router_that_was_silent_for_long_is_answered_at_once_again(bench: Bench) -> None:
    bench.neighbour()
    bench.tick(5)
    bench.take_events()
    bench.hello(seen=())
    assert bench.take_events() == [hello("R2")]


def test_addresses_not_advertised_yet_are_advertised_to_a_new_neighbour_at_once(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.mesh.add_address("M0a", 3)
    bench.take_events()
    bench.hello()
    update = Send(MobileAddressUpdate(ME, 1, added=("M0a",), hints=(3,)), ALL_ADDRESSES_TO)
    assert sends(bench)[2:] == [update, Send(RouterAdvertisement(ME, BOOT, 1, 1), ALL_ROUTERS_TO)]


# --- bounds


def test_changes_of_local_links_are_advertised_at_once_a_bounded_number_of_times_per_tick(bench: Bench) -> None:
    for number in range(NEWS_PER_TICK + 1):
        bench.mesh.link_up(number, 1, bench.now_s)
        bench.hello(f"N{number}", over=number)
        ignored = bench.sent(RouterAdvertisement)
        assert ignored == ([RouterAdvertisement(ME, BOOT, number + 1, 0)] if number < NEWS_PER_TICK else [])
    assert len(bench.mesh.paths.next_hop) == NEWS_PER_TICK + 1, "the way to a neighbour does not wait"
    bench.tick()
    assert bench.sent(RouterAdvertisement) == [RouterAdvertisement(ME, BOOT, NEWS_PER_TICK + 1, 0)]


def test_a_router_that_requests_links_gets_one_link_request_in_return_per_tick(bench: Bench) -> None:
    """A requesting router has a path to this one: an earlier request may have come too early for an answer."""
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R3": 1}))
    bench.take_events()
    for asked in ([LinkStateRequest(ME)], [], []):
        bench.receive(LinkStateRequest("R3"))
        assert bench.sent(LinkStateRequest) == asked
    bench.keep(1)
    bench.receive(LinkStateRequest("R3"), LinkStateUpdate("R3", 5, 1, {"R2": 1}))
    bench.take_events()
    bench.keep(1)
    bench.receive(LinkStateRequest("R3"))
    assert bench.sent(LinkStateRequest) == [], "it has told"


def test_an_advertisement_that_comes_behind_a_newer_one_goes_no_further(bench: Bench) -> None:
    bench.neighbour("R2", over=1)
    bench.neighbour("R3", over=2)
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R9": 1}))
    newer, older = RouterAdvertisement("R9", 5, 6, 0), RouterAdvertisement("R9", 5, 4, 0)
    spreads = [bench.mesh.hearing.receive_message(each, 1, bench.now_s).name for each in (newer, older, newer, older)]
    assert spreads == ["TO_ALL", "NOWHERE", "NOWHERE", "NOWHERE"]
    bench.keep(2)
    assert bench.mesh.hearing.receive_message(older, 1, bench.now_s).name != "NOWHERE", "it may have been forged"


# --- what can be reached


def test_a_router_counts_as_answering_from_its_first_answer_until_its_restart(bench: Bench) -> None:
    def answered() -> bool:
        return bench.mesh.routers["R2"].answered

    bench.mesh.link_up(1, 1, bench.now_s)
    bench.hello()
    steps = [answered()]
    bench.receive(LinkStateUpdate("R2", 7, 0, {ME: 1}))  # from before it counted its links, but it reached this router
    steps.append(answered())
    bench.hello(boot=8)
    bench.receive(LinkStateUpdate("R2", 7, 3, {ME: 1}))  # of the previous start
    steps.append(answered())
    bench.receive(LinkStateUpdate("R2", 8, 1, {ME: 1}))
    steps.append(answered())
    assert steps == [False, True, False, True]


def test_a_start_that_only_a_link_state_reported_is_distinguished_from_the_next_one(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R3": 1}), LinkStateUpdate("R3", 5, 1, {"R2": 1, "R4": 1}))
    bench.mesh.link_up(2, 1, bench.now_s)
    bench.hello("R3", boot=6, over=2)
    bench.receive(LinkStateUpdate("R3", 6, 1, {ME: 1}), over=2)
    assert bench.mesh.routers["R3"].peers == {ME: 1}


def test_a_restarted_router_gets_another_request_for_all_its_addresses(bench: Bench) -> None:
    """A change does not name its start: one under way at the restart may have been taken for a new one."""
    bench.neighbour()
    bench.receive(RouterAdvertisement("R2", 7, 1, 1), MobileAddressUpdate("R2", 1, exist=("M0a",)))
    bench.hello(boot=8)
    bench.receive(LinkStateUpdate("R2", 8, 1, {ME: 1}), MobileAddressUpdate("R2", 1, added=("M0late",)))
    bench.sent()
    bench.keep(int(UNDER_WAY_S) - 1, boot=8)
    assert bench.sent(MobileAddressRequest) == []
    bench.keep(1, boot=8)
    assert bench.sent(MobileAddressRequest) == [MobileAddressRequest(ME, 0)]
    bench.receive(MobileAddressUpdate("R2", 1, exist=("M0b",)))
    assert set(bench.mesh.addresses_of("R2")) == {"M0b"}
    bench.keep(20, boot=8)
    assert bench.sent(MobileAddressRequest) == []


# --- the clock


def ticked(bench: Bench, timers: Timers, lateness_s: list[float]) -> list[int]:
    """Return the count of hellos at each tick, when each tick is so much late."""
    bench.mesh = Mesh(ME, BOOT, timers)
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.take_events()
    counts = []
    for second, late_s in enumerate(lateness_s, 1):
        bench.mesh.tick(bench.now_s + second + late_s)
        counts.append(len(bench.sent(Hello)))
    return counts


JITTER = [0.0, 0.02, 0.001, 0.3, 0.0, 0.01, 0.4, 0.05, 0.0, 0.002]


def test_every_tick_has_its_hello_though_some_come_late_and_the_next_not(bench: Bench) -> None:
    assert ticked(bench, Timers(), JITTER) == [1] * 10


def test_a_hello_every_other_second_is_every_other_tick(bench: Bench) -> None:
    assert ticked(bench, Timers(hello_interval_s=2.0), JITTER) == [1, 0] * 5


@pytest.mark.parametrize(("silent_s", "lost"), [(1.49, False), (1.51, True)])
def test_an_age_as_short_as_the_interval_allows_for_half_a_tick(bench: Bench, silent_s: float, lost: bool) -> None:
    bench.mesh = Mesh(ME, BOOT, Timers(hello_max_age_s=1.0))
    bench.neighbour()
    bench.hello()
    bench.mesh.check_silence(bench.now_s + silent_s)
    assert (NeighbourDown("R2", "no hello") in bench.take_events()) is lost
