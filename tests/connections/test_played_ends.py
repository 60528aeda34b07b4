"""How a connection ends, played in memory: by its peer, an operator, time, the process, or a bug of ours."""

from __future__ import annotations

import gc

import pytest
import trio
from trio.testing import MockClock

from tests.connections.plays import (
    BEGIN,
    LISTENER,
    OPENING,
    ROUTER,
    condition_of,
    message,
    only,
    opened,
    receiver,
    sender,
)
from trouter.connections.membership import Membership
from trouter.connections.peer import Peer
from trouter.connections.sessions import Sessions
from trouter.connections.stream import LINGER_S, READ_BYTES, Stream
from trouter.core.router import Router
from trouter.engine.connection import Connection
from trouter.engine.session import Session
from trouter.records import ConnectionClosedRecord
from trouter.testing.player import HANG_UP, RESET, Closed, Input, Output, PlayedRouter, kinds, octets_of, play
from trouter.wire.framing import frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Error,
    Flow,
    Open,
    Transfer,
)

FORCED = Error("amqp:connection:forced", "an operator closed it")


def how_it_ended(router: PlayedRouter) -> tuple[str, str | None]:
    (record,) = [record for record in router.records if isinstance(record, ConnectionClosedRecord)]
    return record.by, record.condition


async def test_the_peer_s_close_is_answered(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router)
        assert kinds(await peer.play(Close(Error("amqp:internal-error", "of mine")))) == [Close, Closed]
        assert how_it_ended(router) == ("peer", "amqp:internal-error")


async def test_what_comes_behind_the_peer_s_close_is_read_before_the_socket_closes(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router)
        last = octets_of(Close(Error("amqp:internal-error", "of mine")))
        empty = frame(0, b"")
        before, rest = divmod(READ_BYTES - len(last), len(empty))
        padded = octets_of(Close(Error("amqp:internal-error", "of mine" + "!" * rest)))
        one_read = empty * before + padded
        assert len(one_read) == READ_BYTES
        assert kinds(await peer.play(one_read, b"behind")) == [Close]
        assert not peer.sock.arriving
        assert kinds(await peer.play(HANG_UP)) == [Closed]


async def test_a_peer_that_does_not_hang_up_after_the_router_s_close_is_left(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router)
        (connection,) = router.process.services.connections.values()
        connection.force_close(FORCED)
        assert kinds(await peer.play()) == [Close]
        assert kinds(await peer.play(Close())) == []
        mock_clock.jump(LINGER_S + 0.1)
        assert kinds(await peer.play()) == [Closed]


async def test_an_operator_s_close_takes_it_off_the_list_at_once_and_what_the_peer_sends_is_ignored(
    mock_clock: MockClock,
) -> None:
    async with play(ROUTER + LISTENER) as router:
        connections = router.process.services.connections
        peer = await opened(router, receiver())
        (connection,) = connections.values()
        connection.force_close(FORCED)
        assert len(connections) == 0
        assert connection.lifetime.closing
        outputs = await peer.play(receiver("late", 1))
        assert kinds(outputs) == [Close]
        assert only(outputs, Close).error == FORCED
        assert kinds(await peer.play(Close(), HANG_UP)) == [Closed]
        assert how_it_ended(router) == ("local", "amqp:connection:forced")


async def test_a_redirect_is_a_close_with_the_place_to_go_to(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router)
        (connection,) = router.process.services.connections.values()
        info = {"network-host": "192.0.2.9", "port": 5672}
        connection.force_close(Error("amqp:connection:redirect", "go there", info))
        error = only(await peer.play(), Close).error
        assert (error.condition, error.info) == ("amqp:connection:redirect", info)


