"""A tenant's view of the router (security.md R-5c): only its own entities."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from proton import Message
from proton.utils import BlockingConnection, LinkDetached

from tests.management.node import DEADLINE_S, NODE, PREFIX, Node, node_of
from tests.management.test_cost import calls_during
from tests.routers import RunningRouter, running
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.attack

PASSWORD = "secret"
USERS = {"ann": "t1", "bob": "t2", "sub": "t"}
OWNED = ("connection", "router.link", "router.address")


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    folder: Path = tmp_path_factory.mktemp("router")
    for user in USERS:
        put_user(folder / "users", user, PASSWORD.encode())
    (folder / "tenants.json").write_text(json.dumps(USERS))
    configuration = (
        f"router {{ id: R, usersFile: {folder}/users, secureDefaults: yes }}\n"
        "policy { enableVhostPolicy: no }\n"
        "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, authenticatePeer: no }\n"
        "listener { host: 127.0.0.1, port: 0, multiTenant: yes, authenticatePeer: yes, saslMechanisms: PLAIN, "
        f"allowInsecurePlain: loopback, tenantFrom: file:{folder}/tenants.json }}\n"
    )
    with running(configuration, folder) as started:
        yield started


def credentials(user: str) -> dict[str, Any]:
    return {"user": user, "password": PASSWORD, "allow_insecure_mechs": True, "virtual_host": USERS[user]}


@pytest.fixture(scope="module", params=[False, True], ids=["a link", "an anonymous link"])
def both(router: RunningRouter, request: pytest.FixtureRequest) -> Iterator[tuple[Node, Node]]:
    """Yield the nodes of two tenants, each with a receiver; a client outside any tenant's space has one, too."""
    with ExitStack() as stack:
        outside: Any = BlockingConnection(f"127.0.0.1:{router.ports[0]}", timeout=DEADLINE_S)
        stack.callback(outside.close)
        outside.create_receiver("secret/outside")
        outside.create_receiver("t1x/y")
        nodes = [
            stack.enter_context(node_of(router.ports[1], anonymous=request.param, **credentials(user)))
            for user in ("ann", "bob")
        ]
        for number, node in enumerate(nodes, 1):
            node.connection.create_receiver(f"queue{number}", name=f"from-queue{number}")
        yield nodes[0], nodes[1]


def test_a_tenant_sees_its_connections_only(both: tuple[Node, Node]) -> None:
    for node, user, tenant in zip(both, ("ann", "bob"), ("t1/", "t2/"), strict=True):
        (row,) = node.query("connection")
        assert (row["user"], row["tenant"]) == (user, tenant)


def test_a_tenant_sees_its_links_only(both: tuple[Node, Node]) -> None:
    for number, node in enumerate(both, 1):
        rows = node.query("router.link")
        (connection,) = node.query("connection", ["identity"])
        assert {row["connectionId"] for row in rows} == {connection["identity"]}
        assert f"from-queue{number}" in {row["name"] for row in rows}
        own = {row["owningAddr"] for row in rows}
        assert f"M0t{number}/queue{number}" in own


def test_a_tenant_sees_its_addresses_only(both: tuple[Node, Node]) -> None:
    for number, node in enumerate(both, 1):
        keys = {row["key"] for row in node.query("router.address")}
        assert keys == {f"M0t{number}/queue{number}", "Ltemp." + node.reply_to.rpartition("temp.")[2]}


def test_a_tenant_sees_exactly_its_own_entities(both: tuple[Node, Node]) -> None:
    first = both[0]
    assert [row["name"] for row in first.query()] == ["self"]
    kinds = {row["type"].removeprefix(PREFIX) for row in first.query("entity")}
    assert kinds == {"management", *OWNED}
    seen = [{(row["type"], row["identity"]) for row in node.query("entity")} for node in both]
    assert seen[0] & seen[1] == {(PREFIX + "management", "self")}


def test_a_tenant_cannot_read_entities_of_another_tenant(router: RunningRouter, both: tuple[Node, Node]) -> None:
    first, second = both
    for kind in OWNED:
        for row in second.query(kind):
            mine = {each["identity"] for each in first.query(kind)}
            assert row["identity"] not in mine
            assert first.refused("READ", type=PREFIX + kind, identity=row["identity"])[0] == 404
            if kind != "router.link":
                assert first.refused("READ", type=PREFIX + kind, name=row["name"])[0] == 404
    with node_of(router.ports[0]) as operator:
        rows = [row for kind in OWNED for row in operator.query(kind)]
        everything = {row.get("tenantIdentity", row["identity"]) for row in rows}
    for kind in OWNED:
        assert {row["identity"] for row in first.query(kind)} < everything
        own = first.query(kind)[0]
        assert first.get("READ", type=PREFIX + kind, identity=own["identity"])["identity"] == own["identity"]
        assert first.get("READ", type=PREFIX + kind, name=own["name"])["name"] == own["name"]


@pytest.mark.parametrize(
    "kind", ["router", "listener", "log", "logStats", "vhost", "policy", "router.node", "allocator", "denial", "alarm"]
)
def test_nothing_else_is_listed_or_read(both: tuple[Node, Node], kind: str) -> None:
    node = both[0]
    assert node.refused("QUERY", {"attributeNames": []}, **NODE, entityType=kind)[0] == 403
    assert node.refused("READ", type=PREFIX + kind, name="router/R")[0] == 404


