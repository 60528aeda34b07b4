"""Changes of the configuration of a router with two workers: whichever is asked, all have them, also later ones."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import ConnectionException

from tests.e2e.test_records import of, records_of
from tests.management.node import Node
from tests.routers import RunningRouter, process, stopped_cleanly
from tests.waiting import until
from tests.workers.test_view import FIRST, LISTENER, SECOND, TWO, Both, both_of

ALONE = {FIRST: "_topo/0/A/$management", SECOND: "_topo/0/A.2/$management"}
ADDRESS = {"type": "router.config.address", "name": "made"}
RECORDS = "recordLog {{\n    dir: {folder}\n    maxBytes: 8000000\n}}\n"


@pytest.fixture
def router(tmp_path: Path) -> Iterator[RunningRouter]:
    with process(TWO + LISTENER + RECORDS.format(folder=tmp_path / "records"), tmp_path) as running:
        running.wait_for_line(r"MAIN \(notice\) 2 workers serve")
        running.wait_for_line(r"\[W1\] router A.2 is a neighbour")
        with stopped_cleanly(running):
            yield running


@pytest.fixture
def both(router: RunningRouter) -> Iterator[Both]:
    with both_of(router.port) as nodes:
        yield nodes


def own(port: int, worker: str) -> dict[str, dict[str, Any]]:
    """Return the addresses that one worker has in its configuration, by prefix."""
    node = Node(port, ALONE[worker])
    try:
        return {each["prefix"]: each for each in node.query("router.config.address")}
    finally:
        node.close()


@pytest.mark.parametrize("asked", [FIRST, SECOND])
def test_a_change_is_in_force_at_all_workers_when_it_is_answered(router: RunningRouter, both: Both, asked: str) -> None:
    node = both.first if asked == FIRST else both.second
    made = node.ask("CREATE", {"prefix": "a", "distribution": "multicast"}, **ADDRESS)
    assert (made.status, made.body["prefix"], made.description) == (201, "a", "Created")
    assert [own(router.port, each)["a"]["distribution"] for each in (FIRST, SECOND)] == ["multicast"] * 2
    assert node.ask("CREATE", {"prefix": "a"}, type="router.config.address").status == 400
    assert node.ask("DELETE", type="router.config.address", identity=made.body["identity"]).status == 204
    assert [own(router.port, each) for each in (FIRST, SECOND)] == [{}, {}]
    assert node.ask("DELETE", **ADDRESS).status == 404
    for number in (1, 2):
        router.wait_for_line(rf"\[W{number}\] created address/0")


@pytest.mark.parametrize("asked", [FIRST, SECOND])
def test_an_update_reaches_all_workers_and_a_refused_one_none(router: RunningRouter, both: Both, asked: str) -> None:
    node = both.first if asked == FIRST else both.second
    wrong = node.ask("UPDATE", {"maxFrameSize": "huge"}, type="listener", name="amqp")
    assert (wrong.status, "maxFrameSize" in wrong.description) == (400, True)
    assert node.get("UPDATE", {"maxFrameSize": 4096}, type="listener", name="amqp")["maxFrameSize"] == 4096
    for _ in range(2):  # one at each worker
        connection = Node(router.port).connection
        assert connection.conn.transport.remote_max_frame_size == 4096
        connection.close()
    # An UPDATE of the management node names its entity in the body.
    changed = node.ask("UPDATE", {"name": "log/DEFAULT", "type": "log", "enable": "debug+"}, type="org.amqp.management")
    assert changed.status == 200, changed.description
    for number, each in enumerate(both, 1):
        each.query("router")
        router.wait_for_line(rf"AGENT \(debug\) \[W{number}\] Agent response")


def test_a_created_listener_is_one_of_all_workers(router: RunningRouter, both: Both) -> None:
    attributes = {"host": "127.0.0.1", "port": "0", "saslMechanisms": "ANONYMOUS"}
    both.second.get("CREATE", attributes, type="listener", name="more")
    (row,) = [each for each in both.first.query("listener") if each["name"] == "more"]
    router.wait_for_line(r"\[W2\] Listening on \S+ \(more\)")
    port = router.ports[1]
    with both_of(port) as others:
        assert {each.connection.conn.remote_container for each in others} == {FIRST, SECOND}
    both.first.ask("DELETE", type="listener", identity=row["identity"])

    def refused() -> bool:
        try:
            Node(port).close()
        except (ConnectionException, OSError):
            return True
        return False

    until(refused, "the listener is closed in the parent too")


@pytest.mark.parametrize("killed", [1, 2])
def test_a_worker_that_is_replaced_has_what_management_changed_and_not_a_file_that_is_not_in_force(
    router: RunningRouter, killed: int
) -> None:
    with both_of(router.port) as nodes:
        nodes.second.get("CREATE", {"prefix": "made"}, **ADDRESS)
        nodes.first.get("DELETE", type="recordLog", identity=nodes.first.query("recordLog")[0]["identity"])
    text = router.configuration.read_text(encoding="utf-8")
    router.configuration.write_text(text + "address {\n    prefix: unread\n}\n", encoding="utf-8")
    pid = router.matching(rf"\[W{killed}\] Operational, 1 Threads Running \(process ID \d+\)")[-1]
    os.kill(int(pid.rpartition("process ID ")[2].rstrip(")")), signal.SIGKILL)
    router.wait_for_line(rf"\[W{killed}\] Operational, 1 Threads Running", 2)
    router.wait_for_line(r"is a neighbour", 3)
    assert [[*own(router.port, each)] for each in (FIRST, SECOND)] == [["made"]] * 2
    with both_of(router.port) as nodes:
        assert nodes.first.query("recordLog") == []
        report = nodes.second.get("RELOAD")
        assert (report["created"], report["deleted"]) != ([], [])
    assert [[*own(router.port, each)] for each in (FIRST, SECOND)] == [["unread"]] * 2


def test_a_worker_asked_alone_changes_what_all_have_or_says_whom_to_ask(router: RunningRouter) -> None:
    first, second = (Node(router.port, ALONE[each]) for each in (FIRST, SECOND))
    refused = second.ask("CREATE", {"prefix": "a"}, **ADDRESS)
    assert (refused.status, refused.description) == (
        403,
        "this worker alone cannot change the configuration of the router: ask A",
    )
    assert first.ask("CREATE", {"prefix": "a"}, **ADDRESS).status == 201
    assert [*own(router.port, SECOND)] == ["a"]
    first.close()
    second.close()


def test_a_worker_that_hangs_is_named_and_its_successor_has_the_change(router: RunningRouter, both: Both) -> None:
    pid = router.matching(r"\[W2\] Operational, 1 Threads Running \(process ID \d+\)")[-1]
    number = int(pid.rpartition("process ID ")[2].rstrip(")"))
    os.kill(number, signal.SIGSTOP)
    try:
        made = both.first.ask("CREATE", {"prefix": "a"}, **ADDRESS)
        why = "incomplete, workers are missing: A.2: it has not taken over the configuration yet"
        assert (made.status, made.description) == (201, why)
        (finding,) = [each for each in both.first.query("finding") if "worker 2" in str(each)]
        assert "worker 2 serves with an older configuration" in str(finding)
        why = "incomplete, workers are missing: A.2: it gives no sign of life"  # and nobody waits for it any more
        until(lambda: both.first.ask("QUERY", entityType="connection").description == why, why)
    finally:
        os.kill(number, signal.SIGCONT)
    until(lambda: not [each for each in both.first.query("finding") if "worker 2" in str(each)], "it has taken it over")
    assert [*own(router.port, SECOND)] == ["a"]


def test_the_record_of_a_change_names_who_asked_whichever_worker_was_asked(
    router: RunningRouter, tmp_path: Path
) -> None:
    with both_of(router.port) as nodes:
        number = next(each["identity"] for each in nodes.second.query("connection") if each["worker"] == 2)
        nodes.second.get("CREATE", {"prefix": "a"}, **ADDRESS)
        assert nodes.second.get("RELOAD")["deleted"] != []
    router.stop()
    records = records_of(tmp_path / "records")
    changes = of(records, "management.change")
    assert [(each["op"], str(each["conn"]), each["user"]) for each in changes] == [("CREATE", number, "anonymous")]
    assert sorted(each["by"] for each in of(records, "config.reloaded")) == ["management", "start", "start"]
