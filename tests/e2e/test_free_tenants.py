"""A multi-tenant listener as on Qpid Dispatch: peers choose their tenant, and may leave its space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from proton import Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

from tests.e2e.peer import Peer
from tests.management.node import Node
from tests.routers import DEADLINE_S, WORKERS, RunningRouter, running

CONFIGURATION = """
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
listener { name: tenants, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, multiTenant: yes }
"""


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Run a router with a listener outside any tenant's space, and a multi-tenant one without vhost policy."""
    with running(CONFIGURATION, tmp_path_factory.mktemp("free")) as started:
        yield started


def client(router: RunningRouter, hostname: str) -> Any:
    return BlockingConnection(
        f"127.0.0.1:{router.ports[1]}", timeout=DEADLINE_S, allowed_mechs="ANONYMOUS", virtual_host=hostname
    )


def client_of_first(router: RunningRouter, hostname: str) -> Any:
    """Connect to the first worker, which has the id of the router."""
    for _ in range(WORKERS):
        connection = client(router, hostname)
        if connection.conn.remote_container == "R":
            return connection
        connection.close()
    raise AssertionError("no connection came to the first worker")


def send(connection: Any, to: str, body: str, *, anonymous: bool = False) -> None:
    sender = connection.create_sender(None if anonymous else to, options=AtMostOnce())
    connection.wait(lambda: sender.link.credit > 0, timeout=DEADLINE_S)
    sender.send(Message(body=body, address=to if anonymous else None))
    sender.close()


@pytest.fixture
def outside(router: RunningRouter) -> Iterator[Node]:
    node = Node(router.ports[0], allowed_mechs="ANONYMOUS")
    yield node
    node.close()


def test_the_hostname_of_the_open_is_the_tenant(router: RunningRouter, outside: Node) -> None:
    one, two = client(router, "t1"), client(router, "t2")
    of_one, of_two = one.create_receiver("q", credit=10), two.create_receiver("q", credit=10)
    assert {"M0t1/q", "M0t2/q"} <= {row["key"] for row in outside.query("router.address")}
    assert {"t1/", "t2/"} <= {row["tenant"] for row in outside.query("connection")}
    send(two, "q", "for two")
    send(one, "q", "for one", anonymous=True)
    assert of_one.receive(timeout=DEADLINE_S).body == "for one"
    assert of_two.receive(timeout=DEADLINE_S).body == "for two"
    for each in (one, two):
        each.close()


@pytest.mark.parametrize("hostname", [None, ""])
def test_without_a_hostname_addresses_have_no_prefix(
    router: RunningRouter, outside: Node, hostname: str | None
) -> None:
    with Peer(router.ports[1], opened=False, sasl=True) as peer:
        peer.open(hostname=hostname)
        peer.begin()
        peer.attach_receiver("t1/bare")
        assert "M0t1/bare" in {row["key"] for row in outside.query("router.address")}
        assert None in {row["tenant"] for row in outside.query("connection")}


@pytest.mark.parametrize("anonymous", [False, True])
@pytest.mark.parametrize("to", ["_local/shared", "_topo/0/R/shared", "amqp:/_local/shared"])
def test_addresses_of_the_router_are_the_same_for_all_tenants(router: RunningRouter, to: str, anonymous: bool) -> None:
    one, two = client_of_first(router, "t1"), client_of_first(router, "t2")
    receiver = one.create_receiver("_local/shared", credit=10)
    send(two, to, "hello", anonymous=anonymous)
    assert receiver.receive(timeout=DEADLINE_S).body == "hello"
    for each in (one, two):
        each.close()


@pytest.mark.parametrize("address", ["_local/$management", "_topo/0/R/$management"])
def test_the_agent_shows_a_tenant_everything_where_all_tenants_ask(
    router: RunningRouter, outside: Node, address: str
) -> None:
    node = Node(router.ports[1], allowed_mechs="ANONYMOUS", virtual_host="t1", address=address)
    assert {"t1/", None} <= {row["tenant"] for row in node.query("connection")}
    name = f"made by a tenant at {address}"
    node.create("router.config.address", {"prefix": "made"}, name=name)
    assert node.ask("DELETE", type="router.config.address", name=name).status == 204
    node.close()
    own = Node(router.ports[1], allowed_mechs="ANONYMOUS", virtual_host="t1")
    assert {row["tenant"] for row in own.query("connection")} == {"t1/"}
    own.close()


def test_a_dynamic_address_is_closed_to_other_tenants(router: RunningRouter) -> None:
    one, two = client(router, "t1"), client(router, "t2")
    receiver = one.create_receiver(None, dynamic=True, credit=1)
    address = receiver.link.remote_source.address
    with pytest.raises(Exception, match="amqp:unauthorized-access"):
        two.create_sender(address)
    send(one, address, "own")
    assert receiver.receive(timeout=DEADLINE_S).body == "own"
    for each in (one, two):
        each.close()
