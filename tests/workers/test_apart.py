"""What joins the workers of a router is out of the reach of everyone else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.peer import Peer
from tests.management.node import node_of
from tests.routers import RunningRouter, process, stopped_cleanly
from trouter.config import texts
from trouter.config.schema import BadValue
from trouter.config.workers import WORKERS_HOST
from trouter.connections.failover import FailoverList
from trouter.net.dialing import Endpoint

ROUTER = """router {
    id: A
    mode: interior
    workers: 2
}
listener {
    host: 127.0.0.1
    port: 0
    saslMechanisms: ANONYMOUS
}
listener {
    host: 127.0.0.1
    port: 0
    role: inter-router
    saslMechanisms: ANONYMOUS
    allowInsecureRole: yes
}
"""


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with process(ROUTER, tmp_path_factory.mktemp("apart")) as running:
        running.wait_for_line(r"MAIN \(notice\) 2 workers serve")
        running.wait_for_line(r"\[W1\] router A.2 is a neighbour")
        with stopped_cleanly(running):
            yield running


@pytest.mark.parametrize("kind", ["listener", "connector"])
def test_management_creates_nothing_that_joins_workers(router: RunningRouter, kind: str) -> None:
    with node_of(router.port) as node:
        before = node.query(kind)
        given = node.ask("CREATE", {"host": WORKERS_HOST, "port": "2", "role": "inter-router"}, type=kind, name="x")
        assert given.status in (400, 403)
        assert node.query(kind) == before


def test_no_text_of_a_file_or_a_peer_names_another_worker() -> None:
    with pytest.raises(BadValue):
        texts.host(WORKERS_HOST)
    dials = FailoverList(Endpoint("127.0.0.1", "5672", "amqp"))
    dials.apply_server_list([{"network-host": WORKERS_HOST, "port": 2}, {"network-host": "other", "port": 2}])
    assert len(dials) == 2


def test_a_peer_that_claims_to_be_a_worker_is_listed(router: RunningRouter) -> None:
    with Peer(router.ports[1], sasl=True, container_id="A.2"), node_of(router.port) as node:
        rows = [(each["container"], each["role"]) for each in node.query("connection")]
        assert ("A.2", "inter-router") in rows
        assert node.query("router")[0]["connectionCount"] == node.query("policy")[0]["connectionsCurrent"] == 2
