"""Messages in fragments of any size, to receivers that drain, release and leave: none changes or comes twice."""

from __future__ import annotations

import random
from collections import deque

import pytest
from trio.testing import MockClock

from tests.connections.plays import LISTENER, ROUTER, receiver, sender
from trouter.testing.player import HANG_UP, Input, PlayedPeer, PlayedRouter, play
from trouter.wire.framing import AMQP_HEADER, frame
from trouter.wire.performatives import (
    Accepted,
    Begin,
    Disposition,
    Flow,
    Open,
    Performative,
    Released,
    Transfer,
    decode_performative,
    encode_performative,
)

STEPS, LONGEST_BYTES, FRAME_BYTES = 400, 60_000, 4_096
WIDE = 1 << 20


async def exchange(peer: PlayedPeer, *inputs: Input) -> list[tuple[Performative, bytes]]:
    """Give the router the inputs; return its frames, each with its payload."""
    peer.put(*inputs)
    await peer.rest()
    octets = bytes(peer.sock.sent)
    peer.sock.sent.clear()
    octets = octets.removeprefix(AMQP_HEADER)
    frames = []
    while octets:
        size = int.from_bytes(octets[:4], "big")
        if size > 8:
            performative, end = decode_performative(octets, 8, size)
            frames.append((performative, octets[end:size]))
        octets = octets[size:]
    return frames


class Receiving:
    """A receiver with a small window. ``whole`` has the messages that it got to their end, by all receivers."""

    def __init__(self, router: PlayedRouter, dice: random.Random, whole: list[bytes]) -> None:
        self.peer = router.accept()
        self._dice = dice
        self._whole = whole
        self._frames = self._deliveries = 0
        self._piece = bytearray()
        self._number = 0
        self.open: deque[int] = deque()

    async def begin(self) -> None:
        size = self._dice.choice((512, 700, 4_096, WIDE))
        begin = Begin(next_outgoing_id=0, incoming_window=self._dice.randint(1, 40), outgoing_window=9)
        await exchange(self.peer, AMQP_HEADER, Open("r", max_frame_size=size), begin, receiver())

    async def hear(self, *inputs: Input) -> None:
        for performative, payload in await exchange(self.peer, *inputs):
            if not isinstance(performative, Transfer):
                continue
            self._frames += 1
            if performative.delivery_id is not None and not self._piece:
                self._number = performative.delivery_id
            self._piece += payload
            if performative.aborted:
                self._deliveries += 1
                self._piece.clear()
            elif not performative.more:
                self._deliveries += 1
                self._whole.append(bytes(self._piece))
                self.open.append(self._number)
                self._piece.clear()

    async def grant(self, credit: int, window: int, *, drain: bool = False) -> None:
        await self.hear(
            Flow(
                next_incoming_id=self._frames,
                incoming_window=window,
                next_outgoing_id=0,
                outgoing_window=9,
                handle=0,
                delivery_count=self._deliveries,
                link_credit=credit,
                drain=drain,
            )
        )

    async def settle(self) -> None:
        if self.open:
            state = self._dice.choice((Accepted(), Accepted(), Released()))
            await self.hear(Disposition(True, self.open.popleft(), None, True, state))


class Sending:
    """A sender of random messages, in frames of random sizes; none is sent again."""

    def __init__(self, router: PlayedRouter, dice: random.Random) -> None:
        self.peer = router.accept()
        self._dice = dice
        self._credit = 0
        self._rest = b""
        self.sent: list[bytes] = []

    async def begin(self) -> None:
        begin = Begin(next_outgoing_id=0, incoming_window=9_999, outgoing_window=9_999)
        await self.hear(AMQP_HEADER, Open("s"), begin, sender(handle=0))

    async def hear(self, *inputs: Input) -> None:
        for performative, _ in await exchange(self.peer, *inputs):
            if isinstance(performative, Flow) and performative.handle is not None:
                self._credit = (performative.delivery_count or 0) + (performative.link_credit or 0)

    async def send(self) -> None:
        first = not self._rest
        if first:
            if len(self.sent) >= self._credit:
                await self.hear()
                return
            body = len(self.sent).to_bytes(4, "big") + self._dice.randbytes(self._dice.choice((9, 900, LONGEST_BYTES)))
            self._rest = b"\0\x53\x75\xb0" + len(body).to_bytes(4, "big") + body
            self.sent.append(self._rest)
        size = self._dice.choice((1, 40, 600, 600, 600, FRAME_BYTES))
        piece, self._rest = self._rest[:size], self._rest[size:]
        number, tag = (len(self.sent) - 1, len(self.sent).to_bytes(4, "big")) if first else (None, None)
        await self.hear(frame(0, encode_performative(Transfer(0, number, tag, more=bool(self._rest))) + piece))

    async def finish(self) -> None:
        while self._rest:
            await self.send()


@pytest.mark.parametrize("seed", range(12))
async def test_no_message_is_changed_or_comes_twice(mock_clock: MockClock, seed: int) -> None:
    dice = random.Random(seed)
    whole: list[bytes] = []
    async with play(ROUTER + LISTENER) as router:
        source = Sending(router, dice)
        receivers = [Receiving(router, dice, whole) for _ in range(2)]
        await source.begin()
        for each in receivers:
            await each.begin()
        for _ in range(STEPS):
            place = dice.randrange(2)
            chosen = receivers[place]
            match dice.choice(("send",) * 12 + ("grant", "grant", "drain", "settle", "settle", "leave")):
                case "send":
                    for _ in range(dice.choice((1, 30))):
                        await source.send()
                case "grant" | "drain" as what:
                    await chosen.grant(dice.randint(0, 4), dice.randint(0, 30), drain=what == "drain")
                case "settle":
                    await chosen.settle()
                case "leave" if dice.random() < 0.3:
                    await chosen.hear(HANG_UP)
                    receivers[place] = Receiving(router, dice, whole)
                    await receivers[place].begin()
        for each in receivers:
            await each.grant(1_000, 100_000)
        await source.finish()
        for each in receivers:
            await each.hear()
    assert whole
    assert len(set(whole)) == len(whole)
    assert set(whole) <= set(source.sent)
