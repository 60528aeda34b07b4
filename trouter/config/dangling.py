"""Finds names in a configuration that point nowhere: of connections, vhosts and environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trouter.config.access import host_key
from trouter.config.configuration import Configuration
from trouter.config.entities import (
    AutoLinkEntity,
    ConnectorEntity,
    Entity,
    LinkRouteEntity,
    ListenerEntity,
    VhostEntity,
)
from trouter.config.problems import Problem, nearest
from trouter.config.reporting import finding_of

ROUTE_CONTAINER: Final = "route-container"
#: A variable as shells and Kubernetes write it; vhosts have their own in addresses.
_VARIABLE: Final = re.compile(r"\$\{[^{}\s]*\}|\$\([A-Za-z_]\w*\)")


def dangling(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for each name of a connection or a vhost that no entity has."""
    ends: tuple[ListenerEntity | ConnectorEntity, ...] = (*configuration.listeners, *configuration.connectors)
    routes: tuple[AutoLinkEntity | LinkRouteEntity, ...] = (*configuration.auto_links, *configuration.link_routes)
    roles = {end.name: end.role for end in ends}
    brokers = [name for name, role in roles.items() if role == ROUTE_CONTAINER]
    for route in routes:
        if route.connection and (role := roles.get(route.connection, "")) != ROUTE_CONTAINER:
            alone = configuration.router.mode == "standalone" or isinstance(route, AutoLinkEntity)
            yield _connection(route, route.connection, role, brokers, alone=alone)
    policy = configuration.policy
    vhosts = dict.fromkeys(name for vhost in configuration.vhosts for name in (vhost.hostname, *vhost.aliases))
    patterns = policy.enable_vhost_name_patterns and any("*" in name or "#" in name for name in vhosts)
    if not policy.enable_vhost_policy or patterns:
        return
    known = set(map(host_key, vhosts))
    named: list[tuple[Entity, str, str | None]] = [(end, "policyVhost", end.policy_vhost) for end in ends]
    if "default_vhost" in policy.written:
        named.append((policy, "defaultVhost", policy.default_vhost))
    for entity, attribute, name in named:
        if name and host_key(name) not in known:
            yield finding_of("unknown-vhost", entity, attribute, suggestion=nearest(name, vhosts), name=name)


def _connection(
    route: AutoLinkEntity | LinkRouteEntity, name: str, role: str, brokers: list[str], *, alone: bool
) -> Problem:
    """Return the finding about a route whose connection does not exist, or is not for brokers.

    Unless it is ``alone``, another router of the network may have the connection.
    """
    if role:
        cure = f"write role: {ROUTE_CONTAINER} there"
        return finding_of("not-for-routes", route, "connection", suggestion=cure, name=name, role=role)
    cure = nearest(name, brokers)
    point = "unknown-connection" if alone or cure else "connection-elsewhere"
    return finding_of(point, route, "connection", suggestion=cure, name=name)


def unexpanded(configuration: Configuration) -> Iterator[Problem]:
    """Yield a warning for each attribute with a variable that nothing expands; vhosts have variables of their own."""
    for entity in configuration.entities:
        if isinstance(entity, VhostEntity):
            continue
        for attribute in entity.type.fields:
            value = entity.written.get(attribute.field)
            if isinstance(value, str) and not attribute.secret and (found := _VARIABLE.search(value)):
                yield finding_of("not-expanded", entity, attribute.name, variable=found[0])
