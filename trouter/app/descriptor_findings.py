"""The finding that the system does not let the router open as many connections as its configuration admits."""

from __future__ import annotations

import resource
from typing import Final

from trouter.config import Configuration, Entity, Problem
from trouter.config.problems import Severity
from trouter.config.workers import count_workers, joins_workers
from trouter.net.descriptors import RESERVE, client_limit

#: Descriptors that a process has open before its first client connects, and to spare: sockets, logs and records.
OWN: Final = 40


def descriptor_limit() -> int | None:
    """Return how many descriptors this process may have open; None for any number."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def few_descriptors(configuration: Configuration, limit: int | None) -> list[Problem]:
    """Return a finding if ``limit`` descriptors are too few for the ``maxConnections`` that the configuration gives.

    Each of several workers has the limit for its share of the connections.
    """
    entity, admitted, is_written = _admitted(configuration)
    return _found(configuration, limit, entity, admitted) if is_written else []


def few_by_default(configuration: Configuration, limit: int | None) -> list[Problem]:
    """Return the same for a configuration that leaves ``maxConnections`` at its default, which few machines reach."""
    entity, admitted, is_written = _admitted(configuration)
    return [] if is_written else _found(configuration, limit, entity, admitted)


def _found(configuration: Configuration, limit: int | None, entity: Entity, admitted: int) -> list[Problem]:
    count = count_workers(configuration.router)
    possible = admitted if limit is None else max(client_limit(limit, of_few=False) - OWN, 0) * count
    if admitted <= possible:
        return []
    needed = -(-admitted // count) + OWN + RESERVE  # which clients leave free
    of_each = f" in each of {count} workers" if count > 1 else ""
    return [
        Problem(
            entity.place,
            f"{admitted} connections are admitted, but only about {possible} can be open at once: the limit of "
            f"descriptors (nofile) is {limit}{of_each}",
            entity.type.section,
            "maxConnections",
            suggestion=f"LimitNOFILE={needed} in the unit of systemd, or `ulimit -n {needed}` before the start; or a "
            "lower maxConnections",
            severity=Severity.NOTE,
            entity=entity.identity,
        )
    ]


def _admitted(configuration: Configuration) -> tuple[Entity, int, bool]:
    """Return the entity that limits the connections of clients, their number, and whether it is written there."""
    policy = configuration.policy
    limits = [each.max_connections for each in configuration.listeners if not joins_workers(each)]
    known = [limit for limit in limits if limit is not None]
    if len(known) == len(limits) and known and sum(known) < policy.max_connections:
        largest = max(configuration.listeners, key=lambda each: each.max_connections or 0)
        return largest, sum(known), True
    return policy, policy.max_connections, "max_connections" in policy.written
