"""Clients that attach, send, drain, detach and are killed in any order leave no count of the policy behind.

Each client sends a random, valid conversation to a whole router with policy and quotas; their bytes are interleaved,
and each connection ends as a socket does: in order, half closed, or with a reset.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

import trio
import trio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.parts.encoder import conversation
from trouter.policy.router_policy import RouterPolicy
from trouter.testing import LoopbackRouter, open_router

QUOTAS = "maxLinks: 1000\n maxAddresses: 1000\n maxMessagesPerSecond: 100000\n maxBufferedBytes: 100000000"
CONFIGURATION = f"""
router {{
    id: R
}}
listener {{
    host: 127.0.0.1
    port: 0
    authenticatePeer: no
}}
policy {{
    enableVhostPolicy: yes
}}
vhost {{
    hostname: $default
    allowUnknownUser: yes
    {QUOTAS}
    perUser: {{ {QUOTAS.replace(chr(10), chr(10) + " ")}
    }}
    groups: {{
        $default: {{
            remoteHosts: *
            sources: *
            targets: *
            allowDynamicSource: yes
            allowAnonymousSender: yes
        }}
    }}
}}
"""
ENDS = ("reset", "half", "close")
DEADLINE_S = 60.0


class Client:
    """A socket with the bytes that it still has to send."""

    def __init__(self, port: int, rng: random.Random) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.left = conversation(rng)
        self.end = rng.choice(ENDS)

    def step(self, count: int) -> bool:
        """Send a piece; return False once all is sent, and the socket has ended."""
        piece, self.left = self.left[:count], self.left[count:]
        try:
            if piece:
                self.socket.sendall(piece)
                return True
            self.finish()
        except OSError:
            self.socket.close()
        return False

    def finish(self) -> None:
        if self.end == "half":
            self.socket.shutdown(socket.SHUT_WR)
            return
        if self.end == "reset":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def counters(router: LoopbackRouter) -> Iterator[tuple[str, Any]]:
    """Yield all counts about clients, by name."""
    policy = router.process.services.policy
    yield "connections", policy.shown_policy()["connectionsCurrent"]
    yield "held", len(policy._admitted)
    for name, vhost in policy.shown_vhosts():
        yield f"open of {name}", vhost.connections
        yield f"users of {name}", vhost.by_user
    for key, meter in policy.book._meters.items():
        yield f"links of {key}", meter.links
        yield f"addresses of {key}", dict(meter.addresses)
        yield f"senders of {key}", meter.senders
        yield f"connections of {key}", meter.connections
        yield f"bytes of {key}", meter.buffer.held


def count_approved(policy: RouterPolicy) -> int:
    return sum(vhost.counts.connections_approved for _, vhost in policy.shown_vhosts())


class Served(trio.abc.Instrument):
    """A counter of connections that the router's listener has served to their end."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = trio.Event()

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        if task.name.endswith("Listener._serve_peer"):
            self.count += 1
            self._changed.set()
            self._changed = trio.Event()

    async def wait_for(self, count: int) -> None:
        while self.count < count:
            await self._changed.wait()


@settings(max_examples=6)
@given(st.integers(0, 2**32))
def test_when_the_clients_are_gone_nothing_is_counted_of_them(number: int) -> None:
    trio.run(storm, number)


async def storm(number: int) -> None:
    rng = random.Random(number)
    # A client that stays: the counts of a user are dropped with the user's last connection.
    async with open_router(CONFIGURATION) as router, router.connect():
        core, policy = router.process.router, router.process.services.policy
        served = Served()
        trio.lowlevel.add_instrument(served)
        own, before = (set(core.links), set(core.table.entries)), dict(counters(router))
        approved = count_approved(policy)
        clients = [Client(router.ports[0], rng) for _ in range(12)]
        with contextlib.ExitStack() as sockets:
            for client in clients:
                sockets.callback(client.socket.close)
            await play(clients, rng, served)
        assert count_approved(policy) > approved
        assert dict(counters(router)) == before
        assert (set(core.links), set(core.table.entries)) == own


async def play(clients: list[Client], rng: random.Random, served: Served) -> None:
    """Send everything in pieces, interleaved, and wait until the router has seen the end of all connections."""
    waiting = clients[:]
    while waiting:
        client = rng.choice(waiting)
        if not client.step(rng.choice((1, 20, 200, 5000))):
            waiting.remove(client)
        await trio.lowlevel.checkpoint()
    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(drain, client)
        await served.wait_for(len(clients))


async def drain(client: Client) -> None:
    """Read the router's output to its end, so that it can end, and close."""
    if client.socket.fileno() < 0:
        return
    with contextlib.suppress(OSError), client.socket:
        while True:
            await trio.lowlevel.wait_readable(client.socket)
            if not client.socket.recv(65536):
                return
