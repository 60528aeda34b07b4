"""A connector between routers closes without a hello in time; it treats a redirect like any other close."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trouter.app.process import RouterProcess
from trouter.backbone.backbone import Backbone
from trouter.config import load
from trouter.connections import connector
from trouter.hooks import Plugins
from trouter.wire.performatives import Error

HANG_S = 60.0
LISTENS = "listener { host: 127.0.0.1, port: 0, role: inter-router, saslMechanisms: ANONYMOUS, allowInsecureRole: yes }"
DIALS = "connector {{ name: out, host: 127.0.0.1, port: {0}, role: inter-router, saslMechanisms: ANONYMOUS }}"


def interior(name: str, more: str) -> RouterProcess:
    return RouterProcess(load(text=f"router {{ mode: interior, id: {name} }}\n{more}\n"), Plugins.load())


async def dialling(nursery: trio.Nursery) -> tuple[RouterProcess, connector.Connector]:
    """Start a router, and return it with the connector of another that dials it."""
    there = interior("B", LISTENS)
    await nursery.start(there.run)
    here = interior("A", DIALS.format(there.listeners[0].sockets[0].getsockname()[1]))
    await nursery.start(here.run)
    (own,) = here.in_force.parts.connectors.all
    return there, own


async def until(own: connector.Connector, status: str) -> None:
    with trio.fail_after(HANG_S):
        while own.status != status:
            await trio.testing.wait_all_tasks_blocked(0.01)


async def test_a_peer_that_answers_and_is_no_router_is_given_up(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "HELLO_TIMEOUT_S", 0.1)
    monkeypatch.setattr(Backbone, "update_trunk", lambda *_: None)  # the router sends no hello
    _, own = await dialling(nursery)
    with trio.fail_after(HANG_S):
        while not own.message.endswith(connector.NO_ANSWER["inter-router"]):
            await trio.testing.wait_all_tasks_blocked(0.01)
    assert own.message.endswith(f" failed: {connector.NO_ANSWER['inter-router']}")
    nursery.cancel_scope.cancel()


async def test_a_redirect_sends_no_connector_elsewhere(nursery: trio.Nursery) -> None:
    there, own = await dialling(nursery)
    await until(own, "SUCCESS")
    places = own.failover_urls
    info = {"network-host": "192.0.2.1", "port": 5672}
    for connection in there.services.connections.values():
        connection.force_close(Error("amqp:connection:redirect", "go away", info))
    assert len(there.services.connections) == 0, "what is closed by order is listed no longer"
    await until(own, "CONNECTING")
    assert "amqp:connection:redirect go away" in own.message
    assert own.failover_urls == places
    await until(own, "SUCCESS")
    nursery.cancel_scope.cancel()


async def test_success_comes_with_the_open_of_the_peer_and_not_with_its_first_hello(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backbone, "update_trunk", lambda *_: None)  # the router sends no hello
    _, own = await dialling(nursery)
    await until(own, "SUCCESS")
    assert "Connection Opened: dir=out" in own.message
    nursery.cancel_scope.cancel()


async def test_a_failover_list_is_taken_from_the_open_of_a_peer_that_is_no_router(nursery: trio.Nursery) -> None:
    there = interior("B", "listener { host: 127.0.0.1, port: 0, failoverUrls: 'amqp://127.0.0.1:9' }")
    await nursery.start(there.run)
    here = interior("A", DIALS.format(there.listeners[0].sockets[0].getsockname()[1]))
    await nursery.start(here.run)
    (own,) = here.in_force.parts.connectors.all
    with trio.fail_after(HANG_S):
        while "amqp://127.0.0.1:9" not in own.failover_urls:
            await trio.testing.wait_all_tasks_blocked(0.01)
        while "is its listener's role inter-router?" not in own.message:
            await trio.testing.wait_all_tasks_blocked(0.01)
    assert own.status == "CONNECTING", "between tries, with the reason"
    nursery.cancel_scope.cancel()


async def test_a_connector_waits_five_seconds_at_most_and_never_twice_the_same(nursery: trio.Nursery) -> None:
    _, own = await dialling(nursery)
    waits = [own._next_wait_s() for _ in range(30)]
    assert all(0.5 <= wait_s <= connector.LONGEST_WAIT_S == 5.0 for wait_s in waits)
    assert all(wait_s >= connector.LONGEST_WAIT_S / 2 for wait_s in waits[5:])
    assert len(set(waits)) == len(waits)
    nursery.cancel_scope.cancel()
