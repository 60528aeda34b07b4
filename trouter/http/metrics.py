"""The figures as Prometheus text: this module has names, types and help, ``Figures`` the numbers.

The `qdr_*` series keep the names and types that dashboards of Qpid Dispatch use, even gauges that end in `_total`.
Other series have correct types. No client can choose the value of a label.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from trouter._metrics import exposition_of, label_value
from trouter.columns.column import COUNTER, GAUGE
from trouter.columns.router import ROUTER

from .figures import Figures, ListenerFigures, NetworkFigures, TenantFigures

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Values of one label; further ones are added up under OTHER.
MAX_LABEL_VALUES: Final = 200
OTHER: Final = "_other"
_TENANT: Final = ("tenant",)

_FAMILIES: Final = {GAUGE: GaugeMetricFamily, COUNTER: CounterMetricFamily}
#: The series of Qpid Dispatch that count as a column of the router's row does: `qdr_<name>_total`.
TOTALS: Final = tuple(column.series for column in ROUTER if column.series is not None)
#: Qpid Dispatch's allocator gauges, `qdr_allocator_<type>:<field>_bytes`: objects, in spite of the name. Without
#: pools, all objects are allocated and held, and none is rebalanced.
ALLOCATOR_FIELDS: Final = (
    ("total_alloc_from_heap", 1),
    ("total_free_to_heap", 0),
    ("held_by_threads", 1),
    ("batches_rebalanced_to_threads", 0),
    ("batches_rebalanced_to_global", 0),
)

_process = ProcessCollector(registry=None)


def exposition(figures: Figures) -> bytes:
    """Return all figures in the text format of Prometheus."""
    return exposition_of((*_metrics_of(figures), *_process.collect()))


def tenant_exposition(tenant: TenantFigures) -> bytes:
    """Return the figures for a tenant: its own only, without the process."""
    return exposition_of(_tenants((tenant,)))


def _metrics_of(figures: Figures) -> Iterator[Metric]:
    yield from _totals(figures)
    yield from _allocators(figures)
    yield from _about_the_process(figures)
    yield from _connections(figures)
    yield from _deliveries(figures)
    yield from _memory(figures)
    yield from _logs(figures)
    yield from _certificates(figures)
    yield from _tenants(_bounded_tenants(figures.tenants))
    yield from _network(figures.network)


def _totals(figures: Figures) -> Iterator[Metric]:
    for series in TOTALS:
        family = _FAMILIES[series.kind]
        yield family(f"qdr_{series.name}_total", series.help, value=figures.totals[series.name])


def _allocators(figures: Figures) -> Iterator[Metric]:
    for owner in figures.memory:
        for name, share in ALLOCATOR_FIELDS:
            series = f"qdr_allocator_{owner.name}:{name}_bytes"
            yield GaugeMetricFamily(series, "As Qpid Dispatch counts its objects.", value=owner.count * share)


def _about_the_process(figures: Figures) -> Iterator[Metric]:
    build = GaugeMetricFamily(
        "trouter_build_info", "Version, twin and Python of the router; always 1.", labels=("version", "twin", "python")
    )
    build.add_metric((figures.version, figures.twin, platform.python_version()), 1)
    yield build
    yield GaugeMetricFamily("trouter_uptime_seconds", "Seconds since the router started.", value=figures.uptime_s)
    yield GaugeMetricFamily(
        "trouter_ready", "1 while all that is configured is served, else 0.", value=int(figures.ready)
    )
    findings = GaugeMetricFamily(
        "trouter_configuration_findings",
        "Findings of `trouter check` about the configuration in force.",
        labels=("severity",),
    )
    for severity, count in figures.findings.items():
        findings.add_metric((severity,), count)
    yield findings


def _connections(figures: Figures) -> Iterator[Metric]:
    listeners = _bounded_listeners(figures.listeners)
    now = GaugeMetricFamily("trouter_connections", "Open connections by listener.", labels=("listener",))
    accepted = CounterMetricFamily(
        "trouter_connections_accepted", "Connections accepted by listener.", labels=("listener",)
    )
    refused = CounterMetricFamily(
        "trouter_connections_refused", "Connections refused by listener.", labels=("listener",)
    )
    for listener in listeners:
        labels = (label_value(listener.name),)
        now.add_metric(labels, listener.connections)
        accepted.add_metric(labels, listener.accepted)
        refused.add_metric(labels, listener.refused)
    yield from (now, accepted, refused)
    vhosts = GaugeMetricFamily("trouter_vhost_connections", "Open connections by configured vhost.", labels=("vhost",))
    for name, count in _bounded(figures.vhost_connections).items():
        vhosts.add_metric((label_value(name),), count)
    yield vhosts
    met = CounterMetricFamily("trouter_vhost_quota_alarms", "Quota alarms by vhost.", labels=("vhost",))
    for name, count in _bounded(figures.quota_alarms).items():
        met.add_metric((label_value(name),), count)
    raised = GaugeMetricFamily("trouter_vhost_quota_alarms_raised", "Active quota alarms by vhost.", labels=("vhost",))
    for name, count in _bounded(figures.quota_alarms_raised).items():
        raised.add_metric((label_value(name),), count)
    yield from (met, raised)


def _deliveries(figures: Figures) -> Iterator[Metric]:
    labels = ("address_class", "outcome")
    ended = CounterMetricFamily("trouter_deliveries", "Deliveries with an outcome.", labels=labels)
    for class_and_outcome, count in figures.deliveries.items():
        ended.add_metric(class_and_outcome, count)
    yield ended
    latency = HistogramMetricFamily(
        "trouter_settle_latency_seconds", "Time from the arrival of a message to its settlement.", labels=labels
    )
    bounds = [*(str(float(bound_s)) for bound_s in figures.latency_bounds_s), "+Inf"]
    for class_and_outcome, histogram in figures.settle_latency.items():
        counts = accumulate(histogram.counts)
        latency.add_metric(class_and_outcome, list(zip(bounds, counts, strict=True)), histogram.sum_s)
    yield latency


def _memory(figures: Figures) -> Iterator[Metric]:
    size = GaugeMetricFamily("trouter_memory_bytes", "Memory by type of objects.", labels=("owner",))
    count = GaugeMetricFamily("trouter_memory_objects", "Objects alive by type.", labels=("owner",))
    for owner in figures.memory:
        size.add_metric((owner.name,), owner.size_bytes * owner.count)
        count.add_metric((owner.name,), owner.count)
    yield from (size, count)
    yield GaugeMetricFamily("trouter_held_message_bytes", "Bytes of messages under way.", value=figures.held_bytes)
    limit = "Largest number of bytes of messages under way."
    yield GaugeMetricFamily("trouter_held_message_bytes_limit", limit, value=figures.held_limit_bytes)


def _logs(figures: Figures) -> Iterator[Metric]:
    events = CounterMetricFamily("trouter_log_events", "Log events, written or not.", labels=("module", "level"))
    for module_and_level, count in figures.log_events.items():
        events.add_metric(module_and_level, count)
    yield events
    lost = "Log lines that could not be written."
    yield CounterMetricFamily("trouter_log_lines_lost", lost, value=figures.log_lines_lost)


def _certificates(figures: Figures) -> Iterator[Metric]:
    ends = GaugeMetricFamily(
        "trouter_tls_cert_not_after_seconds", "Expiry of a certificate, in seconds since 1970.", labels=("ssl_profile",)
    )
    for certificate in figures.certificates:
        ends.add_metric((label_value(certificate.profile),), certificate.not_after_s)
    yield ends


def _network(network: NetworkFigures) -> Iterator[Metric]:
    gauge, counter = GaugeMetricFamily, CounterMetricFamily
    yield gauge("trouter_network_routers", "Other routers known.", value=network.known)
    yield gauge("trouter_network_routers_reachable", "Other routers that can be reached.", value=network.reachable)
    yield gauge("trouter_network_neighbours", "Routers that are neighbours.", value=network.neighbours)
    yield gauge("trouter_network_duplicate_ids", "Router ids that two routers have.", value=network.duplicate_ids)
    yield counter("trouter_network_changes", "Changes of the topology.", value=network.changes)
    messages = counter("trouter_network_control_messages", "Messages between routers.", labels=("direction",))
    messages.add_metric(("in",), network.control_in)
    messages.add_metric(("out",), network.control_out)
    faults = counter(
        "trouter_network_faults", "Messages of other routers that were ignored, by fault.", labels=("fault",)
    )
    for fault, count in network.faults.items():
        faults.add_metric((fault,), count)
    yield from (messages, faults)


def _tenants(tenants: Iterable[TenantFigures]) -> Iterator[Metric]:
    now = {
        "connections": GaugeMetricFamily("trouter_tenant_connections", "Open connections by tenant.", labels=_TENANT),
        "links": GaugeMetricFamily("trouter_tenant_links", "Attached links by tenant.", labels=_TENANT),
        "addresses": GaugeMetricFamily("trouter_tenant_addresses", "Addresses known by tenant.", labels=_TENANT),
    }
    ended = CounterMetricFamily(
        "trouter_tenant_deliveries", "Deliveries of a tenant with an outcome.", labels=(*_TENANT, "outcome")
    )
    for tenant in tenants:
        name = label_value(tenant.name)
        for field, family in now.items():
            family.add_metric((name,), getattr(tenant, field))
        for outcome, count in tenant.deliveries.items():
            ended.add_metric((name, outcome), count)
    yield from (*now.values(), ended)


def _bounded_tenants(tenants: Iterable[TenantFigures]) -> list[TenantFigures]:
    """Return the first MAX_LABEL_VALUES tenants; the rest added up as one."""
    every = list(tenants)
    shown, rest = every[:MAX_LABEL_VALUES], every[MAX_LABEL_VALUES:]
    if not rest:
        return shown
    ended: Counter[str] = Counter()
    for each in rest:
        ended.update(each.deliveries)
    sums = {field: sum(getattr(each, field) for each in rest) for field in ("connections", "links", "addresses")}
    return [*shown, TenantFigures(OTHER, **sums, deliveries=ended)]


def _bounded(counts: Mapping[str, int]) -> Mapping[str, int]:
    """Return the first MAX_LABEL_VALUES counts; the rest, and those without a name, added up under OTHER."""
    bounded = {OTHER: 0}
    for name, count in counts.items():
        shown = name if name and len(bounded) <= MAX_LABEL_VALUES else OTHER
        bounded[shown] = bounded.get(shown, 0) + count
    return bounded


def _bounded_listeners(listeners: Iterable[ListenerFigures]) -> list[ListenerFigures]:
    """Return one for each name, the first MAX_LABEL_VALUES names; the rest added up as one."""
    by_name: dict[str, ListenerFigures] = {}
    for each in listeners:
        name = each.name if each.name in by_name or len(by_name) < MAX_LABEL_VALUES else OTHER
        sofar = by_name.get(name, ListenerFigures(name, 0, 0, 0))
        by_name[name] = ListenerFigures(
            name, sofar.connections + each.connections, sofar.accepted + each.accepted, sofar.refused + each.refused
        )
    return list(by_name.values())
