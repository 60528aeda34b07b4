"""Link routes over three routers in a line: the container at one end, clients on all (inter-router.md 7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from proton import Condition, Delivery, Message
from proton.utils import LinkDetached

from tests.brokers import Broker, broker
from tests.e2e.by_proton import Client, Ear, said
from tests.management.node import node_of
from tests.networks import client_port, network
from tests.routers import DEADLINE_S, RunningRouter
from tests.waiting import until

pytestmark = pytest.mark.slow

LINE = {"A": (), "B": ("A",), "C": ("B",)}
NAMES = tuple(LINE)


def container(port: int) -> str:
    """Return the configuration of the router next to the container."""
    return f"""
        connector {{ host: 127.0.0.1, port: {port}, role: route-container, name: c, saslMechanisms: ANONYMOUS }}
        linkRoute {{ prefix: b, direction: in, connection: c, addExternalPrefix: ext. }}
        linkRoute {{ prefix: b, direction: out, connection: c, addExternalPrefix: ext. }}
        linkRoute {{ pattern: p.*.q.#, direction: in, connection: c }}
        autoLink {{ address: queue, direction: in, connection: c }}
        autoLink {{ address: queue, direction: out, connection: c }}
    """


@pytest.fixture(scope="module")
def there() -> Iterator[Broker]:
    with broker() as made:
        yield made


@pytest.fixture(scope="module")
def routers(there: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningRouter]]:
    waypoint = "address { prefix: queue, waypoint: yes }"
    more = {"A": container(there.port) + waypoint, "B": waypoint, "C": waypoint}
    with network(tmp_path_factory.mktemp("line"), LINE, more) as started:
        for name in NAMES:
            wait_for_key(started[name], "Ep.*.q.#")
        yield started


def wait_for_key(router: RunningRouter, key: str, gone: bool = False) -> None:
    """Wait until a router has a route for an address, or has it no longer."""
    with node_of(client_port(router)) as node:
        until(lambda: gone is not any(row["key"] == key for row in node.query("router.address", ["key"])), key)


@pytest.fixture(params=NAMES)
def client(routers: dict[str, RunningRouter], request: pytest.FixtureRequest) -> Iterator[Client]:
    made = Client(Ear(), client_port(routers[request.param]))
    yield made
    made.close()


def test_messages_go_to_the_container_and_come_from_the_container(client: Client, there: Broker) -> None:
    sender = client.create_sender("b.q")
    assert sender.link.remote_target.address == "b.q"
    assert there.attached[-1][2] == "ext.b.q"
    before = len(there.received)
    assert sender.send(Message(body="to", address="elsewhere")).remote_state == Delivery.ACCEPTED
    there.wait(lambda b: len(b.received) > before)
    got: Any = there.received[-1]
    assert (got.body, got.address, got.annotations) == ("to", "elsewhere", None)
    receiver = client.create_receiver("b.q", credit=1)
    body = b"x" * 1_000_000
    there.do(lambda b: b.put("ext.b.q", Message(body=body)))
    assert receiver.receive(timeout=DEADLINE_S).body == body
    count = len(there.dispositions)
    receiver.reject()
    client.wait(lambda: len(there.dispositions) > count)
    assert there.dispositions[-1] == "rejected"


def test_deliveries_of_routed_links_are_counted_where_they_come_in(
    routers: dict[str, RunningRouter], there: Broker
) -> None:
    """On the client's router and on each one further on, in both directions."""
    client = Client(Ear(), client_port(routers["C"]))
    before = {key: came_in(routers, key) for key in ("Cb", "Db")}
    sender = client.create_sender("b.counted")
    for _ in range(3):
        assert sender.send(Message(body="x")).remote_state == Delivery.ACCEPTED
    receiver = client.create_receiver("b.counted", credit=2)
    for _ in range(2):
        there.do(lambda b: b.put("ext.b.counted", Message(body="y")))
        assert receiver.receive(timeout=DEADLINE_S).body == "y"
        receiver.accept()
    client.close()
    after = {key: came_in(routers, key) for key in ("Cb", "Db")}
    rise = {key: {name: after[key][name] - before[key][name] for name in NAMES} for key in after}
    assert rise == {"Cb": dict.fromkeys(NAMES, 3), "Db": dict.fromkeys(NAMES, 2)}


def came_in(routers: dict[str, RunningRouter], key: str) -> dict[str, int]:
    """Return how many deliveries each router counted as coming in for an address."""
    found = {}
    for name, router in routers.items():
        with node_of(client_port(router)) as node:
            rows = node.query("router.address", ["key", "deliveriesIngress"])
            found[name] = sum(row["deliveriesIngress"] for row in rows if row["key"] == key)
    return found


def test_a_name_is_made_unique_once(client: Client, there: Broker) -> None:
    sender = client.create_sender("p.x.q.y", name="mine")
    assert there.attached[-1][0] == f"mine@{client.connection.container}"
    sender.close()
    there.wait(lambda b: (f"mine@{client.connection.container}", True, None) in b.detached)


def test_an_attach_that_the_container_refuses_is_refused_everywhere(client: Client, there: Broker) -> None:
    there.refused["ext.b.closed"] = Condition("amqp:not-found", "no such queue")
    assert client.refusal_of(lambda c: c.create_sender("b.closed")) == ("amqp:not-found", "no such queue")


def ends_of(router: RunningRouter, why: str) -> set[str]:
    """Return how the log says that links ended, of those that ended for this reason."""
    return {line.split("] Link ")[1].split(":")[0] for line in router.matching(rf"\] Link .*: {re.escape(why)}$")}


@pytest.mark.parametrize("what", ["session", "connection"])
def test_a_container_that_ends_more_than_the_link_says_why_to_the_client_and_in_every_log(
    routers: dict[str, RunningRouter], there: Broker, what: str
) -> None:
    """RabbitMQ ends the session of a link to or from a queue that it does not have."""
    queue = f"gone-with-{what}"
    reasons = there.ends_session if what == "session" else there.closes
    reasons[f"ext.b.{queue}"] = Condition("amqp:not-found", f"no queue '{queue}' in vhost '/'")
    client = Client(Ear(), client_port(routers["C"]))
    refusal = client.refusal_of(lambda c: c.create_receiver(f"b.{queue}"))
    client.close()
    assert refusal == ("amqp:not-found", f"no queue '{queue}' in vhost '/'")
    text = f"amqp:not-found: no queue '{queue}' in vhost '/'"
    for router in routers.values():
        router.wait_for_line(re.escape(text))
    for name in NAMES:
        wait_for_key(routers[name], "Cb")
    assert ends_of(routers["A"], text) == {"lost", "detached by the router"}
    for name in "BC":
        assert ends_of(routers[name], text) == {"detached", "detached by the router"}


def test_the_container_sees_a_lost_link_when_a_client_disconnects(
    routers: dict[str, RunningRouter], there: Broker
) -> None:
    for name in NAMES:
        gone = Client(Ear(), client_port(routers[name]))
        gone.create_receiver("b.gone")
        link = there.attached[-1][0]
        gone.close()
        there.wait(lambda b: (link, True, "qd:routed-link-lost") in b.detached)  # noqa: B023 - now


def test_auto_links_serve_the_whole_network(client: Client, there: Broker) -> None:
    receiver = client.create_receiver("queue", credit=1)
    sender = client.create_sender("queue")
    before = len(there.received)
    sender.send(Message(body="job"))
    there.wait(lambda b: len(b.received) > before)
    there.do(lambda b: b.put("queue", Message(body="job done")))
    assert receiver.receive(timeout=DEADLINE_S).body == "job done"
    receiver.accept()


def test_a_container_that_leaves_takes_its_routes_along(routers: dict[str, RunningRouter]) -> None:
    with broker("D", dials=0) as other:
        with node_of(client_port(routers["C"])) as node:
            node.create(
                "connector",
                {"name": "d", "host": "127.0.0.1", "port": str(other.port), "role": "route-container"},
            )
            node.create("router.config.linkRoute", {"prefix": "d", "direction": "in", "connection": "d"})
        wait_for_key(routers["A"], "Cd")
        client = Client(Ear(), client_port(routers["A"]))
        sender = client.create_sender("d.q")
        assert other.attached[-1][2] == "d.q"
    with pytest.raises(LinkDetached):
        client.wait(lambda: False)
    assert said(sender.link.remote_condition) == ("qd:routed-link-lost", "Connectivity to the peer container was lost")
    wait_for_key(routers["A"], "Cd", gone=True)
    client.create_sender("d.q", name="again")  # an ordinary address
    client.close()
