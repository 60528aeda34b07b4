"""Metrics of receivers for Prometheus, as a page or as a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from trouter.records.disk import place_file
from trouter_pipeline.spool.reports import Shard

#: Name, type and help of each metric, and its field of `Progress`.
_METRICS: Final = (
    ("messages", CounterMetricFamily, "Messages made safe on the disk.", "messages"),
    ("octets", CounterMetricFamily, "Bytes of the messages made safe on the disk.", "octets"),
    ("accepted", CounterMetricFamily, "Messages settled as accepted because they are safe on the disk.", "accepted"),
    ("presettled", CounterMetricFamily, "Messages that came pre-settled.", "presettled"),
    ("refused", CounterMetricFamily, "Messages rejected because they were too large.", "refused"),
    ("aborted", CounterMetricFamily, "Messages that the sender aborted.", "aborted"),
    ("groups", CounterMetricFamily, "Groups of messages written and synced together.", "groups"),
    ("sync_seconds", CounterMetricFamily, "Time that writing and syncing took.", "sync_s"),
    ("links", CounterMetricFamily, "Links that were attached.", "links"),
    ("next_sequence", GaugeMetricFamily, "Sequence number of the next message.", "next"),
    ("durable_sequence", GaugeMetricFamily, "First sequence number that is not safe on the disk yet.", "durable"),
    ("consumed_sequence", GaugeMetricFamily, "First sequence number that no consumer has finished.", "consumed"),
    ("backlog_bytes", GaugeMetricFamily, "Bytes on the disk that are not consumed.", "backlog_bytes"),
    (
        "credit_stopped",
        GaugeMetricFamily,
        "1 while the receiver gives no credit because the spool has reached its limit of bytes not consumed.",
        "full",
    ),
    (
        "last_message_timestamp_seconds",
        GaugeMetricFamily,
        "Time at which the last message was made safe, 0 for never.",
        "last_message_at",
    ),
    ("start_timestamp_seconds", GaugeMetricFamily, "Time at which the receiver started.", "began_at"),
)
#: The same of each cursor, from its `Lag`.
_OF_CURSORS: Final = (
    ("position", "First sequence number that the consumer of the cursor has not finished.", "position"),
    ("messages", "Messages that wait for the consumer of the cursor.", "messages"),
    ("bytes", "Bytes of these messages.", "octets"),
    ("oldest_timestamp_seconds", "Time at which the oldest of these messages came, 0 for none.", "oldest_us"),
)
_SCALES: Final = {"oldest_us": 10**6}

_PREFIX: Final = "trouter_spool_"
_LABELS: Final = ("address", "shard")


def metrics_of(shards: Iterable[Shard]) -> bytes:
    """Return the metrics in the text format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Page(list(shards)))
    return generate_latest(registry)


class _Page(Collector):
    """The metrics of one page."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = shards

    def collect(self) -> Iterable[Metric]:
        return _metrics(self._shards)


def _metrics(shards: Sequence[Shard]) -> Iterator[Metric]:
    for name, family, text, field in _METRICS:
        yield _metric(family, name, text, ((shard, getattr(shard.progress, field)) for shard in shards))
    states = ((shard, shard.running and shard.progress.state not in {"failed", "ended", "down"}) for shard in shards)
    yield _metric(GaugeMetricFamily, "up", "1 while the process runs and tries to receive.", states)
    linked = ((shard, bool(shard.running and shard.progress.server)) for shard in shards)
    yield _metric(GaugeMetricFamily, "linked", "1 while there is a link to a server.", linked)
    restarts = ((shard, shard.restarts) for shard in shards)
    yield _metric(CounterMetricFamily, "restarts", "Restarts of the shard's process.", restarts)
    again = ((shard, max(0, shard.progress.links - 1)) for shard in shards)
    yield _metric(CounterMetricFamily, "reconnects", "Links that were attached after the first one.", again)
    faults = GaugeMetricFamily(
        f"{_PREFIX}last_error_timestamp_seconds", "Time of the last fault.", labels=(*_LABELS, "kind")
    )
    for shard in shards:
        if shard.progress.fault:
            faults.add_metric((*_labels_of(shard), shard.progress.fault), shard.progress.fault_at)
    yield faults
    for name, text, field in _OF_CURSORS:
        behind = GaugeMetricFamily(f"{_PREFIX}cursor_{name}", text, labels=(*_LABELS, "cursor"))
        for shard in shards:
            for lag in shard.lags:
                behind.add_metric((*_labels_of(shard), lag.cursor), getattr(lag, field) / _SCALES.get(field, 1))
        yield behind


def _metric(
    family: type[CounterMetricFamily | GaugeMetricFamily], name: str, text: str, values: Iterable[tuple[Shard, float]]
) -> Metric:
    metric = family(f"{_PREFIX}{name}", text, labels=_LABELS)
    for shard, value in values:
        metric.add_metric(_labels_of(shard), value)
    return metric


def _labels_of(shard: Shard) -> tuple[str, str]:
    # half a character cannot be encoded
    return shard.address.encode("utf-8", "backslashreplace").decode("utf-8"), str(shard.number)


def write_metrics(path: Path, shards: Iterable[Shard]) -> None:
    """Replace the file atomically, so that readers never see half of it; OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    place_file(path, metrics_of(shards), mode=0o666, part=part, durable=False)
