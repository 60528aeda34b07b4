"""Find the metrics and labels in an expression of Prometheus."""

from __future__ import annotations

import re
from typing import Final

_METRIC: Final = re.compile(r"\b((?:trouter|qdr|process)_[a-z0-9_]+)\b(?:\{([^}]*)\})?")
_LABEL: Final = re.compile(r"(\w+) *(?:=~|!~|!=|=)")
_GROUPS: Final = re.compile(r"\bby \(([^)]*)\)")
_LEGEND: Final = re.compile(r"\{\{(?: *\$labels\.)? *(\w+) *\}\}")
#: Labels that Prometheus adds to every series, and `le` of a histogram's buckets.
_EVERYWHERE: Final = frozenset({"instance", "job"})


def metrics_in(expression: str) -> set[str]:
    """Return the names of all metrics of routers and of their processes."""
    return {name for name, _ in _METRIC.findall(expression)}


def labels_in(expression: str, *texts: str) -> dict[str, set[str]]:
    """Return, by metric, the labels that it is selected by, grouped by, or shown with in ``texts``."""
    shown = {label for group in _GROUPS.findall(expression) for label in re.findall(r"\w+", group)}
    shown |= {label for text in texts for label in _LEGEND.findall(text)}
    return {
        name: (shown | set(_LABEL.findall(selected))) - _EVERYWHERE for name, selected in _METRIC.findall(expression)
    }
