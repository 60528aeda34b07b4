"""Why messages for an address flow or not, of a router with two workers: asked at one, said of both."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from proton import Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

from tests.management.node import Node
from tests.routers import DEADLINE_S, ROOT, RunningRouter
from tests.waiting import until
from tests.workers.test_view import FIRST, LISTENER, SECOND, TWO, Both, both_of, two_workers


@pytest.fixture(scope="module", params=["interior", "standalone"])
def router(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    section = TWO.replace("interior", request.param)
    with two_workers(tmp_path_factory.mktemp("explained"), LISTENER, section) as running:
        yield running


@pytest.fixture
def both(router: RunningRouter) -> Iterator[Both]:
    with both_of(router.port) as nodes:
        yield nodes


@pytest.fixture(params=[FIRST, SECOND])
def asked(request: pytest.FixtureRequest, both: Both) -> Node:
    return both.first if request.param == FIRST else both.second


def until_explained(node: Node, address: str, right: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the explanation of an address once it is right."""
    found: dict[str, Any] = {}

    def look() -> bool:
        found.clear()
        found.update(node.node("EXPLAIN", address=address))
        return right(found)

    until(look, f"the right one instead of {found}")
    return found


def workers_of(explanation: dict[str, Any], name: str) -> list[int]:
    return sorted(link["worker"] for link in explanation[name])


def test_a_consumer_without_credit_is_named_with_its_worker_whoever_is_asked(both: Both, asked: Node) -> None:
    consumer = both.first.connection.create_receiver("orders", credit=0)
    sender = both.second.connection.create_sender("orders")
    found = until_explained(asked, "orders", lambda each: "no consumer" not in each["verdict"])
    assert (found["consumerCount"], found["senderCount"]) == (1, 1)
    assert (workers_of(found, "consumers"), workers_of(found, "senders")) == ([1], [2])
    (link,) = found["consumers"]
    assert found["verdict"] == (
        f"worker 1: consumers without credit: link {int(link['link'])} on connection {int(link['connection'])}; "
        "worker 2: ready: nothing is under way"
    )
    consumer.close()
    sender.close()


def test_senders_of_both_workers_are_counted_and_what_is_the_same_at_both_is_said_once(both: Both, asked: Node) -> None:
    senders = [each.connection.create_sender("nobody") for each in both]
    found = until_explained(asked, "nobody", lambda each: each["senderCount"] == 2)
    assert found["verdict"] == "no consumer: 1 sender without new credit until one comes"
    assert workers_of(found, "senders") == [1, 2]
    for each in senders:
        each.close()


def test_what_flows_from_one_worker_to_another_has_one_verdict(both: Both, asked: Node) -> None:
    consumer = both.first.connection.create_receiver("goods", credit=10)
    sender = both.second.connection.create_sender("goods")
    another = both.second.connection.create_sender("goods", name="once", options=AtMostOnce())
    both.second.connection.wait(lambda: another.link.credit > 0)
    another.send(Message("one"))
    another.close()
    assert consumer.receive(timeout=DEADLINE_S).body == "one"
    found = asked.node("EXPLAIN", address="goods")
    assert (workers_of(found, "consumers"), workers_of(found, "senders")) == ([1], [2])
    assert found["verdict"] in ("flowing", "ready: nothing is under way")
    consumer.close()
    sender.close()


def test_an_address_that_nobody_uses_is_unknown_to_the_router(asked: Node) -> None:
    assert asked.node("EXPLAIN", address="none")["verdict"].startswith("unknown address")


def test_links_that_are_routed_by_a_container_of_another_worker_are_said_to_be(tmp_path: Path) -> None:
    broker = (
        "listener {\n    host: 127.0.0.1\n    port: 0\n    role: route-container\n    saslMechanisms: ANONYMOUS\n}\n"
    )
    route = "linkRoute {\n    prefix: queues\n    direction: in\n    containerId: broker\n}\n"
    with (
        two_workers(tmp_path, LISTENER + broker + route) as router,
        both_of(router.port) as nodes,
        closing(BlockingConnection(f"127.0.0.1:{router.ports[1]}", container_id="broker")),
    ):
        found = until_explained(nodes.second, "queues.a", lambda each: "refused" not in each["verdict"])
        first, second = found["verdict"].split("; ")
        assert first.startswith("worker 1: senders are routed by queues to container broker on connection ")
        assert second == "worker 2: senders are routed by queues to another worker"


def test_stat_says_why_for_the_router_as_one(router: RunningRouter, both: Both) -> None:
    links = [each.connection.create_receiver("parts", credit=0) for each in both]
    until_explained(both.first, "parts", lambda each: each["consumerCount"] == 2)
    command = [sys.executable, "-m", "trouter", "stat", "--why", "parts", "-b", f"127.0.0.1:{router.port}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert shown.count("verdict") == 1
    assert "worker 1: consumers without credit" in shown
    assert "; worker 2: consumers without credit" in shown
    rows = [line.split() for line in shown.splitlines() if " credit " in line and "verdict" not in line]
    assert [row[-1] for row in rows] == ["1", "2"], shown
    for each in links:
        each.close()
