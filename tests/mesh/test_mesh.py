"""The state machines of one router, row by row (inter-router.md 3.2, 3.3, 4.1-4.3, 4.8), and hostile messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from trouter.mesh import knowledge as knowledge_module
from trouter.mesh import nodes as nodes_module
from trouter.mesh import own as own_module
from trouter.mesh.events import (
    AddressesChanged,
    Event,
    Ignored,
    NeighbourDown,
    NeighbourMoved,
    NeighbourUp,
    PathsChanged,
    RouterLost,
    Send,
)
from trouter.mesh.faults import INTERVAL_S, MeshFault
from trouter.mesh.knowledge import Timers
from trouter.mesh.mesh import ORPHAN_TICKS, Mesh
from trouter.mesh.messages import (
    ALL_ADDRESSES_TO,
    ALL_ROUTERS_TO,
    HELLO_TO,
    MAX_COST,
    MAX_SEQUENCE,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    Message,
    MobileAddressRequest,
    MobileAddressUpdate,
    Newer,
    RouterAdvertisement,
    compose,
    mobile_address,
    router_address,
)
from trouter.mesh.paths import Paths
from trouter.mesh.requests import REQUESTS_PER_TICK
from trouter.wire.codec import encode
from trouter.wire.types import Described, ULong

ME, BOOT = "R1", 100
TIMERS = Timers()
LINKS_ASKED = Send(LinkStateRequest(ME), router_address("R2"))


class Bench:
    """A mesh, a clock, and the mesh's messages since the last look."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.mesh = Mesh(ME, BOOT, TIMERS)

    def take_events(self) -> list[Event]:
        events = self.mesh.events[:]
        self.mesh.events.clear()
        return events

    def sent(self, kind: type | None = None) -> list[Message]:
        """Return the messages sent since the last look: all but hellos, or those of a kind."""
        sends = [event.message for event in self.take_events() if isinstance(event, Send)]
        return [each for each in sends if (not isinstance(each, Hello) if kind is None else isinstance(each, kind))]

    def receive(self, *messages: Message | Newer, over: int = 1) -> None:
        for message in messages:
            self.mesh.hearing.receive_message(message, over, self.now_s)
        while self.mesh.has_pieces:
            self.mesh.do_piece()

    def tick(self, seconds: int = 1) -> None:
        """Pass whole seconds, each with its tick."""
        for _ in range(seconds):
            self.now_s += 1.0
            self.mesh.tick(self.now_s)

    def hello(self, who: str = "R2", boot: int = 7, over: int = 1, seen: tuple[str, ...] = (ME,)) -> None:
        self.receive(Hello(who, boot, seen), over=over)

    def neighbour(self, who: str = "R2", boot: int = 7, over: int = 1, cost: int = 1) -> None:
        """Make ``who`` a neighbour whose links and addresses are known."""
        self.mesh.link_up(over, cost, self.now_s)
        self.hello(who, boot, over)
        self.receive(LinkStateUpdate(who, boot, 1, {ME: cost}), RouterAdvertisement(who, boot, 1, 0), over=over)
        self.tick()
        self.take_events()

    def keep(self, seconds: int, who: str = "R2", boot: int = 7, over: int = 1) -> None:
        """Pass time while the neighbour sends its hellos."""
        for _ in range(seconds):
            self.hello(who, boot, over)
            self.tick()


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- section 4.1: neighbours


