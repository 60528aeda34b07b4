"""The first hellos between trouter and Qpid Dispatch, and a connector that has not met any router yet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.strict.conftest import dial, listening
from tests.interop.strict.end import End
from tests.interop.strict.routers import Interior
from tests.interop.strict.writing import listed, mapped, symbol, text
from tests.management.node import node_of
from tests.networks import OPEN, wait_for_row
from tests.routers import StartRouter
from tests.waiting import until

pytestmark = pytest.mark.slow

#: trouter sends only hellos that are answers, so that nothing depends on its ticks.
PATIENT = "helloIntervalSeconds: 3600, helloMaxAgeSeconds: 10800, raIntervalSeconds: 3600, raIntervalFluxSeconds: 3600"
QUERY = mapped((text("operation"), text("QUERY")), (text("entityType"), text("org.apache.qpid.dispatch.router")))


@pytest.mark.parametrize("ours_dials", [False, True])
def test_two_ticks_of_qpid_dispatch_are_enough_to_become_neighbours(
    start_router: StartRouter, peers: list[End], ours_dials: bool
) -> None:
    with listening() as server:
        dials = f"connector {{ host: 127.0.0.1, port: {server.getsockname()[1]}, role: inter-router }}\n"
        router = start_router(
            f"router {{ mode: interior, id: R, {PATIENT} }}\nlistener {{ {OPEN} }}\n"
            f"listener {{ {OPEN}, role: inter-router }}\n{dials if ours_dials else ''}"
        )
        sock = server.accept()[0] if ours_dials else dial(router.ports[1])
        with Interior(sock, "P", dials=not ours_dials, ticks=False) as peer:
            peers.append(peer)
            peer.wait(lambda: peer.control(sends=True) and peer.control(sends=True).credit)  # type: ignore[union-attr]
            peer.hello_tick()
            peer.wait(lambda: peer.neighbour, "a hello that names it")
            peer.wait_credit(peer.data())
            peer.hello_tick()
            asked = {"reply_to": "amqp:/_topo/0/P/temp.1", "correlation": "1"}
            peer.post("_topo/0/R/$management", mapped((text("attributeNames"), listed())), properties=QUERY, **asked)
            (answer,) = peer.got("_topo/0/P/temp.1")
            assert answer.link.kind == "qd.router-data"
            assert answer.way.trace == ["0/R"]
            peer.wait(lambda: "P" in peer.nodes["R"].peers, "the links of R")
            assert peer.talk.index("< LSR") > peer.talk.index("< HELLO")
            wait_for_row(router, "router.node", lambda row: row["id"] == "P" and row["linkState"] == ["R"])


def connector(port: int, status: str) -> dict[str, Any]:
    """Return the row of the only connector, once it has this status."""
    with node_of(port) as node:
        return until(lambda: next((row for row in node.query("connector") if row["connectionStatus"] == status), {}))


def test_a_connector_succeeds_at_the_open_and_follows_the_failover_list_of_the_peer(
    start_router: StartRouter, peers: list[End]
) -> None:
    with listening() as first, listening() as second:
        ports = [each.getsockname()[1] for each in (first, second)]
        listed_there = mapped((symbol("network-host"), text("127.0.0.1")), (symbol("port"), text(str(ports[1]))))
        router = start_router(
            f"router {{ mode: interior, id: R }}\nlistener {{ {OPEN} }}\n"
            f"connector {{ host: 127.0.0.1, port: {ports[0]}, role: inter-router }}\n"
        )
        properties = [(symbol("failover-server-list"), listed(listed_there))]
        with Interior(first.accept()[0], "P", dials=False, ticks=False, properties=properties) as silent:
            silent.wait(lambda: silent.opened)
            row = connector(router.port, "SUCCESS")
            assert row["failoverUrls"] == f"amqp://127.0.0.1:{ports[0]}, amqp://127.0.0.1:{ports[1]}"
            assert silent.neighbour == ""
            first.close()
            silent.close("amqp:connection:forced", "restarting")
        with Interior(second.accept()[0], "Q", dials=False) as met:
            peers.append(met)
            met.wait_met("R")
            assert connector(router.port, "SUCCESS")["connectionMsg"]
            router.wait_for_line(r"Connection to 127\.0\.0\.1:\d+ failed: amqp:connection:forced restarting")


def test_a_connector_keeps_dialling_and_shows_the_reason_of_the_last_failure(start_router: StartRouter) -> None:
    with listening() as server:
        port = server.getsockname()[1]
        router = start_router(
            f"router {{ mode: interior, id: R }}\nlistener {{ {OPEN} }}\n"
            f"connector {{ host: 127.0.0.1, port: {port}, role: inter-router }}\n"
        )
        with Interior(server.accept()[0], "P", dials=False, ticks=False) as silent:
            silent.wait(lambda: silent.opened)
    assert connector(router.port, "CONNECTING")["connectionMsg"]
