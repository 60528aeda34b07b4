"""Look-ups of an edge router, played in memory: the test is its client, and its interior router."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import pytest
from trio.testing import MockClock

from tests.connections.dialled_plays import Dialling, dialling, logged_in
from tests.connections.plays import condition_of, only, opened, receiver, sender
from trouter.core.edge.protocol import LOOKUP, OK
from trouter.core.lookups import LOOKUP_S
from trouter.core.notes import Note, read, write
from trouter.testing.player import HANG_UP, Input, PlayedPeer, kinds
from trouter.wire.framing import frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Flow,
    Open,
    Performative,
    Source,
    Target,
    Transfer,
    decode_performative,
    encode_performative,
)

#: The capability and the credit of the interior router.
OPEN: Final = Open("A", channel_max=100)
CREDIT: Final = 100
#: Answers to a look-up: whether the address is one of a link route, and whether that has a destination.
MESSAGES: Final = [False, True]
LINKS: Final = [True, True]
NOWHERE: Final = [True, False]


@dataclass(frozen=True)
class Query:
    """A look-up of the edge router."""

    number: str
    reply_to: str
    address: str
    is_sender: bool


def frames(sent: bytearray) -> Iterator[tuple[int, Performative, bytes]]:
    """Yield channel, performative and payload of each frame in ``sent``, and remove it."""
    while sent:
        size = int.from_bytes(sent[:4])
        octets = bytes(sent[:size])
        del sent[:size]
        start = octets[4] * 4
        if size > start:
            performative, end = decode_performative(octets, start, size)
            yield int.from_bytes(octets[6:8]), performative, octets[end:]


class Interior:
    """The interior router: it answers each begin and attach of the edge router, and keeps its look-ups."""

    def __init__(self, peer: PlayedPeer) -> None:
        self.peer = peer
        #: The edge router's attaches, by channel and handle.
        self.links: dict[tuple[int, int], Attach] = {}
        self.queries: list[Query] = []
        self.detached: list[Detach] = []
        self._transfers = 0

    async def play(self, *inputs: Input) -> None:
        """Give the edge router the inputs, and answer until it says no more."""
        self.peer.put(*inputs)
        await self.peer.rest()
        while self.peer.sock.sent:
            for channel, performative, payload in list(frames(self.peer.sock.sent)):
                self._answer(channel, performative, payload)
            await self.peer.rest()

    def _answer(self, channel: int, performative: Performative, payload: bytes) -> None:
        if isinstance(performative, Begin):
            answer = Begin(next_outgoing_id=0, incoming_window=900, outgoing_window=900, remote_channel=channel)
            self.peer.put((channel, answer))
        elif isinstance(performative, Attach):
            self._attach(channel, performative)
        elif isinstance(performative, Detach):
            self.detached.append(performative)
            self.peer.put((channel, Detach(performative.handle, performative.closed)))
        elif isinstance(performative, Transfer) and self._is_lookup(self.links[channel, performative.handle]):
            note = read(payload)
            assert isinstance(note.body, list)
            assert isinstance(note.correlation_id, str)
            self.queries.append(Query(note.correlation_id, str(note.reply_to), *note.body))

    def _attach(self, channel: int, attach: Attach) -> None:
        self.links[channel, attach.handle] = attach
        source, count = attach.source, None
        if attach.role:  # we send
            assert isinstance(source, Source)
            count = 0
            if source.dynamic:
                source = Source(f"amqp:/_topo/0/A/temp.{channel}-{attach.handle}", dynamic=True)
        answer = Attach(attach.name, attach.handle, not attach.role, source=source, target=attach.target)
        answer.initial_delivery_count = count
        self.peer.put((channel, answer))
        if not attach.role:
            flow = Flow(
                next_incoming_id=0,
                incoming_window=900,
                next_outgoing_id=0,
                outgoing_window=900,
                handle=attach.handle,
                delivery_count=0,
                link_credit=CREDIT,
            )
            self.peer.put((channel, flow))

    @staticmethod
    def _is_lookup(attach: Attach) -> bool:
        return isinstance(attach.target, Target) and attach.target.address == LOOKUP

    def attached(self, address: str) -> list[Attach]:
        """Return the attaches of the edge router to an address."""
        return [
            each
            for each in self.links.values()
            if address in {getattr(each.source, "address", None), getattr(each.target, "address", None)}
        ]

    async def reply(self, answer: list[bool], query: Query | None = None) -> None:
        """Answer a look-up, the last one if none is given."""
        query = query or self.queries[-1]
        channel, handle = map(int, query.reply_to.rpartition(".")[2].split("-"))
        note = Note(answer, correlation_id=query.number, properties={"status": OK})
        transfer = Transfer(handle, self._transfers, b"%d" % self._transfers, 0, settled=True)
        self._transfers += 1
        await self.play(frame(channel, encode_performative(transfer) + write(note)))


@asynccontextmanager
async def edge(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Dialling, Interior]]:
    """Run an edge router whose uplink is in use."""
    async with dialling(monkeypatch, role="edge", mode="edge") as dialled:
        interior = Interior(await logged_in(dialled))
        interior.peer.sock.sent.clear()
        await interior.play(OPEN)
        assert dialled.own.status == "SUCCESS"
        yield dialled, interior


async def test_an_attach_waits_for_the_answer_of_the_interior_router(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        client = await opened(dialled.router)
        assert await client.play(receiver("r"), sender("s")) == []
        await interior.play()
        assert [(query.address, query.is_sender) for query in interior.queries] == [("queue", False), ("queue", True)]
        await interior.reply(MESSAGES, interior.queries[0])
        assert await client.play() == []  # those of one read are answered together, in their order
        await interior.reply(MESSAGES, interior.queries[1])
        assert [each.name for each in await client.play() if isinstance(each, Attach)] == ["r", "s"]
        await interior.play()
        assert interior.attached("queue")


async def test_a_link_route_takes_the_link_to_the_interior_router(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        client = await opened(dialled.router)
        await client.play(receiver("mine"))
        await interior.play()
        assert interior.attached("queue") == []
        await interior.reply(LINKS)
        (routed,) = interior.attached("queue")
        assert routed.role
        assert routed.name.startswith("mine")
        assert only(await client.play(), Attach).name == "mine"


async def test_a_link_without_a_destination_is_refused(mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        client = await opened(dialled.router)
        await client.play(receiver())
        await interior.play()
        await interior.reply(NOWHERE)
        outputs = await client.play()
        assert kinds(outputs) == [Attach, Detach]
        assert only(outputs, Attach).source is None
        assert condition_of(outputs, Detach) == "qd:no-route-to-dest"
        assert interior.attached("queue") == []


async def test_without_an_answer_in_time_messages_are_routed(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        client = await opened(dialled.router)
        await client.play(receiver())
        await interior.play()
        mock_clock.jump(LOOKUP_S - 0.1)
        assert await client.play() == []
        mock_clock.jump(0.2)
        assert kinds(await client.play()) == [Attach]
        await interior.reply(NOWHERE)  # too late
        assert await client.play() == []


async def test_a_lost_uplink_answers_what_waits(mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        client = await opened(dialled.router)
        await client.play(receiver())
        await interior.play()
        await interior.peer.play(HANG_UP)
        assert kinds(await client.play()) == [Attach]


async def test_other_sessions_and_connections_go_on_while_one_waits(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        waiting, other = await opened(dialled.router), await opened(dialled.router, host="192.0.2.8")
        await waiting.play(receiver())
        await interior.play()
        begin = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)
        assert kinds(await waiting.play((1, begin))) == [Begin]
        await other.play(receiver("r", 0, "second"))
        await interior.play()
        assert interior.queries[-1].address == "second"
        await interior.reply(MESSAGES)
        assert kinds(await other.play()) == [Attach]
        assert await waiting.play() == []


async def test_a_session_that_ends_while_it_waits_gets_no_links(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        client = await opened(dialled.router)
        await client.play(receiver())
        await interior.play()
        assert kinds(await client.play(End())) == [End]
        await interior.reply(MESSAGES)
        assert await client.play() == []
        await interior.play()
        assert interior.attached("queue") == []


#: What a client sends after a detach, in the same write.
LEAVES: Final[dict[str, tuple[Input, ...]]] = {
    "end": (End(),),
    "close": (Close(),),
    "end-close": (End(), Close()),
    "close-and-hang-up": (Close(), HANG_UP),
    "hang-up": (HANG_UP,),
}


@pytest.mark.parametrize("leave", LEAVES.values(), ids=LEAVES)
async def test_a_detach_before_the_end_goes_up_although_another_link_waits(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch, leave: tuple[Input, ...]
) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        client = await opened(dialled.router)
        await client.play(receiver("mine"))
        await interior.play()
        await interior.reply(LINKS)
        await client.play(receiver("waits", 1, "other"), Detach(0, True), *leave)
        await interior.play()
        assert [(each.closed, each.error) for each in interior.detached] == [(True, None)]


@pytest.mark.parametrize("leave", LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize("at_once", [True, False])
async def test_an_attach_and_its_detach_before_the_end_go_up(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch, leave: tuple[Input, ...], at_once: bool
) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        client = await opened(dialled.router)
        links = len(dialled.router.process.router.links)
        if at_once:
            await client.play(receiver("mine"), Detach(0, False), *leave)
        else:
            await client.play(receiver("mine"))
            await interior.play()
            await client.play(Detach(0, False), *leave)
        await interior.play()
        assert interior.attached("queue") == []
        await interior.reply(LINKS)
        (routed,) = interior.attached("queue")
        assert routed.name.startswith("mine")
        assert [(each.closed, each.error) for each in interior.detached] == [(False, None)]
        assert len(dialled.router.process.router.links) == links
        if HANG_UP in leave:
            assert len(dialled.router.process.services.connections) == 1  # the uplink


async def test_a_session_that_ends_with_a_link_given_back_waits_not_for_long(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        client, leaving = await opened(dialled.router), await opened(dialled.router)
        await client.play(receiver("mine"), Detach(0, True), End())
        await leaving.play(receiver("mine"), Detach(0, True), Close(), HANG_UP)
        mock_clock.jump(LOOKUP_S + 0.1)
        assert kinds(await client.play()) == [End]
        await interior.play()
        assert len(interior.attached("queue")) == len(interior.detached)  # as of an address for messages
        assert len(dialled.router.process.services.connections) == 2  # the uplink, and the client that stays


async def test_a_client_that_hangs_up_while_it_waits_leaves_nothing(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with edge(monkeypatch) as (dialled, interior):
        client = await opened(dialled.router)
        before = len(dialled.router.process.router.links)
        await client.play(sender())
        await interior.play()
        await client.play(HANG_UP)
        await interior.reply(MESSAGES)
        assert len(dialled.router.process.services.connections) == 1  # the uplink
        assert len(dialled.router.process.router.links) == before
