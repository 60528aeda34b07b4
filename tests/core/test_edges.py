"""The services of an interior router for edge routers, and the requests that it refuses them (inter-router.md 6)."""

from __future__ import annotations

from typing import Any

import pytest

from trouter.core.edge.peers import EdgePeer
from trouter.core.edge.protocol import SILENCE_S
from trouter.core.table import MAX_SLASHES, AddressRule
from trouter.core.terms import PeerTerms
from trouter.testing import MemoryClient, MemoryReceiver, MemoryRouter, compose
from trouter.wire.codec import decode, encode
from trouter.wire.performatives import Accepted, Error, Rejected, Released, Source, Target
from trouter.wire.types import Described, UInt, ULong

DOWNLINK = ("qd.router-edge-downlink",)
TRACKING = "_$qd.edge_addr_tracking"
LOOKUP = "_$qd.addr_lookup"
HEARTBEAT = "_$qd.edge_heartbeat"
RULES = (
    AddressRule("many", is_prefix=True, distribution="multicast"),
    AddressRule("near", is_prefix=True, distribution="closest"),
    AddressRule("spare", is_prefix=True, enable_fallback=True),
)
ADDRESSES = ("far", "many", "near")


def router() -> MemoryRouter:
    return MemoryRouter(RULES, router_id="A", mode="interior")


def edge_of(above: MemoryRouter, user: str = "edge", capacity: int = 10) -> MemoryClient:
    """Connect in the role edge."""
    number = len(above.clients) + 1
    above.core.edges.peers[number] = EdgePeer(number, user)
    return above.connect(PeerTerms(capacity, False, False), role="edge")


def downlink(edge: MemoryClient, name: str = "E1", credit: int = 10) -> MemoryReceiver:
    return edge.receiver(
        credit=credit, source=Source(name, capabilities=DOWNLINK), target=Target(capabilities=DOWNLINK)
    )


def tracked(receiver: MemoryReceiver) -> list[Any]:
    """Return the messages that a tracking link has sent so far."""
    return [value(message.payload) for message in receiver.received]


def sections(message: bytes) -> dict[int, Any]:
    found: dict[int, Any] = {}
    offset = 0
    while offset < len(message):
        section, offset = decode(message, offset, len(message))
        found[section.descriptor] = section.value
    return found


def value(message: bytes) -> Any:
    return sections(message)[0x77]


def ask(address: Any, is_sender: Any, reply_to: str, **properties: Any) -> bytes:
    given = {"version": UInt(1), "opcode": UInt(1)} | properties
    return b"".join(
        encode(Described(ULong(code), body))
        for code, body in (
            (0x73, [None, None, None, None, reply_to, "7"]),
            (0x74, given),
            (0x77, [address, is_sender]),
        )
    )


def tracking(edge: MemoryClient, credit: int = 32) -> MemoryReceiver:
    return edge.receiver(TRACKING, credit=credit)


# --------------------------------------------------------------------------------------------------------- messages


def test_a_message_for_an_edge_router_keeps_all_router_annotations_on_its_downlink() -> None:
    above = router()
    advertised: list[tuple[str, int, bool]] = []
    above.core.network.local_listeners.add(lambda *what: advertised.append(what))
    edge = edge_of(above)
    down = downlink(edge)
    assert advertised == [("HE1", 3, True)]
    client = above.connect()
    for sender, to in ((client.sender("_edge/E1/x"), None), (client.sender(), "_edge/E1/x")):
        sent = sender.send(compose(b"hello", to=to))
        above.pump()
        message = down.received.pop()
        way = {"x-opt-qd.ingress": "0/A", "x-opt-qd.trace": ["0/A"]}
        assert message.annotations == ({} if to else {"x-opt-qd.to": "_edge/E1/x"}) | way
        message.settle()
        above.pump()
        assert sent.outcome == Accepted()
    edge.drop()
    assert advertised[1:] == [("HE1", 0, False)]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_message_returns_over_the_connection_that_delivered_it(address: str) -> None:
    above = router()
    edge = edge_of(above)
    mine = edge.receiver(address, credit=10)
    also_mine = edge.receiver(address, credit=10)
    sender = edge.sender(address)
    sent = sender.send(compose(b"1"))
    above.pump()
    assert (mine.received, also_mine.received, sent.outcome) == ([], [], Released())
    others = above.connect().receiver(address, credit=10)
    for number in range(4):
        sender.send(compose(b"%d" % number), settled=True)
    above.pump()
    assert (mine.received, also_mine.received) == ([], [])
    assert others.bodies == [b"0", b"1", b"2", b"3"]


