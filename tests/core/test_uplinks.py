"""The links of an edge router on its uplink, and the messages there that it ignores (inter-router.md 6.2-6.8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from trouter.core.edge.uplink import Uplink
from trouter.core.lookups import LookupResult, Query, question
from trouter.core.readers import MAX_NOTE_BYTES
from trouter.core.routes import IN, LinkRoute
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.testing import MemoryReceiver, MemoryRouter, MemorySender, compose
from trouter.wire.codec import decode, encode
from trouter.wire.performatives import Accepted, Error, Rejected, Released, Source, Target
from trouter.wire.types import Described, UInt, ULong

RULES = (
    AddressRule("many", is_prefix=True, distribution="multicast"),
    AddressRule("near", is_prefix=True, distribution="closest"),
    AddressRule("staged", is_prefix=True, egress_phase=1),
    AddressRule("spare", is_prefix=True, enable_fallback=True),
    AddressRule("closed", is_prefix=True, distribution="unavailable"),
    AddressRule("summed", is_prefix=True, counted_as="sums"),
)


#: Indexes of links among those of an uplink.
RESPONSES, REPLIES = 4, 6


class Edge:
    """An edge router and its uplink, of which the test is the other end."""

    def __init__(self, capacity: int = 10) -> None:
        self.router = MemoryRouter(RULES, router_id="E1", mode="edge")
        self.above = self.router.connect(PeerTerms(capacity, False, False), role="edge", container_id="A")
        self.troubles: list[str] = []
        self.broken: list[str] = []
        #: How often the uplink became usable.
        self.usable = 0
        self.uplink = self.go_up(capacity)

    def go_up(self, capacity: int) -> Uplink:
        sessions = [self.above.server.add_session() for _ in range(2)]
        for session in sessions:
            session.begin()
        uplink = Uplink(self.router.core, self.above.as_container(), sessions, capacity, self)
        self.above.answers = False
        uplink.attach_links()
        self.router.pump()
        for place, link in enumerate(self.above.attached):
            if place in (RESPONSES, REPLIES):
                name = "replies" if place == REPLIES else "responses"
                link.answer(source=Source(f"amqp:/_topo/0/A/temp.{name}", dynamic=True))
            else:
                link.answer()
        self.above.answers = True
        self.router.pump()
        return uplink

    def note_usable(self) -> None:
        self.usable += 1

    def note_trouble(self, why: str) -> None:
        self.troubles.append(why)

    def note_broken(self, why: str) -> None:
        self.broken.append(why)

    def links(self, address: str) -> list[Any]:
        """Return the links of an address that are on the uplink now, at the test's end."""
        return [each for each in self.above.attached if each.link.attached and address_of(each) == address]

    def one(self, address: str) -> Any:
        (found,) = self.links(address)
        return found

    def say(self, key: Any, takes: Any) -> None:
        """Report to the edge router whether there are consumers for a key."""
        tracking = self.one("_$qd.edge_addr_tracking")
        tracking.send(encode(Described(ULong(0x77), [key, takes])), settled=True)
        self.router.pump()


def address_of(link: MemorySender | MemoryReceiver) -> object:
    asked = link.attach
    assert asked is not None
    return getattr(asked.target if isinstance(link, MemoryReceiver) else asked.source, "address", None)


def bodies(links: Sequence[MemoryReceiver]) -> list[bytes]:
    return [body for link in links for body in link.bodies]


def test_the_links_are_attached_in_their_order() -> None:
    edge = Edge()
    kinds = [(type(each), address_of(each)) for each in edge.above.attached]
    assert kinds == [
        (MemoryReceiver, None),
        (MemorySender, "E1"),
        (MemorySender, "_$qd.edge_addr_tracking"),
        (MemoryReceiver, "$management"),
        (MemorySender, None),
        (MemoryReceiver, "_$qd.addr_lookup"),
        (MemorySender, None),
        (MemoryReceiver, "_$qd.edge_heartbeat"),
    ]
    down = edge.above.attached[1]
    assert isinstance(down, MemorySender)
    assert down.attach is not None
    capability = ("qd.router-edge-downlink",)
    assert isinstance(down.attach.source, Source)
    assert isinstance(down.attach.target, Target)
    assert (down.attach.source.capabilities, down.attach.target.capabilities) == (capability, capability)
    assert down.attach.source.expiry_policy == "link-detach"
    granted = [each.credit for each in edge.above.attached if isinstance(each, MemorySender)]
    assert granted == [10, 32, 100, 250]


