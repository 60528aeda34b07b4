"""RabbitMQ 4 behind routers: addresses v2 by link routes and auto links, and clients with the addresses of RabbitMQ 3.

The broker refuses the addresses of RabbitMQ 3 itself, as 4.3 and later do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from proton import Array, Data, Delivery, Described, Message, symbol, timestamp, ulong

from tests.e2e.by_proton import Client, Ear
from tests.management.node import node_of
from tests.network.test_rabbitmq import addresses, auto_links
from tests.networks import client_port, network, until_routed
from tests.rabbitmq import BINDING, BOUND, EXCHANGE, LIMITED, V4, RabbitMQ, connector, needs_rabbitmq4, nodes
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.interop, needs_rabbitmq4]

#: More messages than the credit of a link.
COUNT = 300
#: Names that need percent-encoding in an address, one with a percent sign of its own.
STRANGE = ["with space", "with/slash", "50%25", "größe", "a.b#c?d"]
QUEUES = ["first", "waypoint", "orders.new", "granted", "denied", "kept", "late", *STRANGE]
#: By the prefix of a link route: the text that the router removes, and the text that it adds.
PREFIXES = {
    "queues": ("", ""),
    "exchanges": ("", ""),
    "amq/queue": ("/amq/queue/", "/queues/"),
    "queue": ("/queue/", "/queues/"),
    "topic": ("/topic/", "/exchanges/amq.topic/"),
    "orders": ("", "/queues/"),
    "raw": ("raw", ""),
}
ROUTES = "".join(
    f"linkRoute {{ prefix: {prefix}, direction: {way}, connection: broker"
    + (f", delExternalPrefix: {removed}" if removed else "")
    + (f", addExternalPrefix: {added}" if added else "")
    + " }\n"
    for prefix, (removed, added) in PREFIXES.items()
    for way in ("in", "out")
)
#: The sections of a message that RabbitMQ keeps unchanged.
KEPT = (
    "body durable priority id address subject reply_to correlation_id content_type content_encoding expiry_time "
    "creation_time group_id group_sequence reply_to_group_id properties"
)


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    with nodes(tmp_path_factory.mktemp("broker"), V4, queues=QUEUES) as (node,):
        yield node


@pytest.fixture(scope="module")
def routers(rabbit: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningRouter]]:
    """Run A beside the broker, and B beside the client."""
    # Patient, as a test stops the broker for a while.
    patient = connector("broker", rabbit).replace(" }", ", idleTimeoutSeconds: 0 }")
    more = {"A": patient + ROUTES, "B": ROUTES}
    with network(tmp_path_factory.mktemp("network"), {"A": (), "B": ("A",)}, more) as started:
        for key in ("Cqueues", "Dqueues", "Camq/queue", "Damq/queue", "Dorders", "Dtopic"):
            until_routed(started["B"], key)
        yield started


@pytest.fixture
def client(routers: dict[str, RunningRouter]) -> Iterator[Client]:
    made = Client(Ear(), client_port(routers["B"]))
    yield made
    made.close()


def put(sender: Any, message: Message) -> Any:
    """Send a message without waiting; return its delivery."""
    return sender.link.send(message)


def carry(client: Client, target: str, source: str, count: int = 1) -> None:
    """Send messages to one address, and receive them from another."""
    sender = client.create_sender(target)
    for number in range(count):
        assert sender.send(Message(body=number, durable=True)).remote_state == Delivery.ACCEPTED
    receiver = client.create_receiver(source, credit=10)
    for number in range(count):
        assert receiver.receive(timeout=DEADLINE_S).body == number
        receiver.accept()
    sender.close()
    receiver.close()


def test_a_routed_link_to_a_queue_carries_all_that_was_sent(client: Client) -> None:
    carry(client, "/queues/first", "/queues/first", COUNT)


def test_a_message_to_an_exchange_arrives_in_the_queue_that_is_bound_to_it(client: Client) -> None:
    key = BINDING.replace("#", "light/bright")
    carry(client, f"/exchanges/{quote(EXCHANGE, safe='')}/{quote(key, safe='')}", f"/queues/{quote(BOUND, safe='')}")


def test_a_message_that_the_exchange_has_no_queue_for_is_released(client: Client) -> None:
    sender = client.create_sender(f"/exchanges/{quote(EXCHANGE, safe='')}/blue")
    delivery = put(sender, Message(body="x", durable=True))
    client.wait(lambda: delivery.settled)
    assert delivery.remote_state == Delivery.RELEASED


@pytest.mark.parametrize("name", STRANGE)
def test_a_percent_encoded_name_reaches_the_broker_as_it_is(client: Client, rabbit: RabbitMQ, name: str) -> None:
    carry(client, rabbit.address(name), rabbit.address(name))


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("/amq/queue/first", "/amq/queue/first"),
        ("/queue/first", "/queue/first"),
        ("orders.new", "orders.new"),
        ("/amq/queue/first", "/queues/first"),
    ],
)
def test_a_client_of_rabbitmq_3_keeps_its_addresses(client: Client, target: str, source: str) -> None:
    """The prefixes of the link route translate them; the broker refuses them itself."""
    carry(client, target, source, 3)


def test_a_client_of_rabbitmq_3_publishes_to_a_topic(client: Client) -> None:
    """No queue is bound to the topic, so the broker releases the message; a missing exchange would refuse the link."""
    sender = client.create_sender("/topic/news.today")
    assert sender.link.remote_target.address == "/topic/news.today"
    delivery = put(sender, Message(body="x", durable=True))
    client.wait(lambda: delivery.settled)
    assert delivery.remote_state == Delivery.RELEASED


def test_the_broker_refuses_the_addresses_of_rabbitmq_3_with_its_words(client: Client) -> None:
    """Without translation: the broker refuses them, as it does from 4.3 on."""
    condition, description = client.refusal_of(lambda c: c.create_sender("raw/amq/queue/first"))
    assert condition == "amqp:invalid-field"
    assert "amqp_address_v1_not_permitted" in (description or "")


BODIES: list[Any] = [
    "text",
    b"bytes",
    {"key": [1, 2.5, None], symbol("s"): UUID(int=7)},
    [timestamp(1), symbol("s"), ulong(9)],
    Array(None, Data.INT, 1, 2, 3),
    Described(symbol("example:thing"), ["x"]),
]


@pytest.mark.parametrize("way", ["routed", "waypoint"])
def test_sections_and_types_of_a_message_are_kept(
    rabbit: RabbitMQ, tmp_path_factory: pytest.TempPathFactory, way: str
) -> None:
    with running(_kept(rabbit), tmp_path_factory.mktemp("kept")) as router:
        until(lambda: set(auto_links(router).values()) == {("active", "")}, "auto links")
        client = Client(Ear(), router.port)
        address = "/queues/kept" if way == "routed" else "through"
        sender = client.create_sender(address)
        receiver = client.create_receiver(address, credit=1)
        for body in BODIES:
            sent = Message(
                body=body,
                durable=True,
                priority=7,
                ttl=3600,
                id=UUID(int=3),
                address="to whom",
                subject="about",
                reply_to="answers/here",
                correlation_id=ulong(8),
                content_type="application/x",
                content_encoding="none",
                expiry_time=1_900_000_000,
                creation_time=1_700_000_000,
                group_id="group",
                group_sequence=4,
                reply_to_group_id="others",
                properties={"text": "ä", "number": 3, "none": None},
                annotations={symbol("x-opt-own"): [1, "two"]},
            )
            assert sender.send(sent).remote_state == Delivery.ACCEPTED
            got = receiver.receive(timeout=DEADLINE_S)
            receiver.accept()
            for name in KEPT.split():
                assert getattr(got, name) == getattr(sent, name), name
            assert got.annotations is not None
            assert got.annotations["x-opt-own"] == [1, "two"]
            assert got.annotations["x-routing-key"] == "kept", "the broker's own annotation"
        client.close()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param(Message(durable=True), "amqp:internal-error: ", id="without a body"),
        pytest.param(
            Message(body="x", user_id=b"ann", durable=True),
            "amqp:unauthorized-access: user_id property set to 'ann' but authenticated user was 'guest'",
            id="with a user-id that is not the router's at the broker",
        ),
    ],
)
def test_a_message_that_ends_the_brokers_session_is_returned_and_others_pass(
    rabbit: RabbitMQ, tmp_path_factory: pytest.TempPathFactory, message: Message, reason: str
) -> None:
    """The sender hears that the message was not accepted; the router attaches the auto links again."""
    with running(_kept(rabbit), tmp_path_factory.mktemp("ended")) as router:
        until(lambda: set(auto_links(router).values()) == {("active", "")}, "auto links")
        client = Client(Ear(), router.port)
        sender = client.create_sender("through")
        assert sender.send(Message(body="before", durable=True)).remote_state == Delivery.ACCEPTED
        bad = put(sender, message)
        client.wait(lambda: bad.settled)
        assert bad.remote_state in {Delivery.MODIFIED, Delivery.RELEASED}
        router.wait_for_line(reason)
        until(lambda: set(auto_links(router).values()) == {("active", "")}, "auto links again")
        assert sender.send(Message(body="after", durable=True)).remote_state == Delivery.ACCEPTED
        receiver = client.create_receiver("through", credit=2)
        assert {receiver.receive(timeout=DEADLINE_S).body for _ in range(2)} == {"before", "after"}
        receiver.accept()
        receiver.accept()
        client.close()


def _kept(rabbit: RabbitMQ) -> str:
    return f"""
        router {{ mode: interior, id: R }}
        listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
        {connector("broker", rabbit)}
        linkRoute {{ prefix: queues, dir: in, connection: broker }}
        linkRoute {{ prefix: queues, dir: out, connection: broker }}
        address {{ prefix: through, waypoint: yes }}
        autoLink {{ addr: through, externalAddr: /queues/kept, dir: in, connection: broker }}
        autoLink {{ addr: through, externalAddr: /queues/kept, dir: out, connection: broker }}
    """


def test_a_queue_that_does_not_exist_is_refused_with_the_brokers_words(
    routers: dict[str, RunningRouter], client: Client
) -> None:
    condition, description = client.refusal_of(lambda c: c.create_receiver("/queues/none"))
    assert (condition, "no queue 'none'" in (description or "")) == ("amqp:not-found", True)
    for router in routers.values():
        router.wait_for_line(rf"\] Link .*: {condition}: no queue 'none'")


def test_the_auto_link_of_a_missing_queue_fails_alone_with_the_brokers_words(
    rabbit: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """RabbitMQ 4 ends the session for a missing queue, of a link in either direction."""
    text = f"""
        router {{ mode: interior, id: R }}
        listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
        {connector("broker", rabbit)}
        address {{ prefix: work, waypoint: yes }}
        autoLink {{ addr: work.first, externalAddr: /queues/waypoint, dir: in, connection: broker }}
        autoLink {{ addr: work.first, externalAddr: /queues/waypoint, dir: out, connection: broker }}
        autoLink {{ addr: work.second, externalAddr: /queues/second, dir: in, connection: broker }}
        autoLink {{ addr: work.second, externalAddr: /queues/second, dir: out, connection: broker }}
    """
    with running(text, tmp_path_factory.mktemp("waypoint")) as router:
        missing = ("failed", "no queue 'second' in vhost '/'")
        wanted = {
            ("work.first", "in"): ("active", ""),
            ("work.first", "out"): ("active", ""),
            ("work.second", "in"): missing,
            ("work.second", "out"): missing,
        }
        until(lambda: auto_links(router) == wanted, "auto links of the queue that is there")
        client = Client(Ear(), router.port)
        carry(client, "work.first", "work.first", COUNT)
        assert addresses(router, "work.first") == {0: (1, COUNT, COUNT), 1: (0, COUNT, COUNT)}
        client.close()


def test_what_the_brokers_user_may_not_do_is_refused_with_the_brokers_words(
    rabbit: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> None:
    login = f"saslMechanisms: PLAIN, saslUsername: {LIMITED}, saslPassword: {LIMITED}"
    text = f"""
        router {{ mode: interior, id: R }}
        listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
        {connector("broker", rabbit).replace("saslMechanisms: ANONYMOUS", login)}
        linkRoute {{ prefix: queues, dir: in, connection: broker }}
        linkRoute {{ prefix: queues, dir: out, connection: broker }}
        autoLink {{ addr: work, externalAddr: /queues/denied, dir: in, connection: broker, phase: 0 }}
    """
    with running(text, tmp_path_factory.mktemp("limited")) as router:
        until_routed(router, "Cqueues")
        client = Client(Ear(), router.port)
        carry(client, "/queues/granted", "/queues/granted")
        condition, description = client.refusal_of(lambda c: c.create_receiver("/queues/denied"))
        assert condition == "amqp:unauthorized-access"
        assert description is not None
        assert "read access to queue 'denied'" in description
        client.close()
        until(lambda: "failed" in {state for state, _ in auto_links(router).values()}, "its failure")
        [(_, error)] = auto_links(router).values()
        assert "read access to queue 'denied'" in error


def test_a_broker_that_answers_late_loses_nothing(
    rabbit: RabbitMQ, routers: dict[str, RunningRouter], client: Client
) -> None:
    """The broker's process is stopped while one client sends and another attaches; then it goes on."""
    sender = client.create_sender("/queues/late")
    with node_of(client_port(routers["A"])) as node:
        rabbit.pause()
        late = [put(sender, Message(body=number, durable=True)) for number in range(10)]
        client.wait(lambda: _under_way(node) == 10)
        other = Client(Ear(), client_port(routers["B"]))
        session = other.connection.session()
        session.open()
        receiver = session.receiver("waits")
        receiver.source.address = "/queues/late"
        receiver.open()
        other.wait(lambda: any("waits" in row["linkName"] for row in node.query("router.link", ["linkName"])))
    assert not any(each.settled for each in late)
    rabbit.resume()
    client.wait(lambda: all(each.settled for each in late))
    assert {each.remote_state for each in late} == {Delivery.ACCEPTED}
    other.wait(lambda: receiver.state & receiver.REMOTE_ACTIVE)
    other.close()
    rest = client.create_receiver("/queues/late", credit=10)
    assert [rest.receive(timeout=DEADLINE_S).body for _ in range(10)] == list(range(10))


def _under_way(node: Any) -> int:
    """Return the count of messages that the router sent to the broker and that have no outcome."""
    rows = node.query("router.link", ["linkType", "linkDir", "unsettledCount"])
    return sum(row["unsettledCount"] for row in rows if (row["linkType"], row["linkDir"]) == ("endpoint", "out"))
