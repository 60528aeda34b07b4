"""Exchanges and bindings by management: created, shown, counted and deleted while messages flow (docs/exchanges.md)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from proton import Delivery, Message, int32, uint, ulong

from tests.management.node import DEADLINE_S, PREFIX, Node, node_of

EXCHANGE = PREFIX + "router.config.exchange"
BINDING = PREFIX + "router.config.binding"
ACCEPTED, RELEASED = int(Delivery.ACCEPTED), int(Delivery.RELEASED)


def send(node: Node, address: str, *subjects: str | None) -> list[int]:
    """Send messages with these subjects; return their outcomes."""
    sender = node.connection.create_sender(address)
    outcomes = []
    for subject in subjects:
        delivery = sender.link.send(Message(body=subject, subject=subject))
        node.connection.wait(partial(getattr, delivery, "settled"), timeout=DEADLINE_S)
        outcomes.append(int(delivery.remote_state))
    sender.close()
    return outcomes


def take(receiver: Any, count: int) -> list[Any]:
    """Return the bodies of the next messages of a receiver."""
    return [receiver.receive(timeout=DEADLINE_S).body for _ in range(count)]


def row(node: Node, kind: str, name: str) -> dict[str, Any]:
    """Return the row of an entity as a QUERY shows it, which must equal READ's."""
    (found,) = [each for each in node.query(kind) if each["name"] == name]
    shown: dict[str, Any] = node.get("READ", type=kind, name=name)
    assert shown.pop("type") == found.pop("type") == kind
    assert shown == found
    return found


def test_an_exchange_and_its_bindings_are_made_used_counted_and_deleted(own: Node) -> None:
    made = own.create(EXCHANGE, {"address": "events", "alternateAddress": "rest", "alternatePhase": 1}, name="ex")
    assert made["matchMethod"] == "amqp"
    first = own.create(BINDING, {"exchangeName": "ex", "bindingKey": "a.*", "nextHopAddress": "hop"}, name="first")
    assert (first["bindingKey"], first["nextHopAddress"]) == ("a.*", "hop")
    second = own.create(BINDING, {"exchangeName": "ex", "bindingKey": "#.b", "nextHopAddress": "hop"})
    third = own.create(BINDING, {"exchangeName": "ex", "nextHopAddress": "all", "nextHopPhase": 2}, name="third")
    assert (third["bindingKey"], second["name"]) == ("#", None)

    hop = own.connection.create_receiver("hop", credit=10)
    assert send(own, "events", "a.b", "a.c", "c", None) == [ACCEPTED, ACCEPTED, RELEASED, RELEASED]
    assert take(hop, 2) == ["a.b", "a.c"]
    assert row(own, EXCHANGE, "ex") == {
        "name": "ex",
        "identity": made["identity"],
        "address": "events",
        "phase": int32(0),
        "alternateAddress": "rest",
        "alternatePhase": int32(1),
        "matchMethod": "amqp",
        "bindingCount": uint(3),
        "receivedCount": ulong(4),
        "droppedCount": ulong(2),
        "forwardedCount": ulong(2),
        "divertedCount": ulong(0),
    }
    assert row(own, BINDING, "first") == {
        "name": "first",
        "identity": first["identity"],
        "exchangeName": "ex",
        "bindingKey": "a.*",
        "nextHopAddress": "hop",
        "nextHopPhase": int32(0),
        "matchedCount": ulong(2),
    }
    assert own.get("READ", type=BINDING, identity=second["identity"])["matchedCount"] == 1
    assert row(own, BINDING, "third")["matchedCount"] == 3

    own.get("DELETE", type=BINDING, name="first")
    own.get("DELETE", type=BINDING, identity=second["identity"])
    assert send(own, "events", "a.c") == [RELEASED]
    assert row(own, EXCHANGE, "ex")["bindingCount"] == 1
    own.get("DELETE", type=EXCHANGE, name="ex")
    assert own.query(BINDING) == own.query(EXCHANGE) == []
    assert own.refused("READ", type=BINDING, name="third")[0] == 404
    again = own.create(EXCHANGE, {"address": "events"}, name="ex")
    assert again["bindingCount"] == 0
    assert row(own, EXCHANGE, "ex")["receivedCount"] == 0