# -------------------------------------------------------------------------------------------------------- addresses


def test_an_address_has_links_as_long_as_it_has_users() -> None:
    edge = Edge()
    client = edge.router.connect()
    receiver, second, sender = client.receiver("x"), client.receiver("x"), client.sender("x")
    down: Any
    up: Any
    down, up = sorted(edge.links("x"), key=lambda each: isinstance(each, MemoryReceiver))
    assert down.credit == 10
    receiver.detach()
    assert len(edge.links("x")) == 2
    second.detach()
    assert edge.links("x") == [up]
    assert down.detached.closed
    sender.detach()
    assert edge.links("x") == []
    assert edge.troubles == []
    assert "M0x" not in edge.router.core.table.entries


@pytest.mark.parametrize(
    ("address", "capability", "there"),
    [
        ("staged", "", [(0, ()), (1, ())]),
        ("staged", "qd.waypoint.1", [(0, ("qd.waypoint.1",)), (1, ("qd.waypoint.1",))]),
        ("x", "qd.waypoint.3", [(0, ("qd.waypoint.3",)), (1, ("qd.waypoint.3",))]),
        ("spare", "", [(0, ()), (0, ("qd.fallback",)), (1, ())]),
    ],
)
def test_phases_and_fallbacks_survive_the_hop(address: str, capability: str, there: list[Any]) -> None:
    """0: to send, 1: to receive, as the edge router sees it."""
    edge = Edge()
    client = edge.router.connect()
    capabilities = (capability,) if capability else ()
    client.sender(address, capabilities=capabilities)
    client.receiver(address, capabilities=capabilities)
    found = []
    for link in edge.links(address):
        attach: Any = link.attach
        terminus = attach.target if isinstance(link, MemoryReceiver) else attach.source
        found.append((int(isinstance(link, MemorySender)), terminus.capabilities))
    assert sorted(found) == there


def test_producers_have_credit_while_a_remote_receiver_takes_their_messages() -> None:
    edge = Edge()
    client = edge.router.connect()
    sender = client.sender("x")
    assert sender.credit == 0
    edge.say("M0x", True)
    assert sender.credit > 0
    sent = sender.send(compose(b"up", annotations={"mine": 1}))
    edge.one("x").grant(10)
    edge.router.pump()
    (message,) = edge.one("x").received
    assert message.body == b"up"
    assert message.annotations == {"mine": 1, "x-opt-qd.to": "x"}, "nothing of its way (6.7)"
    message.settle()
    edge.router.pump()
    assert sent.outcome == Accepted()
    edge.say("M0x", False)
    lost = sender.send(compose(b"nobody"))
    edge.router.pump()
    assert lost.outcome == Released()
    assert sender.drains


def test_the_sums_of_a_section_never_fall_when_receivers_elsewhere_come_and_go() -> None:
    edge = Edge()
    core = edge.router.core
    core.table.count_by_rules(RULES)
    sender = edge.router.connect().sender("summed/x")

    def accepted() -> int:
        deliveries, _ = core.table.counts.sums(core.table.entries, core.links.values())["sums"]
        return deliveries["out", "accepted"]

    for count in (1, 2):
        edge.say("M0summed/x", True)
        sender.send(compose(b"up"))
        edge.one("summed/x").grant(1)
        edge.router.pump()
        edge.one("summed/x").received[-1].settle()
        edge.router.pump()
        assert accepted() == count
        edge.say("M0summed/x", False)
        assert accepted() == count
    sender.detach()
    edge.router.pump()
    assert accepted() == 2


def test_sent_messages_go_up_after_their_producer_has_detached() -> None:
    edge = Edge()
    client = edge.router.connect()
    sender = client.sender("x")
    up = edge.one("x")
    edge.say("M0x", True)
    for number in range(3):
        sender.send(compose(b"%d" % number), settled=True)
    edge.router.pump()
    sender.detach()
    assert up.detached is None, "it waits for the credit to send what was sent"
    up.grant(10)
    edge.router.pump()
    assert up.bodies == [b"0", b"1", b"2"]
    assert up.detached is not None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x00",
        compose(b"?"),
        encode(Described(ULong(0x77), [])),
        encode(Described(ULong(0x77), ["M0x", 1])),
        encode(Described(ULong(0x77), [True, "M0x"])),
        encode(Described(ULong(0x77), "M0x")),
        encode(Described(ULong(0x77), ["M0y", True])),
        encode(Described(ULong(0x77), ["L_edge", True])),
        encode(Described(ULong(0x77), ["HE1", True])),
        encode(Described(ULong(0x77), ["M0x" * 30_000, True])),
    ],
)
def test_a_forged_tracking_message_changes_nothing(message: bytes) -> None:
    edge = Edge()
    client = edge.router.connect()
    sender, other = client.sender("x"), client.receiver("y")
    tracking = edge.one("_$qd.edge_addr_tracking")
    sent = tracking.send(message)
    edge.router.pump()
    assert sent.outcome == (Rejected() if len(message) > MAX_NOTE_BYTES else Accepted())
    assert sender.credit == 0
    assert other.received == []
    edge.say("M0x", True)
    assert sender.credit > 0


