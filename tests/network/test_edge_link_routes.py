"""Link routes through edge routers: a container on one, clients on all (inter-router.md 6.6, 6.9)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from proton import Delivery, Message
from proton.reactor import AtMostOnce
from proton.utils import LinkDetached

from tests.brokers import Broker, broker
from tests.e2e.by_proton import Client, Ear
from tests.management.node import node_of
from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, interior, network
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.waiting import until

pytestmark = pytest.mark.slow

PLACES = ("A", "B", "E1", "E2")
#: The configuration of the edge router with the container, and of the others.
ROUTES = """
linkRoute {{ prefix: b, direction: in, connection: c }}
linkRoute {{ prefix: b, direction: out, connection: c }}
linkRoute {{ pattern: p.*.q, direction: in, connection: c }}
connector {{ host: 127.0.0.1, port: {port}, role: route-container, name: c, saslMechanisms: ANONYMOUS }}
"""
KEYS = {"Cb", "Db", "Ep.*.q", "Cabove", "Dabove"}
#: The configuration of an interior router with a container.
ABOVE = """
linkRoute {{ prefix: above, direction: in, connection: d }}
linkRoute {{ prefix: above, direction: out, connection: d }}
connector {{ host: 127.0.0.1, port: {port}, role: route-container, name: d, saslMechanisms: ANONYMOUS }}
"""
#: The configuration of the other edge router: the same addresses, for a container that never connects.
ROUTES_TO_NOBODY = """
linkRoute { prefix: b, direction: in, containerId: nobody }
linkRoute { prefix: b, direction: out, containerId: nobody }
"""


@pytest.fixture(scope="module")
def there() -> Iterator[Broker]:
    with broker() as made:
        yield made


@pytest.fixture(scope="module")
def routers(there: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningRouter]]:
    folder = tmp_path_factory.mktemp("edges")
    with (
        network(
            folder,
            {"A": (), "B": ("A",)},
            {"A": EDGE_LISTENER + ABOVE.format(port=there.port), "B": EDGE_LISTENER},
        ) as started,
        ExitStack() as stack,
    ):
        for name, above, more in (("E1", "A", ROUTES.format(port=there.port)), ("E2", "B", ROUTES_TO_NOBODY)):
            started[name] = stack.enter_context(running(edge(name, [edge_port(started[above])], more), folder))
        for name in ("A", "B"):
            wait_for_keys(started[name], KEYS)
        yield started


def keys(router: RunningRouter) -> set[str]:
    with node_of(client_port(router)) as node:
        return {row["key"] for row in node.query("router.address", ["key"])}


def wait_for_keys(router: RunningRouter, wanted: set[str], gone: bool = False) -> None:
    """Wait until a router has routes for these addresses, or none of them."""
    until(lambda: wanted.isdisjoint(keys(router)) if gone else wanted <= keys(router), f"a change of {wanted}")


@pytest.fixture(params=PLACES)
def client(routers: dict[str, RunningRouter], request: pytest.FixtureRequest) -> Iterator[Client]:
    made = Client(Ear(), client_port(routers[request.param]))
    yield made
    made.close()


def test_links_go_to_the_container_behind_an_edge_router(client: Client, there: Broker) -> None:
    sender = client.create_sender("b.q")
    assert there.attached[-1][2] == "b.q"
    before = len(there.received)
    assert sender.send(Message(body="to", address="elsewhere")).remote_state == Delivery.ACCEPTED
    there.wait(lambda b: len(b.received) > before)
    got: Any = there.received[-1]
    assert (got.body, got.address, got.annotations) == ("to", "elsewhere", None)
    receiver = client.create_receiver("b.q", credit=1)
    body = b"x" * 300_000
    there.do(lambda b: b.put("b.q", Message(body=body)))
    assert receiver.receive(timeout=DEADLINE_S).body == body
    receiver.accept()
    client.create_sender("p.x.q").close()
    assert there.attached[-1][2] == "p.x.q"


#: Where a client is, and what routers append to the name of its link on the way to the container behind the edge router
#: E1, and to the one beside the interior router A. As with Qpid Dispatch.
APPENDED = {
    "A": ("@client@A", "@client"),
    "B": ("@client@A", "@client"),
    "E1": ("@client", "@E1"),
    "E2": ("@E2@A", "@E2"),
}


@pytest.mark.parametrize("place", APPENDED)
def test_a_link_has_the_name_that_it_has_with_the_older_router(
    routers: dict[str, RunningRouter], there: Broker, place: str
) -> None:
    """Brokers know durable subscriptions by it."""
    client = Client(Ear(), client_port(routers[place]))
    for address, appended in zip(("b.named", "above.named"), APPENDED[place], strict=True):
        for make in (client.create_sender, client.create_receiver):
            link: Any = make(address, name="mine")
            assert there.attached[-1][0] == "mine" + appended.replace("client", client.connection.container)
            link.close()
    client.close()


def test_two_clients_of_an_edge_router_may_use_one_name_at_a_time(
    routers: dict[str, RunningRouter], there: Broker
) -> None:
    first, second, third = (Client(Ear(), client_port(routers["E2"])) for _ in range(3))
    kept = first.create_sender("above.named", name="mine")
    assert there.attached[-1][0] == "mine@E2"
    second.create_sender("above.named", name="mine")
    assert there.attached[-1][0] == f"mine@{second.connection.container}@E2"
    kept.close()
    there.wait(lambda b: ("mine@E2", True, None) in b.detached)
    third.create_sender("above.named", name="mine")
    assert there.attached[-1][0] == "mine@E2"
    for client in (first, second, third):
        client.close()


def test_an_address_without_a_link_route_is_an_ordinary_address(client: Client) -> None:
    receiver = client.create_receiver("plain.address", credit=1)
    client.create_sender("plain.address", options=AtMostOnce()).send(Message(body="here"))
    assert receiver.receive(timeout=DEADLINE_S).body == "here"


def test_routes_are_forgotten_when_the_edge_router_has_no_container(there: Broker, tmp_path_factory: Any) -> None:
    """Where a router has the route configured itself, links to it have no destination then."""
    folder = tmp_path_factory.mktemp("gone")
    above = "linkRoute { prefix: b, direction: in }\nlinkRoute { prefix: b, direction: out }\n" + EDGE_LISTENER
    with running(interior("A", {}, above), folder) as interior_router, ExitStack() as stack:
        ports = [edge_port(interior_router)]
        other = stack.enter_context(running(edge("E2", ports), folder))
        other.wait_for_line("Edge connection .* to interior established")
        client = Client(Ear(), client_port(other))
        with pytest.raises(LinkDetached) as refused:
            client.create_sender("b.q")
        assert refused.value.condition == "qd:no-route-to-dest"
        with running(edge("E1", ports, ROUTES.format(port=there.port)), folder) as first:
            wait_for_keys(interior_router, {"Ep.*.q"})
            client.create_sender("b.q", name="second").close()
            with node_of(client_port(first)) as node:
                node.node("DELETE", type="org.apache.qpid.dispatch.connector", name="c")
            wait_for_keys(interior_router, {"Ep.*.q"}, gone=True)
        with pytest.raises(LinkDetached):
            client.create_sender("b.q", name="third")
        client.close()
