"""A router process with something of everything, and a management client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.management.node import Node, node_of
from tests.routers import RunningRouter, router, running, start_router  # noqa: F401 - fixtures

CONFIGURATION = """
router { id: R }
listener { name: l0, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
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
    """A router for all tests of a module, which leave it as they found it."""
    with running(CONFIGURATION, tmp_path_factory.mktemp("router")) as process:
        yield process


@pytest.fixture
def node(shared: RunningRouter) -> Iterator[Node]:
    """A client of the shared router's node."""
    with node_of(shared.port) as client:
        yield client


@pytest.fixture
def own(router: RunningRouter) -> Iterator[Node]:  # noqa: F811 - the fixture
    """A client of a router that nobody else uses."""
    with node_of(router.port) as client:
        yield client