async def test_a_silent_peer_is_closed_after_the_idle_time_out(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    text = ROUTER + LISTENER.replace("idleTimeoutSeconds: 0", "idleTimeoutSeconds: 8")
    async with play(text) as router:
        peer = await opened(router)
        for _ in range(4):
            mock_clock.jump(2.0)
            assert await peer.play() == []
        mock_clock.jump(2.1)
        assert condition_of(await peer.play()) == "amqp:resource-limit-exceeded"
        await peer.play(HANG_UP)
        assert how_it_ended(router) == ("local", "amqp:resource-limit-exceeded")


async def test_a_peer_that_only_sends_heartbeats_stays(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER.replace("idleTimeoutSeconds: 0", "idleTimeoutSeconds: 6")) as router:
        peer = router.accept()
        outputs = await peer.play(*OPENING)
        assert only(outputs, Open).idle_time_out == 3000
        for _ in range(20):
            mock_clock.jump(1.0)
            assert await peer.play(frame(0, b"")) == []
        assert len(router.process.services.connections) == 1


async def test_heartbeats_are_empty_frames_as_often_as_the_peer_wants_them(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = router.accept()
        outputs = await peer.play(OPENING[0], Open("client", idle_time_out=4000), OPENING[2])
        assert only(outputs, Open).idle_time_out is None
        beats = []
        for _ in range(5):
            mock_clock.jump(1.0)
            beats += await peer.play()
        assert beats == [None] * len(beats)
        assert len(beats) >= 4
        (connection,) = router.process.services.connections.values()
        connection.force_close(FORCED)
        await peer.play(HANG_UP)
        mock_clock.jump(60.0)
        assert await peer.play() == []


async def test_a_draining_router_refuses_links_and_then_closes_everything(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router, receiver())
        router.process.in_force.refuse_work()
        router.process.router.stop_credit()
        outputs = await peer.play(sender())
        assert Flow not in kinds(outputs)
        assert condition_of(outputs, Detach) == "amqp:connection:forced"
        router.process.in_force.stop(FORCED)
        assert only(await peer.play(), Close).error == FORCED
        assert kinds(await peer.play(Close(), HANG_UP)) == [Closed]


async def test_a_bug_in_reading_ends_this_connection_only(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class BrokenLog:
        """A log of frames with a bug in it."""

        on = False

        def received(self, data: bytes) -> None:
            raise LookupError("a bug")

        def show_output(self) -> None:
            """Show nothing."""

        def dropped(self, count: int) -> None:
            """Count nothing."""

    async with play(ROUTER + LISTENER) as router:
        peer, other = await opened(router), await opened(router)
        (broken, _) = router.process.services.connections.values()
        broken.record.frames = BrokenLog()  # type: ignore[attr-defined]  # a Peer
        assert condition_of(await peer.play(receiver())) == "amqp:internal-error"
        assert "internal error, connection dropped" in caplog.text
        assert kinds(await other.play(receiver())) == [Attach]


async def test_a_peer_that_does_not_read_is_not_read_either_until_it_does(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router)
        peer.sock.room_bytes = 0
        many = [receiver(f"{number:04}" + "n" * 4000, number) for number in range(700)]
        assert await peer.play(*many) == []
        waiting = len(peer.sock.arriving)
        (connection,) = router.process.services.connections.values()
        assert waiting > 0 or connection.engine.has_more
        assert len(connection.engine.out) > connection.engine.limits.output_limit_bytes
        peer.sock.room_bytes = 1 << 40
        outputs = await peer.play()
        assert len([each for each in outputs if isinstance(each, Attach)]) == 700


NARROW = LISTENER.replace("idleTimeoutSeconds: 0", "idleTimeoutSeconds: 8, maxSessionFrames: 8, linkCapacity: 1000")


def many(count: int) -> bytes:
    """Return so many messages of 12 kB each, sent without a look at the window."""
    transfers = [
        Transfer(1, delivery_id=number, delivery_tag=b"%d" % number, message_format=0, settled=True)
        for number in range(count)
    ]
    return b"".join(message(each, bytes(12_000)) for each in transfers)


def grant(count: int) -> Flow:
    return Flow(incoming_window=1 << 20, next_outgoing_id=0, outgoing_window=9, handle=0, link_credit=count)


def count_transfers(outputs: list[Output]) -> int:
    return len([each for each in outputs if isinstance(each, Transfer)])


async def test_a_sender_beyond_its_window_is_not_read_until_the_window_is_open(mock_clock: MockClock) -> None:
    async with play(ROUTER + NARROW) as router:
        taker, giver = await opened(router, receiver()), await opened(router, sender())
        assert kinds(await giver.play(many(100))) == []
        unread = len(giver.sock.arriving)
        assert unread > 100 * 12_000 - 3 * READ_BYTES
        for _ in range(100):
            mock_clock.jump(2.0)
            assert Close not in kinds(await giver.play())
            await taker.play(frame(0, b""))
        assert len(giver.sock.arriving) == unread
        assert count_transfers(await taker.play(grant(1000))) == 100
        assert not giver.sock.arriving
        assert kinds(await giver.play(Detach(1, closed=True)))[-1:] == [Detach]


@pytest.mark.parametrize("end", [HANG_UP, RESET])
async def test_a_sender_that_hangs_up_beyond_its_window_is_gone(mock_clock: MockClock, end: Input) -> None:
    """What it has sent before it hung up is read, and its receivers get it."""
    async with play(ROUTER + NARROW) as router:
        taker, giver = await opened(router, receiver()), await opened(router, sender())
        await giver.play(many(100))
        await giver.play(end)
        assert len(router.process.services.connections) == 1
        got = count_transfers(await taker.play(grant(1000)))
        assert got == 100


async def test_a_sender_beyond_its_window_that_receives_too_is_read(mock_clock: MockClock) -> None:
    """Its credit comes behind its messages."""
    async with play(ROUTER + NARROW) as router:
        both = await opened(router, receiver(), sender())
        assert count_transfers(await both.play(many(100), grant(1000))) == 100


async def test_messages_wait_while_the_receiver_does_not_read(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        taker, giver = await opened(router, receiver()), await opened(router, sender())
        window = 1 << 20
        await taker.play(
            Flow(incoming_window=window, next_outgoing_id=0, outgoing_window=9, handle=0, link_credit=1000)
        )
        taker.sock.room_bytes = 10
        for number in range(100):
            transfer = Transfer(1, delivery_id=number, delivery_tag=b"%d" % number, message_format=0, settled=True)
            await giver.play(message(transfer, b"x" * 12_000))
        assert await taker.play() == []
        taker.sock.room_bytes = 1 << 40
        outputs = await taker.play()
        assert len([each for each in outputs if isinstance(each, Transfer)]) == 100


async def test_everything_of_an_ended_connection_is_freed(mock_clock: MockClock) -> None:
    def of_connections() -> list[object]:
        return [
            each for each in gc.get_objects() if isinstance(each, Connection | Peer | Stream | Sessions | Membership)
        ]

    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router, receiver())
        assert of_connections()
        gc.collect()
        gc.disable()
        try:
            await peer.play(Close(), HANG_UP)
            router.process.router.watch_links(trio.current_time())
            assert of_connections() == []
        finally:
            gc.enable()


async def test_a_bug_in_the_loss_of_one_session_skips_no_other_and_nothing_is_lost_twice(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lost: list[int] = []
    lose_session = Router.lose_session

    def lose(self: Router, session: Session, error: Error | None = None) -> None:
        lost.append(session.channel)
        if session.channel == 0:
            raise LookupError("a bug")
        lose_session(self, session, error)

    monkeypatch.setattr(Router, "lose_session", lose)
    async with play(ROUTER + LISTENER) as router:
        others = [(channel, first) for channel in (1, 2) for first in (BEGIN, receiver(f"r{channel}"))]
        peer = await opened(router, receiver())
        assert kinds(await peer.play(*others)) == [Begin, Attach] * 2
        assert kinds(await peer.play(HANG_UP)) == [Closed]
        names = [endpoint.link.name for endpoint in router.process.router.links.values()]
    assert lost == [0, 1, 2]
    assert names == ["r"]  # the bug kept it
    assert "a bug" in caplog.text


async def test_an_open_twice_and_a_begin_before_the_open_are_faults(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peer = await opened(router)
        assert condition_of(await peer.play(OPENING[1])) != ""
        early = router.accept()
        outputs = await early.play(OPENING[0], OPENING[2])
        assert Begin not in kinds(outputs)
        assert condition_of(outputs) != ""