def test_an_invalid_tracking_message_is_reported_once() -> None:
    edge = Edge()
    edge.router.connect().sender("x")
    tracking = edge.one("_$qd.edge_addr_tracking")
    for _ in range(3):
        tracking.send(b"")
        edge.router.pump()
    assert edge.troubles == ["the interior router sent a tracking message that has no address and boolean"]


@pytest.mark.parametrize(("address", "here", "there"), [("near", 4, 0), ("many", 4, 4), ("far", 2, 2)])
def test_local_and_remote_consumers_share_by_the_treatment_of_the_address(address: str, here: int, there: int) -> None:
    """Messages to ``closest`` do not pass a local consumer."""
    edge = Edge(capacity=100)
    client = edge.router.connect()
    receiver, sender = client.receiver(address, credit=100), client.sender(address)
    edge.say(f"M0{address}", True)
    for _ in range(4):
        sender.send(compose(b""))
        edge.router.pump()
    up = next(each for each in edge.links(address) if isinstance(each, MemoryReceiver))
    up.grant(100)
    edge.router.pump()
    assert (len(receiver.received), len(up.received)) == (here, there)


# ----------------------------------------------------------------------------------------- addresses elsewhere


@pytest.mark.parametrize("to", ["nobody.here", "_topo/0/B/x", "_edge/E2/x", "amqp:/_topo/0/A/temp.1"])
def test_messages_for_remote_addresses_go_over_the_anonymous_link(to: str) -> None:
    edge = Edge()
    client = edge.router.connect()
    up = edge.above.attached[0]
    assert isinstance(up, MemoryReceiver)
    up.grant(10)
    sent = client.sender().send(compose(b"1", to=to))
    edge.router.pump()
    assert up.received[0].annotations is None
    up.received[0].settle()
    edge.router.pump()
    assert sent.outcome == Accepted()
    assert edge.router.core.inside.send_message(to, compose(b"2", to=to)) == 1
    edge.router.pump()
    assert up.received[1].annotations == {"x-opt-qd.ingress": "0/E1", "x-opt-qd.trace": ["0/E1"]}


def test_a_multicast_for_consumers_here_goes_up_too() -> None:
    edge = Edge()
    client = edge.router.connect()
    up = edge.above.attached[0]
    assert isinstance(up, MemoryReceiver)
    up.grant(10)
    receiver = client.receiver("many", credit=10)
    client.sender().send(compose(b"1", to="many"), settled=True)
    edge.router.pump()
    assert (receiver.bodies, up.bodies) == ([b"1"], [b"1"])
    client.sender("many")
    edge.say("M0many", True)
    named = next(each for each in edge.links("many") if isinstance(each, MemoryReceiver))
    named.grant(10)
    client.sender().send(compose(b"2", to="many"), settled=True)
    edge.router.pump()
    assert (receiver.bodies, up.bodies + named.bodies) == ([b"1", b"2"], [b"1", b"2"]), "once"


def test_a_message_that_came_down_never_goes_up_again() -> None:
    edge = Edge()
    client = edge.router.connect()
    for each in edge.above.attached:
        if isinstance(each, MemoryReceiver):
            each.grant(10)
    client.sender("many")
    receiver = client.receiver("many", credit=10)
    edge.say("M0many", True)
    anonymous, down = edge.above.attached[:2]
    assert isinstance(down, MemorySender)
    named = next(each for each in edge.links("many") if isinstance(each, MemoryReceiver))
    named.grant(10)
    known = down.send(compose(b"1", annotations={"x-opt-qd.to": "many"}))
    unknown = [down.send(compose(b"?", to=to)) for to in ("nobody", "_edge/E2/x", "_edge/E1/gone", "closed")]
    edge.router.pump()
    assert receiver.bodies == [b"1"]
    receiver.received[0].settle()
    edge.router.pump()
    assert known.outcome == Accepted()
    assert bodies([named, anonymous]) == []  # type: ignore[list-item]
    assert [type(each.outcome).__name__ for each in unknown] == ["Released", "Released", "Released", "Rejected"]


