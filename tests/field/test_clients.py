"""Unmodified clients of other projects work through routers, from hosts of their own: each client, thing and way."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack, suppress

import pytest

from tests.field.hosts import needs_hosts
from tests.field.programs import BUILT, CLIENTS
from tests.field.scene import CLEAR, WAYS, Scene
from tests.field.things import RECONNECT, THINGS
from tests.interop.agents import Agent
from tests.routers import DEADLINE_S

pytestmark = [pytest.mark.interop, needs_hosts()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_does_its_work(network: Scene, client: str, thing: str, way: str) -> None:
    tried = CLIENTS[client]
    if why := tried.why_not() or tried.why_without(thing, way):
        pytest.skip(why)
    THINGS[thing](network, tried, network.ways[way])


@pytest.fixture(scope="module")
def revived(network: Scene) -> dict[str, str]:
    """Kill a router under all clients, and start it again; return why a client did not come back, "" if it did."""
    ends = {"from": network.lone_end.options, "deadline_s": 5}
    outcomes: dict[str, str] = {}

    def try_it(name: str, program: Agent, event: str) -> None:
        try:
            program.wait_for(event)
        except AssertionError as failure:
            outcomes[name] = str(failure)
            program.kill()

    with ExitStack() as stack:
        programs: dict[str, Agent] = {}
        with network.router_alone() as router:
            for number, (name, client) in enumerate(CLIENTS.items()):
                if not (client.why_not() or client.lacks.get(RECONNECT)):
                    options = {**ends, "address": f"{'queue' if client.routed else 'again'}.{number}.again"}
                    made = network.program(name, list(client.command), RECONNECT, **options)
                    programs[name] = stack.enter_context(made)
            for name, program in programs.items():
                try_it(name, program, "ready")
            router.process.kill()
            router.wait()
        with network.router_alone():
            for name, program in programs.items():
                if name not in outcomes:
                    with suppress(BrokenPipeError):  # some have come back already
                        program.go_on()
                    try_it(name, program, "done")
    return {name: outcomes.get(name, "") for name in programs}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_comes_back_after_its_router_was_killed(revived: dict[str, str], client: str) -> None:
    tried = CLIENTS[client]
    if why := tried.why_not() or tried.lacks.get(RECONNECT):
        pytest.skip(why)
    assert revived[client] == ""


def test_a_client_of_proton_c_without_a_container_id_is_served(network: Scene) -> None:
    program = BUILT / "c" / "noid"
    if not program.exists():
        pytest.skip("`make field-clients` has not built it")
    words = [str(program), network.ways["one router"].begin.host, str(CLEAR)]
    with network.client.start(words, stdout=subprocess.PIPE) as process:
        printed, _ = process.communicate(timeout=DEADLINE_S)
    assert printed == "attached\n"
