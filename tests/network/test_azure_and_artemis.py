"""The configurations of the page on Azure and Artemis, against a peer that behaves as the documents of these say.

It is a router with TLS and PLAIN in front of a broker, to which it routes all links; the broker detaches and closes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from proton import Condition, Described, Endpoint, Message, symbol
from proton.reactor import Filter, LinkOption

from tests.brokers import Broker, served
from tests.certificates import Authority
from tests.e2e.by_proton import Client, Ear
from tests.management.node import node_of
from tests.network.test_rabbitmq import auto_links
from tests.routers import DEADLINE_S, ROOT, RunningRouter, running
from tests.waiting import until
from trouter.cli import main

pytestmark = pytest.mark.slow

PAGE: Final = (ROOT / "docs" / "azure-and-artemis.md").read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
KEY: Final = "c2VjcmV0+/with=signs="
IDLE: Final = Condition(
    "amqp:link:detach-forced", "Detach origin: AmqpMessagePublisher.IdleTimerExpired: Idle timeout: 00:10:00."
)
UNUSED: Final = Condition("amqp:connection:forced", "it did not have any active links in the past 300000 milliseconds")


def block(beginning: str) -> str:
    """Return the configuration on the page that begins so."""
    (found,) = [each for each in BLOCKS if each.startswith(beginning)]
    return str(found)


class Azure(Broker):
    """The broker: its names are those of queues; with ``needs_claim`` a link needs a claim of its connection."""

    names: tuple[str, ...] = ("new-orders", "orders", "orders::orders", "parcels", "HUB", "$cbs")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.keeps = True
        self.claims: list[tuple[str, str]] = []

    def on_link_opening(self, event: Any) -> None:
        link: Any = event.link
        address = (link.remote_source if link.is_sender else link.remote_target).address or ""
        if address.split("/")[0] not in self.names:
            self.refused[address] = Condition("amqp:not-found", f"The messaging entity '{address}' could not be found.")
        super().on_link_opening(event)

    def on_message(self, event: Any) -> None:
        message: Any = event.message
        if event.link.target.address != "$cbs":
            super().on_message(event)
            return
        asked = message.properties
        assert (asked["operation"], asked["type"]) == ("put-token", "servicebus.windows.net:sastoken")
        self.claims.append((asked["name"], message.body))
        self.accept(event.delivery)
        self.put("$cbs", Message(correlation_id=message.id, properties={"status-code": 202}, body=None))
        self._tell()


class Peer(NamedTuple):
    """The peer: its broker, the router in front of it, and the certificate of its authority."""

    there: Azure
    front: RunningRouter
    authority: Path


@contextmanager
def peer(folder: Path, mechanisms: str) -> Iterator[Peer]:
    """Run the peer."""
    folder.mkdir()
    authority = Authority(folder, "authority")
    certificate, key = authority.pair("127.0.0.1")
    (folder / "key").write_text(KEY)
    assert main(["passwd", "add", str(folder / "users"), "router-policy", "--password-file", str(folder / "key")]) == 0
    there = Azure("B")
    with served(there):
        text = f"""