def test_a_message_with_a_long_trace_is_delivered_at_the_edge() -> None:
    edge = Edge()
    receiver = edge.router.connect().receiver("x", credit=10)
    down = edge.one("x")
    way = {"x-opt-qd.ingress": "0/D", "x-opt-qd.trace": [f"0/{name}" for name in "DCBA"], "mine": 1}
    down.send(compose(b"far", annotations=way), settled=True)
    edge.router.pump()
    assert (receiver.bodies, receiver.received[0].annotations) == ([b"far"], {"mine": 1})


@pytest.mark.parametrize("address", ["_topo/0/A/x", "_edge/E2/x", "_$qd.edge_heartbeat"])
def test_a_client_receives_nothing_that_is_for_others(address: str) -> None:
    edge = Edge()
    link = edge.router.connect().receiver(address)
    assert link.detached is not None
    assert link.error == (
        None if address.startswith("_$") else Error("qd:no-route-to-dest", "No route to the destination node")
    )


# --------------------------------------------------------------------------------------------------------- look-ups


class Answers:
    """Look-ups, and their answers."""

    def __init__(self, edge: Edge) -> None:
        self.edge = edge
        self.done = 0
        self.link: MemoryReceiver = edge.one("_$qd.addr_lookup")
        self.link.grant(32)
        self.replies = edge.above.attached[REPLIES]

    def ask(self, text: str = "x") -> Query:
        query = self.edge.uplink.send_query(text, True, self.note)
        assert query is not None
        self.edge.router.pump()
        return query

    def note(self) -> None:
        self.done += 1

    def reply(self, status: Any, body: Any, number: str = "1") -> None:
        assert isinstance(self.replies, MemorySender)
        properties = {"version": UInt(1), "opcode": UInt(1), "status": status}
        sections = ((0x73, [None, None, None, None, None, number]), (0x74, properties), (0x77, body))
        self.replies.send(b"".join(encode(Described(ULong(code), each)) for code, each in sections), settled=True)
        self.edge.router.pump()


@pytest.fixture
def answers() -> Answers:
    return Answers(Edge())


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (UInt(0), [True, True], LookupResult.LINKS),
        (UInt(0), [True, False], LookupResult.NOWHERE),
        (UInt(0), [False, False], LookupResult.MESSAGES),
        (UInt(3), [False, False], LookupResult.MESSAGES),
        (UInt(3), [True, True], LookupResult.MESSAGES),
        (UInt(0), [1, 1], LookupResult.MESSAGES),
        (UInt(0), "yes", LookupResult.MESSAGES),
        ("0", [True, True], LookupResult.MESSAGES),
    ],
)
def test_an_answer_counts_as_far_as_it_is_valid(answers: Answers, status: Any, body: Any, found: LookupResult) -> None:
    query = answers.ask()
    answers.reply(status, body, "unknown")
    assert answers.done == 0
    answers.reply(status, body)
    assert (answers.done, query.answer) == (1, found)
    answers.reply(status, [True, False])
    assert (answers.done, query.answer) == (1, found), "once"


def test_a_route_of_the_edge_router_counts_while_it_has_a_container() -> None:
    """An edge router sends a look-up while its own route leads nowhere."""
    edge = Edge()
    core = edge.router.core
    client = edge.router.connect()
    client.sender("b.q")
    (incoming,) = (
        each for each in core.incoming_endpoints() if each.connection_number == client.terms.connection_number
    )
    assert question(core, incoming.link, client.terms) == ("b.q", True)
    core.routes.add(LinkRoute("b", IN, is_prefix=True, container_id="B"), iter(()))
    assert question(core, incoming.link, client.terms) == ("b.q", True)
    edge.router.connect(role="route-container", container_id="B")
    assert question(core, incoming.link, client.terms) is None


def test_a_look_up_names_the_address_and_the_operation(answers: Answers) -> None:
    answers.ask("some/address")
    (asked,) = answers.link.received
    found: dict[int, Any] = {}
    offset = 0
    while offset < len(asked.payload):
        section, offset = decode(asked.payload, offset, len(asked.payload))
        found[section.descriptor] = section.value
    assert found[0x77] == ["some/address", True]
    assert found[0x74] == {"version": 1, "opcode": 1}
    assert found[0x73][4] == "amqp:/_topo/0/A/temp.replies"
    assert asked.settled


