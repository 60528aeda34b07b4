"""Credit, drain, windows and streaming: routing.md section 3."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.engine.limits import EngineLimits
from trouter.testing import MemoryClient, MemoryReceiver, MemoryRouter, MemorySender, SentMessage, compose
from trouter.testing.memory import LIMITS
from trouter.wire.performatives import Accepted, Error, Modified, Rejected, Released

RULES = (
    AddressRule("multicast", is_prefix=True, distribution="multicast"),
    AddressRule("fall", is_prefix=True, enable_fallback=True),
)
KB = 1024
INVALID = Rejected(Error("amqp:decode-error", "invalid message format"))


def small_window(frames: int, frame_bytes: int = 16384) -> EngineLimits:
    return EngineLimits(
        max_frame_bytes=frame_bytes, session_window_frames=frames, first_outgoing_id=0xFFFFFFFE, idle_timeout_s=0.0
    )


def one(capacity: int = 250, limits: EngineLimits = LIMITS) -> tuple[MemoryRouter, MemoryClient]:
    router = MemoryRouter(RULES)
    return router, router.connect(PeerTerms(capacity), limits=limits)


def send(router: MemoryRouter, sender: MemorySender, count: int, *, settled: bool = False) -> list[SentMessage]:
    sent = [sender.send(compose(b"%d" % number), settled=settled) for number in range(count)]
    router.pump()
    return sent


def settle(router: MemoryRouter, receiver: MemoryReceiver) -> None:
    for message in receiver.received:
        if not message.delivery.settled:
            message.settle()
    router.pump()


def check_credit(router: MemoryRouter) -> None:
    """Check that no credit is lost or created: credit, backlog and unsettled deliveries never exceed the capacity."""
    for incoming in router.core.incoming_endpoints():
        owed = incoming.capacity - incoming.link.credit - incoming.account.kept_credit - incoming.unsettled
        assert owed >= 0
        assert owed == 0 or incoming.link.credit > 0 or incoming.link.draining


# --- 3.1


def test_credit_of_presettled_messages_is_paid_back_at_once() -> None:
    router, client = one(10)
    client.receiver("x", credit=1000)
    sender = client.sender("x")
    for _ in range(30):
        send(router, sender, 4, settled=True)
        assert sender.credit > 5
        check_credit(router)


def test_credit_of_unsettled_messages_is_paid_back_when_settled() -> None:
    router, client = one(10)
    receiver = client.receiver("x", credit=1000)
    sender = client.sender("x")
    sent = send(router, sender, 10)
    assert sender.credit == 0
    settle(router, receiver)
    assert sender.credit == 8  # the credit before these is used up
    sent = send(router, sender, 8)
    for each in sent:
        each.settle()
    router.pump()
    assert sender.credit >= 8
    check_credit(router)


def test_credit_that_is_due_is_there_before_the_sender_runs_out() -> None:
    router, client = one(10)
    receiver = client.receiver("x", credit=1000)
    sender = client.sender("x")
    send(router, sender, 4)
    settle(router, receiver)
    send(router, sender, sender.credit)
    assert sender.credit > 0
    check_credit(router)
    while sender.credit:
        send(router, sender, sender.credit)
    (incoming,) = router.core.incoming_endpoints()
    assert incoming.unsettled == 10


@pytest.mark.parametrize("settled", [False, True])
def test_credit_for_refused_messages_is_granted_again_at_once(settled: bool) -> None:
    router, client = one(4)
    sender = client.sender()
    for _ in range(5):
        for message in (compose(b"x"), compose(b"x", to="nowhere"), b""):
            sender.send(message, settled=settled)
            router.pump()
            assert sender.credit >= 2
            check_credit(router)


def test_credit_is_not_paid_back_without_a_destination() -> None:
    router, client = one()
    receiver = client.receiver("x", credit=10)
    sender = client.sender("x")
    receiver.detach()
    send(router, sender, 1)
    assert sender.credit == 0
    send(router, client.sender("x"), 0)
    check_credit(router)


def test_the_last_credit_is_not_paid_back_without_a_destination() -> None:
    router, client = one(1)
    receiver = client.receiver("x", credit=10)
    sender = client.sender("x")
    receiver.detach()
    (sent,) = send(router, sender, 1)
    assert sent.history == [(Released(), True)]
    assert sender.credit == 0
    client.receiver("x", credit=10)
    assert sender.credit == 1


def test_credit_is_one_flow_for_a_pass() -> None:
    router, client = one(100)
    receiver = client.receiver("x", credit=1000)
    sender = client.sender("x")
    send(router, sender, 100)
    for message in receiver.received:
        message.settle()
    client.write()
    router.flush()
    assert client.server.out.count(b"\0\x53\x13") == 1


# --- 3.2


def test_the_first_consumer_brings_credit_to_every_sender() -> None:
    router, client = one()
    senders = [client.sender("x") for _ in range(3)]
    assert [sender.credit for sender in senders] == [0, 0, 0]
    client.receiver("x")
    assert [sender.credit for sender in senders] == [250, 250, 250]
    client.receiver("x")
    assert [sender.credit for sender in senders] == [250, 250, 250]
    assert all(not sender.link.drain for sender in senders)
    router.pump()


def test_the_first_fallback_consumer_brings_credit_too() -> None:
    _, client = one()
    sender = client.sender("fall.x")
    assert sender.credit == 0
    client.receiver("fall.x", capabilities=("qd.fallback",))
    assert sender.credit == 250


def test_losing_the_last_consumer_takes_nothing_back() -> None:
    router, client = one()
    receiver = client.receiver("x")
    sender = client.sender("x")
    receiver.detach()
    assert sender.credit == 250
    assert sender.drains == []
    check_credit(router)


# --- 3.3


def test_the_first_message_without_a_receiver_starts_a_drain() -> None:
    router, client = one()
    receiver = client.receiver("x")
    sender = client.sender("x")
    sender.answers_drain = False
    receiver.detach()
    send(router, sender, 1)
    assert sender.drains == [249]
    send(router, sender, 1)
    assert sender.credit == 248
    check_credit(router)


def test_a_consumer_after_the_answer_brings_the_full_capacity() -> None:
    router, client = one()
    receiver = client.receiver("x")
    sender = client.sender("x")
    receiver.detach()
    send(router, sender, 3)
    assert sender.credit == 0
    client.receiver("x", credit=10)
    assert sender.credit == 250
    check_credit(router)


def test_a_consumer_before_the_answer_brings_the_pending_credit_only() -> None:
    router, client = one()
    receiver = client.receiver("x")
    sender = client.sender("x")
    sender.answers_drain = False
    receiver.detach()
    send(router, sender, 2)
    assert sender.credit == 248
    client.receiver("x", credit=10)
    assert sender.credit == 250
    assert not sender.link.drain
    check_credit(router)


def test_an_answer_that_crosses_the_new_credit_costs_nothing() -> None:
    router, client = one()
    other = router.connect()
    receiver = client.receiver("x")
    sender = client.sender("x")
    receiver.detach()
    sender.answers_drain = False
    send(router, sender, 1)
    sender.drained()
    client.connection.flush()
    receiver = other.receiver("x", credit=1000, pump=False)
    other.write()
    router.flush()
    router.pump()
    assert sender.credit >= 1
    for _ in range(3):
        send(router, sender, sender.credit, settled=True)
        check_credit(router)
    assert sender.credit > 125


def test_unsettled_messages_are_left_out_of_the_full_capacity() -> None:
    router, client = one()
    receiver = client.receiver("x", credit=100)
    sender = client.sender("x")
    send(router, sender, 50)
    other = router.connect().receiver("y")
    receiver.link.detach(True)
    router.pump()
    assert other.received == []
    send(router, sender, 1)
    assert sender.credit == 0
    client.receiver("x", credit=10)
    assert sender.credit == 250
    check_credit(router)


def test_a_message_on_its_way_in_when_the_drain_is_answered_counts_once() -> None:
    for settled in (False, True):
        router, client = one(10)
        receiver = client.receiver("x", credit=100)
        sender = client.sender("x")
        receiver.detach()
        sent = sender.begin(compose(bytes(150_000)), settled=settled)
        router.pump()
        sender.drained()
        router.pump()
        sent.finish(b"end")
        router.pump()
        check_credit(router)
        client.receiver("x", credit=100)
        check_credit(router)
        assert sender.credit == 10


# --- 3.4


@pytest.mark.parametrize("queued", [0, 1, 5, 9, 10])
def test_a_drain_sends_the_waiting_messages_and_returns_the_remaining_credit(queued: int) -> None:
    router, client = one()
    receiver = client.receiver("x")
    send(router, client.sender("x"), queued)
    receiver.grant(10)
    receiver.drain()
    router.pump()
    assert len(receiver.received) == queued
    assert receiver.credit == 0
    assert receiver.drained == 1 or queued == 10
    receiver.grant(5)
    sent = send(router, client.sender("x"), 2)
    assert len(receiver.received) == queued + 2
    settle(router, receiver)
    assert [each.outcome for each in sent] == [Accepted(), Accepted()]


def test_a_drain_leaves_messages_beyond_the_credit() -> None:
    router, client = one()
    receiver = client.receiver("x")
    send(router, client.sender("x"), 5)
    receiver.grant(3)
    receiver.drain()
    router.pump()
    assert len(receiver.received) == 3
    assert receiver.credit == 0
    receiver.grant(10)
    router.pump()
    assert len(receiver.received) == 5


def test_a_drain_waits_for_the_message_under_way() -> None:
    router, client = one()
    receiver = client.receiver("x", credit=3)
    sender = client.sender("x")
    sent = sender.begin(compose(bytes(200_000)))
    router.pump()
    receiver.drain()
    router.pump()
    assert receiver.drained == 0
    sent.finish(b"end")
    router.pump()
    assert receiver.drained == 1
    assert receiver.credit == 0
    assert receiver.received[0].complete


# --- 3.6


def test_the_session_window_bounds_the_bytes_held_for_a_receiver_without_credit() -> None:
    router, client = one(limits=small_window(20))
    client.receiver("x")
    sent = client.sender("x").begin(compose(bytes(3_000_000)))
    router.pump()
    assert router.held_bytes() <= 20 * 16384
    assert not sent.delivery.complete


def test_a_window_smaller_than_the_streaming_mark_does_not_stop_a_message() -> None:
    for frames in (2, 3, 4, 7):
        router, client = one(limits=small_window(frames, 512))
        receiver = router.connect().receiver("x", credit=10)
        sent = client.sender("x").send(compose(bytes(100_000)))
        router.pump()
        assert len(receiver.received) == 1
        assert len(receiver.received[0].body) == 100_000
        settle(router, receiver)
        assert sent.history == [(Accepted(), True)]
        assert router.held_bytes() == 0


def test_many_unfinished_messages_do_not_stop_one_another() -> None:
    router, client = one(limits=small_window(10))
    receiver = router.connect().receiver("x", credit=100)
    sent = [client.sender("x").begin(compose(bytes(100_000))) for _ in range(10)]
    router.pump()
    for each in sent:
        each.finish(b"end")
    router.pump()
    assert all(each.delivery.complete for each in sent)
    taken = [each for each in sent if not each.history]
    assert taken
    assert [message.complete for message in receiver.received] == [True] * len(taken)
    assert all(each.history == [(Released(), False), (Released(), True)] for each in sent if each.history)
    assert router.held_bytes() == 0


def test_the_receivers_window_and_frame_size_are_respected() -> None:
    router = MemoryRouter(RULES)
    client = router.connect()
    narrow = router.connect(client_limits=small_window(3, 512))
    receiver = narrow.receiver("x", credit=10)
    client.sender("x").send(compose(bytes(50_000)))
    router.pump()
    assert len(receiver.received[0].body) == 50_000
    assert max(map(len, receiver.received[0].frames)) < 512
    assert narrow.closed is None
    assert narrow.ended == []


WIDE_FRAMES = EngineLimits(
    max_frame_bytes=0xFFFFFFFF, session_window_frames=100, first_outgoing_id=0xFFFFFFFE, idle_timeout_s=0.0
)


def test_a_message_that_waited_whole_is_one_frame_where_the_peer_allows_it() -> None:
    """Its sender has frames of 16 KiB; some receivers open their window by one frame for each whole message."""
    router = MemoryRouter(RULES)
    receiver = router.connect(client_limits=WIDE_FRAMES).receiver("x")
    client = router.connect()
    for body in (bytes(70_000), bytes(700_000), bytes(1_040_000)):
        client.sender("x").send(compose(body))
    client.sender("x").send(compose(bytes(3_000_000)))
    router.pump()
    receiver.grant(10)
    router.pump()
    assert [len(message.body) for message in receiver.received] == [70_000, 700_000, 1_040_000, 3_000_000]
    assert [len(message.frames) for message in receiver.received] == [1, 1, 1, 3]
    assert router.held_bytes() == 0


@pytest.mark.parametrize("terms", [None, PeerTerms(strip_out=False)])
def test_joined_pieces_are_those_of_each_copy(terms: PeerTerms | None) -> None:
    """One receiver has taken a part of the message already, another one gets it with the router's annotations."""
    router = MemoryRouter(RULES)
    receivers = [
        router.connect(terms, client_limits=limits).receiver("multicast", credit=count)
        for limits, count in (
            (small_window(300, 0xFFFFFFFF), 1),
            (WIDE_FRAMES, 0),
            (small_window(8, 70_000), 0),
            (small_window(8), 0),
        )
    ]
    body = bytes(range(250)) * 2000
    sent = router.connect().sender("multicast").begin(compose(body)[:150_000])
    router.pump()
    assert [len(each.received) for each in receivers] == [1, 0, 0, 0]
    sent.finish(compose(body)[150_000:])
    router.pump()
    for each in receivers:
        each.grant(1)
    router.pump()
    assert [each.bodies for each in receivers] == [[body]] * 4
    assert len(receivers[1].received[0].frames) == 1
    assert max(map(len, receivers[2].received[0].frames)) < 70_000
    assert router.held_bytes() == 0


