"""Messages in pieces, sent and received: the bytes, the back-pressure, and the end of one side."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator

import pytest
import trio
import trio.testing

from tests.client.support import Server, serving
from trouter.client import (
    ACCEPTED,
    RELEASED,
    BodyKind,
    Connection,
    DecodeError,
    Delivery,
    DeliveryAborted,
    Encoded,
    LinkDetached,
    Message,
    Outcome,
    Properties,
    Receiver,
    Rejected,
    Sender,
    connect,
)
from trouter.engine.limits import EngineLimits

pytestmark = pytest.mark.usefixtures("guard")

CHUNK = bytes(range(250)) * 200
TEN_MEGABYTES = CHUNK * 200
DIGEST = hashlib.sha256(TEN_MEGABYTES).digest()


async def ten_megabytes() -> AsyncIterator[bytes]:
    for _ in range(200):
        await trio.lowlevel.checkpoint()
        yield CHUNK


async def digest_of(delivery: Delivery) -> bytes:
    digest = hashlib.sha256()
    async for data in delivery.stream():
        digest.update(data)
    return digest.digest()


@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize("streaming", [False, True])
async def test_ten_megabytes_streamed(connection: Connection, sized: bool, streaming: bool) -> None:
    head = Message(kind=BodyKind.ABSENT, properties=Properties(subject="large"))
    async with (
        connection.open_receiver("q", stream=streaming) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        outcomes: list[Outcome] = []

        async def send() -> None:
            size = len(TEN_MEGABYTES) if sized else None
            outcomes.append(await sender.send_stream(ten_megabytes(), head=head, size=size))

        nursery.start_soon(send)
        delivery = await receiver.receive()
        if streaming:
            assert (await delivery.head()).properties.subject == "large"
            assert await digest_of(delivery) == DIGEST
        else:
            assert delivery.message.properties.subject == "large"
            assert hashlib.sha256(delivery.message.body).digest() == DIGEST
            assert await digest_of(delivery) == DIGEST
        await delivery.accept()
    assert outcomes == [ACCEPTED]


async def test_ten_megabytes_sent_whole_may_be_received_in_pieces(connection: Connection) -> None:
    encoded = Message(TEN_MEGABYTES).encode()
    async with (
        connection.open_receiver("q", stream=True) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(sender.send, Encoded(encoded))
        delivery = await receiver.receive()
        assert b"".join([piece async for piece in delivery.pieces()]) == encoded
        assert delivery.complete
        await delivery.accept()


@pytest.mark.parametrize("kind", ["list", "generator", "encoded", "nothing", "buffers"])
async def test_chunks_of_any_kind(connection: Connection, kind: str) -> None:
    async def send(sender: Sender) -> None:
        if kind == "encoded":
            outcome = await sender.send_stream([b"\0\x53\x75", b"\xa0\x04", b"abcd"], encoded=True)
        elif kind == "nothing":
            outcome = await sender.send_stream([])
        elif kind == "buffers":
            outcome = await sender.send_stream((bytearray(b"ab"), memoryview(b"cd")), size=4)
        else:
            chunks = [b"ab", b"", b"cd"]
            outcome = await sender.send_stream(chunks if kind == "list" else (chunk for chunk in chunks))
        assert outcome == ACCEPTED

    async with (
        connection.open_receiver("q") as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(send, sender)
        delivery = await receiver.receive()
        assert delivery.message.body == (b"" if kind == "nothing" else b"abcd")
        await delivery.accept()


async def test_a_delivery_is_returned_while_the_sender_still_sends_it(connection: Connection) -> None:
    push, pull = trio.open_memory_channel[bytes](0)
    async with (
        connection.open_receiver("q", stream=True) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(sender.send_stream, pull)
        await push.send(bytes(200_000))  # routers hold the first 128 kB
        delivery = await receiver.receive()
        data = delivery.stream()
        assert len(await anext(data)) > 0
        await push.aclose()
        async for _ in data:
            pass
        assert delivery.complete
        await delivery.accept()


async def test_a_reader_that_stalls_stops_its_sender_and_no_other(connection: Connection) -> None:
    asked = 0

    def chunks() -> Iterator[bytes]:
        nonlocal asked
        while asked < 2000:
            asked += 1
            yield bytes(50_000)

    async with (
        connection.open_receiver("q", stream=True) as receiver,
        connection.session() as own,
        own.open_sender("q") as sender,
        connection.open_receiver("other") as beside,
        connection.open_sender("other") as neighbour,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(sender.send_stream, chunks())
        delivery = await receiver.receive()
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert asked < 1000  # a client that buffered would have taken all 100 MB
        tracker = await neighbour.submit(Message("beside"))
        await (await beside.receive()).accept()
        assert await tracker.outcome() == ACCEPTED
        total = 0
        async for data in delivery.stream():
            total += len(data)
        assert total == 2000 * 50_000
        await delivery.accept()


async def test_several_streamed_messages_follow_one_another(connection: Connection) -> None:
    async def send(sender: Sender) -> None:
        for number in range(5):
            assert await sender.send_stream([bytes([number]) * 300_000], settled=number % 2 == 0) in {None, ACCEPTED}

    async with (
        connection.open_receiver("q", stream=True, credit=2) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(send, sender)
        for number in range(5):
            delivery = await receiver.receive()
            assert b"".join([data async for data in delivery.stream()]) == bytes([number]) * 300_000
            await delivery.accept()


async def test_small_messages_stream_as_well(connection: Connection) -> None:
    async with connection.open_receiver("q", stream=True, credit=2) as receiver, connection.open_sender("q") as sender:
        for number in range(10):
            tracker = await sender.submit(Message(b"%d" % number, properties=Properties(subject="s")))
            delivery = await receiver.receive()
            if number % 2:
                assert (await delivery.head()).properties.subject == "s"
            assert [data async for data in delivery.stream()] == [b"%d" % number]
            await delivery.accept()
            assert await tracker.outcome() == ACCEPTED


async def test_a_settled_stream_that_is_read_gives_its_credit_back(connection: Connection) -> None:
    async with connection.open_receiver("q", stream=True, credit=1) as receiver, connection.open_sender("q") as sender:
        for number in range(5):
            await sender.send(Message(b"%d" % number), settled=True)
            delivery = await receiver.receive()
            assert [data async for data in delivery.stream()] == [b"%d" % number]


async def test_a_receiver_may_settle_a_delivery_before_its_last_byte(connection: Connection) -> None:
    async with (
        connection.open_receiver("q", stream=True) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        outcomes: list[Outcome] = []

        async def send() -> None:
            outcomes.append(await sender.send_stream(bytes(50_000) for _ in range(2000)))

        nursery.start_soon(send)
        delivery = await receiver.receive()
        await delivery.reject("app:too-much")
        with pytest.raises(RuntimeError, match="before it was read"):
            async for _ in delivery.stream():
                pass
        while not outcomes:
            await trio.lowlevel.checkpoint()
        assert isinstance(outcomes[0], Rejected)
        tracker = await sender.submit(Message(b"next"))
        following = await receiver.receive()
        assert [data async for data in following.stream()] == [b"next"]
        await following.accept()
        assert await tracker.outcome() == ACCEPTED


@pytest.mark.parametrize("how", ["raises", "cancelled", "short", "long"])
async def test_a_stream_that_breaks_off_is_taken_back(connection: Connection, how: str) -> None:
    taken = trio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield bytes(200_000)
        await taken.wait()
        if how == "raises":
            raise LookupError(how)
        if how == "cancelled":
            await trio.sleep_forever()
        if how == "long":
            yield bytes(200_000)

    async def send(sender: Sender, scope: trio.CancelScope) -> None:
        with scope:
            if how == "cancelled":
                await sender.send_stream(chunks())
            else:
                with pytest.raises(LookupError if how == "raises" else ValueError, match=how):
                    await sender.send_stream(chunks(), size=None if how == "raises" else 300_000)

    async with (
        connection.open_receiver("q", stream=True) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        scope = trio.CancelScope()
        nursery.start_soon(send, sender, scope)
        delivery = await receiver.receive()
        taken.set()
        if how == "cancelled":
            scope.cancel()
        with pytest.raises(DeliveryAborted):
            async for _ in delivery.stream():
                pass
        assert not delivery.complete
        tracker = await sender.submit(Message(b"next"))
        following = await receiver.receive()
        await following.release()
        assert await tracker.outcome() == RELEASED


async def test_an_aborted_stream_that_was_not_taken_is_not_handed_out() -> None:
    server = Server(EngineLimits(max_frame_bytes=512, idle_timeout_s=0.0))
    async with (
        serving(server),
        connect(server.url) as connection,
        connection.open_receiver("q", credit=1, stream=True) as receiver,
    ):
        await server.until(lambda: server.links[0].credit)
        server.links[0].abort_delivery(server.send(server.links[0], bytes(1000), more=True))
        await server.flush()
        await server.until(lambda: server.links[0].credit)
        with pytest.raises(trio.WouldBlock):
            receiver.receive_nowait()


async def test_cancelled_between_pieces_a_reader_loses_nothing(connection: Connection) -> None:
    push, pull = trio.open_memory_channel[bytes](0)
    async with (
        connection.open_receiver("q", stream=True) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(sender.send_stream, pull)
        await push.send(bytes(200_000))
        delivery = await receiver.receive()
        total = 0
        with trio.CancelScope() as scope:
            async for data in delivery.stream():
                total += len(data)
                if total == 200_000:
                    scope.cancel()  # takes effect where the reader waits for the next piece
        assert scope.cancelled_caught
        await push.send(b"the rest")
        await push.aclose()
        async for data in delivery.stream():
            total += len(data)
        assert total == 200_008
        await delivery.accept()


async def test_a_body_that_is_no_data_cannot_be_streamed(connection: Connection) -> None:
    async with connection.open_receiver("q", stream=True) as receiver, connection.open_sender("q") as sender:
        tracker = await sender.submit(Message("a value"))
        delivery = await receiver.receive()
        with pytest.raises(DecodeError, match="not data"):
            await delivery.head()
        await delivery.reject("amqp:not-implemented")
        assert isinstance(await tracker.outcome(), Rejected)
        with pytest.raises(RuntimeError, match="not kept"):
            _ = delivery.message


async def test_a_message_that_ends_before_its_body_is_no_message(connection: Connection) -> None:
    async with connection.open_receiver("q", stream=True) as receiver, connection.open_sender("q") as sender:
        await sender.submit(Encoded(b"\0\x53\x70\x45"))
        delivery = await receiver.receive()
        with pytest.raises(DecodeError, match="no body"):
            await delivery.head()


async def test_a_whole_message_needs_no_head_and_a_stream_of_bytes_has_its_own(connection: Connection) -> None:
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        await sender.submit(Message("a"))
        with pytest.raises(RuntimeError, match="use message"):
            await (await receiver.receive()).head()
        with pytest.raises(ValueError, match="its own head"):
            await sender.send_stream([], encoded=True, size=4)


async def test_a_stream_ends_with_its_link() -> None:
    server = Server(EngineLimits(max_frame_bytes=512, idle_timeout_s=0.0))
    async with (
        serving(server),
        connect(server.url) as connection,
        connection.open_receiver("q", stream=True) as receiver,
    ):
        await server.until(lambda: server.links[0].credit)
        server.send(server.links[0], Message(bytes(1000)).encode()[:700], more=True)
        await server.flush()
        delivery = await receiver.receive()
        data = delivery.stream()
        await anext(data)
        server.links[0].detach(True)
        await server.flush()
        with pytest.raises(LinkDetached):
            async for _ in data:
                pass
        with pytest.raises(LinkDetached):
            await delivery.accept()


async def test_a_streaming_receiver_may_share_a_session_that_is_named(connection: Connection) -> None:
    async with (
        connection.session() as session,
        session.open_receiver("q", stream=True) as receiver,
        session.open_sender("q") as sender,
    ):
        assert receiver._session is sender._session is session
        tracker = await sender.submit(Message(b"a"))
        await (await receiver.receive()).accept()
        assert await tracker.outcome() == ACCEPTED


async def test_unread_bytes_are_released_when_the_link_ends(connection: Connection) -> None:
    async def take(receiver: Receiver) -> Delivery:
        async with receiver_closed(receiver):
            return await receiver.receive()

    async with connection.session() as session, session.open_sender("q") as sender:
        async with session.open_receiver("q", stream=True) as receiver:
            await sender.submit(Message(bytes(10_000)))
            delivery = await take(receiver)
        assert session._session.windows.held_bytes == 0
        with pytest.raises(trio.ClosedResourceError):
            await anext(delivery.stream())


class receiver_closed:  # noqa: N801 - reads as what it is
    """Close the receiver at the end of the block."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None:
        await self.receiver.aclose()


@pytest.mark.parametrize("streaming", [False, True])
async def test_tiny_frames_cost_no_object_each(streaming: bool) -> None:
    body = bytes(range(200)) * 15
    server = Server(EngineLimits(max_frame_bytes=512, idle_timeout_s=0.0))
    async with (
        serving(server),
        connect(server.url, limits=EngineLimits(session_window_frames=5000)) as connection,
        connection.open_receiver("q", stream=streaming) as receiver,
    ):
        await server.until(lambda: server.links[0].credit)
        encoded = Message(body).encode()
        sent = server.send(server.links[0], encoded[:1], more=True)
        for at in range(1, len(encoded)):
            server.links[0].send(sent, encoded, at, at + 1, at + 1 < len(encoded))
        await server.flush()
        delivery = await receiver.receive()
        while not delivery.complete:
            await trio.lowlevel.checkpoint()
        assert len(delivery._pieces) <= 1
        assert b"".join([data async for data in delivery.stream()]) == body
        await delivery.accept()