def test_no_client_waits_when_the_interior_router_answers_no_look_ups(answers: Answers) -> None:
    query = answers.ask()
    answers.link.detach()
    assert (answers.done, query.answer) == (1, LookupResult.MESSAGES)
    assert answers.edge.uplink.send_query("x", True, answers.note) is None
    assert answers.edge.broken == []


def test_no_client_waits_for_an_uplink_that_is_lost(answers: Answers) -> None:
    query = answers.ask()
    answers.edge.uplink.stop_using_links()
    assert (answers.done, query.answer) == (1, LookupResult.MESSAGES)


# ---------------------------------------------------------------------------------------------------- links that end


def test_an_uplink_without_its_anonymous_link_or_a_session_is_none() -> None:
    edge = Edge()
    anonymous = edge.above.attached[0]
    anonymous.link.detach(True, Error("x:why", "because"))
    edge.router.pump()
    assert edge.broken == ["link anonymous of the uplink was detached: x:why because"]
    assert edge.router.core.uplink is None
    edge = Edge()
    edge.above.end(edge.above.attached[0].link.session)
    assert edge.broken == ["a session of the uplink is over"]


def test_a_link_that_is_refused_is_reported_and_tried_again_with_the_next_user() -> None:
    edge = Edge()
    client = edge.router.connect()
    client.receiver("x")
    edge.one("x").link.detach(True, Error("amqp:unauthorized-access", "link disallowed"))
    edge.router.pump()
    assert edge.links("x") == []
    assert len(edge.troubles) == 1
    assert edge.troubles[0].endswith("detached: amqp:unauthorized-access link disallowed")
    client.receiver("x")
    assert len(edge.links("x")) == 1
    edge.above.attached[1].link.detach(True, Error("amqp:link:stolen", "the edge router has connected anew"))
    edge.router.pump()
    assert "link downlink of the uplink was detached: amqp:link:stolen" in edge.troubles[1]
    assert edge.broken == []


def test_heartbeats_are_sent_as_far_as_they_are_wanted() -> None:
    edge = Edge()
    beats = edge.one("_$qd.edge_heartbeat")
    for _ in range(5):
        edge.uplink.send_heartbeat()
    edge.router.pump()
    assert beats.received == []
    beats.grant(2)
    edge.router.pump()
    for _ in range(5):
        edge.uplink.send_heartbeat()
    edge.router.pump()
    found = [decode(each.payload, each.payload.index(b"\x00\x53\x77"), len(each.payload))[0] for each in beats.received]
    assert [each.value for each in found] == [0, 1]
    assert all(each.settled for each in beats.received)


def test_an_uplink_is_usable_once_its_needed_links_are_taken() -> None:
    edge = Edge()
    assert edge.usable == 1
    assert edge.uplink.usable


def test_a_refused_link_is_attached_again_ever_more_rarely_until_it_is_taken() -> None:
    edge = Edge()
    denied = Error("amqp:unauthorized-access", "no")
    why = "link tracking of the uplink was detached: amqp:unauthorized-access no"
    edge.one("_$qd.edge_addr_tracking").link.detach(True, denied)
    edge.above.answers = False
    waits = []
    for refusals in range(6, -1, -1):
        edge.router.pump()
        assert (edge.uplink.usable, edge.uplink.refusal) == (False, why)
        known, beats = len(edge.above.attached), 0
        while len(edge.above.attached) == known:
            edge.uplink.send_heartbeat()
            edge.router.pump()
            beats += 1
        waits.append(beats)
        again = edge.above.attached[-1]
        assert address_of(again) == "_$qd.edge_addr_tracking"
        again.refuse(denied) if refusals else again.answer()
    edge.router.pump()
    assert waits == [5, 10, 20, 40, 60, 60, 60]
    assert edge.troubles == [why]
    assert (edge.usable, edge.uplink.usable, edge.uplink.refusal) == (2, True, "")


def test_a_link_that_another_edge_router_has_taken_is_not_taken_back() -> None:
    edge = Edge()
    edge.above.attached[1].link.detach(True, Error("amqp:link:stolen", "the edge router has connected anew"))
    edge.router.pump()
    for _ in range(100):
        edge.uplink.send_heartbeat()
        edge.router.pump()
    assert edge.links("E1") == []
    assert "amqp:link:stolen" in edge.uplink.refusal