@pytest.mark.parametrize("pieces", [12, 70])
def test_a_receiver_that_opens_its_window_by_message_gets_long_messages_for_ever(pieces: int) -> None:
    """Its session window is 100 frames, and it gives one back for each message that it has settled."""
    router, client = one()
    narrow = router.connect(client_limits=WIDE_FRAMES)
    receiver = narrow.receiver("x", credit=1)
    windows = narrow.session.windows
    windows.max_incoming_frames = 0  # it does not open of itself
    sender = client.sender("x")
    for number in range(250):
        body = bytes([number]) * 10_000 * pieces
        sent = sender.begin()
        for start in range(0, len(body), 10_000):
            sent.more(compose(body)[start : start + 10_000])
            router.pump()
        sent.finish(compose(body)[len(body) :])
        router.pump()
        assert receiver.received[-1].body == body
        assert windows.incoming_frames > 0
        receiver.received.pop().settle()
        windows.incoming_frames += 1
        receiver.grant(1)
        router.pump()
    assert router.held_bytes() == 0


def test_a_receiver_that_counts_its_window_by_message_gets_long_messages_for_ever() -> None:
    """Its session window is 100 frames; its next-incoming-id counts a message as one frame too, as node-amqp10 does."""
    router, client = one()
    narrow = router.connect(client_limits=WIDE_FRAMES)
    receiver = narrow.receiver("x", credit=5)
    windows = narrow.session.windows
    windows.max_incoming_frames = 0  # it does not open of itself
    sender = client.sender("x")
    for _ in range(20):
        before = windows.incoming_frames
        for number in range(5):
            data = compose(bytes([number]) * 450_000)
            sent = sender.begin()
            for start in range(0, 450_000, 10_000):
                sent.more(data[start : start + 10_000])
                router.pump()
            sent.finish(data[450_000:])
            router.pump()
        assert len(receiver.received) == 5
        used = before - windows.incoming_frames
        windows.incoming_frames += 5 - (used - 5)
        while receiver.received:
            receiver.received.pop().settle()
        receiver.grant(5)
        router.pump()
    assert router.held_bytes() == 0


