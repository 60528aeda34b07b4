"""A router with two workers as one router in management, whichever worker is asked."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families
from proton import Message
from proton.reactor import AtMostOnce
from proton.utils import LinkDetached

from tests.management.node import NODE, PREFIX, Node, node_of
from tests.routers import DEADLINE_S, ROOT, RunningRouter, process, stopped_cleanly
from tests.tools.live import run
from tests.waiting import until
from tests.workers.clients import page
from trouter.management.status import NOT_IMPLEMENTED

TWO = "router {\n    id: A\n    mode: interior\n    workers: 2\n    drainTimeoutSeconds: 5\n}\n"
LISTENER = "listener {\n    name: amqp\n    host: 127.0.0.1\n    port: 0\n    saslMechanisms: ANONYMOUS\n}\n"
PAGES = "listener {\n    name: pages\n    host: 127.0.0.1\n    port: 0\n    http: yes\n}\n"
READER = """policy {
    enableVhostPolicy: yes
}
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: {
        $default: {
            remoteHosts: *
            sources: *
            targets: *
            allowDynamicSource: yes
            management: read
        }
    }
}
"""
FIRST, SECOND = "A", "A.2"
WORKER = {FIRST: 1, SECOND: 2}


@contextmanager
def two_workers(folder: Path, sections: str = LISTENER + PAGES, section: str = TWO) -> Iterator[RunningRouter]:
    """Run a router with two workers, which must stop cleanly."""
    with process(section + sections, folder) as router:
        router.wait_for_line(r"MAIN \(notice\) 2 workers serve")
        router.wait_for_line(r"\[W1\] router A.2 is a neighbour")
        with stopped_cleanly(router):
            yield router


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Return one router for the tests that leave it as it was."""
    with two_workers(tmp_path_factory.mktemp("view")) as running:
        yield running


class Both(NamedTuple):
    """A requester at each worker."""

    first: Node
    second: Node


@contextmanager
def both_of(port: int, address: str = "$management", **options: Any) -> Iterator[Both]:
    """Connect until both workers have taken a connection: one that has given no sign of life for a while gets none."""
    nodes: dict[str, Node] = {}

    def met_both() -> bool:
        node = Node(port, address, **options)
        if nodes.setdefault(node.connection.conn.remote_container, node) is not node:
            node.close()
        return len(nodes) == 2

    try:
        until(met_both)
        yield Both(nodes[FIRST], nodes[SECOND])
    finally:
        for node in nodes.values():
            node.close()


@pytest.fixture
def both(router: RunningRouter) -> Iterator[Both]:
    with both_of(router.port) as nodes:
        yield nodes


@pytest.fixture(params=[FIRST, SECOND])
def asked(request: pytest.FixtureRequest, both: Both) -> Node:
    """Return each of the two requesters in turn."""
    return both.first if request.param == FIRST else both.second


def pid_of(router: RunningRouter, place: int) -> int:
    """Return the process id of the worker that runs with this number now."""
    found = router.matching(rf"\[W{place}\] Operational, 1 Threads Running \(process ID \d+\)")[-1]
    return int(found.rpartition("process ID ")[2].rstrip(")"))


@contextmanager
def node_at(port: int, worker: str) -> Iterator[Node]:
    """Return a requester at one worker: they get the connections in turn."""
    for _ in range(4):
        with node_of(port) as node:
            if node.connection.conn.remote_container == worker:
                yield node
                return
    raise AssertionError(f"no connection came to {worker}")


def container_of(node: Node) -> str:
    return str(node.connection.container.container_id)  # proton's client has one for each connection


def test_connections_of_all_workers_are_listed_with_their_worker(both: Both, asked: Node) -> None:
    rows = asked.query("connection")
    assert [each["worker"] for each in rows] == [1, 2]
    assert {each["role"] for each in rows} == {"normal"}
    assert len({each["identity"] for each in rows}) == 2


def test_columns_that_a_query_names_may_have_the_worker(asked: Node) -> None:
    rows = asked.query("connection", ["worker", "identity"])
    assert [list(each) for each in rows] == [["worker", "identity"]] * 2
    assert [each["worker"] for each in rows] == [1, 2]


