"""`trouter network status` through one router of a network: interior and edge routers, and those that do not answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tests.interop.strict.conftest import dial
from tests.interop.strict.routers import Interior
from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, interior, network, router_port, wait_for_row
from tests.routers import RunningRouter, running
from tests.tools.live import Ran, run

pytestmark = pytest.mark.slow

#: A policy under which nobody else may ask: what other routers request is refused, too.
CLOSED = (
    "policy { enableVhostPolicy: yes, routerManagement: none }\n"
    "vhost { hostname: $default, allowUnknownUser: yes,"
    " groups: { $default: { users: *, remoteHosts: *, sources: *, targets: * } } }"
)
#: The same policy in two spellings, and another one.
OPEN_POLICY = "vhost { hostname: shop, maxConnections: 5, groups: { $default: { users: *, sources: a } } }"
RESPELT = (
    "vhost {\n  maxConnections: 5\n  hostname: shop\n"
    "  groups: {\n    $default: {\n      sources: a\n      users: *\n    }\n  }\n}"
)
WIDER = "vhost { hostname: shop, maxConnections: 6, groups: { $default: { users: *, sources: a } } }"


async def status(router: RunningRouter, *options: str) -> Ran:
    return await run("network", "status", "-b", f"127.0.0.1:{client_port(router)}", "--timeout", "30", *options)


async def rows(router: RunningRouter) -> tuple[Ran, dict[str, dict[str, Any]]]:
    """Return what was printed as JSON, and its rows by router."""
    ran = await status(router, "--json")
    return ran, {row["id"]: row for row in json.loads(ran.out)["routers"]}


@pytest.fixture
def routers(tmp_path: Path) -> Iterator[Mapping[str, RunningRouter]]:
    """Three interior routers in a row, and an edge router at the first one."""
    more = {"A": f"{OPEN_POLICY}\n{EDGE_LISTENER}", "B": RESPELT, "C": WIDER}
    with ExitStack() as stack:
        inner = stack.enter_context(network(tmp_path, {"A": [], "B": ["A"], "C": ["B"]}, more))
        edge_router = stack.enter_context(running(edge("E", [edge_port(inner["A"])], OPEN_POLICY), tmp_path))
        wait_for_row(inner["A"], "connection", lambda row: row["role"] == "edge" and row["container"] == "E")
        wait_for_row(edge_router, "connection", lambda row: row["role"] == "edge" and row["container"] == "A")
        yield {**inner, "E": edge_router}


async def test_every_router_is_shown_from_any_router(routers: Mapping[str, RunningRouter]) -> None:
    for name in "ACE":
        ran, found = await rows(routers[name])
        assert (ran.status, ran.err) == (0, "")
        assert {router: row["mode"] for router, row in found.items()} == {
            "A": "interior", "B": "interior", "C": "interior", "E": "edge",
        }  # fmt: skip
        assert {row["drainState"] for row in found.values()} == {"serving"}
        assert all(row["version"] and row["uptimeSeconds"] >= 0 and row["findings"]["unsafe"] for row in found.values())


async def test_routers_with_the_same_policy_have_the_same_digest_however_it_is_written(
    routers: Mapping[str, RunningRouter],
) -> None:
    _, found = await rows(routers["B"])
    digests = {name: row["policyDigest"] for name, row in found.items()}
    assert digests["A"] == digests["B"] == digests["E"] != digests["C"]
    lines = (await status(routers["B"])).lines
    assert lines[0].endswith("4 of 4 routers answered")
    assert lines[-1] == (
        f"the routers have 2 policies: {digests['A'][:8]} at A, B, E; {digests['C'][:8]} at C"
    )  # fmt: skip


async def test_what_is_down_is_named_below_the_table(tmp_path: Path) -> None:
    down = "connector { name: broker, host: 127.0.0.1, port: 1, role: normal, saslMechanisms: ANONYMOUS }"
    certificate, key = Authority(tmp_path, "CA").pair("127.0.0.1")
    profile = f"sslProfile {{ name: mine, certFile: {certificate}, privateKeyFile: {key} }}"
    with network(tmp_path, {"A": [], "B": ["A"]}, {"B": f"{down}\n{profile}"}) as routers:
        wait_for_row(
            routers["B"], "connector", lambda row: row["name"] == "broker" and "refused" in row["connectionMsg"]
        )
        ran = await status(routers["A"])
        assert ran.status == 0
        assert (
            "B: connector broker has no connection: Connection to 127.0.0.1:1 failed: Connection refused" in ran.lines
        )
        (line,) = [line for line in ran.lines if line.split()[:2] == ["B", "interior"]]
        assert " 2 days " in line


async def test_a_router_that_refuses_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    with network(tmp_path, {"A": [], "B": ["A"]}, {"B": CLOSED}) as routers:
        ran, found = await rows(routers["A"])
        assert ran.status == 1
        assert ran.err == "trouter network status: 1 of 2 routers did not answer: B\n"
        assert (found["A"]["fault"], found["B"]["fault"]) == (
            "",
            "forbidden: You are not allowed to perform this operation.",
        )


async def test_a_router_that_takes_no_request_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    with (
        running(interior("A", {}), tmp_path) as router,
        Interior(dial(router_port(router)), "P", dials=True) as silent,
    ):
        silent.wait_met("A")
        wait_for_row(router, "router.node", lambda row: row["id"] == "P")
        ran = await status(router, "--timeout", "3")
        assert ran.status == 1
        assert ran.err == "trouter network status: 1 of 2 routers did not answer: P\n"
        assert [line.split()[:3] for line in ran.lines[3:5]] == [["A", "interior", "up"], ["P", "interior", "no"]]
        assert any(line.startswith("P: _topo/0/P/$management did not take the request: ") for line in ran.lines)


async def test_a_standalone_router_is_a_network_of_one(tmp_path: Path) -> None:
    with running("router { mode: standalone, id: S }\nlistener { host: 127.0.0.1, port: 0 }\n", tmp_path) as router:
        ran, found = await rows(router)
        assert (ran.status, list(found)) == (0, ["S"])
        assert found["S"]["mode"] == "standalone"


async def test_an_edge_router_without_an_uplink_says_that_it_sees_no_other(tmp_path: Path) -> None:
    with running(edge("E", [1]), tmp_path) as router:
        ran, found = await rows(router)
        assert (ran.status, list(found)) == (1, ["E"])
        assert ran.err == "trouter network status: E is an edge router, which sees no other: it has no uplink\n"
