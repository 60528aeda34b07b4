"""Links routed to a real broker, and links that the router attaches there itself (routing.md 6.1-6.4)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from proton import Condition, Delivery, Described, Endpoint, Message, Terminus, symbol, ulong
from proton.reactor import DynamicNodeProperties, LinkOption, ReceiverOption
from proton.utils import LinkDetached

from tests.brokers import DECLARE, DISCHARGE, TRANSACTIONAL, Broker, broker
from tests.e2e.by_proton import Client, Ear, said
from tests.e2e.test_reload import hang_up
from tests.house.sources import ROOT
from tests.management.node import node_of
from tests.routers import DEADLINE_S, RunningRouter, StartRouter, running

pytestmark = pytest.mark.slow

OPEN = "host: 127.0.0.1, saslMechanisms: ANONYMOUS"
LOST = ("qd:routed-link-lost", "Connectivity to the peer container was lost")


@pytest.fixture(scope="module")
def there() -> Iterator[Broker]:
    with broker() as made:
        yield made


@pytest.fixture(scope="module")
def here(there: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    configuration = f"""
        router {{ id: R }}
        listener {{ {OPEN}, port: 0 }}
        connector {{ {OPEN}, port: {there.port}, role: route-container, name: to-broker }}
        linkRoute {{ prefix: b, direction: in, connection: to-broker }}
        linkRoute {{ prefix: b, direction: out, connection: to-broker }}
        linkRoute {{ prefix: $coordinator, direction: in, containerId: B }}
        linkRoute {{ prefix: far, direction: out, containerId: B, delExternalPrefix: far., addExternalPrefix: ext/ }}
        linkRoute {{ prefix: nobody, direction: in, containerId: nobody }}
        autoLink {{ address: work, direction: in, connection: to-broker, name: work-in }}
        autoLink {{ address: work, direction: out, connection: to-broker, externalAddress: jobs, name: work-out }}
        address {{ prefix: work, waypoint: yes }}
    """
    with running(configuration, tmp_path_factory.mktemp("routes")) as router:
        router.wait_for_line("Link Route Activated 'linkRoute/0' on connection to-broker")
        router.wait_for_line("Auto Link Activated 'work-out' on connection to-broker")
        yield router


@pytest.fixture
def client(here: RunningRouter) -> Iterator[Client]:
    made = Client(Ear(), here.port)
    yield made
    made.close()


def test_messages_go_to_the_queue_of_the_broker_and_come_from_the_queue(client: Client, there: Broker) -> None:
    sender = client.create_sender("b.one")
    message = Message(body="hello", properties={"x": 1}, annotations={symbol("x-opt-mine"): "yes"})
    before = len(there.received)
    assert sender.send(message).remote_state == Delivery.ACCEPTED
    there.wait(lambda b: len(b.received) > before)
    got: Any = there.received[-1]
    assert (got.body, got.properties, got.annotations) == ("hello", {"x": 1}, {symbol("x-opt-mine"): "yes"})
    there.do(lambda b: b.put("b.one", got))
    receiver = client.create_receiver("b.one")
    assert receiver.receive(timeout=DEADLINE_S).body == "hello"
    receiver.accept()
    client.wait(lambda: "accepted" in there.dispositions)


def test_an_attach_refused_by_the_broker_is_refused_with_the_error_of_the_broker(client: Client, there: Broker) -> None:
    there.refused["b.closed"] = Condition("amqp:unauthorized-access", "not for you")
    with pytest.raises(LinkDetached) as caught:
        client.create_sender("b.closed")
    assert said(caught.value.link.remote_condition) == ("amqp:unauthorized-access", "not for you")


def test_prefixes_are_the_brokers_own(client: Client, there: Broker) -> None:
    receiver = client.create_receiver("far.queue")
    assert there.attached[-1][2] == "ext/queue"
    assert receiver.link.remote_source.address == "far.queue"


def test_a_dynamic_source_that_names_a_route_gets_the_brokers_address(client: Client) -> None:
    class Dynamic(ReceiverOption):
        def apply(self, receiver: Any) -> None:
            receiver.source.dynamic = True

    options: list[LinkOption] = [Dynamic(), DynamicNodeProperties({"x-opt-qd.address": "b.temporary"})]
    receiver = client.create_receiver(None, dynamic=True, options=options)
    assert receiver.link.remote_source.address == "B.temporary"


def test_a_route_without_its_container_refuses(client: Client) -> None:
    with pytest.raises(LinkDetached) as caught:
        client.create_sender("nobody.q")
    assert said(caught.value.link.remote_condition) == ("qd:no-route-to-dest", "No route to the destination node")


def test_a_large_message_passes_both_ways(client: Client, there: Broker) -> None:
    body = b"x" * 3_000_000
    before = len(there.received)
    client.create_sender("b.large").send(Message(body=body))
    there.wait(lambda b: len(b.received) > before)
    assert there.received[-1].body == body
    there.do(lambda b: b.put("b.large", Message(body=body)))
    assert client.create_receiver("b.large").receive(timeout=DEADLINE_S).body == body


def test_a_transaction_is_declared_used_and_discharged(client: Client, there: Broker) -> None:
    class Coordinator(LinkOption):
        def apply(self, link: Any) -> None:
            link.target.type = Terminus.COORDINATOR
            link.target.capabilities.put_object(symbol("amqp:local-transactions"))

    control = client.create_sender(None, options=Coordinator())
    assert there.attached[-1][2:] == ("$coordinator", "amqp:local-transactions")
    declared: Any = control.link.send(Message(body=Described(ulong(DECLARE), [None]), inferred=True))
    client.wait(lambda: declared.settled)
    assert declared.remote_state == 0x33
    (transaction,) = declared.remote.data
    sender = client.create_sender("b.transacted")
    sent: Any = sender.link.delivery("1")
    sent.local.data = [transaction]
    sent.update(TRANSACTIONAL)
    sender.link.stream(Message(body="in it").encode())
    sender.link.advance()
    client.wait(lambda: sent.settled)
    assert sent.remote_state == TRANSACTIONAL
    assert sent.remote.data[0] == transaction
    there.wait(lambda b: bytes(transaction) in b.enlisted)
    discharged: Any = control.link.send(Message(body=Described(ulong(DISCHARGE), [transaction, False]), inferred=True))
    client.wait(lambda: discharged.settled)
    assert discharged.remote_state == Delivery.ACCEPTED
    assert there.asked[-2:] == [DECLARE, DISCHARGE]
    again: Any = control.link.send(Message(body=Described(ulong(DISCHARGE), [transaction, False]), inferred=True))
    client.wait(lambda: again.settled)
    assert said(again.remote.condition) == ("amqp:transaction:unknown-id", None)


def test_messages_pass_through_the_broker_on_their_way(client: Client, there: Broker) -> None:
    """From a sender over the out link to the queue ``jobs``, and from ``work`` over the in link to a receiver."""
    receiver = client.create_receiver("work")
    sender = client.create_sender("work")
    before = len(there.received)
    sender.send(Message(body="job"))
    there.wait(lambda b: len(b.received) > before)
    assert there.received[-1].body == "job"
    there.do(lambda b: b.put("work", there.received[-1]))
    assert receiver.receive(timeout=DEADLINE_S).body == "job"
    receiver.accept()


def test_a_session_that_the_broker_ends_is_begun_again(here: RunningRouter, client: Client, there: Broker) -> None:
    sender = client.create_sender("b.before")
    link = there.links[-1]
    there.do(lambda b: link.session.close())
    with pytest.raises(LinkDetached):
        client.wait(lambda: False)
    assert said(sender.link.remote_condition) == LOST
    again = Client(Ear(), here.port)
    again.create_sender("b.after").send(Message(body="after"))
    there.wait(lambda b: b.received[-1].body == "after")
    again.close()


def test_the_broker_sees_a_lost_link_when_a_client_disconnects(here: RunningRouter, there: Broker) -> None:
    gone = Client(Ear(), here.port)
    gone.create_sender("b.gone")
    name = there.attached[-1][0]
    gone.close()
    there.wait(lambda b: (name, True, LOST[0]) in b.detached)


def test_a_broker_that_dials_gets_its_links_and_another_in_its_place(start_router: StartRouter) -> None:
    router = start_router(f"""
        router {{ id: R }}
        listener {{ {OPEN}, port: 0 }}
        listener {{ {OPEN}, port: 0, role: route-container }}
        linkRoute {{ prefix: b, direction: in, containerId: B }}
        autoLink {{ address: x, direction: in, containerId: B }}
    """)
    for turn in (1, 2):
        with broker(dials=router.ports[1]) as made:
            router.wait_for_line("Auto Link Activated 'autoLink/0' on container B", turn)
            made.wait(lambda b: [each[1:3] for each in b.attached] == [(True, "x")])
            client = Client(Ear(), router.ports[0])
            client.create_sender("b.q").send(Message(body=str(turn)))
            made.wait(lambda b: [each.body for each in b.received] == [str(turn)])  # noqa: B023 - now
            client.close()
        router.wait_for_line("Link Route Deactivated 'linkRoute/0' on container B", turn)


def test_an_auto_link_that_fails_is_tried_again(start_router: StartRouter) -> None:
    with broker() as made:
        made.refused["x"] = Condition("amqp:not-found", "Node not found")
        router = start_router(f"""
            router {{ id: R }}
            connector {{ {OPEN}, port: {made.port}, role: route-container, name: c }}
            autoLink {{ address: x, direction: out, connection: c, name: mine }}
        """)
        router.wait_for_line(r"Auto Link Activation Failed\. Node not found 'mine' on connection c")
        made.refused.clear()
        router.wait_for_line("Auto Link Activated 'mine' on connection c")


# --- the manual, and management

MANUAL = (ROOT / "docs" / "link-routing.md").read_text(encoding="utf-8")


def test_the_example_of_the_manual_works(start_router: StartRouter) -> None:
    """The configuration is the printed one with other ports; the command prints the printed text."""
    example, shown = re.findall(r"^```\n(.*?)^```", MANUAL, re.MULTILINE | re.DOTALL)
    command, _, expected = shown.partition("\n")
    with broker() as made:
        router = start_router(example.replace("5672", "0").replace("5673", str(made.port)))
        router.wait_for_line("Link Route Activated 'linkRoute/2' on connection broker")
        assert command.startswith("$ trouter ")
        done = subprocess.run(
            [sys.executable, "-m", *command[2:].split(), "-b", f"127.0.0.1:{router.port}"],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=True,
        )
        printed = [line for line in done.stdout.splitlines() if line and not line[0].isdigit()]
        assert printed[-len(expected.splitlines()) :] == expected.splitlines()


def test_routes_and_auto_links_come_and_go_while_the_router_runs(start_router: StartRouter) -> None:
    with broker() as made:
        router = start_router(f"""
            router {{ id: R }}
            listener {{ {OPEN}, port: 0 }}
            connector {{ {OPEN}, port: {made.port}, role: route-container, name: c }}
        """)
        router.wait_for_line("Connection Opened: dir=out")
        made.refused["bad"] = Condition("amqp:not-found", "Node not found: bad")
        with node_of(router.port) as node:
            node.create("router.config.linkRoute", {"prefix": "b", "direction": "in", "connection": "c"}, name="r")
            node.create("router.config.autoLink", {"address": "a", "direction": "out", "connection": "c"}, name="l")
            node.create("router.config.autoLink", {"address": "bad", "direction": "in", "containerId": "B"}, name="m")
            router.wait_for_line("Auto Link Activated 'l' on connection c")
            router.wait_for_line("Auto Link Activation Failed. Node not found: bad 'm' on container B")
            assert node.get("READ", type="router.config.linkRoute", name="r")["operStatus"] == "active"
            row = node.get("READ", type="router.config.autoLink", name="l")
            assert (row["operStatus"], row["lastError"]) == ("active", None)
            assert node.get("READ", type="router.link", identity=row["linkRef"])["owningAddr"] == "M0a"
            row = node.get("READ", type="router.config.autoLink", name="m")
            assert (row["operStatus"], row["lastError"], row["linkRef"]) == ("failed", "Node not found: bad", None)
            client = Client(Ear(), router.port)
            client.create_sender("b.q")
            for kind, name in (("linkRoute", "r"), ("autoLink", "l"), ("autoLink", "m")):
                assert node.ask("DELETE", type=f"router.config.{kind}", name=name).status == 204
            made.wait(lambda b: any(closed and error is None for name, closed, error in b.detached if "qdlink" in name))
            assert client.create_sender("b.q", name="again").link.remote_target.address == "b.q"
            assert sum(address == "b.q" for _, _, address, _ in made.attached) == 1
            client.close()


def test_a_reload_of_a_policy_disturbs_no_route_and_no_auto_link(start_router: StartRouter) -> None:
    with broker() as made:
        listening = f"router {{ id: R }}\nlistener {{ {OPEN}, port: 0 }}\n"
        vhost = "vhost { hostname: other }\n"
        routes = f"""
            connector {{ {OPEN}, port: {made.port}, role: route-container, name: c }}
            linkRoute {{ prefix: b, direction: in, connection: c }}
            autoLink {{ address: a, direction: out, connection: c }}
        """
        router = start_router(listening + routes)
        router.wait_for_line("Auto Link Activated 'autoLink/0' on connection c")
        with node_of(router.port) as node:
            (before,) = node.query("router.config.autoLink")
            assert hang_up(router, listening + vhost + routes).startswith("1 created, 0 updated, 0 deleted")
            assert node.query("router.config.autoLink") == [before]
        assert not router.matching("Link Route Deactivated")


@pytest.mark.parametrize("dials", [True, False], ids=["the broker dials", "the router dials"])
def test_a_change_of_the_policy_of_the_brokers_connection_leaves_the_links_that_the_router_attached(
    start_router: StartRouter, dials: bool
) -> None:
    """The policy says what the broker may attach; it does not judge what the router attaches there."""

    def text(port: int, most: int, addresses: str) -> str:
        role = "role: route-container, name: c, policyVhost: brokers"
        return f"""
            router {{ id: R }}
            listener {{ {OPEN}, port: 0 }}
            {"listener" if dials else "connector"} {{ {OPEN}, port: {port}, {role} }}
            policy {{ enableVhostPolicy: yes, defaultVhost: $default }}
            vhost {{
                hostname: $default
                allowUnknownUser: yes
                groups: {{
                    $default: {{ remoteHosts: "*", sources: "*", targets: "*", allowDynamicSource: yes }}
                }}
            }}
            vhost {{
                hostname: brokers
                allowUnknownUser: {"yes" if dials else "no"}
                groups: {{
                    {"$default" if dials else "$connector"}: {{
                        remoteHosts: "*"
                        sources: "{addresses}"
                        targets: "{addresses}"
                        maxSenders: {most}
                        maxReceivers: {most}
                    }}
                }}
            }}
            linkRoute {{ prefix: b, direction: in, connection: c }}
            linkRoute {{ prefix: b, direction: out, connection: c }}
            autoLink {{ address: a, direction: in, connection: c }}
            autoLink {{ address: a, direction: out, connection: c }}
        """

    with ExitStack() as stack:
        port = 0 if dials else stack.enter_context(broker()).port
        router = start_router(text(port, 10, "x.*"))
        if dials:
            stack.enter_context(broker(dials=router.ports[1]))
        for number in (0, 1):
            router.wait_for_line(f"Auto Link Activated 'autoLink/{number}' on connection c")
            router.wait_for_line(f"Link Route Activated 'linkRoute/{number}' on connection c")
        client = Client(Ear(), router.port)
        sender = client.create_sender("b.q")
        receiver = client.create_receiver("b.q")
        for most, addresses in ((1, "x.*"), (1, "y.*"), (1, "")):
            assert hang_up(router, text(port, most, addresses)) == "0 created, 1 updated, 0 deleted, 27 kept"
        assert sender.send(Message(body="x")).remote_state == Delivery.ACCEPTED
        assert receiver.link.state & Endpoint.REMOTE_ACTIVE
        client.close()
        with node_of(router.port) as node:
            assert [row["operStatus"] for row in node.query("router.config.autoLink")] == ["active", "active"]
        assert len(router.matching("Auto Link Activated")) == 2