def test_links_of_all_workers_are_listed_without_those_between_them(asked: Node) -> None:
    rows = asked.query("router.link")
    assert [each["worker"] for each in rows] == [1, 1, 2, 2]
    assert {each["linkType"] for each in rows} == {"endpoint"}
    assert len({each["identity"] for each in rows}) == 4


@pytest.mark.parametrize("kind", ["router.link", "router.address", "listener", "logStats"])
def test_pages_go_through_all_workers(asked: Node, kind: str) -> None:
    whole = [each["identity"] for each in asked.query(kind, ["identity"])]
    paged: list[str] = []
    while page := asked.query(kind, ["identity"], offset=len(paged), count=3):
        paged += [each["identity"] for each in page]
    assert paged == whole
    assert [each["identity"] for each in asked.query(kind, ["identity"], offset=1, count=2)] == whole[1:3]


@pytest.mark.attack
@pytest.mark.parametrize("kind", ["router.link", "router.address", "denial", "alarm", "connection", None])
def test_a_page_beyond_all_rows_is_empty_however_large_its_numbers(asked: Node, kind: str | None) -> None:
    assert asked.query(kind, ["identity"], offset=2**62, count=2**62) == []
    assert asked.query("connection", ["identity"], offset=0, count=2**63 - 1)


def test_an_address_is_one_row_with_the_consumers_of_all(both: Both, asked: Node) -> None:
    receivers = [each.connection.create_receiver("jobs", credit=0) for each in both]

    def rows() -> list[dict[str, Any]]:
        found = [each for each in asked.query("router.address") if each["name"] == "M0jobs"]
        return found if found and found[0]["subscriberCount"] == 2 else []

    assert [each["remoteCount"] for each in until(rows, "both consumers")] == [0]
    assert asked.get("READ", type="router.address", identity="M0jobs")["subscriberCount"] == 2
    for each in receivers:
        each.close()


def counts_of(node: Node, address: str) -> tuple[int, int] | None:
    """Return how many deliveries came for an address and went out; None if the address is not listed."""
    rows = [each for each in node.query("router.address") if each["name"] == f"M0{address}"]
    assert len(rows) < 2
    return None if not rows else (rows[0]["deliveriesIngress"], rows[0]["deliveriesEgress"])


@pytest.mark.parametrize("leaving", [FIRST, SECOND])
def test_the_counts_of_an_address_do_not_fall_when_the_users_of_one_worker_leave(
    both: Both, asked: Node, leaving: str
) -> None:
    """They go on where they were when the address has users again."""
    near, far = (both.first, both.second) if leaving == SECOND else (both.second, both.first)
    address = f"leaving.{leaving}.{container_of(asked)}"
    kind = {"type": "router.address", "identity": f"M0{address}"}
    sender = near.connection.create_sender(address, options=AtMostOnce())
    for number, receiving in enumerate((far, near), 1):
        receiver = receiving.connection.create_receiver(address, credit=1)
        near.connection.wait(partial(has_credit, sender), timeout=DEADLINE_S)
        sender.send(Message(body=number))
        near.query("router", ["name"])  # which takes the message along
        assert receiver.receive(timeout=DEADLINE_S).body == number
        assert counts_of(asked, address) == (number, number)
        receiver.close()
        assert counts_of(asked, address) == (number, number)
        row = asked.get("READ", **kind)
        assert (row["deliveriesEgress"], row["distribution"], row["subscriberCount"]) == (number, "balanced", 0)
        assert row["type"] == f"{PREFIX}router.address"
    sender.close()
    until(lambda: counts_of(asked, address) is None, "a worker to hear that the other one has no consumer")
    assert asked.ask("READ", **kind).status == 404
    receiver = near.connection.create_receiver(address, credit=1)
    assert counts_of(asked, address) == (2, 2)
    receiver.close()


def test_the_router_is_one_row(asked: Node) -> None:
    (row,) = asked.query("router")
    assert (row["id"], row["name"], row["identity"]) == (FIRST, FIRST, "1")
    assert (row["connectionCount"], row["linkCount"], row["nodeCount"], row["workerThreads"]) == (2, 4, 0, 2)
    for names in ({"name": FIRST}, {"identity": "1"}):
        assert asked.get("READ", type="router", **names)["connectionCount"] == 2
    (parts,) = [each for each in asked.query() if each["type"] == "org.apache.qpid.dispatch.router"]
    assert parts["connectionCount"] == 2


