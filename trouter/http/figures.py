"""The numbers of /metrics; the router fills them in, metrics.py names the series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

#: The class of an address and the outcome of a delivery to it, both from small fixed sets.
ClassAndOutcome = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ListenerFigures:
    """The connections of one listener, by its name: open now; accepted and refused since it started."""

    name: str
    connections: int
    accepted: int
    refused: int


@dataclass(frozen=True, slots=True)
class ConnectorFigures:
    """A connector: whether it is up; since when it is down, in seconds since 1970, 0 while up; attempts to connect."""

    name: str
    up: bool
    down_since_s: float
    attempts: int


@dataclass(frozen=True, slots=True)
class RouteFigures:
    """An auto link or a link route: whether it is active; since when it is not, in seconds since 1970, 0 while it is.

    attempts: to attach an auto link.
    """

    name: str
    up: bool
    down_since_s: float = 0.0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class AddressFigures:
    """The addresses of one configured section.

    deliveries: since the start, ``ingress``, ``egress`` or ``transit`` with an empty text, or ``in`` or ``out`` with an
    outcome. present: the ``addresses``, ``consumers``, ``producers`` and ``undelivered`` deliveries.
    """

    name: str
    deliveries: Mapping[tuple[str, str], int]
    present: Mapping[str, int]


class Histogram(Protocol):
    """Counts of durations."""

    @property
    def counts(self) -> Sequence[int]:
        """One count per bound, not cumulative, and one for all beyond the last."""

    @property
    def sum_s(self) -> float:
        """Sum of all durations, in seconds."""


@dataclass(frozen=True, slots=True)
class MemoryOwner:
    """The number of objects of one type, and the bytes that each takes on average."""

    name: str
    size_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class CertificateExpiry:
    """The end of validity of an sslProfile's certificate, in seconds since 1970."""

    profile: str
    not_after_s: float


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """One tenant's current numbers, and the outcomes of the deliveries that it sent."""

    name: str
    connections: int = 0
    links: int = 0
    addresses: int = 0
    #: By outcome; pre-settled ones, and those of them that were dropped, are counted too.
    deliveries: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFigures:
    """The network as the router sees it; a standalone router has the defaults."""

    known: int = 0
    reachable: int = 0
    neighbours: int = 0
    duplicate_ids: int = 0
    #: Since the start: changes, and control messages received and sent.
    changes: int = 0
    control_in: int = 0
    control_out: int = 0
    #: Invalid messages of other routers, by fault.
    faults: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The router's numbers at one moment. Every label set is bounded by the configuration or the program."""

    #: Current sizes, and counts since the start (routing.md 5.6), by the name of the series in ``columns/router.py``.
    totals: Mapping[str, int]
    version: str
    #: ``compiled`` or ``interpreted``.
    twin: str
    uptime_s: float
    policy_digest: str = ""
    ready: bool = True
    #: Whether the router drains, and the connections of clients that are left.
    draining: bool = False
    drain_left: int = 0
    #: Findings about the configuration, by severity.
    findings: Mapping[str, int] = field(default_factory=dict)
    listeners: Sequence[ListenerFigures] = ()
    connectors: Sequence[ConnectorFigures] = ()
    auto_links: Sequence[RouteFigures] = ()
    link_routes: Sequence[RouteFigures] = ()
    #: Since when an edge router has no usable uplink, in seconds since 1970, 0 while it has one; None on other routers.
    uplink_down_since_s: float | None = None
    #: Connections closed before their handshake, since the start; users and hosts whose logins are locked now.
    turned_away: int = 0
    #: Connections refused before their open, since the start, by listener and reason.
    refused: Mapping[tuple[str, str], int] = field(default_factory=dict)
    locked: int = 0
    #: Connections that are not open yet, and those of them whose logins wait for their turn.
    handshakes_open: int = 0
    logins_waiting: int = 0
    #: Open connections by their hostname: configured vhosts by name, all others together as "".
    vhost_connections: Mapping[str, int] = field(default_factory=dict)
    #: Alarms about quotas since the start, and those raised now, by vhost.
    quota_alarms: Mapping[str, int] = field(default_factory=dict)
    quota_alarms_raised: Mapping[str, int] = field(default_factory=dict)
    #: Deliveries that ended.
    deliveries: Mapping[ClassAndOutcome, int] = field(default_factory=dict)
    #: The upper bounds of the histograms below, ascending, without the infinite one.
    latency_bounds_s: Sequence[float] = ()
    #: Seconds from a message's arrival to its settlement.
    settle_latency: Mapping[ClassAndOutcome, Histogram] = field(default_factory=dict)
    memory: Sequence[MemoryOwner] = ()
    #: Bytes of messages that the router holds, and their limit.
    held_bytes: int = 0
    held_limit_bytes: int = 0
    #: Events by log module and level, written or not.
    log_events: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: Log lines that could not be written.
    log_lines_lost: int = 0
    #: Bugs of the router itself since its start.
    bugs: int = 0
    certificates: Sequence[CertificateExpiry] = ()
    #: The address sections with ``metrics: yes``.
    addresses: Sequence[AddressFigures] = ()
    tenants: Sequence[TenantFigures] = ()
    network: NetworkFigures = field(default_factory=NetworkFigures)
