"""Invalid requests: they get the right status and the name of the attribute; other clients are unaffected."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from proton import Message
from proton.utils import SendException

from tests.management.node import NODE, PREFIX, Node, node_of, small
from tests.routers import RunningRouter

DUMMY = {"type": "dummy"}


@pytest.fixture(autouse=True)
def others_are_served(shared: RunningRouter) -> Iterator[None]:
    """Check that another client gets the same answer before and after."""
    with node_of(shared.port) as other:
        before = other.query("listener")
        yield
        assert other.query("listener") == before
    shared.assert_no_fault_of_ours()


@pytest.mark.parametrize(
    ("operation", "properties", "status", "named"),
    [
        (None, {}, 400, "operation"),
        (None, NODE, 400, "operation"),
        ("READ", {"type": "nonsense", "name": "x"}, 400, "nonsense"),
        ("QUERY", {**NODE, "entityType": "nonsense"}, 400, "nonsense"),
        ("GET-TYPES", {**NODE, "entityType": "nonsense"}, 400, "nonsense"),
        ("CREATE", {}, 400, "type"),
        ("CREATE", {"type": "address"}, 400, "router.config.address"),
        ("READ", {"type": "listener"}, 400, "name"),
        ("DELETE", {"type": "listener"}, 400, "name"),
        ("UPDATE", {"type": "listener"}, 400, "name"),
        ("READ", {"type": "listener", "name": "none"}, 404, "none"),
        ("DANCE", {}, 501, "DANCE"),
        ("QUERY", {**NODE, "entityType": "listener", "count": "many"}, 400, "count"),
        ("QUERY", {**NODE, "entityType": "listener", "offset": b"1"}, 400, "offset"),
        ("GET-LOG", {**NODE, "limit": "few"}, 400, "limit"),
        ("READ", {"type": b"listener", "name": "x"}, 400, "type"),
        ("READ", {"name": small(3)}, 400, "name"),
        (small(5), NODE, 400, "operation"),
    ],
)
def test_the_answer_to_a_faulty_request_has_the_reason(
    node: Node, operation: Any, properties: dict[str, Any], status: int, named: str
) -> None:
    got, text = node.refused(operation, {}, **properties)
    assert (got, named in text) == (status, True), text


LISTENER = {"host": "127.0.0.1", "port": "0"}
BAD_ATTRIBUTES: list[tuple[str, dict[str, Any], str, str]] = [
    ("dummy", {"colour": "blue"}, "colour", ""),
    ("dummy", {"colour": None}, "colour", ""),
    ("dummy", {f"colour{number}": "blue" for number in range(129)}, "129 attributes", "at most 128"),
    ("listener", dict.fromkeys(map(str, range(20_000))), "20000 attributes", "at most 128"),
    ("dummy", {"num1": "seven"}, "num1", "integer"),
    ("dummy", {"num1": [1]}, "num1", "integer"),
    ("listener", {**LISTENER, "role": "boss"}, "role", "normal"),
    ("listener", {**LISTENER, "authenticatePeer": "perhaps"}, "authenticatePeer", "yes"),
    ("listener", {**LISTENER, "port": "99999"}, "port", "65535"),
    ("listener", {**LISTENER, "maxLinks": small(-1)}, "maxLinks", ""),
    ("listener", {**LISTENER, "linkCapacity": "x"}, "linkCapacity", "integer"),
    ("listener", {**LISTENER, "identity": "mine"}, "identity", ""),
    ("listener", {**LISTENER, "failoverUrls": "a", "failoverList": "b"}, "failoverList", ""),
    ("listener", {**LISTENER, "openProperties": {"port": "x"}}, "openProperties", ""),
    ("listener", {**LISTENER, "sslProfile": "unknown"}, "sslProfile", ""),
    ("connector", {**LISTENER, "port": "1", "connectionStatus": "SUCCESS"}, "connectionStatus", ""),
    ("sslProfile", {"certFile": "/nowhere.pem"}, "name", ""),
    ("listener", {**LISTENER, "role": "inter-router"}, "role", "standalone"),
]


@pytest.mark.parametrize(("kind", "attributes", "named", "accepted"), BAD_ATTRIBUTES)
def test_a_bad_attribute_is_named_with_its_accepted_values(
    node: Node, kind: str, attributes: dict[str, Any], named: str, accepted: str
) -> None:
    before = len(node.query(kind))
    status, text = node.refused("CREATE", attributes, type=kind)
    assert status == 400, text
    assert named in text
    assert accepted in text
    assert len(node.query(kind)) == before


def test_a_read_only_attribute_cannot_be_updated(node: Node) -> None:
    node.create("dummy", {"name": "d"})
    try:
        for attributes in ({"identity": "dummy/77"}, {"colour": "blue"}):
            status, text = node.refused("UPDATE", attributes, type="dummy", name="d")
            assert (status, next(iter(attributes)) in text) == (400, True)
        assert node.refused("UPDATE", {"module": "SERVER"}, name="log/AGENT")[0] == 400
        assert node.get("UPDATE", {"module": "AGENT"}, name="log/AGENT")["module"] == "AGENT"
    finally:
        node.get("DELETE", name="d")


def test_an_update_of_more_attributes_than_there_can_be_is_refused_unread(node: Node) -> None:
    for name in ("l0", "log/AGENT"):
        status, text = node.refused("UPDATE", {str(number): number for number in range(10_000)}, name=name)
        assert (status, "at most 128" in text) == (400, True), text


NO_MAPS: list[Any] = ["text", small(1), [1, 2], True, {1: 2}]


@pytest.mark.parametrize("body", NO_MAPS)
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "QUERY"])
def test_a_body_that_is_no_map_of_attributes_is_a_bad_request(node: Node, operation: str, body: Any) -> None:
    properties = NODE if operation == "QUERY" else {"type": "listener", "name": "l0"}
    status, text = node.refused(operation, body, **properties)
    assert status == 400
    assert "body" in text.lower()


@pytest.mark.parametrize("operation", ["READ", "GET-TYPES", "GET-SCHEMA", "GET-MGMT-NODES"])
def test_an_unused_body_may_be_any_value(node: Node, operation: str) -> None:
    bodies: list[Any] = [None, {}, [], "text"]
    for body in bodies:
        assert node.ask(operation, body, **NODE).status == 200


def test_names_of_attributes_are_text_and_not_too_many(node: Node) -> None:
    for names in ([small(1)], ["name"] * 1001):
        status, text = node.refused("QUERY", {"attributeNames": names}, entityType="listener", **NODE)
        assert status == 400
        assert "attributeNames" in text


def _has_outcome(delivery: Any) -> bool:
    return bool(delivery.settled or delivery.remote_state)


def test_bytes_that_are_no_value_are_answered(node: Node) -> None:
    good = Message(properties={"operation": "CREATE", **DUMMY}, body={"name": "x"}, reply_to=node.reply_to).encode()
    link = node.sender.link
    for data in (good[:-1], good + b"\x00", good[:-3] + b"\xff\xff\xff"):
        delivery = link.delivery(str(len(data)))
        link.send(data)
        link.advance()
        node.connection.wait(partial(_has_outcome, delivery), msg="outcome")
        answer = node.receive()
        assert answer.status == 400
        assert "malformed" in answer.description


def test_a_request_without_a_usable_reply_address_is_accepted_and_dropped(node: Node, shared: RunningRouter) -> None:
    node.send({"operation": "READ", **NODE}, reply_to=None)
    node.send({"operation": "CREATE", "name": "unheard", **DUMMY}, reply_to=None)
    node.send({"operation": "CREATE", "name": "unheard", **DUMMY}, reply_to="nobody/listens/here")
    assert node.refused("READ", name="unheard")[0] == 404
    shared.wait_for_line(r"AGENT \(debug\) Agent request without a usable reply-to dropped: READ")
    shared.wait_for_line(r"AGENT \(debug\) Agent request dropped, no receiver listens on its reply-to: CREATE")


def test_an_answer_without_credit_waits_and_hinders_no_other(node: Node) -> None:
    silent: Any = node.connection.create_receiver(None, dynamic=True, credit=0)
    for _ in range(200):
        node.send({"operation": "GET-SCHEMA", **NODE}, reply_to=silent.link.remote_source.address)
    assert node.get("READ", **NODE)
    silent.flow(5)
    for _ in range(5):
        assert silent.receive(timeout=60).properties["statusCode"] == 200
    silent.close()


def test_a_request_of_ten_megabytes_is_refused(node: Node) -> None:
    with pytest.raises(SendException):
        node.send({"operation": "CREATE", **DUMMY}, {"name": "big", "arg1": "x" * 10_000_000})
    assert node.refused("READ", name="big")[0] == 404


def test_a_request_of_half_a_megabyte_is_refused_with_the_limit(node: Node) -> None:
    status, text = node.refused("CREATE", {"name": "big", "arg1": "x" * 500_000}, **DUMMY)
    assert status == 400
    assert "at most 262144 bytes" in text


def test_a_description_is_cut_short(node: Node) -> None:
    status, text = node.refused("READ", type="x" * 100_000, name="y")
    assert status == 400
    assert len(text) < 2001
    assert PREFIX not in text
