"""The text of /metrics: exact names and types, bounded labels, always valid."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from trouter.core.counters import ADDRESS_CLASSES, BOUNDS_S, OUTCOMES, Latency, TimeHistogram
from trouter.http import CertificateExpiry, Figures, ListenerFigures, MemoryOwner
from trouter.http.figures import AddressFigures, ConnectorFigures, NetworkFigures, RouteFigures, TenantFigures
from trouter.http.metrics import MAX_LABEL_VALUES, TOTALS, exposition, tenant_exposition

#: The names that dashboards of Qpid Dispatch use.
QPID_DISPATCH = {
    "qdr_connections_total": "gauge",
    "qdr_links_total": "gauge",
    "qdr_addresses_total": "gauge",
    "qdr_routers_total": "gauge",
    "qdr_link_routes_total": "gauge",
    "qdr_auto_links_total": "gauge",
    "qdr_presettled_deliveries_total": "counter",
    "qdr_dropped_presettled_deliveries_total": "counter",
    "qdr_accepted_deliveries_total": "counter",
    "qdr_released_deliveries_total": "counter",
    "qdr_rejected_deliveries_total": "counter",
    "qdr_modified_deliveries_total": "counter",
    "qdr_deliveries_ingress_total": "counter",
    "qdr_deliveries_egress_total": "counter",
    "qdr_deliveries_transit_total": "counter",
    "qdr_deliveries_ingress_route_container_total": "counter",
    "qdr_deliveries_egress_route_container_total": "counter",
    "qdr_deliveries_delayed_1sec_total": "counter",
    "qdr_deliveries_delayed_10sec_total": "counter",
    "qdr_deliveries_stuck_total": "gauge",
    "qdr_links_blocked_total": "gauge",
    "qdr_deliveries_redirected_to_fallback_total": "counter",
}
NUMBERED = {series.name: number for number, series in enumerate(TOTALS, 1)}
PLAIN = Figures(totals=NUMBERED, version="1.2.3", twin="compiled", uptime_s=12.5, policy_digest="b464")


def lines_of(figures: Figures) -> list[str]:
    return exposition(figures).decode().splitlines()


def samples_of(figures: Figures) -> dict[str, float]:
    """Return the samples as a scraper parses them: by name and labels."""
    families: list[Metric] = list(text_string_to_metric_families(exposition(figures).decode()))
    return {
        sample.name + (str(dict(sorted(sample.labels.items()))) if sample.labels else ""): sample.value
        for family in families
        for sample in family.samples
    }


def test_the_series_of_qpid_dispatch_have_its_names_types_and_no_labels() -> None:
    lines = lines_of(PLAIN)
    types = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE qdr_"))
    assert types == QPID_DISPATCH
    samples = [line for line in lines if line.startswith("qdr_")]
    assert {line.split()[0] for line in samples} == set(QPID_DISPATCH)
    assert len(samples) == len(QPID_DISPATCH) == 22


def test_each_total_stands_in_its_own_series() -> None:
    samples = samples_of(PLAIN)
    for number, series in enumerate(TOTALS, 1):
        assert samples[f"qdr_{series.name}_total"] == number


def test_the_same_moment_gives_the_same_text() -> None:
    def ours(figures: Figures) -> list[str]:
        return [line for line in lines_of(figures) if "process_" not in line]

    assert ours(PLAIN) == ours(PLAIN)
    later = dataclasses.replace(PLAIN, uptime_s=99.0)
    assert [line.split()[:3] for line in ours(later) if line[0] == "#"] == [
        line.split()[:3] for line in ours(PLAIN) if line[0] == "#"
    ]


def test_a_histogram_is_cumulative_and_ends_with_everything() -> None:
    latency = {("mobile", "accepted"): TimeHistogram((3, 2, 1, 4), 7.25)}
    samples = samples_of(dataclasses.replace(PLAIN, latency_bounds_s=(0.001, 0.5, 10), settle_latency=latency))
    name, labels = "trouter_settle_latency_seconds", {"address_class": "mobile", "outcome": "accepted"}

    def upto(bound: str) -> float:
        return samples[f"{name}_bucket{dict(sorted({**labels, 'le': bound}.items()))}"]

    assert [upto("0.001"), upto("0.5"), upto("10.0"), upto("+Inf")] == [3, 5, 6, 10]
    assert samples[f"{name}_count{labels}"] == 10
    assert samples[f"{name}_sum{labels}"] == 7.25
    assert f"# TYPE {name} histogram" in lines_of(PLAIN)


def test_a_histogram_with_another_number_of_counts_than_bounds_is_a_bug_and_not_a_wrong_figure() -> None:
    latency = {("mobile", "accepted"): TimeHistogram((3, 2), 7.25)}
    with pytest.raises(ValueError, match="zip"):
        exposition(dataclasses.replace(PLAIN, latency_bounds_s=(0.001, 0.5), settle_latency=latency))


def test_the_histograms_of_the_core_are_shown() -> None:
    latency = Latency()
    latency.count_delivery(0, 0x24, 0.02)
    latency.count_delivery(0, 0x24, 99.0)
    samples = samples_of(dataclasses.replace(PLAIN, latency_bounds_s=BOUNDS_S, settle_latency=latency.snapshot()))
    labels = {"address_class": ADDRESS_CLASSES[0], "outcome": OUTCOMES[0]}
    assert samples[f"trouter_settle_latency_seconds_count{labels}"] == 2
    assert samples[f"trouter_settle_latency_seconds_sum{labels}"] == pytest.approx(99.02)
    families = [key for key in samples if key.startswith("trouter_settle_latency_seconds_count")]
    assert len(families) == len(ADDRESS_CLASSES) * len(OUTCOMES)


def test_connections_are_shown_by_listener() -> None:
    samples = samples_of(dataclasses.replace(PLAIN, listeners=[ListenerFigures("amqp", 3, 10, 2)]))
    assert samples["trouter_connections{'listener': 'amqp'}"] == 3
    assert samples["trouter_connections_accepted_total{'listener': 'amqp'}"] == 10
    assert samples["trouter_connections_refused_total{'listener': 'amqp'}"] == 2


def test_listeners_of_one_name_are_one_series() -> None:
    samples = samples_of(
        dataclasses.replace(PLAIN, listeners=[ListenerFigures("a", 1, 2, 3), ListenerFigures("a", 4, 5, 6)])
    )
    assert samples["trouter_connections{'listener': 'a'}"] == 5
    assert samples["trouter_connections_refused_total{'listener': 'a'}"] == 9


def test_the_values_of_a_label_are_bounded_and_nothing_is_lost_in_the_sum() -> None:
    many = dataclasses.replace(
        PLAIN,
        listeners=[ListenerFigures(f"l{number}", 1, 2, 3) for number in range(1000)],
        vhost_connections={f"v{number}": 1 for number in range(1000)} | {"": 5},
    )
    samples = samples_of(many)
    for name, total in (("trouter_connections", 1000), ("trouter_vhost_connections", 1005)):
        series = [value for key, value in samples.items() if key.startswith(f"{name}{{")]
        assert len(series) == MAX_LABEL_VALUES + 1
        assert sum(series) == total
    assert samples["trouter_vhost_connections{'vhost': '_other'}"] == 805


def test_vhosts_are_shown_with_their_alarms() -> None:
    figures = dataclasses.replace(
        PLAIN, vhost_connections={"v": 3}, quota_alarms={"v": 5, "w": 0}, quota_alarms_raised={"v": 2}
    )
    samples = samples_of(figures)
    assert samples["trouter_vhost_connections{'vhost': 'v'}"] == 3
    assert samples["trouter_vhost_quota_alarms_total{'vhost': 'v'}"] == 5
    assert samples["trouter_vhost_quota_alarms_total{'vhost': 'w'}"] == 0
    assert samples["trouter_vhost_quota_alarms_raised{'vhost': 'v'}"] == 2


def test_the_values_of_each_own_series_are_tested_here() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    families: list[Metric] = list(text_string_to_metric_families(exposition(PLAIN).decode()))
    ours = {family.name for family in families if family.name.startswith("trouter_")}
    assert {name for name in ours if name not in here and not name.startswith("trouter_tenant_")} == set()


def test_the_policy_is_shown_by_its_digest() -> None:
    assert samples_of(PLAIN)["trouter_policy_info{'digest': 'b464'}"] == 1


def test_what_is_down_is_shown_by_its_name() -> None:
    figures = dataclasses.replace(
        PLAIN,
        connectors=[ConnectorFigures("broker", False, 1_700_000_000.5, 7), ConnectorFigures("hub", True, 0.0, 1)],
        auto_links=[RouteFigures("in", True, attempts=1), RouteFigures("out", False, 1_700_000_002.5, 4)],
        link_routes=[
            RouteFigures("queues", False, 1_700_000_003.0),
            RouteFigures("queues", False, 1_700_000_002.0),
            RouteFigures("queues", True),
        ],
        uplink_down_since_s=1_700_000_004.0,
        turned_away=5,
        locked=2,
        draining=True,
        drain_left=3,
        refused={("amqp", "sasl"): 3, ("amqp", "tls"): 0},
    )
    samples = samples_of(figures)
    assert samples["trouter_connector_up{'connector': 'broker'}"] == 0
    assert samples["trouter_connector_up{'connector': 'hub'}"] == 1
    assert samples["trouter_connector_down_since_seconds{'connector': 'broker'}"] == 1_700_000_000.5
    assert samples["trouter_connector_down_since_seconds{'connector': 'hub'}"] == 0
    assert samples["trouter_connector_attempts_total{'connector': 'broker'}"] == 7
    assert samples["trouter_auto_link_up{'auto_link': 'in'}"] == 1
    assert samples["trouter_auto_link_up{'auto_link': 'out'}"] == 0
    assert samples["trouter_auto_link_down_since_seconds{'auto_link': 'in'}"] == 0
    assert samples["trouter_auto_link_down_since_seconds{'auto_link': 'out'}"] == 1_700_000_002.5
    assert samples["trouter_auto_link_attempts_total{'auto_link': 'out'}"] == 4
    assert samples["trouter_link_route_up{'link_route': 'queues'}"] == 0
    assert samples["trouter_link_route_down_since_seconds{'link_route': 'queues'}"] == 1_700_000_002
    assert samples["trouter_uplink_up"] == 0
    assert samples["trouter_uplink_down_since_seconds"] == 1_700_000_004
    assert samples["trouter_connections_turned_away_total"] == 5
    assert samples["trouter_logins_locked"] == 2
    assert (samples["trouter_draining"], samples["trouter_drain_connections_left"]) == (1, 3)
    assert samples["trouter_handshakes_refused_total{'listener': 'amqp', 'reason': 'sasl'}"] == 3
    assert samples["trouter_handshakes_refused_total{'listener': 'amqp', 'reason': 'tls'}"] == 0


def test_addresses_are_shown_by_their_section_and_bounded() -> None:
    counts = {("ingress", ""): 7, ("transit", ""): 1, ("in", "accepted"): 5, ("out", "rejected"): 2}
    present = {"addresses": 2, "consumers": 3, "producers": 4, "undelivered": 6}
    addresses = [AddressFigures(f"a{number}", counts, present) for number in range(MAX_LABEL_VALUES + 2)]
    samples = samples_of(dataclasses.replace(PLAIN, addresses=addresses))
    assert samples["trouter_address_messages_total{'address': 'a0', 'direction': 'in'}"] == 7
    assert samples["trouter_address_messages_total{'address': 'a0', 'direction': 'out'}"] == 0
    assert samples["trouter_address_messages_total{'address': '_other', 'direction': 'transit'}"] == 2
    assert samples["trouter_address_outcomes_total{'address': 'a0', 'direction': 'in', 'outcome': 'accepted'}"] == 5
    assert (
        samples["trouter_address_outcomes_total{'address': '_other', 'direction': 'out', 'outcome': 'rejected'}"] == 4
    )
    assert samples["trouter_address_count{'address': 'a0'}"] == 2
    assert samples["trouter_address_consumers{'address': 'a0'}"] == 3
    assert samples["trouter_address_producers{'address': 'a0'}"] == 4
    assert samples["trouter_address_undelivered{'address': '_other'}"] == 12


def test_beyond_the_bound_one_series_is_down_if_any_of_the_rest_is() -> None:
    count = MAX_LABEL_VALUES + 3
    connectors = [
        ConnectorFigures(f"c{number}", number != count - 2, 5.0 if number == count - 2 else 0.0, 1)
        for number in range(count)
    ]
    auto_links = [RouteFigures(f"a{number}", number != count - 1) for number in range(count)]
    refused = {(f"l{number}", "tls"): 1 for number in range(count)}
    samples = samples_of(dataclasses.replace(PLAIN, connectors=connectors, auto_links=auto_links, refused=refused))
    assert samples["trouter_handshakes_refused_total{'listener': '_other', 'reason': 'tls'}"] == 3
    assert samples["trouter_connector_up{'connector': '_other'}"] == 0
    assert samples["trouter_connector_down_since_seconds{'connector': '_other'}"] == 5
    assert samples["trouter_connector_attempts_total{'connector': '_other'}"] == 3
    assert samples["trouter_auto_link_up{'auto_link': '_other'}"] == 0
    assert sum(name.startswith("trouter_connector_up") for name in samples) == MAX_LABEL_VALUES + 1


def test_the_network_is_shown_by_numbers_and_by_kinds_of_faults_that_are_fixed() -> None:
    network = NetworkFigures(
        known=5, reachable=4, neighbours=2, duplicate_ids=1, changes=9, control_in=70, control_out=80,
        faults={"malformed": 3, "same-id": 0},
    )  # fmt: skip
    samples = samples_of(dataclasses.replace(PLAIN, network=network))
    shown = {name: value for name, value in samples.items() if name.startswith("trouter_network")}
    assert shown == {
        "trouter_network_routers": 5,
        "trouter_network_routers_reachable": 4,
        "trouter_network_neighbours": 2,
        "trouter_network_duplicate_ids": 1,
        "trouter_network_changes_total": 9,
        "trouter_network_control_messages_total{'direction': 'in'}": 70,
        "trouter_network_control_messages_total{'direction': 'out'}": 80,
        "trouter_network_faults_total{'fault': 'malformed'}": 3,
        "trouter_network_faults_total{'fault': 'same-id'}": 0,
    }


TENANTS = [TenantFigures(f"t{number}", 1, 2, 3, {"accepted": 4}) for number in range(1000)]


def test_the_tenants_are_bounded_and_nothing_is_lost_in_the_sum() -> None:
    samples = samples_of(dataclasses.replace(PLAIN, tenants=TENANTS))
    for name, each in (("connections", 1), ("links", 2), ("addresses", 3), ("deliveries_total", 4)):
        series = [value for key, value in samples.items() if key.startswith(f"trouter_tenant_{name}{{")]
        assert len(series) == MAX_LABEL_VALUES + 1
        assert sum(series) == 1000 * each


def test_a_tenant_is_shown_nothing_but_its_own() -> None:
    text = tenant_exposition(TENANTS[7]).decode()
    names = {line.partition("{")[0] for line in text.splitlines() if not line.startswith("#")}
    assert names == {f"trouter_tenant_{each}" for each in ("connections", "links", "addresses", "deliveries_total")}
    assert set(re.findall(r'tenant="(.*?)"', text)) == {"t7"}


def test_deliveries_memory_logs_and_certificates_are_shown() -> None:
    samples = samples_of(
        dataclasses.replace(
            PLAIN,
            deliveries={("mobile", "accepted"): 7},
            memory=[MemoryOwner("qdr_link_t", 1200, 3)],
            held_bytes=10,
            held_limit_bytes=100,
            log_events={("SERVER", "error"): 4},
            log_lines_lost=2,
            bugs=3,
            handshakes_open=4,
            logins_waiting=5,
            certificates=[CertificateExpiry("server", 2e9)],
        )
    )
    assert samples["trouter_deliveries_total{'address_class': 'mobile', 'outcome': 'accepted'}"] == 7
    assert samples["trouter_memory_bytes{'owner': 'qdr_link_t'}"] == 3600
    assert samples["trouter_memory_objects{'owner': 'qdr_link_t'}"] == 3
    assert samples["qdr_allocator_qdr_link_t:held_by_threads_bytes"] == 3
    assert samples["qdr_allocator_qdr_link_t:total_free_to_heap_bytes"] == 0
    assert samples["trouter_held_message_bytes"] == 10
    assert samples["trouter_held_message_bytes_limit"] == 100
    assert samples["trouter_log_events_total{'level': 'error', 'module': 'SERVER'}"] == 4
    assert samples["trouter_log_lines_lost_total"] == 2
    assert samples["trouter_bugs_total"] == 3
    assert samples["trouter_handshakes_open"] == 4
    assert samples["trouter_logins_waiting"] == 5
    assert samples["trouter_tls_cert_not_after_seconds{'ssl_profile': 'server'}"] == 2e9
    assert samples["trouter_uptime_seconds"] == 12.5
    assert samples["trouter_ready"] == 1
    assert math.isfinite(samples["process_resident_memory_bytes"])
    assert any(key.startswith("trouter_build_info") and "'twin': 'compiled'" in key for key in samples)


def test_findings_are_counted_by_severity() -> None:
    samples = samples_of(dataclasses.replace(PLAIN, findings={"problem": 1, "unsafe": 2, "warning": 0}))
    shown = {key: value for key, value in samples.items() if key.startswith("trouter_configuration_findings")}
    assert shown == {f"trouter_configuration_findings{{'severity': '{name}'}}": count
                     for name, count in (("problem", 1), ("unsafe", 2), ("warning", 0))}  # fmt: skip


@given(name=st.text(st.characters(codec=None, categories=None), max_size=20), count=st.integers(0, 2**63))
def test_any_configured_name_makes_a_text_that_parses(name: str, count: int) -> None:
    figures = dataclasses.replace(
        PLAIN,
        listeners=[ListenerFigures(name, count, count, count)],
        vhost_connections={name: count},
        certificates=[CertificateExpiry(name, 1.0)],
    )
    assert samples_of(figures)["qdr_connections_total"] == NUMBERED["connections"]
