"""Routing behaviour that users of Qpid Dispatch rely on, seen by an unmodified client, python-qpid-proton."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Endpoint, Message, symbol
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection, LinkDetached, SendException

from tests.management.node import PREFIX, node_of
from tests.routers import DEADLINE_S, StartRouter


def connect(port: int) -> Any:
    """Connect a client to the router."""
    return BlockingConnection(f"127.0.0.1:{port}", timeout=DEADLINE_S, allowed_mechs="ANONYMOUS")


def test_a_router_whose_default_is_unavailable_can_be_managed(start_router: StartRouter) -> None:
    router = start_router(
        "router { id: R, defaultDistribution: unavailable }\nlistener { host: 127.0.0.1, port: 0 }\n"
        "autoLink { address: fed, direction: out, containerId: none }\n"
    )
    with node_of(router.port) as node:
        assert {row["key"] for row in node.query("router.address")} >= {"M0$management", "L$management"}
    with node_of(router.port, "_topo/0/R/$management") as node:
        assert node.query("router")[0]["id"] == "R"
    client = connect(router.port)
    receiver = client.create_receiver("_local/mine", credit=1)
    client.create_sender("_local/mine").link.send(Message(body="hello"))
    assert receiver.receive(DEADLINE_S).body == "hello"
    receiver.accept()
    client.create_receiver("fed")
    with pytest.raises(LinkDetached, match="Node not found"):
        client.create_receiver("unknown")
    client.close()


def test_an_outgoing_link_counts_dropped_presettled_deliveries(start_router: StartRouter) -> None:
    router = start_router("listener { host: 127.0.0.1, port: 0, linkCapacity: 10 }")
    client = connect(router.port)
    receiver = client.create_receiver("x", credit=1)
    sender = client.create_sender("x", options=AtMostOnce())
    for number in range(31):
        sender.send(Message(body=number))
        client.wait(lambda: sender.link.credit > 0)
    with node_of(router.port) as node:
        (row,) = [
            each for each in node.query("router.link") if each["owningAddr"] == "M0x" and each["linkDir"] == "out"
        ]
        sent, dropped = row["presettledCount"] - row["droppedPresettledCount"], row["droppedPresettledCount"]
        assert dropped > 0
        assert sent == row["deliveryCount"]
    assert receiver.receive(DEADLINE_S).body == 0
    client.close()


#: Their rows have more values than the client's library reads of one message.
COUNT_OF_LINKS = 3_000


def attach_many(client: Any, count: int) -> None:
    """Attach receivers to as many addresses, ``many.N``."""
    session = client.conn.session()
    session.open()
    links = [session.receiver(f"r{number}") for number in range(count)]
    for number, link in enumerate(links):
        link.source.address = f"many.{number}"
        link.open()
    client.wait(lambda: all(link.state & Endpoint.REMOTE_ACTIVE for link in links), DEADLINE_S)


@pytest.mark.parametrize("count", [600, 2_000])
def test_all_of_many_addresses_arrive_whole(start_router: StartRouter, count: int) -> None:
    """The client's library reads no more than some 65,000 values of one message, and drops the others silently."""
    router = start_router("listener { host: 127.0.0.1, port: 0, idleTimeoutSeconds: 0 }")
    client = connect(router.port)
    attach_many(client, count)
    wanted = {f"M0many.{number}" for number in range(count)}
    with node_of(router.port) as node:
        rows = [row for row in node.query("router.address") if row["key"] in wanted]
        assert {row["key"] for row in rows} == wanted
        assert all((row["distribution"], row["transitOutstanding"]) == ("balanced", None) for row in rows)
        paged = [row["key"] for offset in range(0, count + 500, 500) for row in page(node, "router.address", offset)]
        assert len(paged) == len(set(paged))
        assert set(paged) >= wanted
    client.close()


