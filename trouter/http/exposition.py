"""Figures as the text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector


class _Once(Collector):
    """The metrics of one page."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def exposition_of(metrics: Iterable[Metric]) -> bytes:
    """Return the metrics, which are read once, in the text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once(metrics))
    return generate_latest(registry)


def label_value(text: str) -> str:
    """Return ``text`` as the value of a label, in which half a character cannot be encoded."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
