"""What an operator sees of a connector, an auto link and a link route that are down: metrics, findings, `stat`."""

from __future__ import annotations

import json
from pathlib import Path

import trio

from tests.http.test_live import http_port, scrape
from tests.management.node import node_of
from tests.networks import OPEN, client_port
from tests.routers import WORKERS, RunningRouter, StartRouter, process
from tests.tools.live import run
from tests.waiting import until

BROKER = f"router {{ mode: standalone, id: B }}\nlistener {{ {OPEN} }}\n"
HERE = """
router {{ mode: standalone, id: A }}
listener {{ name: client, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{ name: web, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, http: yes }}
connector {{ name: broker, host: 127.0.0.1, port: {port}, role: route-container, saslMechanisms: ANONYMOUS }}
autoLink {{ name: in, address: in, direction: in, connection: broker }}
linkRoute {{ name: queues, prefix: queues, direction: in, connection: broker }}
"""
HUB = """
router { mode: interior, id: H }
listener { host: 127.0.0.1, port: 0, role: edge, saslMechanisms: ANONYMOUS }
"""
EDGE = """
router {{ mode: edge, id: E }}
listener {{ name: client, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{ name: web, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, http: yes }}
connector {{ name: hub, host: 127.0.0.1, port: {port}, role: edge, saslMechanisms: ANONYMOUS }}
"""
SERIES = (
    "trouter_connector_up{'connector': 'broker'}",
    "trouter_auto_link_up{'auto_link': 'in'}",
    "trouter_link_route_up{'link_route': 'queues'}",
)


def up(router: RunningRouter) -> list[float]:
    figures = scrape(http_port(router), min)
    return [figures[each] for each in SERIES]


def findings(router: RunningRouter) -> list[str]:
    with node_of(client_port(router)) as node:
        return [str(row["message"]) for row in node.query("finding", ["message", "entity"])]


async def connectors(router: RunningRouter) -> dict[str, object]:
    ran = await run("stat", "--bus", f"127.0.0.1:{client_port(router)}", "--connectors", "--json")
    assert (ran.status, ran.err) == (0, "")
    (row,) = json.loads(ran.out)["tables"]["connector"]
    assert isinstance(row, dict)
    return row


def test_what_a_lost_broker_takes_down_is_in_metrics_findings_and_stat(
    start_router: StartRouter, tmp_path: Path
) -> None:
    folder = tmp_path / "broker"
    folder.mkdir()
    with process(BROKER, folder) as broker:
        broker.wait_for_line("Operational")
        here = start_router(HERE.format(port=broker.port))
        until(lambda: up(here) == [1, 1, 1], "the broker")
        figures = scrape(http_port(here), min)
        assert figures["trouter_connector_down_since_seconds{'connector': 'broker'}"] == 0
        attempts = figures["trouter_connector_attempts_total{'connector': 'broker'}"]
        assert attempts >= 1
        assert "trouter_uplink_up" not in figures
        assert trio.run(connectors, here)["connectionStatus"] == "SUCCESS"
        for series in (
            "auto_link_down_since_seconds{'auto_link': 'in'}",
            "link_route_down_since_seconds{'link_route': 'queues'}",
        ):
            assert figures[f"trouter_{series}"] == 0
        assert not [each for each in findings(here) if "is down" in each]
    here.wait_for_line(r"Connection to 127\.0\.0\.1:\d+ failed: .*refused", 2)
    assert up(here) == [0, 0, 0]
    figures = scrape(http_port(here), min)
    assert (
        figures["trouter_connector_down_since_seconds{'connector': 'broker'}"] > figures["process_start_time_seconds"]
    )
    assert figures["trouter_connector_attempts_total{'connector': 'broker'}"] > attempts
    row = trio.run(connectors, here)
    assert row["connectionStatus"] == "CONNECTING"
    assert "refused" in str(row["connectionMsg"])
    assert row["downSince"]
    for series in (
        "auto_link_down_since_seconds{'auto_link': 'in'}",
        "link_route_down_since_seconds{'link_route': 'queues'}",
    ):
        assert figures[f"trouter_{series}"] > figures["process_start_time_seconds"]
    assert figures["trouter_auto_link_attempts_total{'auto_link': 'in'}"] == 1
    with node_of(client_port(here)) as node:
        (auto_link,) = node.query("router.config.autoLink")
        (link_route,) = node.query("router.config.linkRoute")
        assert (auto_link["operStatus"], auto_link["attempts"], link_route["operStatus"]) == ("inactive", 1, "inactive")
        assert min(auto_link["downSince"], link_route["downSince"]) > 1000 * figures["process_start_time_seconds"]
    (down,) = [each for each in findings(here) if each.startswith("is down: ")]
    assert "refused" in down


def uplink(router: RunningRouter) -> tuple[object, object]:
    with node_of(client_port(router)) as node:
        (row,) = node.query("router")
        return row["uplinkFault"], row["uplinkDownSince"]


def test_a_lost_uplink_is_in_metrics_and_in_the_row_of_the_router(start_router: StartRouter, tmp_path: Path) -> None:
    folder = tmp_path / "hub"
    folder.mkdir()
    with process(HUB, folder) as hub:
        hub.wait_for_line("Operational")
        edge = start_router(EDGE.format(port=hub.port))
        edge.wait_for_line("Edge connection .* established", WORKERS)
        figures = scrape(http_port(edge), min)
        assert (figures["trouter_uplink_up"], figures["trouter_uplink_down_since_seconds"]) == (1, 0)
        assert uplink(edge) == ("", None)
    edge.wait_for_line("Edge connection .* lost", WORKERS)
    until(lambda: "refused" in str(uplink(edge)[0]), "a refused connection")
    figures = scrape(http_port(edge), min)
    assert figures["trouter_uplink_up"] == 0
    assert figures["trouter_uplink_down_since_seconds"] > figures["process_start_time_seconds"]
    assert uplink(edge)[1] == int(figures["trouter_uplink_down_since_seconds"] * 1000)