def test_the_counts_of_the_policy_are_of_all_workers(router: RunningRouter, both: Both, asked: Node) -> None:
    """They leave out the connections between the workers."""
    before = int(asked.query("policy")[0]["connectionsProcessed"])
    with both_of(router.port):
        counts = asked.query("policy")[0]
        assert int(counts["connectionsCurrent"]) == len(asked.query("connection")) == 4
        assert int(counts["connectionsProcessed"]) >= before + 2


def test_other_workers_are_no_routers_of_the_network(asked: Node) -> None:
    assert [each["id"] for each in asked.query("router.node")] == [FIRST]
    nodes = set(asked.get("GET-MGMT-NODES"))  # each can be asked alone
    assert nodes == {"amqp:/_topo/0/A/$management", "amqp:/_topo/0/A.2/$management"}
    assert {"RA", "RA.2"}.isdisjoint(each["name"] for each in asked.query("router.address"))


def test_a_standalone_router_stays_one(tmp_path: Path) -> None:
    with (
        two_workers(tmp_path, LISTENER, TWO.replace("    mode: interior\n", "")) as router,
        both_of(router.port) as nodes,
    ):
        for node in nodes:
            (row,) = node.query("router")
            assert (row["mode"], row["nodeCount"]) == ("standalone", 0)
            assert node.query("router.node") == node.node("GET-MGMT-NODES") == []


def test_the_configuration_is_listed_once(asked: Node) -> None:
    assert [each["name"] for each in asked.query("listener")] == ["amqp", "pages"]
    assert asked.query("connector") == []
    every = asked.query()
    identities = [(each["type"], each["identity"]) for each in every]
    assert len(set(identities)) == len(identities)
    listeners = [each["identity"] for each in every if each["type"] == "org.apache.qpid.dispatch.listener"]
    assert [asked.get("READ", type="listener", name=name)["identity"] for name in ("amqp", "pages")] == listeners


def test_a_connection_is_found_and_closed_at_any_worker(router: RunningRouter, both: Both) -> None:
    for asks, at in ((both.first, SECOND), (both.second, FIRST)):
        with both_of(router.port) as others:
            goes = others.first if at == FIRST else others.second
            container = container_of(goes)
            (row,) = [each for each in asks.query("connection") if each["container"] == container]
            found = asks.get("READ", type="connection", identity=row["identity"])
            assert (found["container"], found["worker"]) == (container, WORKER[at])
            asks.get("UPDATE", {"adminStatus": "deleted"}, type="connection", identity=row["identity"])
            router.wait_for_line(rf"\[W{WORKER[at]}\] \[C{row['identity']}\] closed by management")


def test_what_no_worker_has_is_not_found(asked: Node) -> None:
    assert asked.ask("READ", type="connection", identity="999999").status == 404


@pytest.mark.parametrize("operation", ["RELOAD", "CHECK", "APPLY", "CONFIRM-CHANGE", "REVERT-CHANGE", "GET-CHANGE"])
def test_operations_on_the_node_are_those_of_no_other_type(asked: Node, operation: str) -> None:
    assert asked.refused(operation, "", type=PREFIX + "listener", name="amqp")[0] == NOT_IMPLEMENTED


def test_a_worker_can_be_asked_alone(router: RunningRouter) -> None:
    with both_of(router.port, "_topo/0/A.2/$management") as nodes:
        for node in nodes:
            rows = node.query("connection")
            assert {each["role"] for each in rows} == {"normal", "inter-router"}
            assert not any("worker" in each for each in rows)
            assert [each["id"] for each in node.query("router")] == [SECOND]


def test_the_schema_has_the_worker_where_rows_have_it(asked: Node) -> None:
    types = asked.get("GET-SCHEMA")["entityTypes"]
    assert "worker" in types["connection"]["attributes"]
    assert "worker" not in types["router"]["attributes"]


def test_the_log_names_the_worker_of_each_line(asked: Node) -> None:
    texts = [each[2] for each in asked.get("GET-LOG")]
    assert any(text.startswith("[W1] ") for text in texts)
    assert any(text.startswith("[W2] ") for text in texts)


