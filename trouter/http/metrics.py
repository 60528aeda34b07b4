"""The figures as Prometheus text: this module has names, types and help, ``Figures`` the numbers.

The `qdr_*` series keep the names and types that dashboards of Qpid Dispatch use, even gauges that end in `_total`.
Other series have correct types. No client can choose the value of a label.
"""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import add
from typing import Any, Final, Generic, TypeVar

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from trouter.columns.column import COUNTER, GAUGE
from trouter.columns.router import ROUTER

from .exposition import exposition_of, label_value
from .figures import AddressFigures, ConnectorFigures, Figures, ListenerFigures, RouteFigures, TenantFigures

#: What the values of a series are read from.
Source = TypeVar("Source")

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Values of one label; further ones are added up under OTHER.
MAX_LABEL_VALUES: Final = 200
OTHER: Final = "_other"
_TENANT: Final = ("tenant",)
_LISTENER: Final = ("listener",)
_CONNECTOR: Final = ("connector",)
_ADDRESS: Final = ("address",)
_AUTO_LINK: Final = ("auto_link",)
_LINK_ROUTE: Final = ("link_route",)
_VHOST: Final = ("vhost",)
_OWNER: Final = ("owner",)
_CLASS_AND_OUTCOME: Final = ("address_class", "outcome")
HISTOGRAM: Final = "histogram"
#: The label of every sample of a router with several workers, and the series that only it has.
WORKER: Final = "worker"
WORKER_UP: Final = "trouter_worker_up"
WORKER_UP_HELP: Final = "1 if the worker of the router answered the scrape, else 0."

_FAMILIES: Final = {GAUGE: GaugeMetricFamily, COUNTER: CounterMetricFamily, HISTOGRAM: HistogramMetricFamily}
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


@dataclass(frozen=True, slots=True)
class DeclaredSeries(Generic[Source]):
    """One series.

    name: of a counter without `_total`. help: for /metrics. samples: returns its values, each with the values of its
    ``labels``; of a histogram the counts of its buckets and the sum. shows: for the manual, where it says more than
    ``help``.
    """

    name: str
    kind: str
    help: str
    samples: Callable[[Source], Iterable[tuple[Sequence[str], Any]]]
    labels: tuple[str, ...] = ()
    shows: str = ""

    @property
    def series(self) -> str:
        """The name of the series on the page."""
        return f"{self.name}_total" if self.kind == COUNTER else self.name


def _one(value: Callable[[Figures], float]) -> Callable[[Figures], Iterable[tuple[Sequence[str], float]]]:
    """Return the samples of a series without labels."""
    return lambda figures: [((), value(figures))]


def _by_name(
    counts: Callable[[Figures], Mapping[str, int]],
) -> Callable[[Figures], Iterable[tuple[Sequence[str], int]]]:
    """Return the samples of a series with one label, whose values come from the configuration."""
    return lambda figures: [((label_value(name),), count) for name, count in _bounded(counts(figures)).items()]


def _by_listener(
    value: Callable[[ListenerFigures], int],
) -> Callable[[Figures], Iterable[tuple[Sequence[str], int]]]:
    return lambda figures: [((label_value(each.name),), value(each)) for each in _bounded_listeners(figures.listeners)]


def _by_connector(
    value: Callable[[ConnectorFigures], float],
) -> Callable[[Figures], Iterable[tuple[Sequence[str], float]]]:
    return lambda figures: [
        ((label_value(each.name),), value(each)) for each in _bounded_connectors(figures.connectors)
    ]


def _by_route(
    routes: Callable[[Figures], Iterable[RouteFigures]],
    value: Callable[[RouteFigures], float],
    worst: Callable[[float, float], float],
) -> Callable[[Figures], Iterable[tuple[Sequence[str], float]]]:
    """Return the value of each name; of several routes with one name, and beyond the first names, the worst."""

    def samples(figures: Figures) -> Iterable[tuple[Sequence[str], float]]:
        found: dict[str, float] = {}
        for each in routes(figures):
            name = each.name if each.name in found or len(found) < MAX_LABEL_VALUES else OTHER
            found[name] = worst(found[name], value(each)) if name in found else value(each)
        return [((label_value(name),), each) for name, each in found.items()]

    return samples


def _earliest(one: float, other: float) -> float:
    """Return the earlier of two times; 0 for none."""
    return min(one, other) or max(one, other)


