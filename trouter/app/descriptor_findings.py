"""The finding that the system does not let the router open as many connections as its configuration admits."""

from __future__ import annotations

import resource
from typing import Final, NamedTuple

from trouter.config import Configuration, Entity, Problem
from trouter.config.problems import Severity
from trouter.config.workers import count_workers, joins_workers
from trouter.net.descriptors import RESERVE, client_limit

#: Descriptors of a WebSocket beside that of its connection: the pair on which its AMQP is served.
MORE_OF_WEBSOCKET: Final = 2
#: Descriptors that a process has open before its first client connects, and to spare: sockets, logs and records.
OWN: Final = 40


def descriptor_limit() -> int | None:
    """Return how many descriptors this process may have open; None for any number."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


class _Admitted(NamedTuple):
    """The entity that limits the connections of clients, their number, how many of them may be WebSockets at most."""

    entity: Entity
    connections: int
    websockets: int
    #: The limit is written in the configuration.
    is_written: bool

    @property
    def descriptors(self) -> int:
        """The descriptors that these connections have."""
        return self.connections + MORE_OF_WEBSOCKET * self.websockets


def few_descriptors(configuration: Configuration, limit: int | None) -> list[Problem]:
    """Return a finding if ``limit`` descriptors are too few for the ``maxConnections`` that the configuration gives.

    Each of several workers has the limit for its share of the connections.
    """
    admitted = _admitted(configuration)
    return _found(configuration, limit, admitted) if admitted.is_written else []


def few_by_default(configuration: Configuration, limit: int | None) -> list[Problem]:
    """Return the same for a configuration that leaves ``maxConnections`` at its default, which few machines reach."""
    admitted = _admitted(configuration)
    return [] if admitted.is_written else _found(configuration, limit, admitted)


def _found(configuration: Configuration, limit: int | None, admitted: _Admitted) -> list[Problem]:
    count = count_workers(configuration.router)
    descriptors = admitted.descriptors
    for_clients = descriptors if limit is None else max(client_limit(limit, of_few=False) - OWN, 0) * count
    if descriptors <= for_clients:
        return []
    entity, connections = admitted.entity, admitted.connections
    needed = -(-descriptors // count) + OWN + RESERVE  # which clients leave free
    possible = min(connections, for_clients)
    of_them = ""
    if admitted.websockets:
        fewest = max(for_clients - MORE_OF_WEBSOCKET * admitted.websockets, for_clients // (1 + MORE_OF_WEBSOCKET))
        of_them = f", {fewest} if as many as may be are WebSockets, which have three descriptors each"
    of_each = f" in each of {count} workers" if count > 1 else ""
    return [
        Problem(
            entity.place,
            f"{connections} connections are admitted, but only about {possible} can be open at once{of_them}: the "
            f"limit of descriptors (nofile) is {limit}{of_each}",
            entity.type.section,
            "maxConnections",
            suggestion=f"LimitNOFILE={needed} in the unit of systemd, or `ulimit -n {needed}` before the start; or a "
            "lower maxConnections",
            severity=Severity.NOTE,
            entity=entity.identity,
        )
    ]


def _admitted(configuration: Configuration) -> _Admitted:
    """Return what limits the connections of clients: the policy, or their listeners if these admit fewer."""
    policy = configuration.policy
    listeners = [each for each in configuration.listeners if not joins_workers(each)]
    of_web = _sum([each.max_connections for each in listeners if each.serves_http and each.websockets])
    every = _sum([each.max_connections for each in listeners])
    if every and every < policy.max_connections:
        largest = max(configuration.listeners, key=lambda each: each.max_connections or 0)
        return _Admitted(largest, every, of_web or 0, True)
    most = policy.max_connections
    websockets = most if of_web is None else min(most, of_web)
    return _Admitted(policy, most, websockets, "max_connections" in policy.written)


def _sum(limits: list[int | None]) -> int | None:
    """Return the sum of limits; None if one of them is none."""
    known = [limit for limit in limits if limit is not None]
    return sum(known) if len(known) == len(limits) else None
