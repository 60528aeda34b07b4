"""One user with many connections that ask without end: a neighbour's requests come after few of theirs.

The router's clock for turns goes on by half a millisecond at each look, so that nothing depends on the machine's speed.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager

import pytest
import trio

from tests.connections.plays import BEGIN, LISTENER, OPENING, ROUTER, receiver, sasl
from tests.ways import below_trio
from trouter.app.process import RouterProcess
from trouter.config import load
from trouter.connections.settings import WORK_AT_ONCE
from trouter.hooks import Plugins
from trouter.net.hub import Hub
from trouter.net.poller import Poller
from trouter.net.shares import ProcessorShare
from trouter.net.timers import TimerQueue
from trouter.net.turns import TaskTurns
from trouter.testing.player import kinds, octets_of, play
from trouter.wire.framing import SASL_HEADER, FrameReader
from trouter.wire.performatives import Attach, Detach, Disposition, End, Flow, Performative, SaslInit

pytestmark = pytest.mark.attack

HANG_S = 120.0
LOOK_S = 0.0005
CONNECTIONS = 64
#: Octets, a performative on channel 0, or one on another channel.
Sent = bytes | Performative | tuple[int, Performative]
ECHO = Flow(next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9, echo=True)


def octets(*inputs: Sent) -> bytes:
    return b"".join(map(octets_of, inputs))


class CountedTurns(TaskTurns):
    """Turns that note whose each one was."""

    whose: list[ProcessorShare]

    def end(self, share: ProcessorShare | None, began_s: float) -> None:
        super().end(share, began_s)
        if share is not None:
            self.whose.append(share)


def counted_poller(hub: Hub, timers: TimerQueue) -> Poller:
    looks = itertools.count()

    def clock() -> float:
        return next(looks) * LOOK_S

    poller = Poller(hub, timers, clock)
    poller.turns = turns = CountedTurns(poller.shares, clock)
    turns.whose = []
    return poller


class Client:
    """A client on one address of this machine, with a session."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._reader = FrameReader(1 << 20)

    @staticmethod
    async def connect(port: int, host: str) -> Client:
        sock = trio.socket.socket()
        try:
            await sock.bind((host, 0))
            await sock.connect(("127.0.0.1", port))
            client = Client(trio.SocketStream(sock))
            await client.stream.send_all(SASL_HEADER + sasl(SaslInit("ANONYMOUS", b"")) + octets(*OPENING))
            for _ in range(2):  # mechanisms and outcome, then open and begin
                while not client._reader.take_bytes(8):
                    client._reader.add_bytes(bytes(await client.stream.receive_some(65536)))
                await client.read_frames(2)
        except BaseException:
            sock.close()
            raise
        return client

    async def read_frames(self, count: int) -> None:
        while count:
            if self._reader.next_frame():
                count -= 1
            else:
                self._reader.add_bytes(bytes(await self.stream.receive_some(65536)))

    async def ask(self, *asked: Performative) -> None:
        """Send performatives, and wait for as many answers."""
        await self.stream.send_all(octets(*asked))
        await self.read_frames(len(asked))

    async def flood(self, data: bytes) -> None:
        """Send the same for ever, and read all that comes."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._drop_answers)
            while True:
                await self.stream.send_all(data)

    async def _drop_answers(self) -> None:
        while await self.stream.receive_some(1 << 20):
            pass


Connect = Callable[[str], Awaitable[Client]]


async def come_and_go(port: int, host: str) -> None:
    """Connect, log in and leave, again and again."""
    while True:
        client = await Client.connect(port, host)
        await client.stream.aclose()


@asynccontextmanager
async def flooded(data: bytes = b"") -> AsyncIterator[tuple[CountedTurns, Connect, Client]]:
    """Run a router with a flood of ``data`` from 127.0.0.1, or of new connections if there is none.

    Yield its turns, a function that connects, and a neighbour.
    """
    process = RouterProcess(load(text=ROUTER + LISTENER), Plugins.load(), make_poller=counted_poller)
    turns = process.services.poller.turns
    assert isinstance(turns, CountedTurns)
    with trio.fail_after(HANG_S), ExitStack() as stack:
        async with trio.open_nursery() as nursery:
            await nursery.start(process.run)
            port = process.listeners[0].sockets[0].getsockname()[1]

            async def connect(host: str) -> Client:
                client = await Client.connect(port, host)
                stack.callback(client.stream.socket.close)
                return client

            neighbour = await connect("127.0.0.2")
            for _ in range(CONNECTIONS):
                if data:
                    nursery.start_soon((await connect("127.0.0.1")).flood, data)
                else:
                    nursery.start_soon(come_and_go, port, "127.0.0.1")
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            yield turns, connect, neighbour
            nursery.cancel_scope.cancel()


LINKS = octets(*itertools.chain.from_iterable((receiver(f"l{n}", n), Detach(n, True)) for n in range(200)))


@below_trio
async def test_a_neighbours_attach_is_answered_after_few_turns_of_64_that_attach_without_end() -> None:
    async with flooded(LINKS) as (turns, _, neighbour):
        before = len(turns.whose)
        for number in range(10):
            await neighbour.ask(receiver(f"n{number}", number))
        of_others = len(turns.whose) - before - 10
        assert turns.waiting > CONNECTIONS // 2
        assert 0 < of_others <= 10 * 8


@below_trio
async def test_clients_of_the_user_who_floods_wait_for_each_other() -> None:
    async with flooded(LINKS) as (turns, connect, _):
        other = await connect("127.0.0.1")
        before = len(turns.whose)
        await other.ask(receiver())
        assert len(turns.whose) - before > CONNECTIONS // 2


@below_trio
async def test_a_login_and_an_open_wait_for_no_turn_of_the_others() -> None:
    async with flooded(LINKS) as (turns, connect, _):
        before = len(turns.whose)
        await connect("127.0.0.3")
        assert len(turns.whose) - before <= 40


@below_trio
async def test_a_login_comes_after_few_turns_of_64_clients_that_come_and_go() -> None:
    async with flooded() as (turns, connect, _):
        counts = []
        for _ in range(8):
            before = len(turns.whose)
            await connect("127.0.0.3")
            counts.append(len(turns.whose) - before)
        assert CONNECTIONS // 4 < turns.waiting < 2 * CONNECTIONS  # each waits once, before the router begins with it
        assert max(counts) <= 40


def repeated(*inputs: Sent) -> bytes:
    return octets(*inputs) * 300


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(repeated(ECHO), id="echoes"),
        pytest.param(repeated((1, BEGIN), (1, End())), id="sessions"),
        pytest.param(repeated(Disposition(role=True, first=0, last=2_000_000_000)), id="dispositions"),
    ],
)
@below_trio
async def test_a_neighbours_echo_comes_while_others_flood(data: bytes) -> None:
    async with flooded(data) as (_, _connect, neighbour):
        for _ in range(10):
            await neighbour.ask(ECHO)


async def test_what_was_read_goes_on_though_it_is_too_much_work_for_one_call() -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = router.accept()
        await peer.play(*OPENING)
        assert kinds(await peer.play(*[ECHO] * 1000, receiver())) == [Flow] * (1000 * 4 // WORK_AT_ONCE + 1) + [Attach]


async def test_what_was_read_goes_on_though_the_output_was_blocked_meanwhile() -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = router.accept()
        await peer.play(*OPENING)
        peer.sock.room_bytes = 10
        assert await peer.play(*[ECHO] * 1000, receiver()) == []
        peer.sock.room_bytes = 1 << 62
        assert kinds(await peer.play())[-1] is Attach