def test_an_edge_router_gets_its_credit_back_for_every_outcome() -> None:
    """Address tracking holds an edge router back; the interior router never drains it (inter-router.md 6.4)."""
    above = router()
    edge = edge_of(above, capacity=10)
    receiver = above.connect().receiver("slow", credit=100)
    sender = edge.sender("slow")
    sent = [sender.send(compose(b"%d" % number)) for number in range(30)]
    above.pump()
    assert len(receiver.received) == 30  # none is settled
    assert not any(each.history for each in sent)
    receiver.detach()
    more = [sender.send(compose(b"")) for _ in range(30)]
    above.pump()
    assert {type(each.outcome) for each in more} == {Released}
    assert sender.drains == []
    assert sender.credit > 0


def test_the_interior_router_is_where_an_edge_routers_messages_enter() -> None:
    above = router()
    edge = edge_of(above)
    other = edge_of(above)
    receiver = other.receiver("x", credit=10)
    sender = edge.sender("x")
    annotations = {"x-opt-qd.ingress": "0/E1", "x-opt-qd.trace": ["0/E1"], "mine": 1}
    sender.send(compose(b"", annotations=annotations), settled=True)
    above.pump()
    assert receiver.received[0].annotations == {
        "mine": 1,
        "x-opt-qd.to": "x",
        "x-opt-qd.ingress": "0/A",
        "x-opt-qd.trace": ["0/E1", "0/A"],
    }


def test_an_edge_routers_fallback_sender_sends_to_the_fallback() -> None:
    above = router()
    edge = edge_of(above)
    client = above.connect()
    spare = client.receiver("spare", credit=10, capabilities=("qd.fallback",))
    main = client.receiver("spare", credit=10)
    edge.sender("spare", capabilities=("qd.fallback",)).send(compose(b"f"), settled=True)
    edge.sender("spare").send(compose(b"m"), settled=True)
    above.pump()
    assert (spare.bodies, main.bodies) == ([b"f"], [b"m"])


# --------------------------------------------------------------------------------------------------------- tracking


def test_an_edge_router_is_notified_when_its_addresses_gain_and_lose_consumers() -> None:
    above = router()
    edge = edge_of(above)
    link = tracking(edge)
    sender = edge.sender("x")
    above.pump()
    assert tracked(link) == [], "that nothing takes it goes without saying"
    client = above.connect()
    first, second = client.receiver("x"), client.receiver("x")
    first.detach()
    assert tracked(link) == [["M0x", True]]
    mine = edge.receiver("x")
    second.detach()
    assert tracked(link)[1:] == [["M0x", False]], "its own consumer is none that it has to be told of"
    mine.detach()
    client.receiver("x")
    assert tracked(link)[2:] == [["M0x", True]]
    sender.detach()
    assert tracked(link)[3:] == [["M0x", False]], "it is taken back once the edge router sends there no longer"
    client.receiver("x")
    assert len(link.received) == 4, "and nothing more is told"
    assert link.received[0].settled
    assert link.received[0].annotations == {"x-opt-qd.ingress": "0/A", "x-opt-qd.trace": ["0/A"]}


