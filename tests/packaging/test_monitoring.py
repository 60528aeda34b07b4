"""The dashboards and the alerts: a router and a spool with traffic have the metrics in them, and each alert fires."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pipeline.tests.spool.test_commands import spooling
from pipeline.tests.spool.test_scraped import page_of
from tests.certificates import Authority
from tests.http.test_live import get, http_port
from tests.packaging.built import run
from tests.packaging.expressions import labels_in, metrics_in
from tests.routers import ROOT, RunningRouter, process, running
from trouter.client import Message, connect

GRAFANA = ROOT / "packaging" / "grafana"
ALERTS = ROOT / "packaging" / "prometheus" / "alerts.yaml"
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
}
ROUTER = """
router {{ id: R, mode: interior }}
sslProfile {{ name: server, certFile: {certificate}, privateKeyFile: {key} }}
policy {{ enableVhostPolicy: yes, defaultVhost: t1.example }}
vhost {{
    hostname: t1.example
    allowUnknownUser: yes
    groups: {{ "$default": {{ remoteHosts: "*", sources: "*", targets: "*" }} }}
}}
listener {{ name: amqp, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, multiTenant: yes }}
listener {{ name: web, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, http: yes }}
connector {{ name: broker, host: 127.0.0.1, port: 1, role: route-container }}
autoLink {{ name: in, address: in, direction: in, connection: broker }}
address {{ name: orders, prefix: orders, metrics: yes }}
linkRoute {{ name: queues, prefix: queues, direction: in, connection: broker }}
"""
EDGE = """
router { id: E, mode: edge }
listener { name: web, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, http: yes }
"""
WORKERS = EDGE.replace("mode: edge", "workers: 2")


class Told(NamedTuple):
    """Metrics, and the labels that each has."""

    labels: dict[str, set[str]]

    def add(self, page: str) -> None:
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                self.labels.setdefault(sample.name, set()).update(sample.labels)


async def _traffic(router: RunningRouter, url: str) -> None:
    async with connect(url, hostname="t1.example") as connection, connection.open_sender("orders") as sender:
        for _ in range(3):
            await sender.send(Message("one"))


async def _told(folder: Path) -> Told:
    certificate, key = Authority(folder, "authority").pair("127.0.0.1")
    told = Told({})
    with running(ROUTER.format(certificate=certificate, key=key), folder) as router:
        url = f"amqp://127.0.0.1:{router.port}"
        async with spooling(url, folder / "spool", "--metrics", "127.0.0.1:0") as command:
            page = await page_of(command)
            await page.until("/readyz", 200)
            await _traffic(router, url)
            await page.until_figures(lambda figures: figures.get("accepted_total", 0) == 3)
            told.add((await page.get("/metrics"))[1])
        told.add((await trio.to_thread.run_sync(get, http_port(router), "/metrics"))[1])
    (folder / "edge").mkdir()
    with running(EDGE, folder / "edge") as router:
        told.add((await trio.to_thread.run_sync(get, http_port(router), "/metrics"))[1])
    (folder / "workers").mkdir()
    with process(WORKERS, folder / "workers") as router:
        router.wait_for_line("2 workers serve")
        port = int(router.wait_for_line(r"Listening for HTTP on \S+:(\d+)")[1])
        told.add((await trio.to_thread.run_sync(get, port, "/metrics"))[1])
    return told


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return trio.run(_told, tmp_path_factory.mktemp("told"))


def queries() -> list[tuple[str, str]]:
    """Return every expression of the dashboards and the alerts, with the texts that show its labels."""
    asked = [(rule["expr"], " ".join(rule["annotations"].values())) for rule in RULES.values()]
    for path in sorted(GRAFANA.glob("*.json")):
        panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
        asked += [(target["expr"], target["legendFormat"]) for panel in panels for target in panel["targets"]]
    return asked


def test_every_queried_metric_and_label_is_reported_by_a_router_or_a_spool(told: Told) -> None:
    assert len(queries()) > 60
    missing = {name for expression, _ in queries() for name in metrics_in(expression)} - set(told.labels)
    assert not missing
    wrong = [
        (expression, name, sorted(labels - told.labels[name]))
        for expression, text in queries()
        for name, labels in labels_in(expression, text).items()
        if not labels <= told.labels[name]
    ]
    assert not wrong


def test_the_dashboards_equal_their_table() -> None:
    table = runpy.run_path(str(GRAFANA / "dashboards.py"))
    written = {name: table["as_json"](dashboard) for name, dashboard in table["DASHBOARDS"].items()}
    assert written == {path.name: path.read_text(encoding="utf-8") for path in GRAFANA.glob("*.json")}


@pytest.mark.parametrize("name", RULES)
def test_an_alert_names_a_page_of_the_manual(name: str) -> None:
    rule = RULES[name]
    assert set(rule["annotations"]) == {"summary", "description", "page"}
    assert (ROOT / rule["annotations"]["page"]).is_file()
    assert rule["labels"]["severity"] in {"info", "warning", "critical"}


class Case(NamedTuple):
    """Series by name and labels with values a minute, which fire at ``minutes`` or stay quiet."""

    fires: dict[str, str]
    quiet: dict[str, str]
    minutes: int = 90
    #: The alert's labels besides `instance`.
    labels: dict[str, str] = {}  # noqa: RUF012  # no case changes it


def of(metric: str, fires: str, quiet: str, minutes: int = 90, **labels: str) -> Case:
    """Return a case with one series."""
    text = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return Case({f"{metric}|{text}": fires}, {f"{metric}|{text}": quiet}, minutes, labels)


def pair(
    first: str, fires: tuple[str, str], quiet: tuple[str, str], second: str, minutes: int = 90, **labels: str
) -> Case:
    """Return a case that compares two series."""
    text = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    names = (f"{first}|{text}", f"{second}|{text}")
    return Case(dict(zip(names, fires, strict=True)), dict(zip(names, quiet, strict=True)), minutes, labels)


ZERO, ONE, GROWS = "0x200", "1x200", "0+6x200"
BUCKETS = tuple(f'trouter_settle_latency_seconds_bucket|le="{bound}"' for bound in ("0.5", "2.0", "+Inf"))
CASES = {
    "TrouterDown": of("up", ZERO, ONE, job="trouter"),
    "TrouterNotReady": of("trouter_ready", ZERO, ONE),
    "TrouterConfigurationNotServed": of("trouter_configuration_findings", ONE, ZERO, severity="problem"),
    "TrouterUnsafeConfiguration": of("trouter_configuration_findings", ONE, ZERO, severity="unsafe"),
    "TrouterPoliciesDiffer": Case(
        {f'trouter_policy_info|digest="{digest}", pod="{pod}"': ONE for pod, digest in enumerate("aab")},
        {f'trouter_policy_info|digest="a", pod="{pod}"': ONE for pod in range(3)},
        90,
        {"digest": "b", "pod": "2"},
    ),
    "TrouterInterpreted": Case(
        {'trouter_build_info|twin="interpreted"': ONE},
        {'trouter_build_info|twin="compiled"': ONE},
        90,
        {"twin": "interpreted"},
    ),
    "TrouterRestartsOften": of("process_start_time_seconds", "1+60x200", ONE, job="trouter"),
    "TrouterFilesRunOut": pair(
        "process_open_fds", ("900x200", "1000x200"), ("700x200", "1000x200"), "process_max_fds", job="trouter"
    ),
    "TrouterMemoryOfMessagesRunsOut": pair(
        "trouter_held_message_bytes", ("95x200", "100x200"), ("80x200", "100x200"), "trouter_held_message_bytes_limit"
    ),
    "TrouterConnectionsRefused": of("trouter_connections_refused_total", GROWS, ZERO, listener="amqp"),
    "TrouterWorkerMissing": of("trouter_worker_up", ZERO, ONE, worker="2"),
    "TrouterConnectorDown": of("trouter_connector_up", ZERO, ONE, connector="broker"),
    "TrouterAutoLinkDown": of("trouter_auto_link_up", ZERO, ONE, auto_link="in"),
    "TrouterLinkRouteDown": of("trouter_link_route_up", ZERO, ONE, link_route="queues"),
    "TrouterUplinkDown": of("trouter_uplink_up", ZERO, ONE),
    "TrouterLoginsLocked": of("trouter_logins_locked", ONE, ZERO),
    "TrouterConnectionsTurnedAway": of("trouter_connections_turned_away_total", GROWS, ZERO),
    "TrouterHandshakesRefused": of("trouter_handshakes_refused_total", GROWS, ZERO, listener="amqp", reason="tls"),
    "TrouterVhostQuotaReached": of("trouter_vhost_quota_alarms_raised", ONE, ZERO, vhost="t1.example"),
    "TrouterDeliveriesStuck": of("qdr_deliveries_stuck_total", ONE, ZERO),
    "TrouterLinksBlocked": of("qdr_links_blocked_total", ONE, ZERO),
    "TrouterSettlementSlow": Case(
        dict(zip(BUCKETS, (ZERO, "0+9x200", "0+9x200"), strict=True)), dict.fromkeys(BUCKETS, "0+9x200")
    ),
    "TrouterMessagesDropped": of("qdr_dropped_presettled_deliveries_total", GROWS, ZERO),
    "TrouterRoutersUnreachable": pair(
        "trouter_network_routers_reachable", ("2x200", "3x200"), ("3x200", "3x200"), "trouter_network_routers"
    ),
    "TrouterDuplicateId": of("trouter_network_duplicate_ids", ONE, ZERO),
    "TrouterNetworkFaults": Case(
        {'trouter_network_faults_total|fault="looped"': GROWS}, {'trouter_network_faults_total|fault="looped"': ZERO}
    ),
    "TrouterCertificateEnds": of(
        "trouter_tls_cert_not_after_seconds", "1000000x200", "2000000x200", ssl_profile="server"
    ),
    "TrouterLogLinesLost": of("trouter_log_lines_lost_total", GROWS, ZERO),
    "TrouterBug": of("trouter_bugs_total", GROWS, ZERO),
    "TrouterCriticalLogLines": Case(
        {'trouter_log_events_total|module="MAIN", level="critical"': GROWS},
        {'trouter_log_events_total|module="MAIN", level="error"': GROWS},
    ),
    "TrouterSpoolStopped": pair(
        "trouter_spool_up", ("1x200", "0x200"), ("1x200", "1x200"), "trouter_spool_linked", address="orders", shard="0"
    ),
    "TrouterSpoolBacklog": of("trouter_spool_credit_stopped", ONE, ZERO, address="orders", shard="0"),
}


def _input(series: dict[str, str], instance: str) -> list[dict[str, str]]:
    return [
        {"series": f'{name}{{instance="{instance}"{", " + labels if labels else ""}}}', "values": values}
        for key, values in series.items()
        for name, _, labels in [key.partition("|")]
    ]


def _shown(text: str, labels: dict[str, str]) -> str:
    for label, value in labels.items():
        text = text.replace(f"{{{{ $labels.{label} }}}}", value)
    return text


def _test(name: str, case: Case, *, fires: bool) -> dict[str, Any]:
    rule = RULES[name]
    labels = {**case.labels, "instance": "router:8080"}
    alert = {
        "exp_labels": {**labels, **rule["labels"]},
        "exp_annotations": {key: _shown(text, labels) for key, text in rule["annotations"].items()},
    }
    return {
        "interval": "1m",
        "input_series": _input(case.fires if fires else case.quiet, "router:8080"),
        "alert_rule_test": [
            {"eval_time": f"{case.minutes}m", "alertname": name, "exp_alerts": [alert] if fires else []}
        ],
    }


def test_each_alert_fires_in_its_case_and_only_then(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here; Debian has it in the package prometheus")
    assert set(CASES) == set(RULES)
    run(promtool, "check", "rules", ALERTS)
    tests = [_test(name, case, fires=fires) for name, case in CASES.items() for fires in (True, False)]
    path = tmp_path / "tests.yaml"
    path.write_text(
        json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}), encoding="utf-8"
    )
    run(promtool, "test", "rules", path)