def test_the_newest_lines_of_the_log_are_those_of_all_workers(both: Both, asked: Node) -> None:
    """For each request the other worker is asked too, which logs its refusal first."""
    for _ in range(3):
        for each in both:
            each.refused("READ", name="nobody")
    entries = asked.node("GET-LOG", module="AGENT", limit=4)
    assert [entry[2].partition(" ")[0] for entry in entries] == ["[W2]", "[W1]", "[W1]", "[W2]"]
    assert all(isinstance(entry[5], int) for entry in entries)


def test_of_all_types_those_are_listed_that_have_a_column(asked: Node) -> None:
    rows = asked.query(names=["host", "port"])
    assert len(rows) == 2
    assert {each["host"] for each in rows} == {"127.0.0.1"}


def test_a_profile_is_that_of_all_workers_each_with_its_number(asked: Node) -> None:
    asked.node("PROFILE", start=True)
    asked.query("router.link")
    report = asked.node("PROFILE", stop=True)
    _, first, second = re.split(r"^worker \d:$", report, flags=re.MULTILINE)
    for each in (first, second):
        assert "cumulative" in each
        assert "_list_links" in each or "query.py" in each
    assert asked.refused("PROFILE", stop=True) == (400, "PROFILE was not started")


def test_a_profile_of_one_worker_is_had_by_its_id(router: RunningRouter) -> None:
    with node_of(router.port, "_topo/0/A.2/$management") as second, node_at(router.port, FIRST) as whole:
        second.node("PROFILE", start=True)
        assert "worker" not in second.node("PROFILE", stop=True).partition("\n")[0]
        assert whole.refused("PROFILE", stop=True)[0] == 400


@pytest.mark.parametrize("by", ["", "process", "connection", "user", "vhost"])
def test_memory_is_that_of_all_workers(asked: Node, by: str) -> None:
    rows = asked.get("GET-MEMORY", **({"by": by} if by else {}))
    clients = [each for each in rows if each.get("vhost") == "127.0.0.1"]
    if by in ("connection", "user", "vhost"):
        assert sum(each["connections"] for each in clients) == 2
        assert len(clients) == (2 if by == "connection" else 1)
    elif by == "process":
        assert len(rows) == 1
    else:
        assert [each["count"] for each in rows if each["name"] == "qd_connection_t"] == [4]  # with those of the mesh