def test_a_receiver_that_does_not_read_stops_its_sender_and_no_other() -> None:
    router, client = one(limits=small_window(20))
    slow = router.connect()
    receiver = slow.receiver("x", credit=100)
    slow.stalled = True
    sent = client.sender("x").begin(compose(bytes(3_000_000)))
    other = router.connect()
    fine = other.receiver("y", credit=100)
    send(router, other.sender("y"), 10)
    assert len(fine.received) == 10
    assert not sent.delivery.complete
    slow.stalled = False
    sent.finish(b"end")
    router.pump()
    assert len(receiver.received[0].payload) == len(compose(bytes(3_000_000))) + 3
    assert router.held_bytes() == 0


# --- 3.7, 3.8


def test_100_kb_of_an_unfinished_message_are_kept_back() -> None:
    router, client = one()
    receiver = client.receiver("x", credit=1)
    sent = client.sender("x").begin(compose(bytes(1_000_000))[: 100 * KB])
    router.pump()
    assert receiver.received == []
    assert router.held_bytes() == 100 * KB
    sent.more(bytes(28 * KB))
    router.pump()
    assert len(receiver.received[0].payload) == 128 * KB
    assert router.held_bytes() == 0
    sent.more(bytes(10))
    router.pump()
    assert len(receiver.received[0].payload) == 128 * KB + 10
    assert not receiver.received[0].complete