def test_all_of_many_links_arrive_whole_in_pages(start_router: StartRouter) -> None:
    """All attributes, 500 rows at a time, until a page is shorter, as Qpid Dispatch's tools request them.

    One connection has all links, with the default limits of a listener.
    """
    router = start_router("listener { host: 127.0.0.1, port: 0, idleTimeoutSeconds: 0 }")
    client = connect(router.port)
    attach_many(client, COUNT_OF_LINKS)
    names: list[str] = []
    with node_of(router.port) as node:
        while True:
            rows = page(node, "router.link", len(names))
            names += [row["name"] for row in rows]
            if len(rows) < 500:
                break
            assert len(rows) == 500
    assert {f"r{number}" for number in range(COUNT_OF_LINKS)} - set(names) == set()
    client.close()


def page(node: Any, kind: str, offset: int) -> list[dict[str, Any]]:
    """Return a page as the tools request it."""
    body = node.node("QUERY", {"attributeNames": []}, entityType=PREFIX + kind, offset=offset, count=500)
    return [dict(zip(body["attributeNames"], row, strict=True)) for row in body["results"]]


#: A client's annotations on its message, and those that a receiver gets, by the listeners that strip them.
OWN = {symbol("mine"): 1, symbol("x-opt-qd.ingress"): "0/X", symbol("x-opt-qd.trace"): ["0/X"]}
HERE = {symbol("mine"): 1, symbol("x-opt-qd.ingress"): "0/R", symbol("x-opt-qd.trace"): ["0/R"]}
KEPT = {symbol("mine"): 1, symbol("x-opt-qd.ingress"): "0/X", symbol("x-opt-qd.trace"): ["0/X", "0/R"]}
BARE = {symbol("mine"): 1}
FOUR = "router { id: R }\n" + "".join(
    f"listener {{ name: {strips}, host: 127.0.0.1, port: 0, stripAnnotations: {strips} }}\n"
    for strips in ("no", "in", "out", "both")
)


def post(client: Any, address: str | None, annotations: dict[Any, object]) -> None:
    """Send a settled message to ``x``; the router has it when this returns."""
    sender = client.create_sender(address, options=AtMostOnce())
    client.wait(lambda: sender.link.credit > 0)
    sender.send(Message(body="hello", address="x", annotations=annotations))
    sender.close()


@pytest.mark.parametrize(
    ("sender", "receiver", "seen"),
    [("no", "no", KEPT), ("out", "in", KEPT), ("no", "both", BARE), ("in", "no", HERE), ("both", "in", HERE)],
)
def test_a_clients_own_trace_is_kept_where_nothing_is_stripped(
    start_router: StartRouter, sender: str, receiver: str, seen: dict[str, object]
) -> None:
    router = start_router(FOUR)
    ports = dict(zip(("no", "in", "out", "both"), router.ports, strict=True))
    sending, receiving = connect(ports[sender]), connect(ports[receiver])
    there = receiving.create_receiver("x", credit=10)
    for address in ("x", None):
        post(sending, address, OWN)
        annotations = there.receive(DEADLINE_S).annotations
        named = annotations.pop(symbol("x-opt-qd.to"), None)
        assert (annotations, named) == (seen, None if address is None or seen is BARE else "x")
    sending.close()
    receiving.close()


def test_a_router_annotation_of_a_client_does_not_route_its_message(start_router: StartRouter) -> None:
    """Nor is a trace taken in without bounds."""
    router = start_router(FOUR)
    client = connect(router.port)
    there = client.create_receiver("x", credit=10)
    lead = {symbol("x-opt-qd.to"): "elsewhere", symbol("x-opt-qd.phase"): 3}
    post(client, None, lead)
    assert there.receive(DEADLINE_S).annotations == {
        symbol("x-opt-qd.ingress"): "0/R",
        symbol("x-opt-qd.trace"): ["0/R"],
    }
    far: dict[Any, object] = {symbol("x-opt-qd.trace"): ["0/X"] * 64}  # more than there are routers: no loop
    post(client, "x", far)
    assert there.receive(DEADLINE_S).annotations[symbol("x-opt-qd.trace")] == [*["0/X"] * 64, "0/R"]
    long = {symbol("x-opt-qd.trace"): ["0/X"] * 65}
    with pytest.raises(SendException, match="37"):
        client.create_sender(None).send(Message(body="hello", address="x", annotations=long))
    client.close()