def test_stat_has_a_column_for_the_worker_of_connections(router: RunningRouter, both: Both) -> None:
    command = [sys.executable, "-m", "trouter", "stat", "-c", "--csv", "-b", f"127.0.0.1:{router.port}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    rows = list(csv.DictReader(shown.stdout.splitlines()))
    assert {each["worker"] for each in rows} == {"1", "2"}


def tool(port: int, *words: str) -> subprocess.Popen[str]:
    """Start `trouter WORDS`."""
    command = [sys.executable, "-m", "trouter", *words, "-b", f"127.0.0.1:{port}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def ended(started: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Return the exit status and the output of a tool."""
    out, err = started.communicate(timeout=DEADLINE_S)
    return started.returncode, out, err


def test_stat_has_a_column_for_the_worker_of_links_if_the_answer_is_of_all(router: RunningRouter, both: Both) -> None:
    def rows(*words: str) -> list[dict[str, str]]:
        status, out, err = ended(tool(router.port, "stat", "-l", "--csv", *words))
        assert (status, err) == (0, "")
        return list(csv.DictReader(out.splitlines()))

    assert {each["worker"] for each in rows()} == {"1", "2"}
    assert not any("worker" in each for each in rows("-r", SECOND))


@pytest.mark.parametrize("kind", ["links", "connections"])
def test_top_has_a_column_for_the_worker(router: RunningRouter, both: Both, kind: str) -> None:
    status, out, err = ended(tool(router.port, "top", kind, "--once", "--interval", "0.2"))
    assert (status, err) == (0, "")
    _, heads, _, *rows = out.splitlines()
    assert heads.split()[-1] == "worker"
    assert {each.split()[-1] for each in rows} == {"1", "2"}


def test_top_shows_the_load_of_each_worker(router: RunningRouter, both: Both) -> None:
    status, out, err = ended(tool(router.port, "top", "workers", "--once", "--interval", "0.2", "--json"))
    assert (status, err) == (0, "")
    rows = json.loads(out)["workers"]
    assert sorted(each["worker"] for each in rows) == [1, 2]
    assert sum(each["connectionCount"] for each in rows) == 3  # with that of top
    assert sum(each["deliveriesIn"] for each in rows) > 0
    assert all(each["rates"].keys() == {"deliveriesIn", "deliveriesOut"} for each in rows)


def test_the_tools_name_a_worker_that_hangs_and_show_the_rest(tmp_path: Path) -> None:
    # the first worker alone serves it
    at_first = LISTENER.replace("name: amqp", "name: own\n    role: route-container")
    with two_workers(tmp_path, LISTENER + at_first) as router:
        own = int(router.wait_for_line(r"\[W1\] Listening on 127\.0\.0\.1:(\d+) \(own\)")[1])
        second = pid_of(router, 2)
        os.kill(second, signal.SIGSTOP)
        try:
            started = {
                name: tool(own, *words.split(), "--timeout", str(DEADLINE_S))
                for name, words in {
                    "stat": "stat -c --csv",
                    "manage": "manage query --type connection",
                    "health": "health --ready",
                }.items()
            }
            found = {name: ended(each) for name, each in started.items()}
        finally:
            os.kill(second, signal.SIGCONT)
    missing = "incomplete, workers are missing: A.2: "
    for name, (status, out, err) in found.items():
        assert status == 1, (name, out, err)
        if name != "health":
            assert err.startswith(f"trouter {name}: {missing}")
    assert {each["worker"] for each in csv.DictReader(found["stat"][1].splitlines())} == {"1"}
    assert {each["worker"] for each in json.loads(found["manage"][1])} == {1}
    assert f"  {missing}" in found["health"][1]


@pytest.mark.parametrize("place", [1, 2])
def test_a_worker_that_takes_the_place_of_another_one_drains_if_the_others_do(tmp_path: Path, place: int) -> None:
    stays = LISTENER.replace("name: amqp", "name: own\n    drains: no")
    with two_workers(tmp_path, LISTENER + stays) as router:
        own = int(router.wait_for_line(r"\[W1\] Listening on 127\.0\.0\.1:(\d+) \(own\)")[1])
        listens = rf"\[W{place}\] Listening on 127\.0\.0\.1:(\d+) \(amqp\)"
        drains = rf"\[W{place}\] Draining: 0 client connections are closed over [\d.]+ s"
        with node_at(own, SECOND if place == 1 else FIRST) as other:
            assert other.get("DRAIN", over=3600)["state"] != "serving"
            router.wait_for_line(drains)
            os.kill(pid_of(router, place), signal.SIGKILL)
            router.wait_for_line(drains, 2)
            router.wait_for_line(rf"\[W{place}\] Operational", 2)

            def state(wanted: str) -> bool:
                given = other.ask("GET-DRAIN")
                return given.description == "OK" and given.body["state"] == wanted

            until(lambda: state("drained"))
            assert len(router.matching(listens)) == 1
            assert other.get("CANCEL-DRAIN")["state"] == "serving"
            port = int(router.wait_for_line(listens, 2)[1])
            router.wait_for_line(rf"\[W{3 - place}\] Listening on 127\.0\.0\.1:\d+ \(amqp\)", 2)
            with both_of(port):
                assert len(router.matching(drains)) == 2


def test_metrics_are_those_of_all_workers(router: RunningRouter, both: Both) -> None:
    _, text = page(router, "metrics")
    families = list(text_string_to_metric_families(text))
    assert len({each.name for each in families}) == len(families)
    assert all("worker" in sample.labels for each in families for sample in each.samples)
    (connections,) = [each for each in families if each.name == "qdr_connections_total"]
    assert [sample.labels["worker"] for sample in connections.samples] == ["1", "2"]
    (up,) = [each for each in families if each.name == "trouter_worker_up"]
    assert [sample.value for sample in up.samples] == [1, 1]


def test_metrics_of_listeners_and_connectors_leave_out_what_joins_the_workers(router: RunningRouter) -> None:
    families = {each.name: each for each in text_string_to_metric_families(page(router, "metrics")[1])}
    listeners = {sample.labels["listener"] for sample in families["trouter_connections"].samples}
    assert listeners == {"amqp", "pages"}
    assert not families["trouter_connector_up"].samples


def test_a_router_is_ready_with_all_its_workers(router: RunningRouter) -> None:
    assert page(router, "readyz") == (200, "OK")
    assert page(router, "healthz") == (200, "OK")


def test_a_worker_that_hangs_is_named_as_missing(tmp_path: Path) -> None:
    with two_workers(tmp_path) as router, both_of(router.port) as nodes:
        pid = pid_of(router, 2)
        os.kill(pid, signal.SIGSTOP)
        try:
            given = nodes.first.ask("QUERY", entityType="connection")
            assert given.status == 200
            assert given.description == "incomplete, workers are missing: A.2: it did not answer within 3 s"
            assert len(given.body["results"]) == 1
            assert page(router, "readyz") == (503, "NOT OK\nworker 2: does not answer\n")
            assert 'trouter_worker_up{worker="2"} 0.0' in page(router, "metrics")[1]
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_tenant_sees_its_own_at_all_workers_and_no_more(tmp_path: Path) -> None:
    tenants = LISTENER.replace("port: 0", "port: 0\n    multiTenant: yes")
    with (
        two_workers(tmp_path, tenants) as router,
        both_of(router.port, virtual_host="one") as own,
        both_of(router.port, virtual_host="two") as others,
    ):
        theirs = {container_of(each) for each in others}
        for node in own:
            rows = node.query("connection")
            assert {each["container"] for each in rows} == {container_of(each) for each in own}
            assert [each["worker"] for each in rows] == [1, 2]
            assert {each["connectionId"] for each in node.query("router.link")} == {each["identity"] for each in rows}
            assert node.ask("QUERY", entityType="listener").status == 403
        foreign = [each["identity"] for each in others.first.query("connection") if each["container"] in theirs]
        assert len(foreign) == 2
        for identity in foreign:
            assert own.first.ask("READ", type="connection", identity=identity).status in (403, 404)


def test_a_dynamic_address_is_its_tenants_own_at_all_workers(tmp_path: Path) -> None:
    tenants = LISTENER.replace("port: 0", "port: 0\n    multiTenant: yes")
    with (
        two_workers(tmp_path, tenants) as router,
        both_of(router.port, virtual_host="one") as own,
        both_of(router.port, virtual_host="two") as others,
    ):
        for owner, far, strangers in ((own.first, own.second, others), (own.second, own.first, others)):
            replies = owner.connection.create_receiver(None, dynamic=True, credit=10)
            address = replies.link.remote_source.address
            for node in strangers:
                with pytest.raises(LinkDetached, match="unauthorized-access"):
                    node.connection.create_sender(address)
                with pytest.raises(LinkDetached, match="unauthorized-access"):
                    node.connection.create_receiver(address)
            with pytest.raises(LinkDetached, match="unauthorized-access"):
                far.connection.create_receiver(address)
            sender = far.connection.create_sender(address, options=AtMostOnce())
            far.connection.wait(partial(has_credit, sender), timeout=DEADLINE_S)
            sender.send(Message(body="an answer"))
            sender.close()
            assert replies.receive(timeout=DEADLINE_S).body == "an answer"


def has_credit(sender: Any) -> bool:
    return int(sender.link.credit) > 0


def test_denials_are_listed_by_their_time(tmp_path: Path) -> None:
    sections = LISTENER + READER.replace("targets: *", "targets: $management")
    with two_workers(tmp_path, sections) as router, both_of(router.port) as nodes:
        addresses = [f"closed-{number}" for number in range(6)]
        for number, address in enumerate(addresses):
            with pytest.raises(LinkDetached):
                nodes[number % 2].connection.create_sender(address)
        for node in nodes:
            rows = node.query("denial")
            times = [row["at"] for row in rows]
            assert times == sorted(times)
            by_worker = [[row["about"] for row in rows if row["worker"] == worker] for worker in (1, 2)]
            assert by_worker == [addresses[::2], addresses[1::2]]
            paged = node.query("denial", ["about"], offset=1, count=2)
            assert [row["about"] for row in paged] == [row["about"] for row in rows[1:3]]


async def test_the_events_of_all_workers_are_those_of_one_router(tmp_path: Path) -> None:
    sections = LISTENER + READER.replace("sources: *", "sources: open")
    with two_workers(tmp_path, sections) as router:
        with both_of(router.port) as nodes:
            for number, node in enumerate(nodes):
                with pytest.raises(LinkDetached):
                    node.connection.create_receiver(f"closed-{number}")
        ran = await run("network", "events", "-b", f"127.0.0.1:{router.port}", "--json")
        assert (ran.err, ran.status) == ("", 0)
        found = [(each["router"], each["details"].get("about", "")) for each in map(json.loads, ran.lines)]
        assert [each for each in found if each[1].startswith("closed")] == [("A", "closed-0"), ("A", "closed-1")]


async def test_a_reader_sees_the_router_that_it_asks_as_one_row_of_the_network_whichever_worker_answers(
    tmp_path: Path,
) -> None:
    with two_workers(tmp_path, LISTENER + READER) as router:
        for command in ("status", "events") * 2:  # connections go to the workers in turn
            ran = await run("network", command, "-b", f"127.0.0.1:{router.port}", "--json")
            assert (ran.err, ran.status) == ("", 0)
            assert {each["router"] for each in map(json.loads, ran.lines) if command == "events"} <= {"A"}
            if command == "status":
                (row,) = json.loads(ran.out)["routers"]
                assert (row["id"], row["workers"]) == ("A", "2")


def test_the_rights_of_a_requester_hold_at_all_workers(tmp_path: Path) -> None:
    with two_workers(tmp_path, LISTENER + READER) as router, both_of(router.port) as nodes:
        for row in nodes.first.query("connection"):
            change = {"adminStatus": "deleted"}
            given = nodes.first.ask("UPDATE", change, type="connection", identity=row["identity"])
            assert given.status == 403
        assert nodes.first.ask("RELOAD").status == nodes.second.ask("RELOAD").status == 403
        assert nodes.first.ask("DRAIN").status == 403
        assert nodes.second.ask("GET-LOG").status == 403
        for node, other in ((nodes.first, "A.2"), (nodes.second, "A")):
            for text in ("_topo/0/{}/$management", "amqp:/_topo/all/{}/$management", "_topo/0/all/$management"):
                with pytest.raises(LinkDetached, match="unauthorized-access"):
                    node.connection.create_sender(text.format(other))


def test_an_answer_goes_to_no_consumer_of_another_worker_whom_its_requester_may_not_send_to(tmp_path: Path) -> None:
    alone = "_topo/0/A.2/$management"
    sections = LISTENER + READER.replace("targets: *", f"targets: $management, {alone}").replace("read", "admin")
    with two_workers(tmp_path, sections) as router, both_of(router.port) as nodes:
        victim = nodes.first.connection.create_receiver("in", credit=10)
        with node_of(router.port, alone) as second:
            until(lambda: any(each["name"] == "M0in" for each in second.query("router.address")))

        nodes.second.send({"operation": "GET-TYPES", **NODE}, reply_to="in")

        assert nodes.second.query("policy", ["managementDenied"]) == [{"managementDenied": 1}]
        assert nodes.first.query("policy", ["managementDenied"]) == [{"managementDenied": 1}]
        assert not victim.fetcher.has_message


def test_a_reload_through_management_reaches_all_workers(tmp_path: Path) -> None:
    with two_workers(tmp_path) as router, both_of(router.port) as nodes:
        before = router.configuration.read_text(encoding="utf-8")
        router.configuration.write_text(before + LISTENER.replace("amqp", "more"), encoding="utf-8")
        assert len(nodes.second.get("RELOAD")["created"]) == 1
        router.wait_for_line(r"\[W1\] Listening on \S+ \(more\)")
        router.wait_for_line(r"\[W2\] Listening on \S+ \(more\)")
        router.configuration.write_text("router {", encoding="utf-8")
        assert nodes.first.ask("RELOAD").status == 400


def test_a_drain_through_management_empties_all_workers(tmp_path: Path) -> None:
    with two_workers(tmp_path) as router, both_of(router.port) as nodes:
        with both_of(router.port) as others:
            assert nodes.first.get("DRAIN", over=0)["total"] == 3  # its own connection stays
            until(lambda: nodes.first.get("GET-DRAIN")["state"] == "drained")
            del others
        listens = r"\[W2\] Listening on 127\.0\.0\.1:(\d+) \(amqp\)"
        before = len(router.matching(listens))
        assert nodes.first.get("CANCEL-DRAIN")["state"] == "serving"
        router.wait_for_line(r"\[W2\] The drain was cancelled")
        port = int(router.wait_for_line(listens, before + 1)[1])  # port 0 of the file may be another one now
        with both_of(port):
            pass
