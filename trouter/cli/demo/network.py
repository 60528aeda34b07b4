"""The routers of the demonstration as configurations: three interior ones, each linked to the others, and an edge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

#: User whose password is printed -> a description of its rights.
LOGINS: Final = {
    "operator": "sees and changes all routers",
    "watcher": "sees the router main, and changes nothing",
    "acme": "sees the tenant acme.example alone",
    "umbrella": "sees the tenant umbrella.example alone",
}
#: Users of the clients; `mallory` has a password and belongs to no group of the policy.
SERVICES: Final = ("shop", "stock", "ticker", "reporter", "mallory")
#: The user by which routers log in at each other.
ROUTER: Final = "router"
TENANTS: Final = ("acme", "umbrella")


class Dial(NamedTuple):
    """A connector: the router and its listener that it dials."""

    router: str
    listener: str


class Member(NamedTuple):
    """A router: its mode, its listeners by name, with their attributes, and the connectors."""

    name: str
    mode: str
    listeners: Mapping[str, str]
    dials: tuple[Dial, ...] = ()


_CLIENTS: Final = "saslMechanisms: SCRAM-SHA-256"
_BETWEEN: Final = f"role: inter-router, saslMechanisms: SCRAM-SHA-256, allowedUsers: {ROUTER}"
_CONSOLE: Final = "http: yes, saslMechanisms: PLAIN"
#: In the order in which they start: each dials routers before it.
MEMBERS: Final = (
    Member(
        "main",
        "interior",
        {
            "clients": _CLIENTS,
            "between": _BETWEEN,
            "tenants": f"{_CLIENTS}, multiTenant: yes",
            "console": _CONSOLE,
            **{tenant: f"{_CONSOLE}, multiTenant: yes, policyVhost: {tenant}.example" for tenant in TENANTS},
        },
    ),
    Member("north", "interior", {"clients": _CLIENTS, "between": _BETWEEN}, (Dial("main", "between"),)),
    Member(
        "south",
        "interior",
        {"clients": _CLIENTS, "below": f"role: edge, saslMechanisms: SCRAM-SHA-256, allowedUsers: {ROUTER}"},
        (Dial("main", "between"), Dial("north", "between")),
    ),
    Member("branch", "edge", {"clients": _CLIENTS}, (Dial("south", "below"),)),
)
_BEGINNING: Final = """\
router {{
    id: {name}
    mode: {mode}
    secureDefaults: yes
    usersFile: {folder}/users
}}
policy {{
    enableVhostPolicy: yes
    routerManagement: admin
}}
address {{
    prefix: prices
    distribution: multicast
}}
vhost {{
    hostname: $default
    groups: {{
        services: {{
            users: shop, stock, ticker, reporter
            remoteHosts: 127.0.0.1
            sources: *
            targets: *
        }}
        edges: {{
            users: router
            remoteHosts: 127.0.0.1
            sources: *
            targets: *
            allowDynamicSource: yes
            allowAnonymousSender: yes
            allowUserIdProxy: yes
            management: operate
        }}
        operators: {{
            users: operator
            remoteHosts: 127.0.0.1
            sources: *
            targets: *
            allowDynamicSource: yes
            allowAnonymousSender: yes
            management: admin
        }}
        watchers: {{
            users: watcher
            remoteHosts: 127.0.0.1
            targets: $management
            allowDynamicSource: yes
            allowAnonymousSender: yes
            management: read
        }}
    }}
}}
"""
_TENANT: Final = """\
vhost {{
    hostname: {tenant}.example
    groups: {{
        members: {{
            users: {tenant}
            remoteHosts: 127.0.0.1
            sources: *
            targets: *
            allowDynamicSource: yes
            allowAnonymousSender: yes
            management: operate
        }}
    }}
}}
"""


def configuration(member: Member, folder: Path, ports: Mapping[Dial, int]) -> str:
    """Return the text of the configuration of ``member``; ``ports`` are those of the listeners that it dials."""
    parts = [_BEGINNING.format(name=member.name, mode=member.mode, folder=folder)]
    parts += [_TENANT.format(tenant=tenant) for tenant in TENANTS]
    for name, attributes in member.listeners.items():
        parts.append(_section("listener", f"name: {name}", "host: 127.0.0.1", "port: 0", *attributes.split(", ")))
    for dial in member.dials:
        role = "edge" if member.mode == "edge" else "inter-router"
        place = (f"name: to-{dial.router}", "host: 127.0.0.1", f"port: {ports[dial]}", f"role: {role}")
        login = ("saslMechanisms: SCRAM-SHA-256", f"saslUsername: {ROUTER}", f"saslPassword: file:{folder}/router")
        parts.append(_section("connector", *place, *login))
    return "".join(parts)


def _section(name: str, *lines: str) -> str:
    return f"{name} {{\n    " + "\n    ".join(lines) + "\n}\n"
