"""The views of `trouter stat`, as a table of their requests and of how they show the answers."""

from __future__ import annotations

from .events import LOG
from .model import View
from .overview import GENERAL, POLICY, POOLS
from .owners import OWNERS
from .routes import AUTO_LINKS, CONNECTORS, LINK_ROUTES
from .topology import TOPOLOGY
from .traffic import ADDRESSES, CONNECTIONS, EDGES, LINKS, NODES
from .vhosts import VHOST_GROUPS, VHOST_STATS, VHOSTS

__all__ = ["ALL_ENTITIES", "GENERAL", "OWN_VIEWS", "VIEWS", "View"]

#: In the order of the help.
VIEWS = (
    GENERAL,
    CONNECTIONS,
    LINKS,
    NODES,
    EDGES,
    ADDRESSES,
    POOLS,
    POLICY,
    AUTO_LINKS,
    LINK_ROUTES,
    VHOSTS,
    VHOST_GROUPS,
    VHOST_STATS,
    LOG,
)

#: Those that qdstat does not have.
OWN_VIEWS = (CONNECTORS, OWNERS, TOPOLOGY)

#: The views that --all-entities shows, one after the other.
ALL_ENTITIES = (LINKS, ADDRESSES, CONNECTIONS, AUTO_LINKS, LINK_ROUTES, GENERAL, POOLS, POLICY, VHOSTS, VHOST_STATS)
