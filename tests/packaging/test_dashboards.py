"""The dashboards and the alerts in a Prometheus that scrapes routers; these lose their broker and their uplink."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from pipeline.tests.spool.test_commands import spooling
from pipeline.tests.spool.test_scraped import page_of
from tests.certificates import Authority
from tests.http.test_live import http_port
from tests.packaging.test_monitoring import ALERTS, GRAFANA
from tests.ports import free_port
from tests.routers import process, running
from tests.waiting import until
from trouter.client import Message, connect

#: Prometheus reads and evaluates so often here, and alerts need not wait longer.
EVERY = "1s"
WEB = "listener { name: web, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, http: yes }\n"
BROKER = """
router { mode: standalone, id: B }
listener { name: amqp, host: 127.0.0.1, port: 0, role: route-container, saslMechanisms: ANONYMOUS }
"""
HUB = """
router { mode: interior, id: H }
listener { name: edges, host: 127.0.0.1, port: 0, role: edge, saslMechanisms: ANONYMOUS }
"""
ROUTER = """
router {{ id: R, mode: interior }}
sslProfile {{ name: server, certFile: {certificate}, privateKeyFile: {key} }}
policy {{ enableVhostPolicy: yes, defaultVhost: t1.example }}
vhost {{ hostname: t1.example, allowUnknownUser: yes, groups: {{
    "$default": {{ remoteHosts: "*", sources: "*", targets: "*" }} }} }}
listener {{ name: amqp, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, multiTenant: yes }}
connector {{ name: warehouse, host: 127.0.0.1, port: {broker}, role: route-container, saslMechanisms: ANONYMOUS }}
autoLink {{ name: stock, address: stock, direction: in, connection: warehouse }}
address {{ name: orders, prefix: orders, metrics: yes }}
linkRoute {{ name: archive, prefix: archive, direction: in, connection: warehouse }}
""" + WEB.replace("{", "{{").replace("}", "}}")
EDGE = """
router {{ id: E, mode: edge }}
connector {{ name: hub, host: 127.0.0.1, port: {hub}, role: edge, saslMechanisms: ANONYMOUS }}
""" + WEB.replace("{", "{{").replace("}", "}}")
#: The alerts about what is down, with the label that names it.
DOWN = {
    ("TrouterConnectorDown", "warehouse"),
    ("TrouterConnectorDown", "hub"),
    ("TrouterAutoLinkDown", "stock"),
    ("TrouterLinkRouteDown", "archive"),
    ("TrouterUplinkDown", ""),
}


class Prometheus:
    """A running Prometheus."""

    def __init__(self, base: str) -> None:
        self.base = base

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """Return the present result of an expression; empty as long as the server starts."""
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"{self.base}/api/v1/query?{query}", timeout=60) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except (ConnectionError, urllib.error.URLError):
            return []
        return found

    def firing(self) -> set[tuple[str, str]]:
        """Return the alerts about what is down that fire, with the name of what is."""
        fired = [each["metric"] for each in self.ask('ALERTS{alertstate="firing"}')]
        names = ("connector", "auto_link", "link_route")
        down = {name for name, _ in DOWN}
        return {
            (each["alertname"], next((each[name] for name in names if name in each), ""))
            for each in fired
            if each["alertname"] in down
        }


@contextmanager
def prometheus(folder: Path, targets: list[str]) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes these targets, with the alerts of the packages."""
    rules = folder / "alerts.yaml"
    rules.write_text(re.sub(r"for: \w+", f"for: {EVERY}", ALERTS.read_text(encoding="utf-8")), encoding="utf-8")
    scrape = {"job_name": "trouter", "static_configs": [{"targets": targets}]}
    configuration = {
        "global": {"scrape_interval": EVERY, "evaluation_interval": EVERY},
        "rule_files": [str(rules)],
        "scrape_configs": [scrape],
    }
    path = folder / "prometheus.yml"
    path.write_text(json.dumps(configuration), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    words = [f"--config.file={path}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"]
    with (folder / "log").open("wb") as log, subprocess.Popen(["prometheus", *words], stderr=log) as server:
        try:
            yield Prometheus(f"http://{address}")
        finally:
            server.terminate()


def queries() -> list[tuple[str, str]]:
    """Return each expression of the dashboards, for all instances, with the panel that has it."""
    found = []
    for path in sorted(GRAFANA.glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel["targets"]:
                expression = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "10s")
                found.append((expression, f"{path.name}: {panel['title']}"))
    return found


async def _watch(folder: Path) -> None:
    certificate, key = Authority(folder, "authority").pair("127.0.0.1")
    for name in ("broker", "hub", "router", "edge"):
        (folder / name).mkdir()
    with ExitStack() as stack:
        neighbours = ExitStack()
        stack.enter_context(neighbours)
        broker = neighbours.enter_context(process(BROKER, folder / "broker"))
        hub = neighbours.enter_context(process(HUB, folder / "hub"))
        for each in (broker, hub):
            each.wait_for_line("Operational")
        settings = ROUTER.format(certificate=certificate, key=key, broker=broker.port)
        router = stack.enter_context(running(settings, folder / "router"))
        edge = stack.enter_context(running(EDGE.format(hub=hub.port), folder / "edge"))
        url = f"amqp://127.0.0.1:{router.ports[0]}"
        async with spooling(url, folder / "spool", "--metrics", "127.0.0.1:0") as command:
            page = await page_of(command)
            await page.until("/readyz", 200)
            targets = [
                f"127.0.0.1:{http_port(router)}",
                f"127.0.0.1:{http_port(edge)}",
                page.base.removeprefix("http://"),
            ]
            server = stack.enter_context(prometheus(folder, targets))
            async with connect(url, hostname="t1.example") as connection, connection.open_sender("orders") as sender:
                for expression, panel in queries():
                    await sender.send(Message("one"))
                    await trio.to_thread.run_sync(until, lambda asked=expression: server.ask(asked), f"data of {panel}")
        assert not server.firing()
        neighbours.close()
        await trio.to_thread.run_sync(until, lambda: server.firing() == DOWN, "the alerts")


def test_no_panel_is_without_data_and_the_alerts_name_what_really_went_down(tmp_path: Path) -> None:
    if shutil.which("prometheus") is None:
        pytest.skip("Prometheus is not here; Debian has it in the package prometheus")
    trio.run(_watch, tmp_path)


def test_each_panel_without_data_says_what_to_do() -> None:
    panels = json.loads((GRAFANA / "operations.json").read_text(encoding="utf-8"))["panels"]
    assert all(panel["type"] == "text" or panel["fieldConfig"]["defaults"]["noValue"] for panel in panels)
