"""Receiving: automatic and manual credit, drain, settle modes, dynamic addresses, limits, and cancellation."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.client.support import Server, serving
from trouter.client import (
    ACCEPTED,
    RELEASED,
    Connection,
    Encoded,
    LinkDetached,
    Message,
    Modified,
    Outcome,
    Properties,
    Receiver,
    ReceiverSettleMode,
    Rejected,
    Sender,
    SenderSettleMode,
    connect,
)
from trouter.engine.limits import EngineLimits
from trouter.wire.performatives import encode_state
from trouter.wire.types import Described, Symbol

pytestmark = pytest.mark.usefixtures("guard")


async def test_each_settlement_reaches_the_sender(connection: Connection) -> None:
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        trackers = [await sender.submit(Message(number)) for number in range(5)]
        await (await receiver.receive()).accept()
        await (await receiver.receive()).reject("app:no", "not today")
        await (await receiver.receive()).release()
        await (await receiver.receive()).modify(delivery_failed=True, message_annotations={"x-opt-a": 1})
        (await receiver.receive()).settle_nowait()
        outcomes = [await tracker.outcome() for tracker in trackers]
    assert outcomes[0] == outcomes[4] == ACCEPTED
    assert isinstance(outcomes[1], Rejected)
    assert outcomes[1].error is not None
    assert (outcomes[1].error.condition, outcomes[1].error.description) == ("app:no", "not today")
    assert outcomes[2] == RELEASED
    assert outcomes[3] == Modified(True, False, {"x-opt-a": 1})


async def test_a_delivery_is_settled_once(connection: Connection) -> None:
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        await sender.submit(Message("a"))
        delivery = await receiver.receive()
        await delivery.accept()
        assert delivery.settled
        with pytest.raises(RuntimeError, match="settled before"):
            await delivery.release()


@pytest.mark.parametrize("mode", ReceiverSettleMode)
async def test_settle_mode_second_waits_for_the_sender(connection: Connection, mode: ReceiverSettleMode) -> None:
    async with connection.open_receiver("q", settle_mode=mode) as receiver, connection.open_sender("q") as sender:
        tracker = await sender.submit(Message("a"))
        delivery = await receiver.receive()
        await delivery.accept()
        assert delivery.settled
        assert delivery._delivery.remote_settled is (mode is ReceiverSettleMode.SECOND)
        assert await tracker.outcome() == ACCEPTED


async def test_in_settle_mode_second_a_cancellation_keeps_the_outcome() -> None:
    server = Server()
    async with (
        serving(server),
        connect(server.url) as connection,
        connection.open_receiver("q", settle_mode=ReceiverSettleMode.SECOND) as receiver,
    ):
        await server.until(lambda: server.links[0].credit)
        sent = server.send(server.links[0], Message("a").encode())
        await server.flush()
        delivery = await receiver.receive()
        with trio.CancelScope() as scope:
            scope.cancel()
            await delivery.accept()
        assert scope.cancelled_caught  # before any frame arrived
        async with trio.open_nursery() as nursery:
            nursery.start_soon(delivery.accept)
            await server.until(lambda: sent.remote_code)
            nursery.cancel_scope.cancel()
        assert sent.remote_state == encode_state(ACCEPTED)
        assert not sent.remote_settled
        assert not delivery.settled
        sent.link.session.settle_outgoing(sent, 0x24, sent.remote_state, True)
        await server.flush()
        while not delivery.settled:
            await trio.lowlevel.checkpoint()


async def test_a_receiver_may_request_settled_messages(connection: Connection) -> None:
    async with (
        connection.open_receiver("q", sender_settle_mode=SenderSettleMode.SETTLED) as receiver,
        connection.open_sender("q") as sender,
    ):
        assert await sender.send(Message("a")) == ACCEPTED  # by the router
        assert (await receiver.receive()).presettled


async def test_no_more_deliveries_are_held_than_the_credit_allows(connection: Connection) -> None:
    async with connection.open_receiver("q", credit=4) as receiver, connection.open_sender("q") as sender:
        trackers = [await sender.submit(Message(number)) for number in range(20)]
        held = [await receiver.receive() for _ in range(4)]
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(trio.WouldBlock):
            receiver.receive_nowait()
        await held.pop().accept()
        held.append(await receiver.receive())
        for _ in range(15):
            await held.pop(0).accept()
            held.append(await receiver.receive())
        for delivery in held:
            await delivery.accept()
        assert [await tracker.outcome() for tracker in trackers] == [ACCEPTED] * 20


async def test_settled_messages_count_until_they_are_taken(connection: Connection) -> None:
    async with connection.open_receiver("q", credit=4) as receiver, connection.open_sender("q") as sender:
        for number in range(50):
            await sender.send(Message(number), settled=True)
            assert (await receiver.receive()).message.body == number


async def test_credit_by_hand(connection: Connection) -> None:
    async with connection.open_receiver("q", credit=0) as receiver, connection.open_sender("q") as sender:
        trackers = [await sender.submit(Message(number)) for number in range(3)]
        assert receiver.credit == 0
        receiver.add_credit(2)
        for _ in range(2):
            await (await receiver.receive()).accept()
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(trio.WouldBlock):
            receiver.receive_nowait()
        receiver.add_credit(1)
        await (await receiver.receive()).accept()
        assert [await tracker.outcome() for tracker in trackers] == [ACCEPTED] * 3


async def test_credit_is_not_mixed(connection: Connection) -> None:
    async with connection.open_receiver("q") as receiver:
        with pytest.raises(RuntimeError, match="by itself"):
            receiver.add_credit(1)


async def test_a_drain_brings_the_waiting_messages_and_ends_the_credit(connection: Connection) -> None:
    async with connection.open_receiver("q", credit=0) as receiver, connection.open_sender("q") as sender:
        for number in range(3):
            await sender.submit(Message(number))
        receiver.add_credit(10)
        await receiver.drain()
        assert [receiver.receive_nowait().message.body for _ in range(3)] == [0, 1, 2]
        assert receiver.credit == 0
        await sender.submit(Message(3))
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(trio.WouldBlock):
            receiver.receive_nowait()
        receiver.add_credit(1)
        assert (await receiver.receive()).message.body == 3


async def test_drain_without_credit_returns_at_once(connection: Connection) -> None:
    async with connection.open_receiver("q", credit=0) as receiver:
        await receiver.drain()


async def test_drain_by_messages_alone_is_a_drain() -> None:
    server = Server()
    async with (
        serving(server),
        connect(server.url) as connection,
        connection.open_receiver("q", credit=2) as receiver,
        trio.open_nursery() as nursery,
    ):
        await server.until(lambda: server.links[0].credit == 2)
        nursery.start_soon(receiver.drain)
        await server.until(lambda: server.links[0].drain)
        for number in range(2):
            server.send(server.links[0], Message(number).encode())
        await server.flush()  # the credit is used up, so the receiver sends no flow to give any back


async def test_credit_goes_on_after_a_drain_on_request(connection: Connection) -> None:
    async with connection.open_receiver("q", credit=5) as receiver, connection.open_sender("q") as sender:
        await receiver.drain()
        tracker = await sender.submit(Message("a"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(trio.WouldBlock):
            receiver.receive_nowait()
        receiver.resume()
        await (await receiver.receive()).accept()
        assert await tracker.outcome() == ACCEPTED


async def test_a_cancelled_drain_leaves_the_receiver_usable() -> None:
    server = Server()
    async with (
        serving(server),
        connect(server.url) as connection,
        connection.open_receiver("q", credit=5) as receiver,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receiver.drain)
            await server.until(lambda: server.links[0].drain)
            nursery.cancel_scope.cancel()
        receiver.resume()
        server.links[0].return_credit()
        await server.flush()
        await trio.testing.wait_all_tasks_blocked(0.01)
        receiver.resume()
        await server.until(lambda: server.links[0].credit == 5)
        server.send(server.links[0], Message("a").encode())
        await server.flush()
        await (await receiver.receive()).accept()


async def test_request_and_response_over_a_dynamic_address(connection: Connection) -> None:
    async def serve(receiver: Receiver, replies: Sender) -> None:
        for _ in range(3):
            request = await receiver.receive()
            properties = request.message.properties
            answer = Message(
                request.message.body.upper(),
                properties=Properties(to=properties.reply_to, correlation_id=properties.message_id),
            )
            assert await replies.send(answer) == ACCEPTED
            await request.accept()

    async with (
        connection.open_receiver("service") as requests,
        connection.open_sender() as replies,
        connection.open_receiver(dynamic=True) as inbox,
        connection.open_sender("service") as sender,
        trio.open_nursery() as nursery,
    ):
        assert inbox.address
        nursery.start_soon(serve, requests, replies)
        for number, word in enumerate(("one", "two", "three")):
            request = Message(word, properties=Properties(message_id=number, reply_to=inbox.address))
            tracker = await sender.submit(request)
            response = await inbox.receive()
            await response.accept()
            assert response.message.body == word.upper()
            assert response.message.properties.correlation_id == number
            assert await tracker.outcome() == ACCEPTED


async def test_a_dynamic_target_has_an_address_to_listen_at(connection: Connection) -> None:
    async with connection.open_sender(dynamic=True) as sender:
        assert sender.address
        async with connection.open_receiver(sender.address) as receiver:
            tracker = await sender.submit(Message("a"))
            await (await receiver.receive()).accept()
            assert await tracker.outcome() == ACCEPTED


async def test_a_filter_is_requested_and_the_answer_shows_whether_the_peer_applies_it(connection: Connection) -> None:
    selector = {"apache.org:selector-filter:string": Described(Symbol("apache.org:selector-filter:string"), "a = 1")}
    async with connection.open_receiver("q", filter=selector) as receiver:
        assert receiver.source.filter is None  # a router applies none, and its answer has none
    server = Server()
    async with (
        serving(server),
        connect(server.url) as direct,
        direct.open_receiver("q", filter=selector, capabilities="queue") as receiver,
    ):
        assert receiver.source.filter == selector
        assert receiver.source.capabilities == ("queue",)


async def test_a_message_beyond_the_maximum_ends_the_link(connection: Connection) -> None:
    async with (
        connection.open_receiver("q", max_message_size=50_000) as receiver,
        connection.open_sender("q") as sender,
    ):
        async with trio.open_nursery() as nursery:
            outcomes: list[Outcome] = []

            async def send() -> None:
                outcomes.append(await sender.send(Message(bytes(40_000))))
                outcomes.append(await sender.send(Message(bytes(60_000))))

            nursery.start_soon(send)
            await (await receiver.receive()).accept()
            with pytest.raises(LinkDetached) as ended:
                await receiver.receive()
        assert ended.value.condition == "amqp:link:message-size-exceeded"
        assert outcomes[0] == ACCEPTED
        assert outcomes[1] != ACCEPTED
    async with connection.open_receiver("q") as receiver:  # the connection goes on
        assert receiver.usable
    assert connection._engine.link_count == 0


async def test_many_tasks_receive_from_one_link(connection: Connection) -> None:
    taken: list[object] = []

    async with (
        connection.open_receiver("q", credit=3) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):

        async def take() -> None:
            while True:
                delivery = await receiver.receive()
                taken.append(delivery.message.body)
                await delivery.accept()

        for _ in range(5):
            nursery.start_soon(take)
        async for _message, outcome in sender.send_all(Message(number) for number in range(200)):
            assert outcome == ACCEPTED
        nursery.cancel_scope.cancel()
    assert sorted(taken) == list(range(200))  # type: ignore[type-var]


async def test_a_receiver_cancelled_while_waiting_loses_no_message(connection: Connection) -> None:
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        for _ in range(3):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(receiver.receive)
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        trackers = [await sender.submit(Message(number)) for number in range(3)]
        with trio.CancelScope() as scope:
            scope.cancel()
            await receiver.receive()
        for number in range(3):
            delivery = await receiver.receive()
            assert delivery.message.body == number
            await delivery.accept()
        assert [await tracker.outcome() for tracker in trackers] == [ACCEPTED] * 3


async def test_messages_not_taken_are_released_when_the_receiver_closes(connection: Connection) -> None:
    async with connection.open_sender("q") as sender:
        async with connection.open_receiver("q") as receiver:
            first, second = [await sender.submit(Message(number)) for number in range(2)]
            await (await receiver.receive()).accept()
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert await first.outcome() == ACCEPTED
        assert await second.outcome() == RELEASED


async def test_an_aborted_message_was_never_there_and_its_credit_returns() -> None:
    server = Server(EngineLimits(max_frame_bytes=512, idle_timeout_s=0.0))
    async with (
        serving(server),
        connect(server.url) as connection,
        connection.open_receiver("q", credit=1) as receiver,
    ):
        for number in range(3):
            await server.until(lambda: server.links[0].credit)
            half = server.send(server.links[0], bytes(1000), more=True)
            server.links[0].abort_delivery(half)
            await server.flush()
            await server.until(lambda: server.links[0].credit)
            server.send(server.links[0], Message(number).encode())
            await server.flush()
            delivery = await receiver.receive()
            assert delivery.message.body == number
            await delivery.accept()


async def test_a_delivery_keeps_the_bytes_and_the_format_of_the_sender(connection: Connection) -> None:
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        await sender.submit(Encoded(b"anything", message_format=3))
        delivery = await receiver.receive()
        assert (delivery.encoded, delivery.message_format, delivery.complete) == (b"anything", 3, True)
        assert len(delivery.tag) <= 32
        assert delivery.state is None
        with pytest.raises(ValueError, match="not a section"):
            _ = delivery.message
        await delivery.reject("amqp:decode-error")
