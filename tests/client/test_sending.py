"""Sending through a router: outcomes, settle modes, pipelines, credit, and cancellation at every point."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio
import trio.testing

from tests.client.support import Router, Server, serving
from trouter.client import (
    ACCEPTED,
    RELEASED,
    Connection,
    Encoded,
    EncodeError,
    Error,
    Message,
    Modified,
    Outcome,
    OutcomeUnknown,
    Properties,
    Receiver,
    ReceiverSettleMode,
    Rejected,
    Sender,
    SenderSettleMode,
    connect,
)
from trouter.engine.limits import EngineLimits
from trouter.wire.performatives import Received, encode_state
from trouter.wire.types import Described, ULong

pytestmark = pytest.mark.usefixtures("guard")

ACCEPTED_BYTES = encode_state(ACCEPTED)
STATES: list[Outcome] = [
    ACCEPTED,
    RELEASED,
    Rejected(),
    Rejected(Error("app:no", "not today", {"x": 1})),
    Modified(True, False, None),
    Modified(True, True, {"x-opt-a": 1}),
]


async def answer(receiver: Receiver, state: Outcome) -> None:
    delivery = await receiver.receive()
    assert state is not None
    await delivery.settle(state)


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("state", STATES, ids=repr)
async def test_every_outcome_comes_back(connection: Connection, state: Outcome, second: bool) -> None:
    mode = ReceiverSettleMode.SECOND if second else ReceiverSettleMode.FIRST
    async with (
        connection.open_receiver("q", settle_mode=mode) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(answer, receiver, state)
        assert await sender.send(Message("hello")) == state


async def test_a_settled_message_is_delivered_settled_and_has_no_outcome(connection: Connection) -> None:
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        assert await sender.send(Message("a"), settled=True) is None
        delivery = await receiver.receive()
        assert delivery.presettled
        assert delivery.settled
        assert delivery.message == Message("a")
        await delivery.accept()  # the sender gets no outcome


@pytest.mark.parametrize("mode", SenderSettleMode)
async def test_the_settle_mode_decides_which_settlement_a_send_may_request(
    connection: Connection, mode: SenderSettleMode
) -> None:
    async with connection.open_receiver("q") as receiver, connection.open_sender("q", settle_mode=mode) as sender:
        tracker = await sender.submit(Message("a"))
        delivery = await receiver.receive()
        assert delivery.presettled is (mode is SenderSettleMode.SETTLED)
        await delivery.accept()
        assert await tracker.outcome() == (None if delivery.presettled else ACCEPTED)
        if mode is not SenderSettleMode.MIXED:
            with pytest.raises(ValueError, match="settle mode"):
                await sender.send(Message("a"), settled=mode is SenderSettleMode.UNSETTLED)


async def test_without_a_receiver_there_is_no_credit_and_sending_waits(connection: Connection) -> None:
    async with connection.open_sender("q") as sender, trio.open_nursery() as nursery:
        assert sender.credit == 0
        with pytest.raises(trio.WouldBlock):
            sender.send_nowait(Message("a"))
        outcomes: list[Outcome] = []

        async def send() -> None:
            outcomes.append(await sender.send(Message("a")))

        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()
        assert outcomes == []
        async with connection.open_receiver("q") as receiver:
            await answer(receiver, ACCEPTED)
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert outcomes == [ACCEPTED]


async def test_a_thousand_messages_are_pipelined_in_order(connection: Connection) -> None:
    messages = [Message(number) for number in range(1000)]
    taken: list[object] = []

    async def take(receiver: Receiver) -> None:
        async for delivery in receiver:
            taken.append(delivery.message.body)
            await delivery.accept() if len(taken) % 3 else await delivery.release()
            if len(taken) == len(messages):
                return

    async with (
        connection.open_receiver("q", credit=50) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(take, receiver)
        sent = [(message, outcome) async for message, outcome in sender.send_all(messages, in_flight=70)]
        assert [message for message, _ in sent] == messages
        assert [outcome for _, outcome in sent] == [ACCEPTED if each % 3 else RELEASED for each in range(1, 1001)]
    assert taken == list(range(1000))


async def test_a_pipeline_takes_no_more_messages_than_are_in_flight(connection: Connection) -> None:
    taken = 0

    def messages() -> Iterator[Message]:
        nonlocal taken
        for number in range(20):
            taken += 1
            yield Message(number)

    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        pipeline = sender.send_all(messages(), in_flight=5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer, receiver, ACCEPTED)
            await anext(pipeline)
        assert taken == 5
        with trio.move_on_after(0) as nobody_answers:
            await anext(pipeline)
        assert nobody_answers.cancelled_caught
        assert taken == 6
        for _ in range(19):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer, receiver, ACCEPTED)
                await anext(pipeline)
        with pytest.raises(StopAsyncIteration):
            await anext(pipeline)
    with pytest.raises(ValueError, match="at least one"):
        sender.send_all([], in_flight=0)


async def test_a_pipeline_waits_for_its_first_credit() -> None:
    server = Server()
    server.credit = 0
    server.outcome = ACCEPTED
    async with (
        serving(server),
        connect(server.url) as connection,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):

        async def send() -> None:
            sent = [message.body async for message, _ in sender.send_all([Message(1), Message(2), Message(3)])]
            assert sent == [1, 2, 3]

        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked(0.01)
        for _ in range(3):
            server.links[0].grant(1)
            await server.flush()
            await trio.testing.wait_all_tasks_blocked(0.01)


async def test_a_tracker_gives_its_outcome_to_any_number_of_tasks(connection: Connection) -> None:
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        tracker = await sender.submit(Message("a"))
        outcomes: list[Outcome] = []

        async def listen() -> None:
            outcomes.append(await tracker.outcome())

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(listen)
            await trio.testing.wait_all_tasks_blocked()
            assert tracker.done is False
            await answer(receiver, RELEASED)
        assert outcomes == [RELEASED] * 3
        assert await tracker.outcome() == RELEASED


async def test_many_tasks_send_on_one_link(connection: Connection) -> None:
    async def take(receiver: Receiver) -> None:
        for _ in range(300):
            await (await receiver.receive()).accept()

    async with (
        connection.open_receiver("q", credit=7) as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(take, receiver)
        outcomes: list[Outcome] = []

        async def send(number: int) -> None:
            outcomes.append(await sender.send(Message(number)))

        async with trio.open_nursery() as senders:
            for number in range(300):
                senders.start_soon(send, number)
        assert outcomes == [ACCEPTED] * 300


async def test_send_nowait_blocks_when_the_credit_is_used_up() -> None:
    async with serving(Server()) as server, connect(server.url) as connection, connection.open_sender("q") as sender:
        await server.until(lambda: server.links)
        await wait_for_credit(sender, 10)
        server.outcome = ACCEPTED
        trackers = [sender.send_nowait(Message(number)) for number in range(10)]
        with pytest.raises(trio.WouldBlock):
            sender.send_nowait(Message("one too many"))
        assert [await tracker.outcome() for tracker in trackers] == [ACCEPTED] * 10


async def wait_for_credit(sender: Sender, count: int) -> None:
    while sender.credit < count:
        await trio.lowlevel.checkpoint()


async def test_a_sender_without_a_target_routes_each_message_by_its_to(connection: Connection) -> None:
    async with (
        connection.open_receiver("there") as receiver,
        connection.open_sender() as sender,
        trio.open_nursery() as nursery,
    ):
        assert sender.address == ""
        nursery.start_soon(answer, receiver, ACCEPTED)
        assert await sender.send(Message("a", properties=Properties(to="there"))) == ACCEPTED
        assert await sender.send(Message("a", properties=Properties(to="nobody"))) == RELEASED
        outcome = await sender.send(Message("a"))
        assert isinstance(outcome, Rejected)
        assert outcome.error is not None
        assert outcome.error.condition == "amqp:precondition-failed"


async def test_an_encoded_message_is_sent_unchanged(connection: Connection) -> None:
    data = b"\0\x80" + bytes(7) + b"\x77\xb1\0\0\0\x02hi"
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        tracker = await sender.submit(Encoded(data, message_format=7))
        delivery = await receiver.receive()
        assert delivery.encoded == data
        assert delivery.message_format == 7
        await delivery.accept()
        assert await tracker.outcome() == ACCEPTED


async def test_bytes_without_a_message_are_rejected_and_an_unencodable_message_is_not_sent(
    connection: Connection,
) -> None:
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        outcome = await sender.send(Encoded(b"\0\x53\x70\xc0"))
        assert isinstance(outcome, Rejected)
        with pytest.raises(EncodeError):
            await sender.send(Message(object()))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer, receiver, ACCEPTED)
            assert await sender.send(Message("next")) == ACCEPTED


async def test_ten_megabytes_whole(connection: Connection) -> None:
    body = bytes(range(256)) * 40_000
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        async with trio.open_nursery() as nursery:
            outcomes: list[Outcome] = []

            async def send() -> None:
                outcomes.append(await sender.send(Message(body)))

            nursery.start_soon(send)
            delivery = await receiver.receive()
            assert delivery.message.body == body
            await delivery.accept()
        assert outcomes == [ACCEPTED]


# --- behaviour that needs a server of the test


async def test_an_outcome_that_is_not_settled_is_settled_by_the_sender() -> None:
    server = Server()
    server.settles = False
    async with serving(server), connect(server.url) as connection, connection.open_sender("q") as sender:
        server.outcome = RELEASED
        assert await sender.send(Message("a")) == RELEASED
        await server.until(lambda: server.deliveries[0].remote_settled)


async def test_a_word_on_the_way_is_no_outcome_and_settling_without_one_is_none() -> None:
    server = Server()
    async with serving(server), connect(server.url) as connection, connection.open_sender("q") as sender:
        tracker = await sender.submit(Message("a"))
        await server.until(lambda: server.deliveries)
        server.settles = False
        server.settle(server.deliveries[0], Received(0, 0))
        await server.flush()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert not tracker.done
        server.deliveries[0].link.session.settle_incoming(server.deliveries[0], 0, None, True)
        await server.flush()
        assert await tracker.outcome() is None


async def test_an_unknown_outcome_is_returned_as_the_described_value() -> None:
    server = Server()
    async with serving(server), connect(server.url) as connection, connection.open_sender("q") as sender:
        tracker = await sender.submit(Message("a"))
        await server.until(lambda: server.deliveries)
        strange = b"\0\x53\x99\xc0\x03\x01\x54\x05"
        server.deliveries[0].link.session.settle_incoming(server.deliveries[0], 0x99, strange, True)
        await server.flush()
        outcome = await tracker.outcome()
        assert isinstance(outcome, Described)
        assert outcome.descriptor == ULong(0x99)


async def test_an_outcome_that_cannot_be_decoded_is_the_failure_of_its_delivery_alone() -> None:
    bad = b"\0\x53\x25\xc0\x03\x01\x52\x07"  # a rejected whose error is a number
    seen: list[object] = []
    async with serving(Server()) as server, connect(server.url) as connection, connection.open_sender("q") as sender:
        pipeline = sender.send_all([Message("a"), Message("b"), Message("c")])
        tracker = await sender.submit(Message("before"))

        async def settle() -> None:
            await server.until(lambda: len(server.deliveries) == 4)
            for delivery, state in zip(server.deliveries, (bad, None, bad, None), strict=True):
                delivery.link.session.settle_incoming(delivery, 0x25 if state else 0x24, state or ACCEPTED_BYTES, True)
            await server.flush()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(settle)
            while True:
                try:
                    seen.append((await anext(pipeline))[1])
                except OutcomeUnknown as unknown:
                    seen.append(unknown.condition)
                except StopAsyncIteration:
                    break
        assert seen == [ACCEPTED, "amqp:decode-error", ACCEPTED]
        for _ in range(2):  # each caller gets it
            with pytest.raises(OutcomeUnknown, match="delivery state cannot be decoded: rejected: error"):
                await tracker.outcome()
        server.outcome = ACCEPTED
        assert await sender.send(Message("d")) == ACCEPTED
        server.outcome = None
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(settle_last, server, bad)
                with pytest.raises(OutcomeUnknown):
                    await sender.send(Message("e"))


async def settle_last(server: Server, state: bytes) -> None:
    await server.until(lambda: len(server.deliveries) == 6)
    delivery = server.deliveries[-1]
    delivery.link.session.settle_incoming(delivery, 0x25, state, True)
    await server.flush()


async def test_credit_that_is_drained_is_given_back() -> None:
    async with serving(Server()) as server, connect(server.url) as connection, connection.open_sender("q") as sender:
        await wait_for_credit(sender, 10)
        await sender.submit(Message("a"))
        await server.until(lambda: server.deliveries)
        server.links[0].drain()
        await server.flush()
        await server.until(lambda: server.links[0].credit == 0)
        assert sender.credit == 0
        server.links[0].grant(1)
        server.outcome = ACCEPTED
        await server.flush()
        assert await sender.send(Message("b")) == ACCEPTED


async def test_a_closed_session_window_holds_a_message_until_the_window_opens() -> None:
    server = Server(EngineLimits(session_window_frames=4, max_frame_bytes=512, idle_timeout_s=0.0))
    body = bytes(10_000)
    async with serving(server), connect(server.url) as connection, connection.open_sender("q") as sender:
        server.outcome = ACCEPTED
        assert await sender.send(Message(body)) == ACCEPTED
    assert Message.decode(server.payloads[0]).body == body


# --- cancellation


async def test_cancelled_in_line_a_message_is_not_sent_and_the_link_goes_on() -> None:
    server = Server()
    server.credit = 0
    async with serving(server), connect(server.url) as connection, connection.open_sender("q") as sender:
        with trio.move_on_after(0) as given_up:
            await sender.send(Message("never"))
        assert given_up.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, Message("in line"))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        server.links[0].grant(5)
        server.outcome = ACCEPTED
        await server.flush()
        assert await sender.send(Message("sent")) == ACCEPTED
    assert [Message.decode(payload).body for payload in server.payloads] == ["sent"]


async def test_cancelled_half_sent_a_message_is_aborted_and_the_link_goes_on() -> None:
    server = Server(EngineLimits(session_window_frames=4, max_frame_bytes=512, idle_timeout_s=0.0))
    async with serving(server), connect(server.url) as connection, connection.open_sender("q") as sender:
        await server.until(lambda: server.links)
        server.links[0].session.windows.hold_bytes(2000)  # the window stays closed
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, Message(bytes(100_000)))
            await server.until(lambda: server.links[0].session.windows.incoming_frames == 0)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        server.links[0].session.release_bytes(2000)
        await server.flush()
        server.outcome = ACCEPTED
        assert await sender.send(Message("next")) == ACCEPTED
        assert len(server.aborted) == 1
        assert Message.decode(server.payloads[-1]).body == "next"


async def test_a_message_is_sent_although_the_wait_for_its_outcome_is_cancelled(connection: Connection) -> None:
    async with connection.open_receiver("q") as receiver, connection.open_sender("q") as sender:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, Message("sent"))
            delivery = await receiver.receive()
            nursery.cancel_scope.cancel()
        await delivery.accept()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer, receiver, RELEASED)
            assert await sender.send(Message("next")) == RELEASED


async def test_a_receiver_that_decides_early_stops_the_rest_of_a_message() -> None:
    server = Server(EngineLimits(session_window_frames=4, max_frame_bytes=512, idle_timeout_s=0.0))
    async with serving(server), connect(server.url) as connection, connection.open_sender("q") as sender:
        await server.until(lambda: server.links)
        server.links[0].session.windows.hold_bytes(2000)
        async with trio.open_nursery() as nursery:
            outcomes: list[Outcome] = []

            async def send() -> None:
                outcomes.append(await sender.send(Message(bytes(100_000))))

            nursery.start_soon(send)
            await server.until(lambda: server.deliveries)
            server.settle(server.deliveries[0], Rejected())
            await server.flush()
        assert outcomes == [Rejected()]
        server.links[0].session.release_bytes(2000)
        await server.flush()
        await server.until(lambda: server.aborted)


async def test_nothing_is_sent_by_a_task_that_is_cancelled_already(router: Router) -> None:
    async with (
        router.connect() as connection,
        connection.open_receiver("q") as receiver,
        connection.open_sender("q") as sender,
    ):
        with trio.CancelScope() as scope:
            scope.cancel()
            await sender.send(Message("never"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(trio.WouldBlock):
            receiver.receive_nowait()