def test_a_sender_that_was_there_before_the_exchange_goes_on(own: Node) -> None:
    hop = own.connection.create_receiver("hop", credit=10)
    sender = own.connection.create_sender("early")
    assert sender.link.credit == 0
    own.create(EXCHANGE, {"address": "early", "matchMethod": "mqtt"}, name="ex")
    own.create(BINDING, {"exchangeName": "ex", "bindingKey": "+/b", "nextHopAddress": "hop"})
    sender.send(Message(body=1, subject="a/b"), timeout=DEADLINE_S)
    assert take(hop, 1) == [1]


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "no name": (EXCHANGE, {"address": "x"}, "exchange requires a unique name"),
    "no address": (EXCHANGE, {"name": "x"}, "exchange address is mandatory"),
    "an empty address": (EXCHANGE, {"name": "x", "address": ""}, "exchange address is mandatory"),
    "an address twice": (EXCHANGE, {"name": "x", "address": "there"}, "duplicate exchange address"),
    "a name twice": (EXCHANGE, {"name": "ex", "address": "x"}, "duplicate exchange name"),
    "another method": (
        EXCHANGE,
        {"name": "x", "address": "x", "matchMethod": "jms"},
        "Exchange matchMethod must be either 'amqp' or 'mqtt'",
    ),
    "a phase": (EXCHANGE, {"name": "x", "address": "x", "phase": 10}, "phase must be in the range 0-9"),
    "a phase below": (EXCHANGE, {"name": "x", "address": "x", "phase": -1}, "phase must be in the range 0-9"),
    "an alternate phase": (
        EXCHANGE,
        {"name": "x", "address": "x", "alternatePhase": 11},
        "phase must be in the range 0-9",
    ),
    "no exchange": (BINDING, {"nextHopAddress": "x"}, "Binding configuration requires an exchange"),
    "another exchange": (BINDING, {"exchangeName": "no", "nextHopAddress": "x"}, "Named exchange does not exist"),
    "no next hop": (BINDING, {"exchangeName": "ex"}, "No next hop specified"),
    "an empty next hop": (BINDING, {"exchangeName": "ex", "nextHopAddress": ""}, "No next hop specified"),
    "a next hop's phase": (
        BINDING,
        {"exchangeName": "ex", "nextHopAddress": "x", "nextHopPhase": 10},
        "phase must be in the range 0-9",
    ),
    "a key": (
        BINDING,
        {"exchangeName": "topics", "nextHopAddress": "x", "bindingKey": "a/#/b"},
        "The binding key pattern is invalid",
    ),
    "a key without tokens": (
        BINDING,
        {"exchangeName": "ex", "nextHopAddress": "x", "bindingKey": "."},
        "The binding key pattern is invalid",
    ),
    "a name of a binding twice": (
        BINDING,
        {"exchangeName": "ex", "nextHopAddress": "x", "name": "b"},
        "Duplicate next hop name",
    ),
    "a next hop twice": (
        BINDING,
        {"exchangeName": "ex", "nextHopAddress": "hop", "bindingKey": "a"},
        "Next hop for key already exists",
    ),
}


@pytest.fixture(scope="module")
def present(shared: Any) -> None:
    """Create the entities that invalid ones collide with."""
    with node_of(shared.port) as node:
        node.create(EXCHANGE, {"address": "there"}, name="ex")
        node.create(EXCHANGE, {"address": "topics", "matchMethod": "mqtt"}, name="topics")
        node.create(BINDING, {"exchangeName": "ex", "bindingKey": "a", "nextHopAddress": "hop"}, name="b")


@pytest.mark.usefixtures("present")
@pytest.mark.parametrize(("kind", "attributes", "text"), WRONG.values(), ids=WRONG)
def test_a_fault_is_answered_with_the_text_that_programs_parse(
    node: Node, kind: str, attributes: dict[str, Any], text: str
) -> None:
    before = (node.query(EXCHANGE), node.query(BINDING))
    assert node.refused("CREATE", attributes, type=kind) == (400, text)
    assert (node.query(EXCHANGE), node.query(BINDING)) == before


@pytest.mark.usefixtures("present")
def test_the_names_of_bindings_are_their_exchanges_own(node: Node) -> None:
    other = {"exchangeName": "topics", "nextHopAddress": "hop", "bindingKey": "a", "name": "b"}
    made = node.create(BINDING, other)
    node.get("DELETE", type=BINDING, identity=made["identity"])
    for hop in ({"nextHopPhase": 1}, {"bindingKey": "c"}, {"nextHopAddress": "elsewhere"}):
        fields = {"exchangeName": "ex", "nextHopAddress": "hop", "bindingKey": "a", **hop}
        made = node.create(BINDING, fields)
        node.get("DELETE", type=BINDING, identity=made["identity"])


@pytest.mark.usefixtures("present")
def test_neither_is_updated(node: Node) -> None:
    for kind, name in ((EXCHANGE, "ex"), (BINDING, "b")):
        assert node.refused("UPDATE", {"phase": 1}, type=kind, name=name)[0] in (405, 501)


def test_an_explanation_reports_the_exchange(own: Node) -> None:
    own.create(EXCHANGE, {"address": "events", "alternateAddress": "rest"}, name="ex")
    own.create(BINDING, {"exchangeName": "ex", "nextHopAddress": "hop"})
    own.connection.create_receiver("hop")
    explained = own.node("EXPLAIN", address="events")
    assert explained["verdict"] == "taken by exchange ex, which has 1 binding; no client receives from rest"