@pytest.mark.parametrize("settled", [False, True])
def test_a_long_message_streams_through(settled: bool) -> None:
    router, client = one()
    receiver = client.receiver("x", credit=1)
    sender = client.sender("x")
    sent = sender.begin(compose(bytes(2_000_000)), settled=settled)
    router.pump()
    for _ in range(5):
        sent.more(bytes(100_000))
        router.pump()
        assert router.held_bytes() == 0
    sent.finish(b"")
    router.pump()
    assert receiver.received[0].complete
    assert len(receiver.received[0].payload) == len(compose(bytes(2_000_000))) + 500_000
    assert receiver.received[0].settled == settled
    settle(router, receiver)
    assert sent.history == ([] if settled else [(Accepted(), True)])
    assert sender.credit >= 249
    check_credit(router)


def test_messages_behind_a_streamed_message_follow_it() -> None:
    router, client = one()
    receiver = client.receiver("x", credit=5)
    long = client.sender("x").begin(compose(bytes(200_000)))
    router.pump()
    send(router, client.sender("x"), 2)
    assert len(receiver.received) == 1
    long.finish(b"end")
    router.pump()
    assert [message.complete for message in receiver.received] == [True] * 3


def test_a_multicast_is_held_to_its_slowest_receiver() -> None:
    router, client = one(limits=small_window(20))
    fast = router.connect().receiver("multicast", credit=10)
    leaving = router.connect()
    leaving.receiver("multicast")
    sent = client.sender("multicast").begin(compose(bytes(2_000_000)))
    router.pump()
    assert router.held_bytes() <= 20 * 16384
    assert len(fast.received[0].payload) == router.held_bytes()
    leaving.drop()
    sent.finish(b"end")
    router.pump()
    assert fast.received[0].complete
    fast.received[0].settle()
    router.pump()
    assert sent.history == [(Accepted(), True)]
    assert router.held_bytes() == 0