def test_an_address_without_credit_is_reported_with_its_latest_state_once_credit_comes() -> None:
    above = router()
    edge = edge_of(above)
    link = tracking(edge, credit=0)
    for number in range(50):
        edge.sender(f"x{number}")
    client = above.connect()
    for _ in range(20):  # attaches and detaches repeatedly
        client.receiver("x7").detach()
    client.receiver("x8")
    link.grant(1000)
    above.pump()
    assert tracked(link) == [["M0x8", True]]
    link.drain()
    above.pump()
    client.receiver("x7").detach()
    link.grant(10)
    above.pump()
    assert len(link.received) == 1, "it is as it was told"


def test_addresses_attached_before_the_tracking_link_are_reported_too() -> None:
    above = router()
    edge = edge_of(above)
    edge.sender("x")
    above.connect().receiver("x")
    link = tracking(edge)
    above.pump()
    assert tracked(link) == [["M0x", True]]
    assert edge.receiver(TRACKING).error == Error(
        "amqp:not-allowed", "an edge router has one tracking link on a connection"
    )


# ------------------------------------------------------------------------------------------- look-ups and heartbeats


@pytest.mark.parametrize(
    ("address", "is_sender", "properties", "status"),
    [
        ("x", True, {}, 3),
        ("x", True, {"version": UInt(2)}, 1),
        ("x", False, {"opcode": UInt(9)}, 2),
        (7, True, {}, 4),
        ("x", "yes", {}, 4),
        (None, None, {}, 4),
    ],
)
def test_a_look_up_is_answered(address: Any, is_sender: Any, properties: dict[str, Any], status: int) -> None:
    above = router()
    edge = edge_of(above)
    replies = edge.receiver(dynamic=True, credit=10)
    link = edge.sender(LOOKUP)
    assert link.credit == 32
    link.send(ask(address, is_sender, replies.address, **properties), settled=True)
    above.pump()
    found = sections(replies.received[0].payload)
    assert found[0x77] == [False, False]
    assert (found[0x73][2], found[0x73][5]) == (replies.address, "7")
    assert found[0x74] == {"version": 1, "opcode": 1, "status": status}


def test_a_malformed_look_up_is_rejected_and_the_link_stays() -> None:
    above = router()
    edge = edge_of(above)
    link = edge.sender(LOOKUP)
    for message in (b"", b"\x00", compose(b"?"), ask("x", True, ""), ask("x" * 70_000, True, "amqp:/_topo/0/A/x")):
        sent = link.send(message)
        above.pump()
        assert sent.outcome == Rejected()
    assert link.detached is None
    assert link.credit > 16


def test_a_look_up_with_an_answer_is_accepted() -> None:
    above = router()
    edge = edge_of(above)
    replies = edge.receiver(dynamic=True, credit=10)
    link = edge.sender(LOOKUP)
    sent = [link.send(ask(address, True, replies.address)) for address in ("x", 7)]
    above.pump()
    assert [each.outcome for each in sent] == [Accepted(), Accepted()]
    assert len(replies.received) == 2


@pytest.mark.attack
@pytest.mark.parametrize("dynamic", [False, True], ids=["an address", "a client's dynamic address"])
def test_an_edge_router_has_no_answer_sent_to_others(dynamic: bool) -> None:
    above = router()
    edge, client = edge_of(above), above.connect()
    other = client.receiver(dynamic=True, credit=10) if dynamic else client.receiver("orders", credit=10)
    sent = edge.sender(LOOKUP).send(ask("x", True, other.address))
    above.pump()
    assert sent.outcome == Rejected()
    assert not other.received


def test_a_peer_that_stops_its_heartbeats_counts_as_silent() -> None:
    above = router()
    client = above.connect()
    assert above.core.edges.silent_connections() == set()
    link = client.sender(HEARTBEAT)
    assert link.credit == 2
    number = client.terms.connection_number
    above.now_s += SILENCE_S
    assert above.core.edges.silent_connections() == set()
    above.now_s += 0.5
    assert above.core.edges.silent_connections() == {number}
    for _ in range(5):
        link.send(compose(b""), settled=True)
        above.pump()
    assert above.core.edges.silent_connections() == set()
    above.now_s += SILENCE_S + 1
    link.detach()
    assert above.core.edges.silent_connections() == set()


