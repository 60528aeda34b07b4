"""What a tenant reads counts no connection, link or message of others: identities, `qd.conn-id`, delivery-tags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from proton.utils import BlockingConnection

from tests.e2e.peer import Peer
from tests.management.node import DEADLINE_S, PREFIX, Node, node_of
from tests.routers import RunningRouter, running
from trouter.wire.performatives import Transfer

pytestmark = pytest.mark.attack

#: So many numbers are in the order in which they were given by chance once in 12! times.
MANY = 12
CONFIGURATION = """
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, multiTenant: yes }
"""


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(CONFIGURATION, tmp_path_factory.mktemp("router")) as process:
        yield process


@pytest.fixture
def clients(router: RunningRouter) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def tenant_of(router: RunningRouter, name: str, clients: ExitStack) -> Node:
    return clients.enter_context(node_of(router.ports[1], virtual_host=name))


def connected(router: RunningRouter, name: str, clients: ExitStack) -> Any:
    connection: Any = BlockingConnection(f"127.0.0.1:{router.ports[1]}", virtual_host=name, timeout=DEADLINE_S)
    clients.callback(connection.close)
    return connection


def told(connection: Any) -> str:
    """Return the number that the router's open has."""
    return str(int(connection.conn.remote_properties["qd.conn-id"]))


def test_numbers_of_connections_and_links_have_no_order(router: RunningRouter, clients: ExitStack) -> None:
    node = tenant_of(router, "t1", clients)
    links = []
    for number in range(MANY):
        connection = connected(router, "t1", clients)
        connection.create_receiver(f"q{number}", name=f"probe{number}")
        (link,) = [row for row in node.query("router.link") if row["name"] == f"probe{number}"]
        assert link["connectionId"] == told(connection)
        links.append(link)
    for column in ("identity", "connectionId"):
        numbers = [int(link[column]) for link in links]
        assert numbers != sorted(numbers)
    assert {row["identity"] for row in node.query("connection")} >= {link["connectionId"] for link in links}


def test_an_operator_sees_the_numbers_of_the_log_and_those_of_the_tenant(
    router: RunningRouter, clients: ExitStack
) -> None:
    tenant, operator = tenant_of(router, "t1", clients), clients.enter_context(node_of(router.ports[0]))
    for kind in ("connection", "router.link"):
        seen = {row["identity"] for row in tenant.query(kind)}
        rows = [row for row in operator.query(kind) if row["tenantIdentity"] in seen]
        assert {row["tenantIdentity"] for row in rows} == seen
        for row in rows:
            assert operator.get("READ", type=PREFIX + kind, identity=row["identity"])["name"] == row["name"]
            assert tenant.get("READ", type=PREFIX + kind, identity=row["tenantIdentity"])["name"] == row["name"]
            assert tenant.refused("READ", type=PREFIX + kind, identity=row["identity"])[0] == 404
            assert int(row["identity"]) < 1000
    own = [row for row in operator.query("connection") if row["identity"] == told(operator.connection)]
    assert [row["tenantIdentity"] for row in own] == [None]


@pytest.mark.parametrize("identity", ["", "-1", "x", "1" * 18, "1" * 30, "٣"])
def test_an_identity_that_was_never_given_is_of_nothing(
    router: RunningRouter, clients: ExitStack, identity: str
) -> None:
    node = tenant_of(router, "t1", clients)
    assert node.refused("READ", type=f"{PREFIX}connection", identity=identity)[0] in (400, 404)


def test_a_peer_that_is_refused_is_told_no_count(router: RunningRouter) -> None:
    told = []
    for _ in range(MANY):
        with Peer(router.ports[1], opened=False) as peer:
            peer.open(hostname="no/tenant")
            assert peer.expect_close() is not None
            told.append(peer.number)
    assert told != sorted(told)


def test_a_client_of_no_tenant_is_told_its_number(router: RunningRouter, clients: ExitStack) -> None:
    operator = clients.enter_context(node_of(router.ports[0]))
    with Peer(router.ports[1], opened=False) as peer:
        peer.open(hostname=None)
        assert str(peer.number) in {row["identity"] for row in operator.query("connection")}


def test_the_tags_of_deliveries_count_no_messages_of_others(router: RunningRouter) -> None:
    def tags_of(peer: Peer, count: int) -> list[bytes | None]:
        """Return the tags of messages to a new receiver."""
        receiver, sender = peer.attach_receiver("q", count), peer.attach_sender("q")
        tags = []
        for _ in range(count):
            peer.send_message(sender, b"x", settled=True)
            transfer = peer.expect(Transfer)
            assert transfer.handle == receiver.remote_handle
            tags.append(transfer.delivery_tag)
        return tags

    with Peer(router.ports[1], hostname="t1") as own:
        before = tags_of(own, 2)
    with Peer(router.ports[1], hostname="t2") as other:
        tags_of(other, 7)
    with Peer(router.ports[1], hostname="t1") as own:
        assert tags_of(own, 2) == before
