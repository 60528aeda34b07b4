"""Tests with pods need network namespaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import node
from tests.lines import why_not


@pytest.fixture
def on_a_node() -> Iterator[None]:
    """Be on a node of a cluster during the test."""
    if reason := why_not():
        pytest.skip(reason)
    with node():
        yield
