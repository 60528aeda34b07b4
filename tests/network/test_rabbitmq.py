"""RabbitMQ behind routers: links routed to its queues, and a queue that messages pass through on their way."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from proton import Delivery, Message
from proton.utils import LinkDetached

from tests.e2e.by_proton import Client, Ear
from tests.management.node import node_of
from tests.networks import client_port, network, until_routed
from tests.rabbitmq import RabbitMQ, connector, needs_rabbitmq, nodes
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.interop, needs_rabbitmq]

COUNT = 300


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    with nodes(tmp_path_factory.mktemp("broker")) as (node,):
        yield node


@pytest.fixture(scope="module")
def isolated(rabbit: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningRouter]]:
    """Run the routers in Qpid Dispatch's manual: Ra beside the broker and Rb beside the client dial the public Rp."""
    routes = "".join(
        f"linkRoute {{ prefix: {prefix}, dir: {way}, connection: broker }}\n"
        for prefix in ("b2", "/queue", "/amq/queue")
        for way in ("in", "out")
    )
    more = {"Rp": routes, "Rb": routes, "Ra": connector("broker", rabbit) + routes}
    with network(tmp_path_factory.mktemp("isolated"), {"Rp": (), "Ra": ("Rp",), "Rb": ("Rp",)}, more) as routers:
        for key in ("Cb2", "Db2", "Cqueue", "Dqueue"):
            until_routed(routers["Rb"], key)
        yield routers


@pytest.mark.parametrize("address", ["b2.event-queue", "/queue/first"])
def test_a_link_to_a_queue_behind_three_routers_carries_all_that_was_sent(
    isolated: dict[str, RunningRouter], address: str
) -> None:
    """RabbitMQ sends more than the credit when two flows cross deliveries under way: the link stays attached."""
    client = Client(Ear(), client_port(isolated["Rb"]))
    sender = client.create_sender(address)
    for number in range(COUNT):
        assert sender.send(Message(body=number, durable=True)).remote_state == Delivery.ACCEPTED
    receiver = client.create_receiver(address, credit=10)
    for number in range(COUNT):
        assert receiver.receive(timeout=DEADLINE_S).body == number
        receiver.accept()
    client.close()
    for router in isolated.values():
        assert not router.matching("transfer-limit-exceeded")


def test_a_queue_that_does_not_exist_is_refused_with_the_brokers_words(isolated: dict[str, RunningRouter]) -> None:
    """RabbitMQ ends the whole session; the client behind two more routers hears why, and the logs say it."""
    client = Client(Ear(), client_port(isolated["Rb"]))
    condition, description = client.refusal_of(lambda c: c.create_receiver("/amq/queue/b2.none"))
    client.close()
    assert (condition, "no queue" in (description or "")) == ("amqp:not-found", True)
    for router in isolated.values():
        router.wait_for_line(rf"\] Link .*: {re.escape(f'{condition}: {description}'.strip())}$")


def test_an_outcome_that_the_broker_does_not_know_ends_the_link_with_its_words(
    isolated: dict[str, RunningRouter],
) -> None:
    """RabbitMQ 3.10 ends the session for the outcome ``modified``."""
    client = Client(Ear(), client_port(isolated["Rb"]))
    client.create_sender("b2.modified").send(Message(body="x", durable=True))
    receiver = client.create_receiver("b2.modified", credit=1)
    receiver.receive(timeout=DEADLINE_S)
    receiver.release(delivered=True)
    with pytest.raises(LinkDetached):
        client.wait(lambda: False)
    condition, description = client.ear.said[0]
    client.close()
    assert condition != "qd:routed-link-lost"
    for router in isolated.values():
        router.wait_for_line(rf"\] Link .*: {re.escape(f'{condition}: {description}'.strip())}$")


def test_an_attach_is_refused_where_no_broker_serves_the_route(
    isolated: dict[str, RunningRouter], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The identical configuration on the other routers says that b2 is meant for a broker, which is not connected."""
    text = "router { mode: interior, id: Alone }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
    with running(
        text + "linkRoute { prefix: b2, dir: in, connection: broker }\n", tmp_path_factory.mktemp("alone")
    ) as alone:
        client = Client(Ear(), alone.port)
        condition, description = client.refusal_of(lambda c: c.create_sender("b2.event-queue"))
        assert condition == "qd:no-route-to-dest"
        assert description == "No route to the destination node"
        client.close()


def auto_links(router: RunningRouter) -> dict[tuple[str, str], tuple[str, str]]:
    """Return status and last error by address and direction."""
    with node_of(router.port) as node:
        rows = node.query("router.config.autoLink")
    return {(row["address"], row["direction"]): (row["operStatus"], row["lastError"] or "") for row in rows}


def addresses(router: RunningRouter, address: str) -> dict[int, tuple[int, int, int]]:
    """Return, by phase: local consumers, deliveries in and out."""
    with node_of(router.port) as node:
        rows = node.query("router.address")
    return {
        int(row["key"][1]): (row["subscriberCount"], row["deliveriesIngress"], row["deliveriesEgress"])
        for row in rows
        if row["key"][0] == "M" and row["key"][2:] == address
    }


def test_a_queue_as_waypoint_under_the_brokers_own_name_with_the_counters_of_the_manual(
    rabbit: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Queue waypoint and external address; the auto link from a missing queue fails alone, with its reason.

    RabbitMQ accepts a link to such a queue, and ends the whole session for one from it.
    """
    text = f"""
        router {{ mode: interior, id: R }}
        listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
        {connector("broker", rabbit)}
        address {{ prefix: queue, waypoint: yes }}
        autoLink {{ addr: queue.first, externalAddr: /queue/waypoint, dir: in, connection: broker }}
        autoLink {{ addr: queue.first, externalAddr: /queue/waypoint, dir: out, connection: broker }}
        autoLink {{ addr: queue.second, externalAddr: /amq/queue/second, dir: in, connection: broker }}
        autoLink {{ addr: queue.second, externalAddr: /amq/queue/second, dir: out, connection: broker }}
    """
    with running(text, tmp_path_factory.mktemp("waypoint")) as router:
        wanted = {
            ("queue.first", "in"): ("active", ""),
            ("queue.first", "out"): ("active", ""),
            ("queue.second", "in"): ("failed", "NOT_FOUND - no queue 'second' in vhost '/'"),
            ("queue.second", "out"): ("active", ""),
        }
        until(lambda: auto_links(router) == wanted, "auto links of the queue that is there")
        client = Client(Ear(), router.port)
        sender = client.create_sender("queue.first")
        for number in range(3):
            assert sender.send(Message(body=number, durable=True)).remote_state == Delivery.ACCEPTED
        assert addresses(router, "queue.first") == {0: (1, 3, 3), 1: (0, 0, 0)}
        receiver = client.create_receiver("queue.first", credit=3)
        for number in range(3):
            assert receiver.receive(timeout=DEADLINE_S).body == number
            receiver.accept()
        receiver.close()
        assert addresses(router, "queue.first") == {0: (1, 3, 3), 1: (0, 3, 3)}
        client.close()
