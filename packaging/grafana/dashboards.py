"""Write the dashboards for Grafana into this folder: `python packaging/grafana/dashboards.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
_WIDTH: Final = 24


class Panel(NamedTuple):
    title: str
    unit: str
    #: Each expression, with the legend of its lines.
    queries: dict[str, str]
    kind: str = "timeseries"
    width: int = 8
    height: int = 7
    #: What to do if the panel has no data; of a text, the text.
    absence: str = ""


class Dashboard(NamedTuple):
    uid: str
    title: str
    #: A metric of each target; the variable offers its instances.
    metric: str
    panels: tuple[Panel, ...]


_READ_ME: Final = (
    "In this order: what is down, who is refused, where messages wait, and what the routers have left. Is everything "
    "empty? Then Prometheus reads no router: give each a listener with `http: yes`, and add a job `trouter` that "
    "scrapes it (metrics.md of the manual). A router at *down* under *Routers that answer* does not answer. "
    "`trouter stat --connectors`, `trouter stat --autolinks` and the router's console have the reasons."
)
_NO_ADDRESS: Final = (
    "No address is counted: write metrics: yes into an address section of the router (metrics.md of the manual)."
)
#: Up and down in words.
_UP: Final = "up"
_SINCE: Final = "(time() - {0}{{$i}}) * ({0}{{$i}} > bool 0)"


def _since(metric: str) -> str:
    """Return for how long it is down, 0 while it is up."""
    return _SINCE.format(metric)


_OPERATIONS: Final = Dashboard(
    "trouter-operations",
    "trouter: what is wrong",
    "trouter_build_info",
    (
        Panel("Read this first", "none", {}, "text", 24, 3, _READ_ME),
        Panel(
            "Routers that answer",
            _UP,
            {'up{job="trouter", $i}': "{{instance}}"},
            "stat",
            8,
            5,
            "Prometheus has no target in a job named trouter: add one.",
        ),
        Panel(
            "Routers that serve all of their configuration",
            "bool_yes_no",
            {"trouter_ready{$i}": "{{instance}}"},
            "stat",
            8,
            5,
            "No router is scraped.",
        ),
        Panel(
            "What the routers complain about",
            "none",
            {"trouter_configuration_findings{$i}": "{{severity}} {{instance}}"},
            "stat",
            8,
            5,
            "No router is scraped.",
        ),
        Panel(
            "Connectors",
            _UP,
            {"trouter_connector_up{$i}": "{{connector}} {{instance}}"},
            "stat",
            6,
            6,
            "These routers have no connectors: nothing to connect to brokers or other routers.",
        ),
        Panel(
            "Uplinks of edge routers",
            _UP,
            {"trouter_uplink_up{$i}": "{{instance}}"},
            "stat",
            6,
            6,
            "None of these routers is an edge router.",
        ),
        Panel(
            "Auto links",
            _UP,
            {"trouter_auto_link_up{$i}": "{{auto_link}} {{instance}}"},
            "stat",
            6,
            6,
            "These routers have no auto links.",
        ),
        Panel(
            "Link routes",
            _UP,
            {"trouter_link_route_up{$i}": "{{link_route}} {{instance}}"},
            "stat",
            6,
            6,
            "These routers have no link routes.",
        ),
        Panel(
            "Down for",
            "s",
            {
                _since("trouter_connector_down_since_seconds"): "connector {{connector}} {{instance}}",
                _since("trouter_uplink_down_since_seconds"): "uplink {{instance}}",
                _since("trouter_auto_link_down_since_seconds"): "auto link {{auto_link}} {{instance}}",
                _since("trouter_link_route_down_since_seconds"): "link route {{link_route}} {{instance}}",
            },
            width=12,
            absence="These routers have no connectors, auto links or link routes.",
        ),
        Panel(
            "Attempts to connect again",
            "ops",
            {
                "rate(trouter_connector_attempts_total{$i}[$r])": "connector {{connector}} {{instance}}",
                "rate(trouter_auto_link_attempts_total{$i}[$r])": "auto link {{auto_link}} {{instance}}",
            },
            width=12,
            absence="These routers have no connectors and no auto links.",
        ),
        Panel(
            "Who is refused, and why",
            "ops",
            {
                "sum by (instance, listener, reason) (rate(trouter_handshakes_refused_total{$i}[$r]))": (
                    "{{reason}} at {{listener}} {{instance}}"
                )
            },
            width=12,
            absence="No router is scraped.",
        ),
        Panel(
            "Users locked out now",
            "none",
            {"trouter_logins_locked{$i}": "{{instance}}"},
            "stat",
            4,
            7,
            "No router is scraped.",
        ),
        Panel(
            "Refused for want of room",
            "ops",
            {
                "rate(trouter_connections_refused_total{$i}[$r])": "{{listener}} {{instance}}",
                "rate(trouter_connections_turned_away_total{$i}[$r])": "turned away {{instance}}",
            },
            absence="No router is scraped.",
        ),
        Panel(
            "Where messages wait",
            "none",
            {
                "qdr_deliveries_stuck_total{$i}": "deliveries unsettled for 10 s {{instance}}",
                "qdr_links_blocked_total{$i}": "links without credit for 10 s {{instance}}",
            },
            absence="No router is scraped.",
        ),
        Panel(
            "Messages in the routers' memory, of the limit",
            "percentunit",
            {"trouter_held_message_bytes{$i} / trouter_held_message_bytes_limit{$i}": "{{instance}}"},
            absence="No router is scraped.",
        ),
        Panel(
            "Messages that wait, by address",
            "none",
            {"trouter_address_undelivered{$i}": "{{address}} {{instance}}"},
            absence=_NO_ADDRESS,
        ),
        Panel(
            "Messages a second, by address",
            "ops",
            {"rate(trouter_address_messages_total{$i}[$r])": "{{address}} {{direction}} {{instance}}"},
            absence=_NO_ADDRESS,
        ),
        Panel(
            "Messages that were not accepted, by address",
            "ops",
            {
                'rate(trouter_address_outcomes_total{$i, outcome=~"rejected|released|modified"}[$r])': (
                    "{{address}} {{direction}} {{outcome}} {{instance}}"
                )
            },
            absence=_NO_ADDRESS,
        ),
        Panel(
            "Receivers and senders, by address",
            "none",
            {
                "trouter_address_consumers{$i}": "receivers of {{address}} {{instance}}",
                "trouter_address_producers{$i}": "senders to {{address}} {{instance}}",
            },
            absence=_NO_ADDRESS,
        ),
        Panel(
            "Messages a second",
            "ops",
            {
                "rate(qdr_deliveries_ingress_total{$i}[$r])": "in {{instance}}",
                "rate(qdr_deliveries_egress_total{$i}[$r])": "out {{instance}}",
            },
            absence="No router is scraped.",
        ),
        Panel(
            "Processor: 1 is all that a router can use",
            "percentunit",
            {"rate(process_cpu_seconds_total{$i}[$r])": "{{instance}}"},
            width=12,
            absence="No router is scraped.",
        ),
        Panel(
            "Memory of the process",
            "bytes",
            {"process_resident_memory_bytes{$i}": "{{instance}}"},
            width=12,
            absence="No router is scraped.",
        ),
    ),
)
_SETTLED: Final = (
    "histogram_quantile({}, sum by (instance, le) (rate(trouter_settle_latency_seconds_bucket{{$i}}[$r])))"
)
_ROUTERS: Final = Dashboard(
    "trouter-routers",
    "trouter: routers",
    "trouter_build_info",
    (
        Panel("Ready", "bool_yes_no", {"trouter_ready{$i}": "{{instance}}"}, "stat", 6, 4),
        Panel("Version", "none", {"trouter_build_info{$i}": "{{version}} {{twin}}, Python {{python}}"}, "stat", 6, 4),
        Panel("Up for", "s", {"trouter_uptime_seconds{$i}": "{{instance}}"}, "stat", 6, 4),
        Panel(
            "Configuration", "none", {"trouter_configuration_findings{$i}": "{{severity}} {{instance}}"}, "stat", 6, 4
        ),
        Panel(
            "Deliveries",
            "ops",
            {"sum by (instance, outcome) (rate(trouter_deliveries_total{$i}[$r]))": "{{outcome}} {{instance}}"},
        ),
        Panel(
            "Clients' deliveries",
            "ops",
            {
                "rate(qdr_deliveries_ingress_total{$i}[$r])": "in {{instance}}",
                "rate(qdr_deliveries_egress_total{$i}[$r])": "out {{instance}}",
                "rate(qdr_deliveries_transit_total{$i}[$r])": "between routers {{instance}}",
            },
        ),
        Panel(
            "Time to settle",
            "s",
            {_SETTLED.format(share): f"{share:.0%} {{{{instance}}}}" for share in (0.5, 0.99)},
        ),
        Panel(
            "Deliveries that ended badly",
            "ops",
            {
                "rate(qdr_released_deliveries_total{$i}[$r])": "released {{instance}}",
                "rate(qdr_rejected_deliveries_total{$i}[$r])": "rejected {{instance}}",
                "rate(qdr_modified_deliveries_total{$i}[$r])": "modified {{instance}}",
                "rate(qdr_dropped_presettled_deliveries_total{$i}[$r])": "dropped {{instance}}",
            },
        ),
        Panel(
            "Stuck and blocked",
            "none",
            {
                "qdr_deliveries_stuck_total{$i}": "deliveries {{instance}}",
                "qdr_links_blocked_total{$i}": "links {{instance}}",
            },
        ),
        Panel(
            "Messages under way",
            "bytes",
            {
                "trouter_held_message_bytes{$i}": "{{instance}}",
                "trouter_held_message_bytes_limit{$i}": "limit {{instance}}",
            },
        ),
        Panel("Connections", "none", {"trouter_connections{$i}": "{{listener}} {{instance}}"}),
        Panel(
            "Connections taken and refused",
            "ops",
            {
                "rate(trouter_connections_accepted_total{$i}[$r])": "taken {{listener}} {{instance}}",
                "rate(trouter_connections_refused_total{$i}[$r])": "refused {{listener}} {{instance}}",
            },
        ),
        Panel(
            "Links and addresses",
            "none",
            {"qdr_links_total{$i}": "links {{instance}}", "qdr_addresses_total{$i}": "addresses {{instance}}"},
        ),
        Panel(
            "Network",
            "none",
            {
                "trouter_network_routers{$i}": "known {{instance}}",
                "trouter_network_routers_reachable{$i}": "reachable {{instance}}",
                "trouter_network_neighbours{$i}": "neighbours {{instance}}",
            },
        ),
        Panel(
            "Changes and faults of the network",
            "ops",
            {
                "rate(trouter_network_changes_total{$i}[$r])": "changes {{instance}}",
                "sum by (instance, fault) (rate(trouter_network_faults_total{$i}[$r]))": "{{fault}} {{instance}}",
            },
        ),
        Panel(
            "Messages between routers",
            "ops",
            {"rate(trouter_network_control_messages_total{$i}[$r])": "{{direction}} {{instance}}"},
        ),
        Panel("Processor", "percentunit", {"rate(process_cpu_seconds_total{$i}[$r])": "{{instance}}"}),
        Panel(
            "Memory of the process",
            "bytes",
            {
                "process_resident_memory_bytes{$i}": "{{instance}}",
                "topk(5, trouter_memory_bytes{$i})": "{{owner}} {{instance}}",
            },
        ),
        Panel(
            "Log lines that matter",
            "ops",
            {
                'sum by (instance, level) (rate(trouter_log_events_total{$i, level=~"warning|error|critical"}[$r]))': (
                    "{{level}} {{instance}}"
                ),
                "rate(trouter_log_lines_lost_total{$i}[$r])": "lost {{instance}}",
            },
        ),
        Panel(
            "Certificates end in",
            "s",
            {"trouter_tls_cert_not_after_seconds{$i} - time()": "{{ssl_profile}} {{instance}}"},
        ),
    ),
)
_TENANTS: Final = Dashboard(
    "trouter-tenants",
    "trouter: tenants",
    "trouter_build_info",
    (
        Panel("Connections", "none", {"trouter_tenant_connections{$i}": "{{tenant}} {{instance}}"}),
        Panel("Links", "none", {"trouter_tenant_links{$i}": "{{tenant}} {{instance}}"}),
        Panel("Addresses", "none", {"trouter_tenant_addresses{$i}": "{{tenant}} {{instance}}"}),
        Panel(
            "Deliveries",
            "ops",
            {"sum by (tenant) (rate(trouter_tenant_deliveries_total{$i}[$r]))": "{{tenant}}"},
            width=12,
        ),
        Panel(
            "Deliveries that were not accepted",
            "ops",
            {
                'sum by (tenant, outcome) (rate(trouter_tenant_deliveries_total{$i, outcome!="accepted"}[$r]))': (
                    "{{tenant}} {{outcome}}"
                )
            },
            width=12,
        ),
        Panel("Connections of vhosts", "none", {"trouter_vhost_connections{$i}": "{{vhost}} {{instance}}"}),
        Panel("Quotas reached now", "none", {"trouter_vhost_quota_alarms_raised{$i}": "{{vhost}} {{instance}}"}),
        Panel(
            "Alarms about quotas", "ops", {"rate(trouter_vhost_quota_alarms_total{$i}[$r])": "{{vhost}} {{instance}}"}
        ),
    ),
)
_SHARD: Final = "{{address}} {{shard}}"
_PIPELINE: Final = Dashboard(
    "trouter-pipeline",
    "trouter: pipeline",
    "trouter_spool_up",
    (
        Panel("Runs", "bool_yes_no", {"trouter_spool_up{$i}": _SHARD}, "stat", 6, 4),
        Panel("Has a link", "bool_yes_no", {"trouter_spool_linked{$i}": _SHARD}, "stat", 6, 4),
        Panel("Stopped by its backlog", "bool_yes_no", {"trouter_spool_credit_stopped{$i}": _SHARD}, "stat", 6, 4),
        Panel("Started again", "none", {"trouter_spool_restarts_total{$i}": _SHARD}, "stat", 6, 4),
        Panel("Messages made safe", "ops", {"rate(trouter_spool_messages_total{$i}[$r])": _SHARD}),
        Panel("Bytes made safe", "Bps", {"rate(trouter_spool_octets_total{$i}[$r])": _SHARD}),
        Panel("Backlog on the disk", "bytes", {"trouter_spool_backlog_bytes{$i}": _SHARD}),
        Panel(
            "Messages that wait for the consumer",
            "none",
            {"trouter_spool_durable_sequence{$i} - trouter_spool_consumed_sequence": _SHARD},
        ),
        Panel(
            "Messages not taken",
            "ops",
            {
                "rate(trouter_spool_refused_total{$i}[$r])": f"too large {_SHARD}",
                "rate(trouter_spool_aborted_total{$i}[$r])": f"taken back {_SHARD}",
            },
        ),
        Panel(
            "Time to write a group",
            "s",
            {"rate(trouter_spool_sync_seconds_total{$i}[$r]) / rate(trouter_spool_groups_total[$r])": _SHARD},
        ),
        Panel("Links attached again", "ops", {"rate(trouter_spool_reconnects_total{$i}[$r])": _SHARD}),
        Panel("Since the last message", "s", {"time() - trouter_spool_last_message_timestamp_seconds{$i}": _SHARD}),
    ),
)
DASHBOARDS: Final = {
    "operations.json": _OPERATIONS,
    "routers.json": _ROUTERS,
    "tenants.json": _TENANTS,
    "pipeline.json": _PIPELINE,
}


def as_json(dashboard: Dashboard) -> str:
    """Return a dashboard in the JSON that Grafana imports."""
    query = f"label_values({dashboard.metric}, instance)"
    instances = {"name": "instance", "type": "query", "datasource": _SOURCE, "query": query, "refresh": 2}
    document = {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["trouter"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
                {
                    **instances,
                    "label": "Router",
                    "multi": True,
                    "includeAll": True,
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": _placed(dashboard.panels),
    }
    return json.dumps(document, indent=1) + "\n"


def _placed(panels: tuple[Panel, ...]) -> list[dict[str, Any]]:
    """Return the panels with their positions in rows, from left to right."""
    placed, x, y, row = [], 0, 0, 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > _WIDTH:
            x, y, row = 0, y + row, 0
        placed.append({**_drawn(panel), "id": number, "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height}})
        x, row = x + panel.width, max(row, panel.height)
    return placed


def _drawn(panel: Panel) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": _SOURCE,
            "expr": expression.replace("$i", 'instance=~"$instance"').replace("$r", "$__rate_interval"),
            "legendFormat": legend,
        }
        for index, (expression, legend) in enumerate(panel.queries.items())
    ]
    if panel.kind == "text":
        return {
            "title": panel.title,
            "type": "text",
            "targets": [],
            "options": {"mode": "markdown", "content": panel.absence},
        }
    drawn: dict[str, Any] = {"title": panel.title, "type": panel.kind, "datasource": _SOURCE, "targets": targets}
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.unit == _UP:
        words = {"0": {"text": "down", "color": "red"}, "1": {"text": "up", "color": "green"}}
        defaults = {"unit": "none", "mappings": [{"type": "value", "options": words}]}
    if panel.absence:
        defaults["noValue"] = panel.absence
    drawn["fieldConfig"] = {"defaults": defaults, "overrides": []}
    if panel.kind == "stat":
        drawn["options"] = {
            "textMode": "value_and_name" if panel.unit != "none" else "auto",
            "reduceOptions": {"calcs": ["lastNotNull"]},
        }
    return drawn


if __name__ == "__main__":
    for name, dashboard in DASHBOARDS.items():
        Path(__file__).with_name(name).write_text(as_json(dashboard), encoding="utf-8")
