"""The reasons why messages for an address flow or not: the verdicts, and the facts beside them."""

from __future__ import annotations

import json

import pytest

from trouter.core import why
from trouter.core.inprocess import InsideMessage
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.core.why import AddressExplanation, explain
from trouter.engine.limits import EngineLimits
from trouter.testing import MemoryClient, MemoryRouter, compose
from trouter.wire.codec import encode

RULES = (
    AddressRule("closed", is_prefix=True, distribution="unavailable", name="shut"),
    AddressRule("way", ingress_phase=0, egress_phase=1),
    AddressRule("fall", enable_fallback=True),
    AddressRule("all.*", distribution="multicast"),
)


class Sink:
    """A consumer inside the router."""

    def receive(self, received: InsideMessage) -> None:
        received.settle()


class Room:
    """A router with a client, and its report on an address."""

    def __init__(self, link_capacity: int = 250) -> None:
        self.router = MemoryRouter(RULES)
        self.client = self.connect(link_capacity)

    def connect(self, link_capacity: int = 250, limits: EngineLimits | None = None) -> MemoryClient:
        if limits is None:
            return self.router.connect(PeerTerms(link_capacity))
        return self.router.connect(PeerTerms(link_capacity), limits=limits, client_limits=limits)

    def send(self, address: str, count: int = 1, size: int = 1) -> None:
        sender = self.client.sender(address)
        for _ in range(count):
            sender.send(compose(bytes(size)))
        self.router.pump()

    def why(self, address: str) -> AddressExplanation:
        return explain(self.router.core, address)

    def verdict(self, address: str) -> str:
        return self.why(address).verdict


@pytest.mark.parametrize(
    ("address", "verdict"),
    [
        ("x", "unknown address: no client sends to it or receives from it"),
        ("closed.a", "unavailable by configuration"),
        ("", "no address: empty"),
        ("/", "no address: empty"),
        ("x" * 4097, "no address: too long"),
        ("_$qd.addr_lookup", "closed to clients: the router's own"),
        ("_topo/0/R2/x", "elsewhere: belongs to a router that this one does not know"),
        ("_topo/1/R2/x", "elsewhere: belongs to a router that this one does not know"),
        ("_edge/R2/x", "elsewhere: belongs to a router that this one does not know"),
        ("way", "unknown address: no client sends to it or receives from it"),
        ("\ud800", "unknown address: no client sends to it or receives from it"),
    ],
)
def test_an_address_without_users(address: str, verdict: str) -> None:
    room = Room()
    assert room.verdict(address) == verdict
    assert room.router.core.table.entries == {}


def test_the_rule_and_the_treatment_are_reported() -> None:
    room = Room()
    room.client.receiver("all.x")
    explanation = [room.why(address) for address in ("x", "closed", "way", "fall", "all.x")]
    assert [(each.key, each.treatment, each.rule) for each in explanation] == [
        ("M0x", "balanced", "defaultDistribution: balanced"),
        ("M0closed", "unavailable", "shut: prefix closed, unavailable"),
        ("M0way", "balanced", "pattern way, balanced, phases 0 to 1"),
        ("M0fall", "balanced", "pattern fall, balanced, fallback"),
        ("M0all.x", "multicast", "pattern all.*, multicast"),
    ]


def test_senders_without_a_consumer() -> None:
    room = Room()
    room.client.sender("x")
    assert room.verdict("x") == "no consumer: 1 sender without new credit until one comes"
    room.client.sender("x")
    room.router.now_s = 3.5
    explanation = room.why("x")
    assert explanation.verdict == "no consumer: 2 senders without new credit until one comes"
    assert (explanation.consumer_count, explanation.sender_count, explanation.consumers) == (0, 2, ())
    assert [(each.link, each.connection, each.container, each.name) for each in explanation.senders] == [
        (1, 1, "client-0", "link-1"),
        (2, 1, "client-0", "link-2"),
    ]
    assert {(each.credit, each.zero_credit_s, each.waits_for) for each in explanation.senders} == {(0, 3.5, "credit")}


def test_a_phase_that_nothing_leads_to() -> None:
    room = Room()
    room.client.receiver("way", credit=1)
    text = "no consumer in phase 0, where messages enter: nothing takes them on to phase 1, which has 1 consumer"
    assert room.verdict("way") == text
    room.client.sender("way")
    assert room.verdict("way") == text
    room.client.receiver("way", credit=1, capabilities=("qd.waypoint",))
    assert room.verdict("way") == "ready: nothing is under way"


