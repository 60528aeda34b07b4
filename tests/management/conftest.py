"""A router process with an entity of most types, and a management client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.management.node import Node, node_of
from tests.routers import RunningRouter, router, running, start_router  # noqa: F401 - fixtures

CONFIGURATION = """
router { id: R }
listener { name: l0, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, drains: no }
connector { name: out, host: 127.0.0.1, port: 1, saslUsername: u, saslPassword: hush-hush }
address { name: near, prefix: near, distribution: closest }
address { pattern: many/#, distribution: multicast }
linkRoute { prefix: broker, direction: in, containerId: B }
autoLink { address: queue, direction: in, containerId: B }
vhost { hostname: example.com, groups: { $default: { remoteHosts: *, users: * } } }
log { module: AGENT, enable: trace+ }
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Run a router for all tests of a module, which leave it unchanged."""
    with running(CONFIGURATION, tmp_path_factory.mktemp("router")) as process:
        yield process


@pytest.fixture
def node(shared: RunningRouter) -> Iterator[Node]:
    """Return a client of the shared router's management node."""
    with node_of(shared.port) as client:
        yield client


@pytest.fixture
def own(router: RunningRouter) -> Iterator[Node]:  # noqa: F811 - the fixture
    """Return a client of a router that only this test uses."""
    with node_of(router.port) as client:
        yield client