def _of_uplink(value: Callable[[float], float]) -> Callable[[Figures], Iterable[tuple[Sequence[str], float]]]:
    """Return the sample of an edge router, by the time since which it has no usable uplink."""

    def samples(figures: Figures) -> Iterable[tuple[Sequence[str], float]]:
        down_since_s = figures.uplink_down_since_s
        return [] if down_since_s is None else [((), value(down_since_s))]

    return samples


def _by_tenant(
    value: Callable[[TenantFigures], int],
) -> Callable[[Iterable[TenantFigures]], Iterable[tuple[Sequence[str], int]]]:
    return lambda tenants: [((label_value(each.name),), value(each)) for each in tenants]


def _latencies(figures: Figures) -> Iterator[tuple[Sequence[str], Any]]:
    bounds = [*(str(float(bound_s)) for bound_s in figures.latency_bounds_s), "+Inf"]
    for class_and_outcome, histogram in figures.settle_latency.items():
        counts = accumulate(histogram.counts)
        yield class_and_outcome, (list(zip(bounds, counts, strict=True)), histogram.sum_s)


def _of_addresses(
    samples: Callable[[AddressFigures], Iterable[tuple[Sequence[str], int]]],
) -> Callable[[Figures], Iterable[tuple[Sequence[str], int]]]:
    """Return the samples of the sections, the first MAX_LABEL_VALUES of them; the rest added up under OTHER."""

    def bounded(figures: Figures) -> Iterable[tuple[Sequence[str], int]]:
        sums: Counter[tuple[str, ...]] = Counter()
        for place, section in enumerate(figures.addresses):
            name = label_value(section.name) if place < MAX_LABEL_VALUES else OTHER
            for labels, count in samples(section):
                sums[name, *labels] += count
        return sums.items()

    return bounded


def _now(what: str) -> Callable[[Figures], Iterable[tuple[Sequence[str], int]]]:
    """Return the samples of the present numbers of each section: its addresses, consumers and producers."""
    return _of_addresses(lambda section: [((), section.present.get(what, 0))])


#: The directions of the messages of an address.
_WAYS: Final = {"ingress": "in", "egress": "out", "transit": "transit"}