def test_consumers_without_credit_are_named() -> None:
    room = Room()
    for _ in range(7):
        room.client.receiver("x")
    room.send("x")
    named = ", ".join(f"link {number} on connection 1" for number in range(1, 6))
    assert room.verdict("x") == f"consumers without credit: {named} and 2 more"
    assert {(each.credit, each.waits_for) for each in room.why("x").consumers} == {(0, "credit")}
    assert sum(each.undelivered for each in room.why("x").consumers) == 1


def test_a_receiver_that_does_not_settle_holds_its_sender() -> None:
    room = Room(link_capacity=5)
    receiver = room.connect().receiver("x", credit=100)
    room.send("x", 5)
    assert room.verdict("x") == "senders without credit: link 1 on connection 2 has 5 waiting or unsettled"
    room.router.core.watch_links(20.0)
    assert room.verdict("x") == "held by link 1 on connection 2: 5 waiting or unsettled for more than 10 s"
    assert [(each.unsettled, each.stuck) for each in room.why("x").consumers] == [(5, 5)]
    for message in receiver.received:
        message.settle()
    room.router.pump()
    assert room.verdict("x") == "flowing"
    for now_s in (100.0, 106.0):
        room.router.core.watch_links(now_s)
    assert room.verdict("x") == "ready: nothing is under way"


def test_a_closed_window_and_a_peer_that_does_not_read_are_distinguished() -> None:
    small = EngineLimits(max_frame_bytes=512, session_window_frames=4, idle_timeout_s=0.0, high_water_bytes=2048)
    room = Room()
    windowed = room.connect(limits=EngineLimits(max_frame_bytes=512, session_window_frames=4, idle_timeout_s=0.0))
    windowed.receiver("x", credit=100)
    windowed.stalled = True
    room.send("x", 20)
    assert room.verdict("x") == "held by link 1 on connection 2: its session's window is closed"
    assert room.why("x").consumers[0].waits_for == "window"
    deaf = room.router.connect(limits=small)
    deaf.receiver("y", credit=100)
    deaf.stalled = True
    room.send("y", 20, 500)
    assert room.verdict("y") == "held by link 3 on connection 3: its connection takes nothing in"
    assert room.why("y").consumers[0].waits_for == "output"


def test_a_consumer_that_is_behind_does_not_stop_the_others() -> None:
    room = Room()
    room.client.receiver("all.x", credit=100)
    room.client.receiver("all.x")
    room.send("all.x", 3)
    assert room.verdict("all.x") == "flowing, but link 2 on connection 1 is behind"
    room.client.receiver("all.x")
    room.send("all.x", 3)
    assert room.verdict("all.x") == "flowing, but link 2 on connection 1, link 4 on connection 1 are behind"


def test_messages_that_go_to_the_fallback() -> None:
    room = Room()
    room.client.receiver("fall", capabilities=("qd.fallback",), credit=1)
    room.client.sender("fall")
    explanation = room.why("fall")
    assert (explanation.fallback, explanation.verdict) == ("MFfall", "on fallback: ready: nothing is under way")
    room.client.receiver("fall", credit=1)
    assert room.why("fall").fallback == ""


def test_a_consumer_inside_the_router_needs_no_credit() -> None:
    room = Room()
    room.router.core.inside.subscribe("x", Sink())
    assert (room.why("x").in_process, room.verdict("x")) == (1, "ready: no sender of its own")


def test_an_address_in_use_keeps_its_treatment_when_its_rule_changes() -> None:
    room = Room()
    room.client.receiver("x", credit=1)
    room.router.core.table.add_rule(AddressRule("x", distribution="unavailable"))
    assert (room.why("x").treatment, room.why("x").rule) == ("balanced", "pattern x, unavailable")


def test_of_very_many_links_the_busiest_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why, "MAX_LINKS", 3)
    room = Room()
    for number in range(6):
        room.client.receiver("all.x", credit=number)
    for _ in range(4):
        room.send("all.x")
    explanation = room.why("all.x")
    assert (explanation.consumer_count, len(explanation.consumers)) == (6, 3)
    assert (explanation.sender_count, len(explanation.senders)) == (4, 3)


def test_an_explanation_can_be_sent_and_read() -> None:
    room = Room()
    room.client.receiver("x", credit=1)
    room.send("x")
    explanation = room.why("x").as_map()
    encode(explanation)
    assert json.loads(json.dumps(explanation)) == explanation
    assert {"link", "connection", "container", "credit", "undelivered", "unsettled", "stuck"} <= set(
        explanation["consumers"][0]  # type: ignore[index]
    )
