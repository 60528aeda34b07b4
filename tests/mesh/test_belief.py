"""Whom a router believes: what is said of a router counts if the connection leads there (inter-router.md 3.5)."""

from __future__ import annotations

import random
from dataclasses import replace

import networkx as nx
import pytest

from tests.mesh.test_mesh import ME, Bench
from trouter.mesh.events import AddressesChanged, Ignored, PathsChanged
from trouter.mesh.faults import MeshFault
from trouter.mesh.messages import (
    ALL_ADDRESSES_TO,
    ALL_ROUTERS_TO,
    MAX_SEQUENCE,
    LinkStateRequest,
    LinkStateUpdate,
    Message,
    MobileAddressUpdate,
    RouterAdvertisement,
    compose,
    mobile_address,
    router_address,
)
from trouter.mesh.paths import Paths
from trouter.mesh.requests import UNDER_WAY_S
from trouter.mesh.strays import CONFIRMED_WITHIN_S

#: The connections of the neighbours, and the routers that are attacked: a neighbour, and one behind it.
FORGER, HONEST = 1, 2
VICTIMS = ("R3", "R4")
#: Seconds after which the network counts as calm.
CALM_S = 9


class Network(Bench):
    """R1 between the forger R2 and R3, which has R4 behind it; R3 and R4 have addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.neighbour("R2", over=FORGER)
        self.neighbour("R3", over=HONEST)
        self.receive(RouterAdvertisement("R3", 7, 2, 3), RouterAdvertisement("R4", 7, 1, 3), over=HONEST)
        self.receive(LinkStateUpdate("R3", 7, 2, {ME: 1, "R4": 1}), over=HONEST)
        self.receive(LinkStateUpdate("R4", 7, 1, {"R3": 1}), over=HONEST)
        self.live()
        for victim in VICTIMS:
            self.receive(MobileAddressUpdate(victim, 3, exist=(f"M0of.{victim}",)), over=HONEST)
        for _ in range(CALM_S):
            self.live()
        self.take_events()
        assert [list(self.mesh.addresses_of(victim)) for victim in VICTIMS] == [["M0of.R3"], ["M0of.R4"]]

    def live(self, seconds: int = 1) -> None:
        """Pass time while the neighbours send their hellos."""
        for _ in range(seconds):
            self.hello("R2", over=FORGER)
            self.hello("R3", over=HONEST)
            self.tick()

    def take(self, message: Message, to: str, over: int, ingress: str = "") -> tuple[str, ...]:
        """Receive a message as bytes, as if it came from ``ingress``; return the neighbours that get it next."""
        octets = compose(message, to)
        if ingress:
            octets = octets.replace(f"0/{message.id}".encode(), f"0/{ingress}".encode())
        return self.mesh.take_message(octets, over, self.now_s).hops

    def complaints(self) -> list[Ignored]:
        return [event for event in self.take_events() if isinstance(event, Ignored)]

    def is_whole(self) -> bool:
        """Return whether everything is known of the victims, and R4 can be reached."""
        addresses = [list(self.mesh.addresses_of(victim)) for victim in VICTIMS]
        return addresses == [["M0of.R3"], ["M0of.R4"]] and self.mesh.paths.next_hop == {
            "R2": "R2",
            "R3": "R3",
            "R4": "R3",
        }


@pytest.fixture
def network() -> Network:
    return Network()


def lies(victim: str) -> dict[str, tuple[Message, str]]:
    """Return what the forger may say of the victim, and the address that it says it to."""
    return {
        "all addresses": (MobileAddressUpdate(victim, MAX_SEQUENCE, exist=()), mobile_address(ME)),
        "all addresses, as known": (MobileAddressUpdate(victim, 3, exist=()), mobile_address(ME)),
        "the next change": (MobileAddressUpdate(victim, 4, deleted=(f"M0of.{victim}",)), ALL_ADDRESSES_TO),
        "a late change": (MobileAddressUpdate(victim, MAX_SEQUENCE, added=("M0x",)), ALL_ADDRESSES_TO),
        "links": (LinkStateUpdate(victim, 7, MAX_SEQUENCE, {}), router_address(ME)),
        "the next links": (LinkStateUpdate(victim, 7, 3, {"R2": 1}), router_address(ME)),
        "a later start": (RouterAdvertisement(victim, 8, 1, 0), ALL_ROUTERS_TO),
        "an earlier start": (RouterAdvertisement(victim, 6, 1, 0), ALL_ROUTERS_TO),
        "lower numbers": (RouterAdvertisement(victim, 7, 0, 0), ALL_ROUTERS_TO),
    }


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("lie", list(lies("")))
def test_a_neighbour_cannot_black_out_another_router(network: Network, victim: str, lie: str) -> None:
    message, to = lies(victim)[lie]
    for _ in range(5):
        assert network.take(message, to, FORGER) == (), "nobody else gets it either"
        network.receive(message, over=FORGER)
        numbers = {"R3": (2, 3), "R4": (1, 3)}[victim]
        network.receive(RouterAdvertisement(victim, 7, *numbers), over=HONEST)
        network.live()
        assert network.is_whole()
    change = MobileAddressUpdate(victim, 4, added=("M0new",))
    network.receive(change, over=HONEST)
    assert "M0new" in network.mesh.addresses_of(victim), "its next change counts at once"


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("lie", list(lies("")))
def test_the_complaint_names_the_connection_of_the_forger(network: Network, victim: str, lie: str) -> None:
    message, to = lies(victim)[lie]
    for _ in range(20):
        network.take(message, to, FORGER)
    network.live(int(CONFIRMED_WITHIN_S) + 1)
    told = network.complaints()
    if lie == "lower numbers":
        assert told == [], "advertisements that took a longer way are late, too"
        return
    assert [(event.who, event.connection, event.times) for event in told] == [("R2", FORGER, 1)]
    assert victim in told[0].detail
    assert network.mesh.faults[MeshFault.OFF_PATH] > 0


def test_what_a_router_says_by_all_ways_is_no_fault(network: Network) -> None:
    """Qpid Dispatch sends changes of addresses by all ways: a copy may come here before the one that counts."""
    change = MobileAddressUpdate("R4", 4, added=("M0new",))
    network.receive(change, over=FORGER)
    assert "M0new" not in network.mesh.addresses_of("R4")
    network.receive(change, RouterAdvertisement("R4", 7, 1, 4), over=HONEST)
    assert "M0new" in network.mesh.addresses_of("R4")
    network.live(int(CONFIRMED_WITHIN_S) + 1)
    assert network.complaints() == []


def test_a_restart_of_which_all_neighbours_tell_is_no_fault(network: Network) -> None:
    again = RouterAdvertisement("R4", 8, 1, 0)
    network.receive(again, over=FORGER)
    assert list(network.mesh.addresses_of("R4")) == ["M0of.R4"]
    network.receive(again, over=HONEST)
    assert list(network.mesh.addresses_of("R4")) == []
    network.live(int(CONFIRMED_WITHIN_S) + 1)
    assert network.complaints() == []


def test_a_restart_of_a_router_that_cannot_be_reached_is_believed_of_everybody(network: Network) -> None:
    """It may come back elsewhere: nothing leads there yet."""
    network.receive(LinkStateUpdate("R3", 7, 3, {ME: 1}), over=HONEST)
    network.receive(RouterAdvertisement("R4", 8, 1, 0), over=FORGER)
    assert network.mesh.routers["R4"].instance == 8
    network.receive(LinkStateUpdate("R2", 7, 2, {ME: 1, "R4": 1}), over=FORGER)
    network.receive(LinkStateUpdate("R4", 8, 1, {"R2": 1}), over=FORGER)
    assert network.mesh.paths.next_hop["R4"] == "R2"


@pytest.mark.parametrize(
    "message",
    [LinkStateUpdate("R2", 7, 9, {}), MobileAddressUpdate("R2", 9, exist=())],
    ids=lambda message: type(message).__name__,
)
def test_lies_for_another_router_are_not_sent_on(
    network: Network, message: LinkStateUpdate | MobileAddressUpdate
) -> None:
    """That router would believe them: they come from this one, which leads to the author."""
    assert network.take(replace(message, id="R4"), router_address("R3"), FORGER) == ()
    assert network.mesh.faults[MeshFault.OFF_PATH] == 1
    assert network.take(message, router_address("R4"), FORGER) == ("R3",), "it may tell of itself"
    assert network.take(LinkStateRequest("R9"), router_address("R4"), FORGER) == ("R3",), "a request does no harm"


@pytest.mark.parametrize("lie", list(lies("")))
def test_a_message_is_of_the_router_at_which_it_entered_the_network(network: Network, lie: str) -> None:
    message, to = lies("R4")[lie]
    assert network.take(message, to, HONEST, ingress="R3") == ()
    assert network.mesh.faults[MeshFault.OTHER_AUTHOR] == 1
    assert network.is_whole()


def test_addresses_that_nobody_requested_are_ignored(network: Network) -> None:
    network.live(int(UNDER_WAY_S) + 1)
    network.receive(MobileAddressUpdate("R4", 3, exist=()), MobileAddressUpdate("R4", 9, exist=()), over=HONEST)
    assert network.is_whole()
    network.live(int(CONFIRMED_WITHIN_S) + 1)
    assert [(event.fault, event.connection) for event in network.complaints()] == [(MeshFault.UNREQUESTED, HONEST)]


def test_addresses_with_a_number_that_was_not_advertised_are_ignored(network: Network) -> None:
    network.receive(RouterAdvertisement("R4", 7, 1, 5), over=HONEST)
    network.live()
    network.receive(MobileAddressUpdate("R4", 6, exist=()), over=HONEST)
    assert network.is_whole()
    network.receive(MobileAddressUpdate("R4", 5, exist=("M0five",)), over=HONEST)
    assert list(network.mesh.addresses_of("R4")) == ["M0five"]


def test_addresses_that_came_before_the_first_advertisement_count(network: Network) -> None:
    """A router is requested for its addresses as soon as its links are known."""
    network.receive(LinkStateUpdate("R4", 7, 2, {"R3": 1, "R5": 1}), over=HONEST)
    network.receive(LinkStateUpdate("R5", 7, 1, {"R4": 1}), over=HONEST)
    network.receive(MobileAddressUpdate("R5", 9, exist=("M0five",)), over=HONEST)
    assert list(network.mesh.addresses_of("R5")) == ["M0five"]


def test_a_connection_leads_to_its_own_router_although_another_way_is_cheaper() -> None:
    bench = Bench()
    bench.neighbour("R2", over=1, cost=10)
    bench.neighbour("R3", over=2, cost=1)
    bench.receive(LinkStateUpdate("R3", 7, 2, {ME: 1, "R2": 1}), over=2)
    assert bench.mesh.paths.next_hop["R2"] == "R3"
    for sequence, over in enumerate((1, 2), 2):
        bench.receive(LinkStateUpdate("R2", 7, sequence, {ME: 10, "R3": 1, f"R{sequence}0": 1}), over=over)
        assert f"R{sequence}0" in bench.mesh.paths.next_hop


def test_every_one_of_several_shortest_ways_leads_to_a_router() -> None:
    # Both ways around a ring of six cost the same; R6 takes the one over R5, and R1 that over R2.
    links = {"R1": ("R2", "R3"), "R2": ("R1", "R4"), "R3": ("R1", "R5"), "R4": ("R2", "R6"), "R5": ("R3", "R6")}
    known = {router: dict.fromkeys(peers, 1) for router, peers in (links | {"R6": ("R4", "R5")}).items()}
    paths = Paths("R1", known)
    assert [paths.may_come_from(hop, "R6") for hop in ("R2", "R3")] == [True, True]
    assert [paths.may_come_from(hop, "R5") for hop in ("R2", "R3")] == [False, True]


def test_the_way_of_a_router_that_counts_another_cost_leads_there() -> None:
    """Of two connections each router may have chosen another one: then the ways to and fro differ."""
    links = {"R1": {"R2": 1, "R3": 1}, "R2": {"R1": 10, "R3": 1, "R4": 1}, "R3": {"R1": 1, "R2": 1}, "R4": {"R2": 1}}
    paths = Paths("R1", links)
    assert paths.next_hop["R4"] == "R2"
    assert paths.may_come_from("R3", "R4"), "R4 counts 1 + 10 over R2, and 1 + 1 + 1 over R3"


@pytest.mark.parametrize("seed", range(30))
def test_exactly_the_ends_of_shortest_ways_lead_to_a_router(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"R{number}" for number in range(chance.randint(2, 9))]
    graph: nx.DiGraph[str] = nx.DiGraph()
    for one in names:
        for other in names:
            if one < other and chance.random() < 0.5:
                cost = chance.choice([1, 1, 2, 3, 100])
                graph.add_edge(one, other, weight=cost)
                graph.add_edge(other, one, weight=cost if chance.random() < 0.8 else chance.randint(1, 4))
    me = names[0]
    graph.add_node(me)
    paths = Paths(me, {one: {other: graph.edges[one, other]["weight"] for other in graph[one]} for one in graph})
    for router in set(graph) - {me}:
        if router not in paths.next_hop:
            assert not any(paths.may_come_from(neighbour, router) for neighbour in graph)
            continue
        ends = {way[1] for way in nx.all_shortest_paths(graph, me, router, weight="weight")}
        if nx.has_path(graph, router, me):
            ends |= {way[-2] for way in nx.all_shortest_paths(graph, router, me, weight="weight")}
        assert {neighbour for neighbour in graph if neighbour != me and paths.may_come_from(neighbour, router)} == ends


def test_the_network_is_not_recomputed_for_lies(network: Network) -> None:
    for victim in VICTIMS:
        for message, to in lies(victim).values():
            network.take(message, to, FORGER)
    assert not [event for event in network.take_events() if isinstance(event, AddressesChanged | PathsChanged)]