def test_a_small_multicast_is_not_held_to_its_slowest_receiver() -> None:
    router, client = one()
    fast = router.connect().receiver("multicast", credit=1000)
    router.connect().receiver("multicast")
    send(router, client.sender("multicast"), 100)
    assert len(fast.received) == 100


def test_discarded_input_is_not_held() -> None:
    router, client = one(limits=small_window(20))
    leaving = router.connect()
    leaving.receiver("x")
    sent = client.sender("x").begin(compose(bytes(1_000_000)))
    router.pump()
    assert router.held_bytes() > 0
    leaving.drop()
    assert router.held_bytes() == 0
    sent.finish(bytes(3_000_000))
    router.pump()
    assert sent.delivery.complete
    assert sent.settled


def test_a_message_without_a_receiver_does_not_wait_for_its_end() -> None:
    router, client = one()
    receiver = client.receiver("x", credit=5)
    sender = client.sender("x")
    receiver.detach()
    sent = sender.begin(compose(bytes(200_000)))
    router.pump()
    assert sent.history == [(Released(), False)]
    sent.finish(bytes(1_000_000))
    router.pump()
    assert sent.history == [(Released(), False), (Released(), True)]
    check_credit(router)


def test_a_head_that_does_not_end_is_given_up() -> None:
    router, client = one()
    receiver = client.receiver("x", credit=5)
    sender = client.sender()
    fields = b"\xd0\x00\x0f\x00\x00\x00\x00\x00\x01" + bytes(0xF0000 - 4)
    sent = sender.begin(b"\0\x53\x70" + fields + b"\0\x53\x73" + fields[:60_000])
    router.pump()
    assert receiver.received == []
    assert sent.history == []
    sent.more(bytes(6000))
    router.pump()
    assert sent.history == [(INVALID, False)]
    sent.finish(bytes(100_000))
    router.pump()
    assert sent.history == [(INVALID, False), (INVALID, True)]
    assert router.held_bytes() == 0
    check_credit(router)


Ending = Callable[[SentMessage, MemorySender], None]


def _abort(sent: SentMessage, sender: MemorySender) -> None:
    sent.abort()


def _finish(sent: SentMessage, sender: MemorySender) -> None:
    sent.finish(b"end")


def _settle_and_finish(sent: SentMessage, sender: MemorySender) -> None:
    sent.settle()
    sender.client.write()
    sent.finish(b"end")