router {{ id: Namespace, usersFile: {folder}/users }}
sslProfile {{ name: s, certFile: {certificate}, privateKeyFile: {key} }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{
    host: 127.0.0.1
    port: 0
    sslProfile: s
    requireSsl: yes
    clientCert: none
    authenticatePeer: {"no" if mechanisms == "ANONYMOUS" else "yes"}
    saslMechanisms: {mechanisms}
}}
connector {{ name: b, role: route-container, host: 127.0.0.1, port: {there.port}, saslMechanisms: ANONYMOUS }}
linkRoute {{ pattern: "#", direction: in, connection: b }}
linkRoute {{ pattern: "#", direction: out, connection: b }}
"""
        with running(text, folder) as front:
            front.wait_for_line("Link Route Activated 'linkRoute/1'")
            yield Peer(there, front, authority.certificate)


def configured(text: str, folder: Path, azure: Peer) -> str:
    """Return a configuration of the page, for the peer."""
    (folder / "policy.key").write_text(KEY)
    for old, new in (
        ("port: 5672\n    saslMechanisms: ANONYMOUS", "port: 0\n    saslMechanisms: ANONYMOUS"),
        ("host: NAMESPACE.servicebus.windows.net", "host: 127.0.0.1"),
        ("port: 5671", f"port: {azure.front.ports[1]}"),
        ("/etc/ssl/certs/ca-certificates.crt", str(azure.authority)),
        ("file:policy.key", f"file:{folder}/policy.key"),
    ):
        text = text.replace(old, new)
    return text


def until_active(router: RunningRouter) -> None:
    def active() -> bool:
        links = auto_links(router)
        return len(links) == 2 and {status for status, _ in links.values()} == {"active"}

    until(active, "the auto links")


class Served(NamedTuple):
    """The peer, and the router beside the clients."""

    azure: Peer
    router: RunningRouter

    @property
    def there(self) -> Azure:
        return self.azure.there


@contextmanager
def serving(folder: Path, text: str, mechanisms: str = "PLAIN") -> Iterator[Served]:
    """Run the peer, and a router with a configuration of the page."""
    with peer(folder / "peer", mechanisms) as azure, running(configured(text, folder, azure), folder) as router:
        router.wait_for_line("Link Route Activated 'linkRoute/1'")
        yield Served(azure, router)


@pytest.fixture(scope="module")
def served_azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("azure"), block("router {")) as made:
        yield made


def passes(router: RunningRouter, address: str, body: str) -> None:
    """Send a message to an address, and receive it from there."""
    client = Client(Ear(), router.port)
    assert client.outcome_of(client.create_sender(address), Message(body=body)) is None
    receiver = client.create_receiver(address, credit=1)
    assert receiver.receive(timeout=DEADLINE_S).body == body
    receiver.accept()
    client.close()


def end_links(there: Azure) -> int:
    """Detach all links that are open as Service Bus detaches idle ones; return how many."""
    ended = []

    def end(_: Broker) -> None:
        for link in there.links:
            if link.state & Endpoint.LOCAL_ACTIVE and link.state & Endpoint.REMOTE_ACTIVE:
                link.condition = IDLE
                link.close()
                ended.append(link)

    there.do(end)
    return len(ended)


def test_messages_pass_through_a_queue_and_by_routed_links(served_azure: Served) -> None:
    there, router = served_azure.there, served_azure.router
    until_active(router)
    passes(router, "orders", "by auto links")
    passes(router, "parcels", "by routed links")
    passes(router, "parcels/$DeadLetterQueue", "below it")
    assert {address for _, _, address, _ in there.attached} >= {"new-orders", "parcels", "parcels/$DeadLetterQueue"}


def test_links_that_were_idle_are_attached_again(served_azure: Served) -> None:
    there, router = served_azure.there, served_azure.router
    until_active(router)
    client = Client(Ear(), router.port)
    client.create_sender("parcels")
    before = len(there.attached)
    assert end_links(there) == 3
    assert client.refusal_of(lambda c: c.wait(lambda: False)).condition == IDLE.name
    there.wait(lambda b: len(b.attached) == before + 2)
    until_active(router)
    passes(router, "orders", "after the detach")
    sender = client.create_sender("parcels", name="another")
    assert client.outcome_of(sender, Message(body="again")) is None
    client.close()


def test_a_connection_that_was_closed_is_dialled_again(served_azure: Served) -> None:
    there, router = served_azure.there, served_azure.router
    until_active(router)
    before = len(there.attached)
    with node_of(served_azure.azure.front.ports[0]) as node:
        (number,) = [row["identity"] for row in node.query("connection") if row["user"] == "router-policy"]
        node.get("UPDATE", {"adminStatus": "deleted"}, type="connection", identity=number)
    there.wait(lambda b: len(b.attached) == before + 2)
    until_active(router)
    passes(router, "orders", "after the close")


def test_a_wrong_name_is_told_by_the_last_error(tmp_path: Path) -> None:
    text = block("router {").replace("externalAddress: new-orders", "externalAddress: old-orders")
    with serving(tmp_path, text) as made:

        def told() -> bool:
            return {"could not be found" in why for _, why in auto_links(made.router).values()} == {True}

        until(told, "the reason")


def test_a_wrong_key_is_told_by_the_connector(tmp_path: Path) -> None:
    with peer(tmp_path / "peer", "PLAIN") as azure:
        text = configured(block("router {"), tmp_path, azure)
        (tmp_path / "policy.key").write_text("wrong")
        with running(text, tmp_path) as router:

            def message() -> str:
                with node_of(router.port) as node:
                    (row,) = node.query("connector")
                return row["connectionMsg"] or ""

            until(lambda: "auth" in message() or "amqp:unauthorized-access" in message(), "the reason")


def test_clients_put_their_claims_through_routed_links(tmp_path: Path) -> None:
    text = block("router {")
    head = text[: text.index("connector {")]
    with serving(tmp_path, head + block("connector {\n    name: azure"), "ANONYMOUS") as made:
        client = Client(Ear(), made.router.port)
        receiver = client.create_receiver("$cbs", credit=1)
        claim = {"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": "amqps://ns/parcels"}
        request = Message(id="1", reply_to="cbs", properties=claim, body="SharedAccessSignature sr=...")
        assert client.outcome_of(client.create_sender("$cbs"), request) is None
        answer: Any = receiver.receive(timeout=DEADLINE_S)
        assert (answer.correlation_id, answer.properties["status-code"]) == ("1", 202)
        client.close()
        assert made.there.claims == [("amqps://ns/parcels", "SharedAccessSignature sr=...")]


class _From(Filter):
    """The filter of a receiver of Event Hubs."""

    def __init__(self, offset: str) -> None:
        name = "apache.org:selector-filter:string"
        super().__init__({symbol(name): Described(symbol(name), f"amqp.annotation.x-opt-offset > '{offset}'")})


def test_a_receiver_of_a_partition_begins_by_its_filter(tmp_path: Path) -> None:
    text = block("router {")
    head = text[: text.index("# Messages to orders")]
    partition = "HUB/ConsumerGroups/$Default/Partitions/0"
    with serving(tmp_path, head + block("linkRoute {\n    prefix: HUB")) as made:
        marks = {symbol("x-opt-offset"): "4712", symbol("x-opt-sequence-number"): 7}
        made.there.do(lambda b: b.put(partition, Message(body="event", annotations=marks)))
        client = Client(Ear(), made.router.port)
        receiver = client.create_receiver(partition, credit=1, options=_From("4711"))
        came = receiver.receive(timeout=DEADLINE_S)
        receiver.accept()
        assert (came.body, came.annotations) == ("event", marks)
        link = made.there.links[-1]
        link.remote_source.filter.rewind()
        link.remote_source.filter.next()
        (wanted,) = link.remote_source.filter.get_dict().values()
        assert wanted.value == "amqp.annotation.x-opt-offset > '4711'"
        client.close()


class _Capability(LinkOption):
    """The capability of a sender to a topic."""

    def apply(self, link: Any) -> None:
        link.target.capabilities.put_object(symbol("topic"))


def test_artemis_gets_full_names_of_queues_by_auto_links_and_capabilities_by_routed_ones(tmp_path: Path) -> None:
    there = Azure("artemis")
    text = block("connector {\n    name: artemis")
    text = re.sub("host: .*", "host: 127.0.0.1", text).replace("saslMechanisms: PLAIN", "saslMechanisms: ANONYMOUS")
    text = re.sub("    sasl(Username|Password).*\n", "", text)
    routes = "".join(
        f"linkRoute {{ prefix: parcels, direction: {way}, connection: artemis }}\n" for way in ("in", "out")
    )
    head = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
    with served(there):
        text = text.replace("port: 5672", f"port: {there.port}")
        with running(f"{head}{text}{routes}address {{ prefix: orders, waypoint: yes }}\n", tmp_path) as router:
            until_active(router)
            assert {(sends, address) for _, sends, address, _ in there.attached} == {
                (False, "orders"),
                (True, "orders::orders"),
            }
            client = Client(Ear(), router.port)
            client.create_sender("parcels", options=_Capability())
            assert there.attached[-1][2:] == ("parcels", "topic")
            client.close()
