"""What an expression of Prometheus names: metrics, and the labels that it has of each."""

from __future__ import annotations

import re
from typing import Final

_METRIC: Final = re.compile(r"\b((?:trouter|qdr|process)_[a-z0-9_]+)\b(?:\{([^}]*)\})?")
_LABEL: Final = re.compile(r"(\w+) *(?:=~|!~|!=|=)")
_GROUPS: Final = re.compile(r"\bby \(([^)]*)\)")
_LEGEND: Final = re.compile(r"\{\{(?: *\$labels\.)? *(\w+) *\}\}")
#: Prometheus adds these to every series; `le` stands on the buckets of a histogram.
_EVERYWHERE: Final = frozenset({"instance", "job"})


def metrics_in(expression: str) -> set[str]:
    """The names of all metrics of routers and of their processes."""
    return {name for name, _ in _METRIC.findall(expression)}


def labels_in(expression: str, *texts: str) -> dict[str, set[str]]:
    """By metric: the labels that it is selected by, grouped by, or shown with in ``texts``."""
    shown = {label for group in _GROUPS.findall(expression) for label in re.findall(r"\w+", group)}
    shown |= {label for text in texts for label in _LEGEND.findall(text)}
    return {
        name: (shown | set(_LABEL.findall(selected))) - _EVERYWHERE for name, selected in _METRIC.findall(expression)
    }
