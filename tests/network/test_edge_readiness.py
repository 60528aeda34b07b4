"""Whether an edge router is ready: only with an uplink that it can use, unless it serves its own clients alone."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.http.test_live import get, http_port, scrape
from tests.management.node import node_of
from tests.networks import EDGE_LISTENER, OPEN, client_port, edge, edge_port, interior
from tests.ports import free_port
from tests.routers import RunningRouter, running
from tests.waiting import until

pytestmark = pytest.mark.slow

WEB = "listener { name: web, host: 127.0.0.1, port: 0, http: yes, websockets: no }"
ESTABLISHED = r"Edge connection \(id=\d+\) to interior established"
#: Attempts to use an uplink that are refused: enough to see that the log does not name each.
REFUSALS = 3
POLICY = """
policy {
    enableVhostPolicy: yes
}
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: {
        $default: {
            remoteHosts: *
            sources: SOURCES
            targets: *
            allowDynamicSource: yes
            allowAnonymousSender: ANONYMOUS
        }
    }
}
"""


def policy(*, sources: str = "*", anonymous: str = "yes") -> str:
    return POLICY.replace("SOURCES", sources).replace("ANONYMOUS", anonymous)


def findings(router: RunningRouter, severity: str = "problem") -> dict[str, str]:
    with node_of(client_port(router)) as node:
        return {row["entity"]: row["message"] for row in node.query("finding") if row["severity"] == severity}


def assert_not_ready(router: RunningRouter, reason: str) -> None:
    """Check that the pages and management name the reason."""
    status, body = get(http_port(router), "/readyz")
    assert status == 503
    assert re.search(rf"^router/E: has no usable uplink: .*{reason}", body, re.MULTILINE), body
    assert re.search(reason, findings(router)["router/E"])
    assert scrape(http_port(router))["trouter_ready"] == 0


def wait_until_ready(router: RunningRouter) -> None:
    router.wait_for_line(ESTABLISHED)
    until(lambda: get(http_port(router), "/readyz") == (200, "OK"), "readiness")
    assert findings(router) == {}


def test_an_edge_router_is_ready_while_its_interior_router_is_there(tmp_path: Path) -> None:
    port = free_port()
    above = interior("A", {}, EDGE_LISTENER.replace("port: 0", f"port: {port}"))
    with running(edge("E", [port], WEB), tmp_path) as below:
        below.wait_for_line(f"Connection to 127.0.0.1:{port} failed")
        assert_not_ready(below, f"Connection to 127.0.0.1:{port} failed: Connection refused")
        with running(above, tmp_path):
            wait_until_ready(below)
        below.wait_for_line(r"Edge connection \(id=\d+\) to interior lost")
        below.wait_for_line(f"Connection to 127.0.0.1:{port} failed", 2)
        assert_not_ready(below, f"Connection to 127.0.0.1:{port} failed")


def test_an_edge_router_without_a_connector_for_an_uplink_is_not_ready(tmp_path: Path) -> None:
    with running(edge("E", [], WEB), tmp_path) as below:
        assert_not_ready(below, "no connector has role: edge")


def test_an_edge_router_that_may_serve_its_own_clients_alone_is_ready_without_an_uplink(tmp_path: Path) -> None:
    text = edge("E", [free_port()], WEB).replace("mode: edge", "mode: edge, readyWithoutUplink: yes")
    with running(text, tmp_path) as below:
        below.wait_for_line("Connection to .* failed")
        assert get(http_port(below), "/readyz") == (200, "OK")
        assert findings(below) == {}
        assert "has no usable uplink" in findings(below, "warning")["router/E"]


def test_an_uplink_whose_links_are_denied_is_not_ready_and_fills_no_log(tmp_path: Path) -> None:
    text = interior("A", {}, EDGE_LISTENER)
    with (
        running(text + policy(anonymous="no"), tmp_path) as above,
        running(edge("E", [edge_port(above)], WEB), tmp_path) as below,
    ):
        above.wait_for_line(rf"Accepted connection to 127.0.0.1:{edge_port(above)} ", REFUSALS)
        denied = "link anonymous of the uplink was detached: amqp:unauthorized-access"
        assert_not_ready(below, denied)
        assert len(below.matching(f"cannot use the uplink: {denied}")) == 1
        assert not below.matching("Edge connection")
        above.configuration.write_text(text + policy())
        above.process.send_signal(signal.SIGHUP)
        wait_until_ready(below)


def test_an_uplink_without_the_link_for_replies_is_not_ready_until_the_policy_allows_it(tmp_path: Path) -> None:
    """The connection stays, because most messages pass; the edge router attaches the link again from time to time."""
    text = interior("A", {}, EDGE_LISTENER)
    with (
        running(text + policy(sources="_$qd.edge_addr_tracking, all"), tmp_path) as above,
        running(edge("E", [edge_port(above)], WEB), tmp_path) as below,
    ):
        below.wait_for_line("link downlink of the uplink was detached: amqp:unauthorized-access")
        assert_not_ready(below, "link downlink of the uplink was detached: amqp:unauthorized-access")
        above.configuration.write_text(text + policy())
        above.process.send_signal(signal.SIGHUP)
        wait_until_ready(below)
        assert len(below.matching("link downlink of the uplink was detached")) == 1


def test_an_uplink_to_a_listener_for_clients_is_not_ready(tmp_path: Path) -> None:
    with (
        running(f"router {{ mode: interior, id: A }}\nlistener {{ {OPEN} }}\n", tmp_path) as above,
        running(edge("E", [above.ports[0]], WEB), tmp_path) as below,
    ):
        below.wait_for_line("link downlink of the uplink was detached: qd:forbidden")
        assert_not_ready(below, "link downlink of the uplink was detached: qd:forbidden")
        assert not below.matching("Edge connection")