CLOSED: dict[str, dict[str, Any]] = {
    "GET-LOG": {}, "GET-MEMORY": {}, "RELOAD": {}, "PROFILE": {"start": ""}, "EXPLAIN": {"address": "queue2"},
    "EXPLAIN-POLICY": {"user": "alice"}, "CHECK": {},
    "APPLY": {}, "CONFIRM-CHANGE": {}, "REVERT-CHANGE": {}, "GET-CHANGE": {},
    "GET_LOG": {}, "get-log": {}, "CALLME": {"identity": "1", "type": PREFIX + "dummy"}, "WHATEVER": {},
}  # fmt: skip


@pytest.mark.parametrize("operation", CLOSED)
def test_a_tenant_may_not_run_operations_on_the_whole_router(both: tuple[Node, Node], operation: str) -> None:
    assert both[0].refused(operation, **{**NODE, **CLOSED[operation]}) == (
        403,
        f"Forbidden: {operation.upper().replace('_', '-')} by a tenant",
    )


def test_get_rights_shows_a_tenant_its_level_and_that_the_client_is_a_tenant(both: tuple[Node, Node]) -> None:
    rights = both[0].node("GET-RIGHTS")
    assert (rights["level"], rights["tenant"]) == ("read", True)


def test_no_tenant_changes_any_entity(both: tuple[Node, Node]) -> None:
    first, second = both
    new = {"host": "127.0.0.1", "port": "0"}
    assert first.refused("CREATE", new, type=PREFIX + "listener", name="mine")[0] == 403
    assert first.refused("DELETE", type=PREFIX + "listener", name="mine")[0] == 403
    for node in both:
        (row,) = node.query("connection")
        change = {"adminStatus": "deleted"}
        assert first.refused("UPDATE", change, type=PREFIX + "connection", identity=row["identity"])[0] == 403
        assert first.refused("update", {**change, "identity": row["identity"]}, **NODE)[0] == 403
    assert second.query("connection")


def test_the_types_are_the_same_for_every_user(router: RunningRouter, both: tuple[Node, Node]) -> None:
    with node_of(router.ports[0]) as operator:
        for operation in ("GET-TYPES", "GET-OPERATIONS", "GET-ATTRIBUTES", "GET-SCHEMA"):
            assert both[0].node(operation) == operator.node(operation)
    assert both[0].node("GET-MGMT-NODES") == []
    assert both[0].node("READ")["identity"] == "self"


def test_pages_are_not_mixed_up(router: RunningRouter) -> None:
    """Both use the same reply address."""
    with ExitStack() as stack:
        nodes = []
        for user in ("ann", "bob"):
            node = stack.enter_context(node_of(router.ports[1], **credentials(user)))
            node.receiver = node.connection.create_receiver("answers", credit=100)
            node.reply_to = "answers"
            for number in range(4):
                node.connection.create_receiver(f"{user}{number}", name=f"{user}{number}")
            nodes.append(node)
        pages: list[list[str]] = [[], []]
        for offset in range(0, 20, 2):
            for node, page in zip(nodes, pages, strict=True):
                rows = node.query("router.address", ["key"], offset=offset, count=2)
                page += [str(row["key"]) for row in rows]
    for page, user, tenant in zip(pages, ("ann", "bob"), ("t1", "t2"), strict=True):
        assert {f"M0{tenant}/{user}{number}" for number in range(4)} < set(page)
        assert all(key.startswith((f"M0{tenant}/", "Ltemp.")) for key in page)


@pytest.mark.parametrize("reply_to", ["t2/answers", "/t2/answers", "answers", "_local/answers", "_topo/0/R/answers"])
def test_no_answer_goes_to_another(router: RunningRouter, both: tuple[Node, Node], reply_to: str) -> None:
    first, second = both
    outside: Any = BlockingConnection(f"127.0.0.1:{router.ports[0]}", timeout=DEADLINE_S)
    spies = [second.connection.create_receiver("answers", name="spy", credit=5)]
    spies += [outside.create_receiver(address, credit=5) for address in ("answers", "_local/answers")]
    first.send({"operation": "GET-SCHEMA", **NODE}, reply_to=reply_to)
    assert first.node("READ")  # the answer comes after the other tenant's
    second.node("READ")
    outside.create_sender("answers").close()
    assert not any(each.fetcher.has_message for each in spies)
    spies[0].close()
    outside.close()


def test_no_client_is_given_the_requests_of_its_own_tenant(both: tuple[Node, Node]) -> None:
    with pytest.raises(LinkDetached, match="unauthorized-access"):
        both[0].connection.create_receiver("$management")


def test_a_tenant_with_the_prefix_of_another_name_sees_nothing_of_the_other_tenant(
    router: RunningRouter, both: tuple[Node, Node]
) -> None:
    assert both
    with node_of(router.ports[1], **credentials("sub")) as node:
        assert [row["key"] for row in node.query("router.address")] == ["Ltemp." + node.reply_to.rpartition("temp.")[2]]


def test_a_message_that_cannot_be_read_is_answered_to_its_tenant(both: tuple[Node, Node]) -> None:
    node = both[0]
    node.sender.send(
        Message(address="$management", reply_to=node.reply_to, properties={"operation": 5}), timeout=DEADLINE_S
    )
    assert node.receive().status == 400


def test_a_listing_of_addresses_looks_at_the_tenants_own_only(both: tuple[Node, Node], router: RunningRouter) -> None:
    with node_of(router.ports[0]) as outside:
        for number in range(100):
            outside.connection.create_receiver(f"of/others{number}")
        own = both[0].query("router.address")  # once, so that the tenants' rows are known from then on
        for number in range(100, 150):
            outside.connection.create_receiver(f"of/others{number}")
        calls = calls_during(outside, lambda: both[0].query("router.address"))
        assert calls["owned.is_own"] <= 3 * len(own) + 3