@pytest.mark.parametrize("size", [50_000, 200_000])
@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("ending", [_abort, _finish, _settle_and_finish])
@pytest.mark.parametrize("consumer", ["ready", "creditless", "gone"])
def test_a_message_in_pieces_gives_its_credit_back_once(
    size: int, settled: bool, ending: Ending, consumer: str
) -> None:
    router, client = one(4)
    receiver = client.receiver("x", credit=0 if consumer == "creditless" else 100)
    sender = client.sender("x")
    if consumer == "gone":
        receiver.detach()
    sent = sender.begin(compose(bytes(size)), settled=settled)
    router.pump()
    check_credit(router)
    ending(sent, sender)
    router.pump()
    check_credit(router)
    if consumer == "creditless":
        receiver.grant(10)
        router.pump()
    if consumer == "gone":
        receiver = client.receiver("x", credit=100)
    settle(router, receiver)
    check_credit(router)
    (incoming,) = router.core.incoming_endpoints()
    assert incoming.unsettled == 0
    assert sender.credit >= 2
    assert router.held_bytes() == 0


@pytest.mark.parametrize("settled", [False, True])
def test_a_sender_that_aborts_every_delivery_gets_its_credit_back(settled: bool) -> None:
    router, client = one(4)
    client.receiver("x", credit=100)
    sender = client.sender("x")
    for _ in range(6):
        sent = sender.begin(compose(bytes(50_000)), settled=settled)
        router.pump()
        sent.abort()
        router.pump()
    check_credit(router)
    assert sender.credit >= 2


# --- 3.9


def test_an_anonymous_sender_is_never_drained() -> None:
    router, client = one(10)
    sender = client.sender()
    for _ in range(50):
        sender.send(compose(b"x", to="nowhere"))
        router.pump()
    assert sender.drains == []
    assert sender.credit > 5
    check_credit(router)


# --- the stop


def test_stopping_takes_credit_back_and_gives_none() -> None:
    router, client = one()
    receiver = client.receiver("x", credit=100)
    sender = client.sender("x")
    idle = client.sender("y")
    sent = send(router, sender, 3)
    router.core.stop_credit()
    router.flush()
    router.pump()
    assert sender.credit == 0
    assert idle.credit == 0
    assert router.core.count_unsettled() == 3
    settle(router, receiver)
    assert [each.outcome for each in sent] == [Accepted()] * 3
    assert router.core.count_unsettled() == 0
    client.receiver("y", credit=10)
    assert sender.credit == idle.credit == 0


def test_stopping_waits_for_unfinished_messages() -> None:
    router, client = one()
    client.receiver("x", credit=100)
    for settled in (False, True):
        sent = client.sender("x").begin(compose(b"x"), settled=settled)
        router.pump()
        assert router.core.count_unsettled() == 1
        sent.abort()
        router.pump()
        assert router.core.count_unsettled() == 0


# --- windows that close in the middle of a message


@pytest.mark.parametrize("how", ["abort", "drop", "receiver"])
def test_taking_a_message_back_waits_for_the_receivers_window(how: str) -> None:
    router = MemoryRouter(RULES)
    leaving = router.connect()
    narrow = router.connect(client_limits=small_window(3, 512))
    receiver = narrow.receiver("x", credit=10)
    sender = leaving.sender("x")
    narrow.stalled = True
    sent = sender.begin(compose(bytes(200_000)))
    router.pump()
    assert narrow.server.sessions()[0].windows.outgoing_frames <= 0
    if how == "abort":
        sent.abort()
    elif how == "drop":
        leaving.drop()
    router.pump()
    assert narrow.server.sessions()[0].windows.outgoing_frames >= 0
    if how == "receiver":
        narrow.stalled = False
        narrow.read()
        receiver.received[0].settle(Released())
        narrow.stalled = True
        narrow.connection.flush()
        narrow.write()
    narrow.stalled = False
    router.pump()
    assert narrow.ended == []
    assert narrow.closed is None
    assert receiver.received[0].aborted
    if how != "drop":
        assert sent.outcome in (None, Released())
    send(router, router.connect().sender("x"), 2)
    assert receiver.bodies == [b"0", b"1"]


def test_a_failed_delivery_is_modified_not_lost() -> None:
    router, client = one()
    other = router.connect()
    other.receiver("x", credit=1)
    (sent,) = send(router, client.sender("x"), 1)
    other.drop()
    assert sent.history == [(Modified(delivery_failed=True), True)]