#: The series of one tenant.
TENANT_SERIES: Final[tuple[DeclaredSeries[Sequence[TenantFigures]], ...]] = (
    DeclaredSeries(
        "trouter_tenant_connections",
        GAUGE,
        "Open connections by tenant.",
        _by_tenant(lambda tenant: tenant.connections),
        _TENANT,
        "open connections",
    ),
    DeclaredSeries(
        "trouter_tenant_links",
        GAUGE,
        "Attached links by tenant.",
        _by_tenant(lambda tenant: tenant.links),
        _TENANT,
        "attached links",
    ),
    DeclaredSeries(
        "trouter_tenant_addresses",
        GAUGE,
        "Addresses known by tenant.",
        _by_tenant(lambda tenant: tenant.addresses),
        _TENANT,
        "addresses known in the tenant's space",
    ),
    DeclaredSeries(
        "trouter_tenant_deliveries",
        COUNTER,
        "Deliveries of a tenant with an outcome.",
        lambda tenants: [
            ((label_value(each.name), outcome), count) for each in tenants for outcome, count in each.deliveries.items()
        ],
        (*_TENANT, "outcome"),
        "deliveries that the tenant sent and that ended",
    ),
)
#: The series of the router, without those of Qpid Dispatch and those of tenants.
SERIES: Final[tuple[DeclaredSeries[Figures], ...]] = (
    DeclaredSeries(
        "trouter_build_info",
        GAUGE,
        "Version, twin and Python of the router; always 1.",
        lambda figures: [((figures.version, figures.twin, platform.python_version()), 1)],
        ("version", "twin", "python"),
        "always 1; twin is compiled or interpreted",
    ),
    DeclaredSeries(
        "trouter_policy_info",
        GAUGE,
        "The digest of the policy and its vhosts; always 1.",
        lambda figures: [((figures.policy_digest,), 1)],
        ("digest",),
        "always 1; routers with the same policy have the same digest",
    ),
    DeclaredSeries(
        "trouter_uptime_seconds", GAUGE, "Seconds since the router started.", _one(lambda figures: figures.uptime_s)
    ),
    DeclaredSeries(
        "trouter_ready",
        GAUGE,
        "1 while all that is configured is served, else 0.",
        _one(lambda figures: int(figures.ready)),
        shows="1 while `/readyz` says `OK`",
    ),
    DeclaredSeries(
        "trouter_draining",
        GAUGE,
        "1 while the router drains or is drained, else 0.",
        _one(lambda figures: int(figures.draining)),
        shows="1 from `trouter drain` on until it is cancelled: the router takes no new clients",
    ),
    DeclaredSeries(
        "trouter_drain_connections_left",
        GAUGE,
        "Connections of clients that a drain has not closed yet.",
        _one(lambda figures: figures.drain_left),
        shows="the clients' connections that a drain has not closed yet; 0 without a drain",
    ),
    DeclaredSeries(
        "trouter_configuration_findings",
        GAUGE,
        "Findings of `trouter check` about the configuration in force.",
        lambda figures: [((severity,), count) for severity, count in figures.findings.items()],
        ("severity",),
        "findings of `trouter check` about the configuration in force: `problem`, `unsafe`, `warning` or `accepted`",
    ),
    DeclaredSeries(
        "trouter_connections",
        GAUGE,
        "Open connections by listener.",
        _by_listener(lambda listener: listener.connections),
        _LISTENER,
        "open connections",
    ),
    DeclaredSeries(
        "trouter_connections_accepted",
        COUNTER,
        "Connections accepted by listener.",
        _by_listener(lambda listener: listener.accepted),
        _LISTENER,
        "connections accepted",
    ),
    DeclaredSeries(
        "trouter_connections_refused",
        COUNTER,
        "Connections refused by listener.",
        _by_listener(lambda listener: listener.refused),
        _LISTENER,
        "connections refused because of a limit",
    ),
    DeclaredSeries(
        "trouter_connections_turned_away",
        COUNTER,
        "Connections closed before their handshake.",
        _one(lambda figures: figures.turned_away),
        shows="connections closed before their handshake: a decision blocks the host, it connects too fast, or it "
        "has too many handshakes open",
    ),
    DeclaredSeries(
        "trouter_handshakes_refused",
        COUNTER,
        "Connections refused before their open, by listener and reason.",
        lambda figures: [
            ((label_value(listener), reason), count)
            for (listener, reason), count in _bounded_pairs(figures.refused).items()
        ],
        (*_LISTENER, "reason"),
        "connections refused before their open, by [reason](#why-a-handshake-is-refused)",
    ),
    DeclaredSeries(
        "trouter_logins_locked",
        GAUGE,
        "Users whose logins from a host are locked now.",
        _one(lambda figures: figures.locked),
        shows="users whose logins from a host are locked now, because of wrong passwords",
    ),
    DeclaredSeries(
        "trouter_handshakes_open",
        GAUGE,
        "Accepted connections that are not open yet.",
        _one(lambda figures: figures.handshakes_open),
        shows="connections that are accepted and not open yet: in TLS, in a login, or before their open",
    ),
    DeclaredSeries(
        "trouter_logins_waiting",
        GAUGE,
        "Logins that wait for their turn.",
        _one(lambda figures: figures.logins_waiting),
        shows="logins that wait until those before them are checked, in the order in which they came",
    ),
    DeclaredSeries(
        "trouter_connector_up",
        GAUGE,
        "1 while the peer of a connector has opened the connection, else 0.",
        _by_connector(lambda connector: int(connector.up)),
        _CONNECTOR,
    ),
    DeclaredSeries(
        "trouter_connector_down_since_seconds",
        GAUGE,
        "Since when a connector is down, in seconds since 1970; 0 while it is up.",
        _by_connector(lambda connector: connector.down_since_s),
        _CONNECTOR,
    ),
    DeclaredSeries(
        "trouter_connector_attempts",
        COUNTER,
        "Attempts of a connector to connect.",
        _by_connector(lambda connector: connector.attempts),
        _CONNECTOR,
        "attempts to connect; they grow while the connector is down",
    ),
    DeclaredSeries(
        "trouter_auto_link_up",
        GAUGE,
        "1 while an auto link is active, else 0.",
        _by_route(lambda figures: figures.auto_links, lambda route: int(route.up), min),
        _AUTO_LINK,
        "1 while the auto link is active on each connection to its container, else 0",
    ),
    DeclaredSeries(
        "trouter_auto_link_down_since_seconds",
        GAUGE,
        "Since when an auto link is down, in seconds since 1970; 0 while it is up.",
        _by_route(lambda figures: figures.auto_links, lambda route: route.down_since_s, _earliest),
        _AUTO_LINK,
    ),
    DeclaredSeries(
        "trouter_auto_link_attempts",
        COUNTER,
        "Attempts to attach an auto link.",
        _by_route(lambda figures: figures.auto_links, lambda route: route.attempts, add),
        _AUTO_LINK,
        "attempts to attach the auto link; they grow while the broker refuses it",
    ),
    DeclaredSeries(
        "trouter_link_route_up",
        GAUGE,
        "1 while a link route has a container, else 0.",
        _by_route(lambda figures: figures.link_routes, lambda route: int(route.up), min),
        _LINK_ROUTE,
        "1 while a container of the link route is connected, else 0",
    ),
    DeclaredSeries(
        "trouter_link_route_down_since_seconds",
        GAUGE,
        "Since when a link route is down, in seconds since 1970; 0 while it is up.",
        _by_route(lambda figures: figures.link_routes, lambda route: route.down_since_s, _earliest),
        _LINK_ROUTE,
    ),
    DeclaredSeries(
        "trouter_uplink_up",
        GAUGE,
        "1 while an edge router has a usable uplink, else 0.",
        _of_uplink(lambda down_since_s: int(not down_since_s)),
        shows="1 while the edge router has an uplink that it can use, else 0; other routers do not have it",
    ),
    DeclaredSeries(
        "trouter_uplink_down_since_seconds",
        GAUGE,
        "Since when an edge router has no usable uplink, in seconds since 1970; 0 while it has one.",
        _of_uplink(lambda down_since_s: down_since_s),
        shows="since when it has none, in seconds since 1970; 0 while it has one",
    ),
    DeclaredSeries(
        "trouter_vhost_connections",
        GAUGE,
        "Open connections by configured vhost.",
        _by_name(lambda figures: figures.vhost_connections),
        _VHOST,
        "open connections of the vhosts that are configured; `_other` for all other host names",
    ),
    DeclaredSeries(
        "trouter_vhost_quota_alarms",
        COUNTER,
        "Quota alarms by vhost.",
        _by_name(lambda figures: figures.quota_alarms),
        _VHOST,
        "alarms about quotas of the vhost and its groups",
    ),
    DeclaredSeries(
        "trouter_vhost_quota_alarms_raised",
        GAUGE,
        "Active quota alarms by vhost.",
        _by_name(lambda figures: figures.quota_alarms_raised),
        _VHOST,
        "of these, alarms that are raised now",
    ),
    DeclaredSeries(
        "trouter_deliveries",
        COUNTER,
        "Deliveries with an outcome.",
        lambda figures: figures.deliveries.items(),
        _CLASS_AND_OUTCOME,
        "deliveries that ended",
    ),
    DeclaredSeries(
        "trouter_settle_latency_seconds",
        HISTOGRAM,
        "Time from the arrival of a message to its settlement.",
        _latencies,
        _CLASS_AND_OUTCOME,
        "from the arrival of a message to its settlement",
    ),
    DeclaredSeries(
        "trouter_address_messages",
        COUNTER,
        "Messages of the addresses of a section with metrics: yes.",
        _of_addresses(lambda section: [((way,), section.deliveries.get((name, ""), 0)) for name, way in _WAYS.items()]),
        (*_ADDRESS, "direction"),
        "messages of the addresses of a [section with `metrics: yes`](#metrics-of-addresses): `in` from clients, `out` "
        "to clients, `transit` to other routers",
    ),
    DeclaredSeries(
        "trouter_address_outcomes",
        COUNTER,
        "Messages of these addresses that ended, on links of senders (in) and receivers (out).",
        _of_addresses(
            lambda section: [
                ((way, outcome), section.deliveries.get((way, outcome), 0))
                for way in ("in", "out")
                for outcome in ("accepted", "rejected", "released", "modified", "presettled")
            ]
        ),
        (*_ADDRESS, "direction", "outcome"),
        "those that ended, on the links of senders (`in`) and of receivers (`out`)",
    ),
    DeclaredSeries(
        "trouter_address_consumers", GAUGE, "Receivers of these addresses at this router.", _now("consumers"), _ADDRESS
    ),
    DeclaredSeries(
        "trouter_address_producers", GAUGE, "Senders to these addresses at this router.", _now("producers"), _ADDRESS
    ),
    DeclaredSeries(
        "trouter_address_undelivered",
        GAUGE,
        "Messages that wait for the receivers of these addresses at this router.",
        _now("undelivered"),
        _ADDRESS,
    ),
    DeclaredSeries(
        "trouter_address_count", GAUGE, "Addresses of the section that are in use.", _now("addresses"), _ADDRESS
    ),
    DeclaredSeries(
        "trouter_memory_bytes",
        GAUGE,
        "Memory by type of objects.",
        lambda figures: [((owner.name,), owner.size_bytes * owner.count) for owner in figures.memory],
        _OWNER,
        "memory by the type of its objects",
    ),
    DeclaredSeries(
        "trouter_memory_objects",
        GAUGE,
        "Objects alive by type.",
        lambda figures: [((owner.name,), owner.count) for owner in figures.memory],
        _OWNER,
    ),
    DeclaredSeries(
        "trouter_held_message_bytes",
        GAUGE,
        "Bytes of messages under way.",
        _one(lambda figures: figures.held_bytes),
        shows="bytes of messages that the router holds",
    ),
    DeclaredSeries(
        "trouter_held_message_bytes_limit",
        GAUGE,
        "Largest number of bytes of messages under way.",
        _one(lambda figures: figures.held_limit_bytes),
        shows="the limit of these bytes",
    ),
    DeclaredSeries(
        "trouter_log_events",
        COUNTER,
        "Log events, written or not.",
        lambda figures: figures.log_events.items(),
        ("module", "level"),
    ),
    DeclaredSeries(
        "trouter_log_lines_lost",
        COUNTER,
        "Log lines that could not be written.",
        _one(lambda figures: figures.log_lines_lost),
        shows="log lines that the router could not write",
    ),
    DeclaredSeries(
        "trouter_bugs",
        COUNTER,
        "Bugs of the router itself, each of which has ended a connection or a piece of work.",
        _one(lambda figures: figures.bugs),
        shows="bugs of the router itself; the log has the traceback of each: please report it",
    ),
    DeclaredSeries(
        "trouter_network_routers",
        GAUGE,
        "Other routers known.",
        _one(lambda figures: figures.network.known),
        shows="other routers known; on a standalone router this and the next ones are 0",
    ),
    DeclaredSeries(
        "trouter_network_routers_reachable",
        GAUGE,
        "Other routers that can be reached.",
        _one(lambda figures: figures.network.reachable),
        shows="of these, routers in reach",
    ),
    DeclaredSeries(
        "trouter_network_neighbours",
        GAUGE,
        "Routers that are neighbours.",
        _one(lambda figures: figures.network.neighbours),
        shows="of these, neighbours",
    ),
    DeclaredSeries(
        "trouter_network_duplicate_ids",
        GAUGE,
        "Router ids that two routers have.",
        _one(lambda figures: figures.network.duplicate_ids),
        shows="ids that two routers share; it should be 0",
    ),
    DeclaredSeries(
        "trouter_network_changes",
        COUNTER,
        "Changes of the topology.",
        _one(lambda figures: figures.network.changes),
        shows="changes of the network, as `trouter stat --topology` shows them",
    ),
    DeclaredSeries(
        "trouter_network_control_messages",
        COUNTER,
        "Messages between routers.",
        lambda figures: [(("in",), figures.network.control_in), (("out",), figures.network.control_out)],
        ("direction",),
        "control messages from and to other routers: `in`, `out`",
    ),
    DeclaredSeries(
        "trouter_network_faults",
        COUNTER,
        "Messages of other routers that were ignored, by fault.",
        lambda figures: [((fault,), count) for fault, count in figures.network.faults.items()],
        ("fault",),
        "control messages that the router refused: `malformed`, `same-id`, `off-path` (it tells of a router to which "
        "its connection does not lead) and others",
    ),
    DeclaredSeries(
        "trouter_tls_cert_not_after_seconds",
        GAUGE,
        "Expiry of a certificate, in seconds since 1970.",
        lambda figures: [((label_value(each.profile),), each.not_after_s) for each in figures.certificates],
        ("ssl_profile",),
    ),
)


