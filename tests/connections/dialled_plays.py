"""What the plays of dialled connections share: a router with a connector, and the server that it reaches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.connections.plays import LISTENER, sasl
from trouter.connections.connector import Connector
from trouter.net import reach
from trouter.net.dialing import Endpoint
from trouter.testing.player import PlayedPeer, PlayedRouter, play
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER
from trouter.wire.performatives import SaslMechanisms, SaslOutcome
from trouter.wire.types import Symbol

#: What every text needs: the player's listener.
HEAD = "router {{ id: R, mode: {mode} }}\n" + LISTENER.replace("{", "{{").replace("}", "}}")
CONNECTOR = """
connector {{
    name: out
    host: server
    port: 5671
    role: {role}
    saslMechanisms: PLAIN
    saslUsername: bob
    saslPassword: wonderland
    allowInsecurePlain: yes
    redirectHosts: other
}}
"""


class Dialling:
    """The servers that the connector of a router has reached, and where it dialled."""

    def __init__(self, router: PlayedRouter) -> None:
        self.router = router
        self.places: list[str] = []
        self.servers: list[PlayedPeer] = []
        (self.connector,) = router.process.in_force.parts.connectors.all

    @property
    def own(self) -> Connector:
        return self.connector


@asynccontextmanager
async def dialling(
    monkeypatch: pytest.MonkeyPatch,
    role: str = "normal",
    mode: str = "standalone",
    fails: bool = False,
) -> AsyncIterator[Dialling]:
    """Run a router with a connector whose dialling reaches a socket of memory, or ``fails``."""
    reached: list[Dialling] = []
    waiting: list[str] = []

    async def connect(endpoint: Endpoint, _: object) -> object:
        waiting.append(str(endpoint))
        if fails:
            raise OSError(111, "Connection refused")
        while not reached:
            await trio.lowlevel.checkpoint()
        (all_of_it,) = reached
        sock = all_of_it.router.new_socket()
        all_of_it.servers.append(PlayedPeer(all_of_it.router, sock))
        return sock

    monkeypatch.setattr(reach, "connect", connect)
    text = HEAD.format(mode=mode) + CONNECTOR.format(role=role)
    async with play(text) as router:
        made = Dialling(router)
        made.places = waiting
        reached.append(made)
        await wait_all_tasks_blocked()
        yield made


def offering(*names: str) -> bytes:
    return SASL_HEADER + sasl(SaslMechanisms(tuple(map(Symbol, names))))


OK = sasl(SaslOutcome(0))


async def logged_in(dialled: Dialling) -> PlayedPeer:
    """Return the server, which the router has logged in at; its open is due."""
    (server,) = dialled.servers
    await server.play(offering("PLAIN"))
    await server.play(OK, AMQP_HEADER)
    return server
