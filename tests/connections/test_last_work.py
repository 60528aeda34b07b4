"""A peer that sends requests without end and is gone: few of them are carried out, and all messages before them."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from tests.connections.plays import LISTENER, ROUTER, message, opened, receiver, sender
from trouter.connections.settings import EVENTS_AT_ONCE
from trouter.connections.stream import EVENT_WORK, LAST_WORK
from trouter.testing.player import RESET, PlayedPeer, octets_of, play
from trouter.wire.performatives import Accepted, Detach, Disposition, Flow, Performative, Transfer

pytestmark = pytest.mark.attack

READ_BYTES = 4096
COUNT = 20_000
REQUESTS: dict[str, tuple[Performative, ...]] = {
    "attaches": (receiver(handle=7, name="a"), Detach(7, True)),
    "flows": (Flow(next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9),),
    "dispositions": (Disposition(True, 5, 6, settled=True, state=Accepted()),),
}


def left_behind(peer: PlayedPeer) -> int:
    """Return how many octets of a peer were not read."""
    return len(peer.sock.arriving)


@pytest.mark.parametrize("asked", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("read_bytes", [READ_BYTES, 1 << 20], ids=["many-reads", "one-read"])
async def test_few_requests_of_a_peer_that_is_gone_are_carried_out(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture, asked: tuple[Performative, ...], read_bytes: int
) -> None:
    caplog.set_level("INFO")
    each = b"".join(map(octets_of, asked))
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router)
        peer.sock.read_bytes = read_bytes
        await peer.play(each * COUNT, RESET)
        assert peer.sock.closed
        assert left_behind(peer) + read_bytes + LAST_WORK * len(each) >= COUNT * len(each)
        attached = sum("Link attached" in record.getMessage() for record in caplog.records)
        assert attached <= LAST_WORK // EVENT_WORK + 2 * EVENTS_AT_ONCE


async def test_all_messages_of_a_peer_that_is_gone_are_delivered(mock_clock: MockClock) -> None:
    listener = LISTENER.replace("name: in,", f"name: in, linkCapacity: {COUNT}, maxSessionFrames: 0,")
    async with play(ROUTER + listener) as router:
        taker, peer = await opened(router), await opened(router)
        await taker.play(
            receiver(),
            Flow(
                next_incoming_id=0,
                incoming_window=COUNT,
                next_outgoing_id=0,
                outgoing_window=9,
                handle=0,
                delivery_count=0,
                link_credit=COUNT,
            ),
        )
        await peer.play(sender())
        peer.sock.read_bytes = READ_BYTES
        sent = [message(Transfer(1, number, b"t", 0, True), b"m") for number in range(COUNT // 4)]
        await peer.play(*sent, RESET)
        assert peer.sock.closed
        received = await taker.play()
        assert sum(isinstance(each, Transfer) for each in received) == len(sent)