def exposition(figures: Figures) -> bytes:
    """Return all figures in the text format of Prometheus."""
    return exposition_of((*_metrics_of(figures), *_process.collect()))


def tenant_exposition(tenant: TenantFigures) -> bytes:
    """Return the figures for a tenant: its own only, without the process."""
    return exposition_of(families(TENANT_SERIES, (tenant,)))


def exposition_of_workers(texts: Mapping[int, bytes | None]) -> bytes:
    """Return the texts of the workers of one router as one, in which each sample has the number of its worker.

    None stands for the text of a worker that does not answer.
    """
    heads: dict[str, list[str]] = {}
    samples: defaultdict[str, list[str]] = defaultdict(list)
    for number, text in texts.items():
        family = ""
        for line in (text or b"").decode().splitlines():
            if not line.startswith("#"):
                samples[family].append(_labelled(line, f'{WORKER}="{number}"'))
                continue
            family = line.split(" ", 3)[2]
            head = heads.setdefault(family, [])
            if line not in head:
                head.append(line)
    up = GaugeMetricFamily(WORKER_UP, WORKER_UP_HELP, labels=(WORKER,))
    for number, text in texts.items():
        up.add_metric((str(number),), 0 if text is None else 1)
    lines = [line for family, head in heads.items() for line in (*head, *samples[family])]
    return "".join(f"{line}\n" for line in lines).encode() + exposition_of((up,))


