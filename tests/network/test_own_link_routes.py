"""Link routes that users make for their own connection over management: which rights they need (security.md 4.15)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.brokers import broker
from tests.management.node import Node, node_of
from tests.networks import EDGE_LISTENER, edge, edge_port, interior
from tests.routers import RunningRouter, running

pytestmark = [pytest.mark.attack, pytest.mark.slow]

TYPE = "org.apache.qpid.dispatch.router.connection.linkRoute"
NOT_ALLOWED = "You are not allowed to perform this operation."
VHOST = """
policy {{ enableVhostPolicy: yes }}
vhost {{
    hostname: $default
    allowUnknownUser: yes
    groups: {{
        $default: {{
            remoteHosts: *
            sources: {edge}, in.*, in/*, mine
            targets: {edge_targets}$management, out.*, out/*, mine
            allowDynamicSource: yes
            {more}
        }}
    }}
}}
"""
EDGE_SOURCES = "E1, _$qd.edge_addr_tracking"
EDGE_TARGETS = "_$qd.addr_lookup, _$qd.edge_heartbeat, _topo/0/*, amqp:/_topo/0/*, "


def policy(more: str) -> str:
    return VHOST.format(more=more, edge=EDGE_SOURCES, edge_targets=EDGE_TARGETS)


def routing(more: str, secure: bool = True) -> str:
    """Return the configuration of a router whose users are in one group."""
    switch = ", secureDefaults: yes" if secure else ""
    return (
        f"router {{ mode: interior, id: A{switch} }}\n"
        f"listener {{ host: 127.0.0.1, port: 0, authenticatePeer: no, saslMechanisms: ANONYMOUS }}\n{policy(more)}"
    )


@pytest.fixture
def running_with(tmp_path: Path) -> Iterator[Any]:
    with ExitStack() as stack:
        yield lambda text: stack.enter_context(running(text, tmp_path))


def create(node: Node, pattern: str, direction: str, name: str = "") -> tuple[int, str]:
    """Request a link route; return the status and its description."""
    named = {"name": name} if name else {}
    answer = node.ask("CREATE", {"pattern": pattern, "direction": direction}, type=TYPE, **named)
    return answer.status, answer.description


#: By group, without and with secureDefaults: the status for an own address, and for one of another user.
LEVELS = {
    "the attribute alone": ("allowDynamicLinkRoutes: yes", True, 201, 403),
    "the attribute, and read": ("allowDynamicLinkRoutes: yes, management: read", True, 201, 403),
    "an operator": ("allowDynamicLinkRoutes: yes, management: operate", True, 201, 201),
    "an operator by default": ("management: operate", True, 201, 201),
    "an operator without the attribute": ("allowDynamicLinkRoutes: no, management: operate", True, 403, 403),
    "nothing": ("", True, 403, 403),
    "read": ("management: read", True, 403, 403),
    "as Qpid Dispatch": ("", False, 201, 201),
    "as Qpid Dispatch, forbidden": ("allowDynamicLinkRoutes: no", False, 403, 403),
    "without secureDefaults, none": ("management: none", False, 403, 403),
}


@pytest.mark.parametrize("group", LEVELS)
def test_the_attribute_suffices_for_own_addresses_and_an_operator_may_route_all(running_with: Any, group: str) -> None:
    more, secure, own, others = LEVELS[group]
    router: RunningRouter = running_with(routing(more, secure))
    with node_of(router.port, allowed_mechs="ANONYMOUS") as node:
        assert create(node, "in.a.#", "in")[0] == own
        assert create(node, "out.a.#", "out")[0] == own
        assert create(node, "bob.#", "in")[0] == others


def test_a_pattern_lies_inside_sources_or_targets_by_its_direction(running_with: Any) -> None:
    router: RunningRouter = running_with(routing("allowDynamicLinkRoutes: yes"))
    with node_of(router.port, allowed_mechs="ANONYMOUS") as node:
        assert create(node, "in.a.*", "in", "mine")[0] == 201
        for pattern, direction, taken, entries in (
            ("in.a.*", "out", "in.a.x", "targets"),
            ("out.a.*", "in", "out.a.x", "sources"),
            ("bob.#", "in", "bob", "sources"),
            ("in.#", "in", "in", "sources"),
            ("#", "out", "x", "targets"),
        ):
            status, why = create(node, pattern, direction)
            assert status == 403
            assert why.startswith(NOT_ALLOWED)
            if "." not in taken:
                assert f"takes '{taken}', which the {entries} of your group do not cover" in why
        assert create(node, "..", "in") == (400, "Pattern invalid - no tokens")
        assert node.ask("READ", type=TYPE, name="mine").status == 403, "it may do nothing else"
        asked = {"type": "org.amqp.management", "name": "self", "entityType": "router"}
        assert node.ask("QUERY", {"attributeNames": []}, **asked).status == 403
        assert node.ask("DELETE", type="org.apache.qpid.dispatch.listener", name="x").status == 403
        assert node.ask("DELETE", type=TYPE, name="mine").status == 204
    router.wait_for_line(r"AGENT .*pattern 'bob.#', direction in, takes 'bob'")


def test_an_edge_router_makes_the_routes_of_its_own_addresses(tmp_path: Path) -> None:
    """Routes of another user's addresses are refused, and the edge router says so."""
    above = policy("allowDynamicLinkRoutes: yes, allowAnonymousSender: yes, allowUserIdProxy: yes")
    listener = EDGE_LISTENER.replace("port: 0", "port: 0, authenticatePeer: no")
    text = interior("A", {}, f"{above}\n{listener}", router="secureDefaults: yes").replace(
        "port: 0,", "port: 0, authenticatePeer: no,"
    )
    with ExitStack() as stack:
        there = stack.enter_context(broker())
        router = stack.enter_context(running(text, tmp_path))
        routes = "".join(
            f"linkRoute {{ prefix: {prefix}, direction: in, connection: c }}\n" for prefix in ("in.lr", "bob.lr")
        )
        container = (
            f"connector {{ host: 127.0.0.1, port: {there.port}, role: route-container, name: c, "
            f"saslMechanisms: ANONYMOUS }}\n"
        )
        below = stack.enter_context(running(edge("E1", [edge_port(router)], routes + container), tmp_path))
        below.wait_for_line(r"link route .*bob.lr.* is not known to the interior router: 403 .*which the sources of")
        router.wait_for_line(r"Link Route Activated .*in\.lr")