# --------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("role", "incoming", "address"),
    [
        ("normal", True, LOOKUP),
        ("normal", False, LOOKUP),
        ("normal", True, TRACKING),
        ("normal", False, TRACKING),
        ("normal", False, HEARTBEAT),
        ("edge", False, LOOKUP),
        ("edge", True, TRACKING),
        ("edge", False, HEARTBEAT),
    ],
)
def test_a_service_attached_wrongly_is_closed_without_a_word(role: str, incoming: bool, address: str) -> None:
    above = router()
    client = edge_of(above) if role == "edge" else above.connect()
    link = client.sender(address) if incoming else client.receiver(address)
    assert link.error is None
    assert link.detached is not None
    assert link.detached.closed
    assert client.closed is None


def test_client_is_no_edge_router() -> None:
    above = router()
    client = above.connect()
    assert downlink(client).error == Error("qd:forbidden", "Connectivity to the node is forbidden")
    assert client.receiver("_edge/E1/x").error == Error("qd:no-route-to-dest", "No route to the destination node")
    assert "HE1" not in above.core.table.entries


@pytest.mark.parametrize("name", ["", "x" * 5000])
def test_a_downlink_names_an_edge_router(name: str) -> None:
    above = router()
    refused = downlink(edge_of(above), name).error
    assert refused == Error("amqp:invalid-field", "the source of a downlink is the id of an edge router")


def test_an_address_finds_the_edge_router_whose_id_has_the_most_slashes() -> None:
    above = router()
    deep, too_deep = "/".join("x" * (MAX_SLASHES + 1)), "/".join("y" * (MAX_SLASHES + 2))
    for name in ("a", "a/b", "a/b/c/d", deep, too_deep):
        assert downlink(edge_of(above), name).error is None
    table = above.core.table
    keys = [table.parse(f"_edge/{to}/temp.1").key for to in ("a", "a/b", "a/b/c", "a/b/c/d", deep, too_deep)]
    assert keys == ["Ha", "Ha/b", "Ha/b", "Ha/b/c/d", f"H{deep}", "Hy"]
    assert table.parse("_topo/0/a/b/x").key == "Ra"


def test_an_edge_router_that_comes_back_takes_its_id_over() -> None:
    """The loss of its old connection may still be unknown; no other router has its id meanwhile."""
    above = router()
    old, new, thief = edge_of(above), edge_of(above), edge_of(above, user="thief")
    former = downlink(old)
    taken = downlink(thief)
    assert taken.error == Error("amqp:not-allowed", "edge router E1 is connected as another user on [C1]")
    assert former.detached is None
    down = downlink(new)
    assert former.error == Error("amqp:link:stolen", "the edge router has connected anew")
    assert downlink(new, "E7").error == Error("amqp:not-allowed", "an edge router has one downlink on a connection")
    above.connect().sender("_edge/E1/x").send(compose(b"hello"), settled=True)
    above.pump()
    assert down.bodies == [b"hello"]
    old.drop()
    assert "HE1" in above.core.table.entries
    new.drop()
    assert downlink(thief).detached is None


def test_an_edge_router_without_credit_holds_up_no_other() -> None:
    above = router()
    slow, quick = edge_of(above), edge_of(above)
    downlink(slow, "E1", credit=0)
    down = downlink(quick, "E2", credit=100)
    client = above.connect()
    to_slow, to_quick = client.sender("_edge/E1/x"), client.sender("_edge/E2/x")
    for _ in range(50):
        to_slow.send(compose(b"?"), settled=True)
        to_quick.send(compose(b"!"), settled=True)
        above.pump()
    assert len(down.received) == 50