def test_hellos_go_over_every_control_link_and_name_the_routers_heard(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.mesh.link_up(2, 1, bench.now_s)
    bench.hello("R2", over=1, seen=())
    bench.take_events()
    bench.tick()
    assert bench.take_events()[:2] == [Send(Hello(ME, BOOT, ("R2",)), HELLO_TO, number) for number in (1, 2)]


def test_a_router_that_does_not_name_this_router_is_no_neighbour(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.hello(seen=("R3",))
    assert bench.mesh.neighbours == {}
    assert list(bench.mesh.routers) == []


def test_a_router_that_names_this_router_is_a_neighbour_at_the_cost_of_its_connection(bench: Bench) -> None:
    bench.mesh.link_up(4, 3, bench.now_s)
    bench.take_events()
    bench.hello(over=4)
    assert bench.mesh.neighbours == {"R2": 4}
    assert bench.mesh.paths.cost == {"R2": 3}
    events = bench.take_events()
    assert events[1] == NeighbourUp("R2", 4, 3)
    assert isinstance(events[2], PathsChanged)


def test_a_router_to_go_around_advertises_dearer_links_and_keeps_its_own_choice(bench: Bench) -> None:
    bench.neighbour("R2", over=1, cost=1)
    bench.neighbour("R3", over=2, cost=5)
    for extra in (1000, 0):
        bench.mesh.set_detour_cost(extra, bench.now_s)
        (advertised,) = bench.sent(RouterAdvertisement)
        bench.receive(LinkStateRequest("R2"))
        (links,) = bench.sent(LinkStateUpdate)
        assert isinstance(advertised, RouterAdvertisement)
        assert isinstance(links, LinkStateUpdate)
        assert links.link_sequence == advertised.link_sequence
        assert links.peers == {"R2": 1 + extra, "R3": 5 + extra}
        assert bench.mesh.paths.next_hop == {"R2": "R2", "R3": "R3"}
    bench.mesh.set_detour_cost(0, bench.now_s)
    assert bench.sent() == []


def test_a_new_neighbour_gets_a_link_request_and_is_advertised_at_once(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.hello()
    assert bench.sent() == [LinkStateRequest(ME), RouterAdvertisement(ME, BOOT, 1, 0)]
    bench.tick()
    assert bench.sent() == []


def test_an_answer_from_before_the_first_count_is_no_answer(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.hello()
    bench.take_events()
    bench.receive(LinkStateUpdate("R2", 7, 0, {ME: 1}))
    bench.tick()
    assert bench.sent(LinkStateRequest) == [LinkStateRequest(ME)]


@pytest.mark.parametrize(("silent_s", "there"), [(3, True), (4, False)])
def test_a_neighbour_is_dropped_when_silent_for_longer_than_the_age(bench: Bench, silent_s: int, there: bool) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.hello()
    bench.take_events()
    bench.tick(silent_s)
    assert ("R2" in bench.mesh.neighbours) is there
    assert (NeighbourDown("R2", "no hello") in bench.take_events()) is not there


def test_a_neighbour_whose_hello_no_longer_names_this_router_is_dropped(bench: Bench) -> None:
    bench.neighbour()
    for _ in range(4):
        bench.hello(seen=())
        bench.tick()
    assert bench.mesh.neighbours == {}


def test_a_connection_that_is_lost_takes_its_neighbour_along_and_that_is_reported_at_once(bench: Bench) -> None:
    bench.neighbour("R2", over=1)
    bench.neighbour("R3", over=2)
    bench.mesh.link_down(1, bench.now_s)
    assert bench.mesh.neighbours == {"R3": 2}
    events = bench.take_events()
    assert NeighbourDown("R2", "connection lost") in events
    assert Send(RouterAdvertisement(ME, BOOT, 3, 0), ALL_ROUTERS_TO) in events


def test_a_silent_neighbour_is_given_up_between_two_ticks_and_that_is_reported_at_once(bench: Bench) -> None:
    bench.neighbour("R2", over=1)
    bench.neighbour("R3", over=2)
    silent_at_s = bench.mesh.silent_at_s
    bench.hello("R3", over=2)
    bench.mesh.check_silence(silent_at_s)
    assert bench.mesh.neighbours == {"R2": 1, "R3": 2}
    assert bench.take_events() == []
    bench.mesh.check_silence(silent_at_s + 0.001)
    assert bench.mesh.neighbours == {"R3": 2}
    events = bench.take_events()
    assert NeighbourDown("R2", "no hello") in events
    assert Send(RouterAdvertisement(ME, BOOT, 3, 0), ALL_ROUTERS_TO) in events


def test_the_cheaper_of_two_connections_serves_and_the_other_replaces_it_when_lost(bench: Bench) -> None:
    bench.neighbour(over=1, cost=5)
    bench.neighbour(over=2, cost=2)
    assert bench.mesh.neighbours == {"R2": 2}
    assert bench.mesh.paths.cost == {"R2": 2}
    bench.hello(over=1)
    assert bench.mesh.neighbours == {"R2": 2}, "hellos in turn do not make it change its way"
    bench.mesh.link_down(2, bench.now_s)
    assert bench.mesh.neighbours == {"R2": 1}
    assert NeighbourMoved("R2", 1) in bench.take_events()


def test_a_hello_over_an_unknown_connection_is_nothing(bench: Bench) -> None:
    bench.hello(over=9)
    assert bench.mesh.neighbours == {}


# --- section 4.2: link states


def test_a_restart_voids_the_earlier_state_of_a_router(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(RouterAdvertisement("R2", 7, 1, 1), MobileAddressUpdate("R2", 1, exist=("M0a",)))
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R3": 1}))
    bench.take_events()
    bench.hello(boot=8)
    events = bench.take_events()
    assert AddressesChanged("R2", {}, ("M0a",)) in events
    assert LINKS_ASKED in events
    assert "R3" not in bench.mesh.paths.next_hop
    bench.receive(LinkStateUpdate("R2", 8, 1, {ME: 1, "R3": 1}))
    assert "R3" in bench.mesh.paths.next_hop


def test_an_advertisement_of_another_start_does_the_same(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R3": 1}), RouterAdvertisement("R3", 5, 9, 9))
    bench.receive(LinkStateUpdate("R3", 5, 9, {"R2": 1}), MobileAddressUpdate("R3", 9, exist=("M0a",)))
    bench.receive(RouterAdvertisement("R3", 6, 1, 0))
    assert bench.mesh.addresses_of("R3") == {}
    bench.receive(LinkStateUpdate("R3", 5, 10, {"R2": 1, "R4": 1}))
    assert "R4" not in bench.mesh.paths.next_hop, "of the former start, and late"
    bench.receive(LinkStateUpdate("R3", 6, 1, {"R2": 1, "R5": 1}))
    assert "R5" in bench.mesh.paths.next_hop


def test_an_advertisement_of_news_causes_a_link_request_at_once(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(RouterAdvertisement("R2", 7, 2, 0))
    assert bench.take_events() == [LINKS_ASKED]


def test_a_repeated_advertisement_causes_another_request_only_after_a_lost_one(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(RouterAdvertisement("R2", 7, 2, 0), RouterAdvertisement("R2", 7, 2, 0))
    assert bench.sent() == [LinkStateRequest(ME)]
    bench.keep(1)
    assert bench.sent(LinkStateRequest) == []
    bench.keep(1)
    assert bench.sent(LinkStateRequest) == [LinkStateRequest(ME)]


@pytest.mark.parametrize(("sequence", "taken"), [(0, False), (1, False), (2, True), (MAX_SEQUENCE, True)])
def test_a_link_state_is_taken_if_its_number_is_higher(bench: Bench, sequence: int, taken: bool) -> None:
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, sequence, {ME: 1, "R3": 4}))
    assert bench.mesh.paths.cost.get("R3") == (5 if taken else None)


def test_unknown_peers_of_a_neighbour_become_routers_and_get_a_link_request(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R3": 4, "R2": 9}))
    assert sorted(bench.mesh.routers) == ["R2", "R3"]
    assert Send(LinkStateRequest(ME), router_address("R3")) in bench.take_events()


def test_a_question_for_links_is_answered_at_once_and_its_author_known(bench: Bench) -> None:
    bench.neighbour(cost=3)
    bench.receive(LinkStateRequest("R9"))
    assert bench.take_events() == [Send(LinkStateUpdate(ME, BOOT, 1, {"R2": 3}), router_address("R9"))]
    assert "R9" in bench.mesh.routers


def test_a_link_state_that_is_not_renewed_is_emptied_and_its_router_forgotten(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R3": 1}), RouterAdvertisement("R3", 5, 1, 1))
    bench.receive(LinkStateUpdate("R3", 5, 1, {"R2": 1, "R4": 1}), MobileAddressUpdate("R3", 1, exist=("M0a",)))
    bench.keep(60)
    assert "R4" in bench.mesh.paths.next_hop
    bench.keep(1)
    assert "R4" not in bench.mesh.paths.next_hop, "R3 has been silent for too long"
    assert bench.mesh.routers["R3"].link_sequence == 0
    bench.take_events()
    bench.receive(LinkStateUpdate("R2", 7, 3, {ME: 1}))
    bench.keep(ORPHAN_TICKS - 1)
    assert "R3" in bench.mesh.routers
    bench.keep(1)
    events = bench.take_events()
    assert events.index(AddressesChanged("R3", {}, ("M0a",))) < events.index(RouterLost("R3"))


def test_an_orphan_that_is_listed_again_in_time_is_kept(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(RouterAdvertisement("R9", 1, 0, 0))
    bench.keep(ORPHAN_TICKS - 1)
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R9": 1}))
    bench.keep(ORPHAN_TICKS)
    assert "R9" in bench.mesh.routers


def test_a_late_advertisement_changes_nothing_and_a_repeated_older_one_is_a_restart(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, 5, {ME: 1, "R3": 1}), RouterAdvertisement("R2", 7, 5, 0))
    bench.receive(RouterAdvertisement("R2", 7, 4, 0))
    assert "R3" in bench.mesh.paths.next_hop
    bench.receive(RouterAdvertisement("R2", 7, 5, 0), RouterAdvertisement("R2", 7, 4, 0))
    assert "R3" in bench.mesh.paths.next_hop
    bench.receive(RouterAdvertisement("R2", 7, 1, 0))
    assert "R3" not in bench.mesh.paths.next_hop, "it was started twice in a second"


def test_a_forged_number_is_got_over(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, MAX_SEQUENCE, {"R66": 1}))
    bench.receive(RouterAdvertisement("R2", 7, 1, 0), RouterAdvertisement("R2", 7, 1, 0))
    bench.receive(LinkStateUpdate("R2", 7, 1, {ME: 1, "R3": 1}))
    assert "R3" in bench.mesh.paths.next_hop


# --- sections 3.3 and 4.3: timers


def advertised_at(bench: Bench, seconds: int) -> list[int]:
    """Return the seconds from now on at which an advertisement was sent."""
    found = []
    for second in range(1, seconds + 1):
        bench.keep(1)
        if bench.sent(RouterAdvertisement):
            found.append(second)
    return found


def test_advertisements_are_frequent_in_flux_and_seldom_afterwards(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    assert advertised_at(bench, 80) == [1, 4, 8, 38, 68]


def test_changes_of_other_routers_are_flux_too(bench: Bench) -> None:
    bench.neighbour()
    bench.keep(40)
    bench.sent()
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R3": 1}))
    assert [second for second in advertised_at(bench, 12) if second > 1][:1] in ([4], [5])


def test_nothing_is_advertised_without_neighbours(bench: Bench) -> None:
    bench.mesh.add_address("M0a", 3)
    bench.tick(40)
    assert bench.take_events() == []


# --- section 4.8: addresses


def test_changes_of_a_second_are_reported_together_and_advertised_behind(bench: Bench) -> None:
    bench.neighbour()
    bench.mesh.add_address("M0a", 3)
    bench.mesh.add_address("M0b", 1)
    bench.hello()
    bench.tick()
    update = MobileAddressUpdate(ME, 1, added=("M0a", "M0b"), hints=(3, 1))
    assert bench.sent() == [update, RouterAdvertisement(ME, BOOT, 1, 1)]
    bench.mesh.delete_address("M0a")
    bench.hello()
    bench.tick()
    assert bench.sent()[0] == MobileAddressUpdate(ME, 2, deleted=("M0a",))


def test_changes_are_advertised_between_ticks_a_few_times_and_the_rest_at_the_tick(bench: Bench) -> None:
    bench.neighbour()
    bench.tick()
    bench.sent()
    count = knowledge_module.ADDRESS_NEWS_PER_TICK + 2
    for number in range(count):
        bench.mesh.add_address(f"M0a{number}", 2)
        bench.mesh.advertise_addresses(bench.now_s)
        bench.mesh.advertise_addresses(bench.now_s)
    kinds = [type(each) for each in bench.sent()]
    assert kinds == [MobileAddressUpdate, RouterAdvertisement] * (count - 2)
    bench.tick()
    (update,) = bench.sent(MobileAddressUpdate)
    assert isinstance(update, MobileAddressUpdate)
    assert update.added == (f"M0a{count - 2}", f"M0a{count - 1}")
    bench.mesh.delete_address("M0a0")
    bench.mesh.advertise_addresses(bench.now_s)
    (update,) = bench.sent(MobileAddressUpdate)
    assert isinstance(update, MobileAddressUpdate)
    assert (update.deleted, update.sequence) == (("M0a0",), count)


def test_an_address_added_and_deleted_within_a_second_is_not_advertised(bench: Bench) -> None:
    bench.neighbour()
    bench.mesh.add_address("M0a", 3)
    bench.mesh.delete_address("M0a")
    bench.mesh.delete_address("M0never")
    bench.hello()
    bench.tick()
    assert bench.sent(MobileAddressUpdate) == []


@pytest.mark.parametrize(("have", "answered"), [(0, True), (1, True), (2, False), (3, False)])
def test_an_address_request_is_answered_if_its_sender_knows_less(bench: Bench, have: int, answered: bool) -> None:
    bench.neighbour()
    for key in ("M0a", "M0b"):
        bench.mesh.add_address(key, 3)
        bench.keep(1)
    bench.mesh.add_address("M0pending", 3)
    bench.mesh.delete_address("M0b")
    bench.take_events()
    bench.receive(MobileAddressRequest("R2", have))
    as_of_2 = MobileAddressUpdate(ME, 2, exist=("M0a", "M0b"), hints=(3, 3))
    assert bench.take_events() == ([Send(as_of_2, mobile_address("R2"))] if answered else [])


def test_advertised_addresses_are_requested_at_the_tick(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(RouterAdvertisement("R2", 7, 1, 3))
    assert bench.take_events() == []
    bench.keep(1)
    assert bench.sent() == [MobileAddressRequest(ME, 0)]


def test_a_new_neighbour_gets_an_address_request_before_it_advertises(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.hello()
    bench.take_events()
    bench.receive(LinkStateUpdate("R2", 7, 1, {ME: 1}))
    assert bench.sent() == [MobileAddressRequest(ME, 0)]
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1}))
    bench.keep(5)
    assert bench.sent(MobileAddressRequest) == [], "it has none, or will say so"
    bench.receive(RouterAdvertisement("R2", 7, 2, 3))
    bench.keep(1)
    assert bench.sent(MobileAddressRequest) == [MobileAddressRequest(ME, 0)]


def test_a_full_address_update_replaces_the_known_addresses(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(RouterAdvertisement("R2", 7, 1, 6))
    bench.receive(MobileAddressUpdate("R2", 4, exist=("M0a", "M0b"), hints=(1, 2)))
    bench.receive(MobileAddressUpdate("R2", 6, exist=("M0b", "Clr.z", "M1e13")))
    assert bench.take_events() == [
        AddressesChanged("R2", {"M0a": 1, "M0b": 2}, ()),
        AddressesChanged("R2", {"Clr.z": -1, "M1e13": -1}, ("M0a",)),
    ]
    bench.receive(MobileAddressUpdate("R2", 5, exist=("M0late",)))
    assert bench.take_events() == []


@dataclass(frozen=True)
class Step:
    """A change that arrives after ``M0a`` came at 4: the addresses then, and whether a request was sent."""

    update: MobileAddressUpdate
    addresses: frozenset[str]
    asks: bool


@pytest.mark.parametrize(
    "step",
    [
        Step(MobileAddressUpdate("R2", 5, added=("M0b",), deleted=("M0a",)), frozenset({"M0b"}), False),
        Step(MobileAddressUpdate("R2", 5, added=("M0a",), deleted=("M0never",)), frozenset({"M0a"}), False),
        Step(MobileAddressUpdate("R2", 4, added=("M0b",)), frozenset({"M0a"}), False),
        Step(MobileAddressUpdate("R2", 3, added=("M0b",)), frozenset({"M0a"}), False),
        Step(MobileAddressUpdate("R2", 6, added=("M0b",)), frozenset({"M0a"}), True),
        Step(MobileAddressUpdate("R2", MAX_SEQUENCE, added=("M0b",)), frozenset({"M0a"}), True),
    ],
    ids=["next", "next, of a known address", "again", "late", "one missing", "absurd"],
)
def test_an_address_change_is_taken_only_in_sequence(bench: Bench, step: Step) -> None:
    bench.neighbour()
    bench.receive(RouterAdvertisement("R2", 7, 1, 4), MobileAddressUpdate("R2", 4, exist=("M0a",), hints=(3,)))
    bench.take_events()
    bench.receive(step.update)
    assert set(bench.mesh.addresses_of("R2")) == step.addresses
    assert bench.sent() == ([MobileAddressRequest(ME, 4)] if step.asks else [])


def test_a_second_change_out_of_order_is_not_taken_either(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(MobileAddressUpdate("R2", 5, added=("M0b",)), MobileAddressUpdate("R2", 6, added=("M0c",)))
    assert bench.mesh.addresses_of("R2") == {}
    assert bench.sent() == [MobileAddressRequest(ME, 0)]
    bench.keep(2)
    assert bench.sent(MobileAddressRequest) == [MobileAddressRequest(ME, 0)], "it keeps asking"
    bench.receive(MobileAddressUpdate("R2", 6, exist=("M0b", "M0c")))
    assert set(bench.mesh.addresses_of("R2")) == {"M0b", "M0c"}
    bench.keep(3)
    assert bench.sent(MobileAddressRequest) == []


# --- invalid messages


def test_own_messages_that_return_are_ignored(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(Hello(ME, BOOT, (ME,)), RouterAdvertisement(ME, BOOT, 9, 9), LinkStateRequest(ME))
    bench.receive(LinkStateUpdate(ME, BOOT, 9, {"R9": 1}), MobileAddressUpdate(ME, 1, exist=("M0a",)))
    assert bench.take_events() == []
    assert not any(bench.mesh.faults.values())


SENSELESS: list[tuple[Message | Newer, MeshFault]] = [
    (Hello(ME, BOOT + 1, (ME,)), MeshFault.SAME_ID),
    (RouterAdvertisement(ME, BOOT + 1, 1, 1), MeshFault.SAME_ID),
    (Newer("R2", 2), MeshFault.NEWER_VERSION),
    (Hello("R3", 1, (ME,)), MeshFault.SECOND_ROUTER),
]


@pytest.mark.parametrize(
    ("message", "fault"), SENSELESS, ids=lambda value: value.name if isinstance(value, MeshFault) else ""
)
def test_an_invalid_message_is_counted_each_time_and_reported_once_per_interval(
    bench: Bench, message: Message | Newer, fault: MeshFault
) -> None:
    bench.neighbour()
    state = (dict(bench.mesh.neighbours), list(bench.mesh.routers), dict(bench.mesh.paths.cost))
    for _ in range(5):
        bench.receive(message)
    ignored = [event for event in bench.take_events() if isinstance(event, Ignored)]
    assert [(event.fault, event.connection, event.times) for event in ignored] == [(fault, 1, 1)]
    bench.now_s += INTERVAL_S
    bench.receive(message)
    assert [event.times for event in bench.take_events() if isinstance(event, Ignored)] == [5]
    assert bench.mesh.faults[fault] == 6
    assert state == (dict(bench.mesh.neighbours), list(bench.mesh.routers), dict(bench.mesh.paths.cost))


@pytest.mark.parametrize("message", [MobileAddressRequest("R9", 0), MobileAddressUpdate("R9", 1, exist=("M0a",))])
def test_address_messages_of_an_unknown_router_are_counted_and_ignored(bench: Bench, message: Message) -> None:
    bench.neighbour()
    bench.mesh.add_address("M0a", 3)
    bench.keep(1)
    bench.take_events()
    bench.receive(message)
    assert bench.take_events() == [], "it happens in every network that finds its shape"
    assert bench.mesh.faults[MeshFault.UNKNOWN_ROUTER] == 1
    assert "R9" not in bench.mesh.routers


def take(bench: Bench, data: bytes, over: int = 1) -> Any:
    return bench.mesh.take_message(data, over, bench.now_s)


def test_bytes_that_are_no_message_are_refused_and_go_nowhere(bench: Bench) -> None:
    bench.neighbour("R2", over=1)
    bench.neighbour("R3", over=2)
    broken = compose(RouterAdvertisement("R2", 7, 2, 0), ALL_ROUTERS_TO)[:-1]
    for data in (b"", b"\x00", b"nonsense", broken):
        assert take(bench, data).hops == ()
    assert bench.mesh.faults[MeshFault.MALFORMED] == 4
    assert [(event.who, event.times) for event in bench.take_events() if isinstance(event, Ignored)] == [("R2", 1)]


@pytest.mark.parametrize(
    ("message", "to"),
    [
        (Hello("R9", 1, (ME,)), router_address(ME)),
        (Hello("R9", 1, (ME,)), ALL_ROUTERS_TO),
        (RouterAdvertisement("R2", 9, 1, 0), HELLO_TO),
        (MobileAddressUpdate("R2", 1, exist=("M0a",)), router_address(ME)),
        (LinkStateUpdate("R2", 7, 9, {}), mobile_address(ME)),
        (LinkStateUpdate("R2", 7, 9, {}), f"_topo/0/{ME}/$management"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_message_at_an_address_that_is_not_its_own_is_refused(bench: Bench, message: Message, to: str) -> None:
    bench.neighbour()
    take(bench, compose(message, to))
    assert bench.mesh.faults[MeshFault.MALFORMED] == 1
    assert "R9" not in bench.mesh.routers
    assert bench.mesh.addresses_of("R2") == {}


def test_a_neighbour_with_the_same_id_is_reported_although_its_trace_names_this_router(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    take(bench, compose(Hello(ME, BOOT + 5, (ME,)), HELLO_TO))
    assert [event.fault for event in bench.take_events() if isinstance(event, Ignored)] == [MeshFault.SAME_ID]


@pytest.fixture
def crossing(bench: Bench) -> Bench:
    """Make R2, R3 and R4 neighbours of this router and of each other; only R3 has R5 behind it."""
    names = ("R2", "R3", "R4")
    for number, name in enumerate(names, 1):
        bench.neighbour(name, over=number)
    for number, name in enumerate(names, 1):
        peers = dict.fromkeys((ME, *names), 1) | ({"R5": 1} if name == "R3" else {})
        bench.receive(LinkStateUpdate(name, 7, 2, peers), over=number)
    bench.receive(LinkStateUpdate("R5", 7, 1, {"R3": 1}), RouterAdvertisement("R5", 7, 1, 0), over=2)
    return bench


def test_link_news_go_to_all_neighbours_and_other_broadcasts_along_the_tree(crossing: Bench) -> None:
    news = compose(RouterAdvertisement("R5", 7, 2, 0), ALL_ROUTERS_TO)
    assert take(crossing, news, over=2).hops == ("R2", "R3", "R4"), "the trace of this one names R5 alone"
    crossing.tick()
    assert take(crossing, news, over=2).hops == ()
    assert take(crossing, compose(RouterAdvertisement("R2", 7, 2, 0), ALL_ROUTERS_TO)).hops == ("R3", "R4")
    addresses = compose(RouterAdvertisement("R2", 7, 2, 5), ALL_ROUTERS_TO)
    assert take(crossing, addresses).hops == (), "no router lies behind us for R2"


def test_nothing_goes_on_twice(bench: Bench) -> None:
    bench.neighbour("R2", over=1)
    bench.neighbour("R3", over=2)
    same = compose(RouterAdvertisement("R2", 7, 1, 1), ALL_ROUTERS_TO)
    assert [take(bench, same).hops for _ in range(3)] == [("R3",), (), ()]
    bench.tick()
    assert take(bench, same).hops == ("R3",), "it is said again in time, for those who missed it"
    change = compose(MobileAddressUpdate("R2", 1, added=("M0a",)), ALL_ADDRESSES_TO)
    assert [take(bench, change).hops for _ in range(3)] == [("R3",), (), ()]
    missed = compose(MobileAddressUpdate("R2", 5, added=("M0a",)), ALL_ADDRESSES_TO)
    assert [take(bench, missed).hops for _ in range(3)] == [("R3",), (), ()], "those behind us may not have missed one"


@pytest.mark.parametrize("message", [LinkStateRequest("R2"), LinkStateUpdate("R2", 7, 9, {ME: 1})])
def test_a_message_for_one_router_is_not_passed_on_when_sent_to_all(bench: Bench, message: Message) -> None:
    bench.neighbour("R2", over=1)
    bench.neighbour("R3", over=2)
    assert take(bench, compose(message, ALL_ROUTERS_TO)).hops == ()


def test_two_neighbours_with_one_id_do_not_take_turns(bench: Bench) -> None:
    bench.mesh.link_up(1, 1, bench.now_s)
    bench.mesh.link_up(2, 1, bench.now_s)
    bench.hello(boot=7, over=1)
    bench.hello(boot=9, over=2)
    bench.take_events()
    for _ in range(5):
        bench.hello(boot=7, over=1)
        bench.hello(boot=9, over=2)
        bench.tick()
    assert bench.mesh.neighbours == {"R2": 2}
    events = bench.take_events()
    assert [event.fault for event in events if isinstance(event, Ignored)] == [MeshFault.SHARED_ID]
    assert not any(isinstance(event, PathsChanged) for event in events)


def test_far_routers_with_one_id_do_not_take_turns_either(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R3": 1}), RouterAdvertisement("R3", 5, 1, 0))
    bench.receive(LinkStateUpdate("R3", 5, 1, {"R2": 1}), RouterAdvertisement("R3", 6, 1, 0))
    bench.receive(LinkStateUpdate("R3", 6, 1, {"R2": 1}))
    bench.take_events()
    for _ in range(5):
        bench.receive(RouterAdvertisement("R3", 5, 1, 0), RouterAdvertisement("R3", 6, 1, 0))
    events = bench.take_events()
    assert [event.fault for event in events if isinstance(event, Ignored)] == [MeshFault.SHARED_ID]
    assert not any(isinstance(event, PathsChanged) for event in events)


def test_a_neighbours_own_word_counts_before_that_of_a_far_router_with_its_id(bench: Bench) -> None:
    bench.neighbour(boot=7)
    for _ in range(5):
        bench.receive(RouterAdvertisement("R2", 9, 1, 0))
        bench.keep(1)
    assert bench.mesh.routers["R2"].instance == 7
    assert bench.mesh.faults[MeshFault.SHARED_ID] == 4


def test_a_router_whose_clock_went_back_is_accepted_in_the_end(bench: Bench) -> None:
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R3": 1}), RouterAdvertisement("R3", 50, 4, 0))
    bench.receive(LinkStateUpdate("R3", 50, 4, {"R2": 1, "R4": 1}))
    bench.receive(RouterAdvertisement("R3", 20, 1, 0), RouterAdvertisement("R3", 20, 1, 0))
    bench.receive(LinkStateUpdate("R3", 20, 1, {"R2": 1, "R5": 1}))
    assert bench.mesh.paths.next_hop.keys() == {"R2", "R3", "R5"}


def test_absurd_costs_are_added_up_without_harm(bench: Bench) -> None:
    bench.neighbour(cost=MAX_COST)
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: MAX_COST, "R3": MAX_COST}))
    assert bench.mesh.paths.cost == {"R2": MAX_COST, "R3": 2 * MAX_COST}


# --- floods


def test_a_neighbour_with_ten_thousand_peers_is_accepted_within_bounds(bench: Bench) -> None:
    bench.neighbour()
    for sequence in range(2, 12):
        bench.receive(LinkStateUpdate("R2", 7, sequence, {ME: 1, **{f"X{n}": 1 for n in range(10_000 + sequence % 2)}}))
    assert len(bench.mesh.routers) == nodes_module.MAX_ROUTERS
    assert bench.mesh.faults[MeshFault.TOO_MANY] > 0
    assert len(bench.sent(LinkStateRequest)) <= REQUESTS_PER_TICK
    bench.tick()
    assert len(bench.sent(LinkStateRequest)) == REQUESTS_PER_TICK


def test_the_ways_are_found_anew_only_so_often_between_two_ticks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def count(me: str, links: Mapping[str, Mapping[str, int]]) -> Paths:
        made.append(me)
        return Paths(me, links)

    monkeypatch.setattr(knowledge_module, "Paths", count)
    monkeypatch.setattr(knowledge_module, "LINKS_PER_TICK", 200)
    bench.neighbour()
    made.clear()
    for sequence in range(2, 102):
        bench.receive(LinkStateUpdate("R2", 7, sequence, {ME: 1, **{f"X{n}": 1 + sequence % 2 for n in range(50)}}))
    assert 1 <= len(made) <= 3
    bench.tick()
    assert bench.mesh.paths.cost["X1"] == 1 + 1 + 101 % 2, "the last word counts after the tick"


def test_requests_for_many_addresses_are_answered_in_turn(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_module, "ADDRESSES_PER_TICK", 150)
    bench.neighbour()
    for number in range(100):
        bench.mesh.add_address(f"M0{number}", 3)
    names = [f"X{number}" for number in range(6)]
    bench.receive(*[RouterAdvertisement(name, 1, 1, 0) for name in names])
    bench.keep(1)
    bench.take_events()
    bench.receive(*[MobileAddressRequest(name, 0) for name in [*names, *names[2:]]])
    assert len(bench.sent(MobileAddressUpdate)) == 2
    bench.keep(1)
    assert len(bench.sent(MobileAddressUpdate)) == 2
    bench.keep(1)
    assert len(bench.sent(MobileAddressUpdate)) == 2
    bench.keep(1)
    assert bench.sent(MobileAddressUpdate) == []


def test_links_beyond_the_limit_are_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_module, "MAX_LINKS", 10)
    bench.neighbour()
    bench.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, **{f"X{number}": 1 for number in range(10)}}))
    assert bench.mesh.faults[MeshFault.TOO_MANY] == 1
    assert bench.mesh.paths.next_hop == {"R2": "R2"}
    bench.receive(LinkStateUpdate("R2", 7, 3, {ME: 1, **{f"X{number}": 1 for number in range(9)}}))
    assert len(bench.mesh.paths.next_hop) == 10


def test_addresses_beyond_the_limit_are_left_out_and_room_returns(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes_module, "MAX_ADDRESS_BYTES", 10_000)
    bench.neighbour()
    many = tuple(f"M0{number}" for number in range(1000))
    bench.receive(RouterAdvertisement("R2", 7, 1, 4), MobileAddressUpdate("R2", 1, exist=many))
    kept = len(bench.mesh.addresses_of("R2"))
    assert 0 < kept < 100
    assert bench.mesh.faults[MeshFault.TOO_MANY] == 1
    bench.receive(MobileAddressUpdate("R2", 2, exist=()), MobileAddressUpdate("R2", 3, exist=many))
    assert len(bench.mesh.addresses_of("R2")) == kept
    bench.receive(MobileAddressUpdate("R2", 4, exist=("M0last",)), MobileAddressUpdate("R2", 5, added=("M0more",)))
    assert set(bench.mesh.addresses_of("R2")) == {"M0last", "M0more"}


INVENTED: list[Callable[[str], Message]] = [
    lambda name: Hello(name, 1, (ME,)),
    lambda name: RouterAdvertisement(name, 1, 1, 1),
    LinkStateRequest,
    lambda name: LinkStateUpdate(name, 1, 1, {}),
    lambda name: MobileAddressRequest(name, 0),
    lambda name: MobileAddressUpdate(name, 1, exist=("M0a",)),
]


@pytest.mark.parametrize("invent", INVENTED, ids=lambda invent: type(invent("x")).__name__)
def test_invented_routers_are_remembered_in_bounds_and_soon_forgotten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, invent: Callable[[str], Message]
) -> None:
    monkeypatch.setattr(nodes_module, "MAX_ROUTERS", 100)
    bench.neighbour()
    for number in range(3000):
        bench.receive(invent(f"X{number}"))
    assert len(bench.mesh.routers) <= 100
    assert len([event for event in bench.take_events() if isinstance(event, Ignored)]) <= 1001
    bench.keep(ORPHAN_TICKS)
    assert list(bench.mesh.routers) == ["R2"]


def test_ids_and_addresses_without_end_are_refused(bench: Bench) -> None:
    bench.neighbour()
    endless = "R" * (1 << 20)
    taken = compose(Hello("R2", 7, (ME,)), HELLO_TO)
    assert b"R2" in taken
    for message, to in (
        (Hello("R2", 7, (endless,)), HELLO_TO),
        (LinkStateUpdate("R2", 7, 9, {endless: 1}), router_address(ME)),
        (MobileAddressUpdate("R2", 1, exist=(endless,)), mobile_address(ME)),
    ):
        take(bench, compose(message, to))
    head = compose(replace(RouterAdvertisement("R2"), link_sequence=3), ALL_ROUTERS_TO)
    body = encode(Described(ULong(0x77), {"id": endless, "pv": 1}))
    take(bench, head[: head.index(b"\x00\x53\x77")] + body)
    assert bench.mesh.faults[MeshFault.MALFORMED] == 4
    assert list(bench.mesh.routers) == ["R2"]
