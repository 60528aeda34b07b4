"""With a policy: the rights of groups without ``management``, and requests from other routers, in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.management.node import Node, node_of
from tests.networks import client_port, interior, router_port, wait_for_reach
from tests.routers import RunningRouter, running

FORBIDDEN = (403, "You are not allowed to perform this operation.")
POLICY = """
policy {{ enableVhostPolicy: yes{policy} }}
vhost {{
    hostname: $default
    allowUnknownUser: yes
    groups: {{ $default: {{ remoteHosts: *, sources: *, targets: *, allowDynamicSource: yes{group} }} }}
}}
"""
#: By configuration: the level of a group without the attribute, and that of requests from the other router.
SWITCHES = {
    "as Qpid Dispatch": ("", "", "", "admin", "admin"),
    "secureDefaults": ("secureDefaults: yes", "", "", "none", "none"),
    "given": ("", ", routerManagement: read", ", management: operate", "operate", "read"),
    "given with secureDefaults": (
        "secureDefaults: yes",
        ", routerManagement: operate",
        ", management: read",
        "read",
        "operate",
    ),
}
Scene = tuple[dict[str, RunningRouter], str, str]


@pytest.fixture(scope="module", params=SWITCHES.values(), ids=list(SWITCHES))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Run two routers, and return them with the levels that both grant."""
    router, policy, group, own, others_may = request.param
    more = POLICY.format(policy=policy, group=group)
    routers: dict[str, RunningRouter] = {}
    with ExitStack() as stack:
        for name, others in {"A": (), "B": ("A",)}.items():
            text = interior(name, {other: router_port(routers[other]) for other in others}, more, router=router)
            text = text.replace("port: 0,", "port: 0, authenticatePeer: no,")
            routers[name] = stack.enter_context(running(text, tmp_path_factory.mktemp(name)))
        wait_for_reach(routers)
        yield routers, own, others_may


def levels(node: Node) -> str:
    """Return the highest level that the requests of this client reach."""
    asked = {"type": "org.amqp.management", "name": "self"}
    answers = {
        "read": node.ask("QUERY", {"attributeNames": []}, entityType="router", **asked).status,
        "operate": node.ask("GET-LOG", limit=1, **asked).status,
        "admin": node.ask("UPDATE", {"enable": "info+"}, type="log", identity="log/POLICY").status,
    }
    assert set(answers.values()) <= {200, 403}, answers
    allowed = [level for level, status in answers.items() if status == 200]
    assert allowed == list(answers)[: len(allowed)]
    level = allowed[-1] if allowed else "none"
    told = node.ask("GET-RIGHTS", **asked)
    assert (told.status, told.body.get("level")) == ((200, level) if allowed else (403, None))
    return level


@pytest.mark.parametrize("address", ["$management", "_local/$management", "_topo/0/A/$management"])
def test_a_group_has_its_rights_on_its_own_router(scene: Scene, address: str) -> None:
    routers, own, _ = scene
    with node_of(client_port(routers["A"]), address, allowed_mechs="ANONYMOUS") as node:
        assert levels(node) == own


@pytest.mark.parametrize(("here", "there"), [("A", "B"), ("B", "A")])
def test_requests_from_another_router_have_the_rights_of_routers(scene: Scene, here: str, there: str) -> None:
    routers, _, others = scene
    address = f"_topo/0/{there}/$management"
    with node_of(client_port(routers[here]), address, allowed_mechs="ANONYMOUS") as node:
        assert levels(node) == others