def _labelled(sample: str, label: str) -> str:
    """Return a sample with a further label."""
    end = min(place for place in (sample.find("{"), sample.find(" ")) if place >= 0)
    if sample[end] == " ":
        return f"{sample[:end]}{{{label}}}{sample[end:]}"
    return f"{sample[: end + 1]}{label},{sample[end + 1 :]}"


def families(declared: Iterable[DeclaredSeries[Source]], source: Source) -> Iterator[Metric]:
    """Yield the metric of each series with its present values."""
    for each in declared:
        family: Any = _FAMILIES[each.kind](each.name, each.help, labels=each.labels)
        for labels, value in each.samples(source):
            family.add_metric(labels, *(value if each.kind == HISTOGRAM else (value,)))
        yield family


def _metrics_of(figures: Figures) -> Iterator[Metric]:
    yield from _totals(figures)
    yield from _allocators(figures)
    yield from families(SERIES, figures)
    yield from families(TENANT_SERIES, _bounded_tenants(figures.tenants))


def _totals(figures: Figures) -> Iterator[Metric]:
    for series in TOTALS:
        yield _FAMILIES[series.kind](f"qdr_{series.name}_total", series.help, value=figures.totals[series.name])


def _allocators(figures: Figures) -> Iterator[Metric]:
    for owner in figures.memory:
        for name, share in ALLOCATOR_FIELDS:
            series = f"qdr_allocator_{owner.name}:{name}_bytes"
            yield GaugeMetricFamily(series, "As Qpid Dispatch counts its objects.", value=owner.count * share)


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


def _bounded_pairs(counts: Mapping[tuple[str, str], int]) -> Mapping[tuple[str, str], int]:
    """Return the counts of the first MAX_LABEL_VALUES names, by name and another label; the rest under OTHER."""
    names = set(list(dict.fromkeys(name for name, _ in counts))[:MAX_LABEL_VALUES])
    bounded: Counter[tuple[str, str]] = Counter()
    for (name, other), count in counts.items():
        bounded[name if name in names else OTHER, other] += count
    return bounded


def _bounded_connectors(connectors: Iterable[ConnectorFigures]) -> list[ConnectorFigures]:
    """Return one for each name, the first MAX_LABEL_VALUES names; the rest as one, which is down if any of them is."""
    by_name: dict[str, ConnectorFigures] = {}
    for each in connectors:
        name = each.name if each.name in by_name or len(by_name) < MAX_LABEL_VALUES else OTHER
        sofar = by_name.get(name)
        since_s = sorted(one.down_since_s for one in (sofar, each) if one is not None and not one.up)
        by_name[name] = ConnectorFigures(
            name,
            not since_s,
            since_s[0] if since_s else 0.0,
            each.attempts + (0 if sofar is None else sofar.attempts),
        )
    return list(by_name.values())


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
