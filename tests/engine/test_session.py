"""Sessions: windows in both directions, delivery ids over the wrap, dispositions one by one, merged and as ranges."""

from __future__ import annotations

import pytest

from tests.engine.talks import (
    ACCEPTED,
    MASK32,
    NEAR_WRAP,
    RELEASED,
    Talk,
    attach,
    attached,
    begin,
    begun,
    flow,
    opened,
    receiving,
    send,
    sending,
    transfer,
    with_limits,
)
from tests.script import Like, Script, Sent, like
from trouter.engine.events import ConnectionClosed, SessionBegun, SessionEnded
from trouter.engine.faults import Fault, PeerFault
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.ports import Delivery
from trouter.wire.performatives import (
    Accepted,
    Attach,
    Begin,
    Declared,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Received,
    Rejected,
    Released,
    Transfer,
    encode_state,
)
from trouter.wire.types import Described, Symbol, ULong

SMALL = with_limits(session_window_frames=8, max_frame_bytes=512)


def serial(number: int) -> int:
    return (NEAR_WRAP + number) & MASK32


def window(frames: int, seen: int) -> Like:
    """Return a flow of trouter that opens the window to ``frames``, written after ``seen`` of the peer's."""
    return like(Flow, incoming_window=frames, next_incoming_id=serial(seen), next_outgoing_id=NEAR_WRAP)


# --- the local incoming window


@pytest.mark.amqp("2.5.6")
def test_the_local_begin_has_the_window_and_the_first_id() -> None:
    talk = opened(SMALL)
    talk.peer_sends(begin()).engine_reports(SessionBegun)
    talk.connection.sessions()[0].begin()
    talk.engine_sends(
        Begin(
            remote_channel=0,
            next_outgoing_id=NEAR_WRAP,
            incoming_window=8,
            outgoing_window=0x7FFFFFFF,
            handle_max=65535,
        )
    )


@pytest.mark.amqp("2.5.6")
def test_the_window_opens_again_once_half_of_the_window_is_used() -> None:
    talk = receiving(limits=SMALL)
    script = talk.script
    for start in range(0, 40, 4):  # over the wrap, which is 16 ahead
        script.peer_sends(*[transfer(start + number, settled=True) for number in range(3)]).engine_sends()
        script.peer_sends(transfer(start + 3, settled=True)).engine_sends(window(8, start + 4))
    assert len(talk.sink.deliveries) == 40


@pytest.mark.amqp("2.5.6")
def test_a_window_may_be_used_to_its_last_frame_in_one_read_but_not_beyond() -> None:
    talk = receiving(limits=SMALL)
    talk.script.peer_sends(*[transfer(number, settled=True) for number in range(8)]).engine_reports()
    talk.script.engine_sends(window(8, 8))
    talk.script.peer_sends(*[transfer(8 + number, settled=True) for number in range(9)])
    talk.script.engine_reports(like(SessionEnded, fault=like(PeerFault, fault=Fault.WINDOW_VIOLATION)))
    assert len(talk.sink.deliveries) == 16


def test_the_window_counts_frames_and_not_deliveries() -> None:
    talk = receiving(limits=SMALL)
    talk.script.peer_sends(transfer(0, more=True), *[Transfer(0, more=True)] * 2).engine_sends()
    talk.script.peer_sends(Transfer(0)).engine_sends(window(8, 4))
    assert len(talk.sink.deliveries) == 1


def test_held_bytes_close_the_window_and_releasing_them_opens_the_window() -> None:
    talk = receiving(limits=SMALL)  # 8 frames of 512 bytes
    session, script = talk.session, talk.script
    session.windows.hold_bytes(4 * 512)
    script.peer_sends(*[transfer(number, settled=True) for number in range(4)]).engine_sends()
    script.peer_sends(transfer(4, settled=True), transfer(5, settled=True)).engine_sends(window(4, 6))
    session.windows.hold_bytes(4 * 512)
    script.peer_sends(*[transfer(6 + number, settled=True) for number in range(4)]).engine_sends()
    assert session.windows.incoming_frames == 0
    session.release_bytes(511)
    script.engine_sends()
    session.release_bytes(1)
    script.engine_sends(window(1, 10))
    session.release_bytes(7 * 512)
    script.engine_sends(window(8, 10))
    assert session.windows.held_bytes == 0
    script.peer_sends(transfer(10, settled=True)).engine_reports()


def test_the_window_opens_although_the_link_with_a_pending_flow_was_detached() -> None:
    talk = receiving(limits=SMALL)
    script = talk.script
    talk.session.windows.hold_bytes(8 * 512)
    script.peer_sends(*[transfer(number, settled=True) for number in range(8)]).engine_sends()
    talk.link.grant(1)
    script.peer_sends(Detach(0, closed=True))
    talk.session.release_bytes(8 * 512)
    script.engine_sends(window(8, 8))


def test_a_delivery_may_overrun_the_window_and_flows_then_show_a_window_of_zero() -> None:
    talk = receiving(limits=SMALL)
    session, script = talk.session, talk.script
    session.windows.hold_bytes(8 * 512)
    script.peer_sends(transfer(0, more=True), *[Transfer(0, more=True)] * 9).engine_sends()
    assert session.windows.incoming_frames == -2
    script.peer_sends(flow(echo=True)).engine_sends(window(0, 10))
    script.peer_sends(flow(handle=0, echo=True))
    answer = script.sent()[-1].performative
    assert isinstance(answer, Flow)
    assert answer.incoming_window == 0
    script.peer_sends(*[Transfer(0, more=True)] * 6)
    assert not script.connection.events
    script.peer_sends(Transfer(0, more=True))
    script.engine_reports(like(SessionEnded, fault=like(PeerFault, fault=Fault.WINDOW_VIOLATION)))


LENIENT = with_limits(session_window_frames=8, max_frame_bytes=512, max_buffered_bytes=16 * 512, idle_timeout_s=16.0)


def overrun(by: int) -> Talk[IncomingLink]:
    """Return a client that has overrun its window, which cannot open, by so many frames."""
    talk = receiving(credit=1000, limits=LENIENT)
    talk.session.windows.hold_bytes(8 * 512)
    talk.script.peer_sends(*[transfer(number, settled=True) for number in range(8 + by)])
    return talk


def is_left_unread(talk: Talk[IncomingLink]) -> bool:
    return talk.connection.is_overrun


def test_a_client_may_overrun_its_window_by_as_many_frames_as_its_connection_may_hold() -> None:
    talk = overrun(16)
    talk.script.engine_reports()
    assert talk.connection.overrun_frames == 16
    talk.script.peer_sends(flow(echo=True)).engine_sends(window(0, 24))
    talk.script.peer_sends(transfer(24, settled=True))
    talk.script.engine_reports(like(SessionEnded, fault=like(PeerFault, fault=Fault.WINDOW_VIOLATION)))
    assert (talk.connection.overrun_frames, is_left_unread(talk)) == (0, False)


def test_a_window_that_was_overrun_opens_once_half_of_it_is_free() -> None:
    talk = overrun(5)
    assert is_left_unread(talk)
    talk.session.release_bytes(4 * 512 - 1)
    talk.script.engine_sends()
    assert is_left_unread(talk)
    talk.session.release_bytes(1)
    talk.script.engine_sends(window(4, 13))
    assert (talk.connection.overrun_frames, is_left_unread(talk)) == (0, False)
    talk.script.peer_sends(*[transfer(13 + number, settled=True) for number in range(5)])
    assert talk.connection.overrun_frames == 1


def test_two_sessions_that_overrun_their_windows_share_the_limit() -> None:
    talk = overrun(10)
    talk.script.peer_sends(begin(), channel=1)
    other = talk.connection.sessions()[1]
    other.begin()
    talk.connection.events.clear()
    talk.script.sent()
    link, _ = attached(talk.script, attach("one", 0), channel=1)
    assert isinstance(link, IncomingLink)
    link.grant(1000)
    talk.script.sent()
    other.windows.hold_bytes(8 * 512)
    talk.script.peer_sends(*[transfer(number, settled=True) for number in range(14)], channel=1).engine_reports()
    assert talk.connection.overrun_frames == 16
    talk.session.release_bytes(8 * 512)
    talk.script.sent()
    assert talk.connection.overrun_frames == 6
    assert is_left_unread(talk)
    other.end()
    assert not is_left_unread(talk)


def test_only_a_peer_whose_frames_can_open_no_window_is_to_be_left_unread() -> None:
    talk = overrun(1)
    assert is_left_unread(talk)
    second, _ = attached(talk.script, attach("two", 1))
    assert isinstance(second, IncomingLink)
    assert is_left_unread(talk)
    second.grant(1)
    talk.script.peer_sends(Transfer(1, serial(9), b"t", more=True))
    assert not is_left_unread(talk)  # others may wait behind this message
    talk.script.peer_sends(Transfer(1)).sent()
    assert is_left_unread(talk)
    attached(talk.script, attach("three", 2, sends=False))
    assert not is_left_unread(talk)  # its credit may free what waits


def test_a_peer_that_is_left_unread_is_not_silent() -> None:
    talk = overrun(1)
    for now_s in (0.0, 100.0, 200.0):
        talk.connection.tick(now_s)
    talk.session.release_bytes(8 * 512)
    talk.script.sent()
    talk.connection.tick(201.0)
    talk.script.engine_reports()
    talk.connection.tick(220.0)
    talk.script.engine_reports(like(ConnectionClosed, fault=like(PeerFault, fault=Fault.IDLE_TIMEOUT)))


def test_held_bytes_never_exceed_the_bytes_of_the_window() -> None:
    talk = receiving(credit=1000, limits=SMALL)
    session, script = talk.session, talk.script
    number = 0
    for _ in range(50):  # a sender that uses the whole window, a receiver that keeps every frame
        room = session.windows.incoming_frames
        script.peer_sends(*[transfer(number + each, settled=True) for each in range(room)])
        number += room
        session.windows.hold_bytes(room * 512)
        script.sent()
        assert session.windows.held_bytes <= session.windows.max_incoming_bytes
    assert session.windows.held_bytes == session.windows.max_incoming_bytes == 8 * 512
    assert session.windows.incoming_frames == 0


def test_an_echo_of_the_session_is_answered_once() -> None:
    talk = receiving()
    asked = flow(echo=True)
    talk.script.peer_sends(asked).engine_sends(like(Flow, handle=None, echo=False, incoming_window=512))
    talk.script.peer_sends(asked, asked).engine_sends(like(Flow, handle=None))
    talk.script.peer_sends(flow()).engine_sends()


# --- the peer's incoming window


@pytest.mark.amqp("2.5.6")
def test_no_frame_goes_out_beyond_the_peers_window_and_the_rest_follows_its_flow() -> None:
    talk = sending(window=3)
    sent = [send(talk.link, b"%d" % number, number=number) for number in range(3)]
    waiting = send(talk.link, b"3", number=3)
    assert [each.complete for each in sent] == [True, True, True]
    assert not waiting.begun
    assert talk.link.waiting
    assert not talk.link.is_ready()
    talk.script.engine_sends(*[like(Transfer, delivery_id=serial(number)) for number in range(3)])
    # the peer has received one: three more than that is two more than were sent
    talk.script.peer_sends(flow(sent=1, window=3))
    assert talk.sink.names() == ["credit"]
    assert talk.link.is_ready()
    assert talk.session.windows.outgoing_frames == 1
    assert talk.link.send(waiting, b"3", 0, 1, False) == 1
    talk.script.engine_sends(like(Transfer, delivery_id=serial(3)))
    assert talk.session.windows.outgoing_frames == 0


def test_a_flow_that_leaves_the_window_closed_wakes_no_link() -> None:
    talk = sending(window=1)
    send(talk.link)
    send(talk.link)
    talk.sink.names()
    talk.script.peer_sends(flow(sent=0, window=1))
    assert talk.sink.names() == []
    talk.script.peer_sends(flow(sent=1, window=1))
    assert talk.sink.names() == ["credit"]


def test_the_windows_of_65536_frames_go_over_the_wrap() -> None:
    talk = sending(credit=70000, window=10)
    for number in range(70000):
        if talk.session.windows.outgoing_frames == 0:
            talk.script.sent()
            talk.script.peer_sends(flow(sent=number, window=10))
        assert send(talk.link, b"", number=number, settled=True).complete
    assert talk.link.credit == 0
    assert talk.session.windows.next_outgoing_id == serial(70000)
    assert talk.link.delivery_count == serial(70000)


@pytest.mark.amqp("2.5.6")
@pytest.mark.parametrize("next_incoming_id", [0, None, NEAR_WRAP - 1, 0x70000000], ids=["0", "absent", "-1", "far"])
def test_a_first_flow_with_an_odd_next_incoming_id_is_no_reason_to_stop(next_incoming_id: int | None) -> None:
    """rhea and AMQP.Net Lite send 0 before they got the begin; RabbitMQ closes for it, and a router must not."""
    talk = sending(window=0)
    odd = Flow(next_incoming_id=next_incoming_id, incoming_window=5, next_outgoing_id=NEAR_WRAP, outgoing_window=5)
    talk.script.peer_sends(odd).engine_reports()
    assert talk.session.windows.outgoing_frames == 5
    assert send(talk.link).complete


def test_a_flow_without_next_incoming_id_acknowledges_no_transfer() -> None:
    talk = sending(window=5)
    for _ in range(3):
        send(talk.link)
    talk.script.peer_sends(Flow(incoming_window=5, next_outgoing_id=NEAR_WRAP, outgoing_window=5))
    assert talk.session.windows.outgoing_frames == 2


def test_a_window_beyond_half_of_all_ids_is_a_large_window() -> None:
    talk = sending(window=MASK32)
    assert talk.session.windows.outgoing_frames == 0x7FFFFFFF
    assert send(talk.link).complete


# --- begin and end


def test_channels_may_differ_on_both_sides() -> None:
    talk = opened()
    connection = talk.connection
    first, second = connection.add_session(), connection.add_session()
    assert (first.channel, second.channel) == (0, 1)
    first.begin()
    second.begin()
    talk.engine_sends(like(Sent, channel=0), like(Sent, channel=1))
    talk.peer_sends(begin(remote_channel=0), channel=77).peer_sends(begin(remote_channel=1), channel=0)
    talk.engine_reports(like(SessionBegun, session=first), like(SessionBegun, session=second))
    talk.peer_sends(begin(), channel=1)
    (event,) = connection.events
    connection.events.clear()
    assert isinstance(event, SessionBegun)
    third = event.session
    third.begin()
    talk.engine_sends(like(Sent, channel=2, performative=like(Begin, remote_channel=1)))
    link, sink = attached(talk, attach(), channel=77)
    assert isinstance(link, IncomingLink)
    assert link.session is first
    link.grant(1)
    talk.engine_sends(like(Sent, channel=0, performative=Flow))
    talk.peer_sends(transfer(), channel=77, payload=b"here")
    assert sink.calls == [("transfer", b"here")]
    first.settle_incoming(sink.deliveries[0], 0x24, ACCEPTED, True)
    talk.engine_sends(like(Sent, channel=0, performative=Disposition))
    talk.peer_sends(End(), channel=0).engine_reports(like(SessionEnded, session=second))
    second.end()
    talk.engine_sends(like(Sent, channel=1, performative=End))


def test_channels_are_used_again_by_both_sides() -> None:
    talk = opened()
    connection = talk.connection
    for _ in range(3):
        talk.peer_sends(begin(), channel=5)
        session = connection.sessions()[0]
        session.begin()
        talk.engine_sends(like(Sent, channel=0, performative=like(Begin, remote_channel=5)))
        talk.peer_sends(End(), channel=5)
        session.end()
        connection.drop_session(session)
        talk.engine_sends(End())
        connection.events.clear()
    ours = connection.add_session()
    ours.begin()
    ours.end()
    other = connection.add_session()
    assert other.channel != ours.channel  # the peer has not ended it yet
    talk.peer_sends(begin(remote_channel=ours.channel), End(), channel=9).engine_reports()
    assert connection.add_session().channel == ours.channel


def test_an_end_waits_for_the_settlements_gathered_before() -> None:
    talk = receiving()
    talk.script.peer_sends(transfer())
    talk.session.settle_incoming(talk.sink.deliveries[0], 0x24, ACCEPTED, True)
    talk.session.end()
    talk.script.engine_sends(Disposition, End())


def test_the_peers_end_carries_its_error_to_the_holder() -> None:
    talk = receiving()
    error = Error("amqp:not-allowed", "enough")
    talk.script.peer_sends(End(error)).engine_reports(like(SessionEnded, session=talk.session, error=error, fault=None))
    assert not talk.link.attached
    talk.link.grant(5)
    talk.session.settle_incoming(Delivery(talk.link), 0x24, ACCEPTED, True)
    talk.script.engine_sends()
    talk.session.end()
    talk.script.engine_sends(End())


# --- settlement: sent dispositions


def received(talk: Script, count: int, sink_deliveries: list[Delivery]) -> list[Delivery]:
    talk.peer_sends(*[transfer(number) for number in range(count)])
    return sink_deliveries


@pytest.mark.amqp("2.6.12")
def test_neighbouring_deliveries_with_one_outcome_are_settled_by_one_range_over_the_wrap() -> None:
    talk = receiving()
    deliveries = received(talk.script, 40, talk.sink.deliveries)
    for delivery in deliveries:
        talk.session.settle_incoming(delivery, 0x24, ACCEPTED, True)
    talk.script.engine_sends(Disposition(True, NEAR_WRAP, serial(39), True, Accepted()))
    assert talk.session.deliveries.incoming.count == 0


def test_a_different_state_starts_a_new_range_and_the_order_is_kept() -> None:
    talk = receiving()
    deliveries = received(talk.script, 8, talk.sink.deliveries)
    settle = talk.session.settle_incoming
    settle(deliveries[1], 0x24, ACCEPTED, True)
    settle(deliveries[2], 0x24, bytes(ACCEPTED), True)
    settle(deliveries[3], 0x24, ACCEPTED, False)
    settle(deliveries[4], 0x26, RELEASED, True)
    settle(deliveries[0], 0x26, RELEASED, True)
    settle(deliveries[6], 0, None, True)
    settle(deliveries[7], 0, None, True)
    settle(deliveries[5], 0x25, encode_state(Rejected(Error("amqp:x"))), True)
    talk.script.engine_sends(
        Disposition(True, serial(1), serial(2), True, Accepted()),
        Disposition(True, serial(3), serial(3), False, Accepted()),
        Disposition(True, serial(4), serial(4), True, Released()),
        Disposition(True, serial(0), serial(0), True, Released()),
        Disposition(True, serial(6), serial(7), True),
        Disposition(True, serial(5), serial(5), True, Rejected(Error("amqp:x"))),
    )
    assert [delivery.delivery_id for delivery in talk.session.deliveries.incoming.all()] == [serial(3)]
    settle(deliveries[3], 0x24, ACCEPTED, True)
    talk.script.engine_sends(Disposition(True, serial(3), serial(3), True, Accepted()))
    assert talk.session.deliveries.incoming.count == 0


def test_settling_twice_or_after_the_peer_sends_no_frame() -> None:
    talk = receiving()
    deliveries = received(talk.script, 3, talk.sink.deliveries)
    settle = talk.session.settle_incoming
    settle(deliveries[0], 0x24, ACCEPTED, True)
    settle(deliveries[0], 0x26, RELEASED, True)
    talk.script.engine_sends(Disposition(True, serial(0), serial(0), True, Accepted()))
    talk.script.peer_sends(Disposition(False, serial(1), serial(2), True))
    settle(deliveries[1], 0x24, ACCEPTED, True)
    talk.script.engine_sends()
    assert deliveries[1].settled
    assert talk.session.deliveries.incoming.count == 0


def test_a_session_frame_does_not_overtake_earlier_settlements() -> None:
    talk = receiving()
    delivery = received(talk.script, 1, talk.sink.deliveries)[0]
    talk.session.settle_incoming(delivery, 0x24, ACCEPTED, True)
    talk.link.detach(True)
    talk.script.engine_sends(Disposition, Detach(0, True))


def test_a_sender_settles_its_deliveries_in_ranges() -> None:
    talk = sending()
    sent = [send(talk.link, number=number) for number in range(20)]
    talk.script.sent()
    for delivery in sent:
        talk.session.settle_outgoing(delivery, 0, None, True)
    talk.script.engine_sends(Disposition(False, NEAR_WRAP, serial(19), True))
    assert talk.session.deliveries.outgoing.count == 0
    talk.session.settle_outgoing(Delivery(talk.link), 0, None, True)  # never begun: no disposition
    talk.script.engine_sends()


def test_both_roles_of_one_session_keep_their_ids_apart() -> None:
    talk = receiving()
    out, out_sink = attached(talk.script, attach("two", 1, sends=False))
    talk.script.peer_sends(flow(handle=1, delivery_count=NEAR_WRAP, link_credit=2), transfer(0))
    mine = Delivery(out)
    out.send(mine, b"x", 0, 1, False)  # type: ignore[attr-defined]
    talk.script.sent()
    out_sink.names()
    assert mine.delivery_id == talk.sink.deliveries[0].delivery_id == NEAR_WRAP
    talk.script.peer_sends(Disposition(True, NEAR_WRAP, NEAR_WRAP, True, Released()))
    assert out_sink.names() == ["disposition"]
    assert (mine.remote_code, mine.remote_settled) == (0x26, True)
    assert [each.remote_settled for each in talk.sink.deliveries] == [False]
    talk.script.peer_sends(Disposition(False, NEAR_WRAP, NEAR_WRAP, True))
    assert [each.remote_settled for each in talk.sink.deliveries] == [True]
    assert talk.session.deliveries.incoming.count == talk.session.deliveries.outgoing.count == 0


# --- settlement: the peer's dispositions


@pytest.mark.amqp("2.7.6")
def test_a_range_of_dispositions_reaches_each_delivery_once_in_order_over_the_wrap() -> None:
    talk = sending()
    sent = [send(talk.link, number=number) for number in range(30)]
    talk.script.peer_sends(Disposition(True, serial(3), serial(25), True, Accepted()))
    assert [delivery for name, delivery in talk.sink.calls if name == "disposition"] == sent[3:26]
    assert all(
        each.remote_settled and each.remote_code == 0x24 and each.remote_state == ACCEPTED for each in sent[3:26]
    )
    assert not any(each.remote_settled for each in sent[:3] + sent[26:])
    assert talk.session.deliveries.outgoing.count == 7
    talk.sink.calls.clear()
    talk.script.peer_sends(Disposition(True, serial(0), serial(29), True, Released()))
    assert [delivery for _, delivery in talk.sink.calls] == sent[:3] + sent[26:]
    assert talk.session.deliveries.outgoing.count == 0


@pytest.mark.parametrize("role", [True, False], ids=["receiver", "sender"])
def test_a_disposition_of_unknown_ids_is_passed_over(role: bool) -> None:
    talk = sending()
    send(talk.link)
    unknown = Disposition(role, serial(5), serial(9), True, Accepted())
    talk.script.peer_sends(unknown, Disposition(role, 0, None, True), Disposition(not role, 77)).engine_reports()
    assert talk.sink.names() == []


@pytest.mark.parametrize("role", [True, False], ids=["receiver", "sender"])
@pytest.mark.amqp("2.8.10")
def test_the_widest_range_costs_no_more_than_the_deliveries_there_are(role: bool) -> None:
    """A walk over 2**31 ids would take minutes, for each of these thousand frames."""
    talk: Talk[OutgoingLink] | Talk[IncomingLink]
    if role:
        talk = sending()
        for number in range(3):
            send(talk.link, number=number)
    else:
        talk = receiving()
        talk.script.peer_sends(*[transfer(number) for number in range(3)])
    talk.sink.calls.clear()
    for start in range(1000):
        first = serial(-1000 - start)
        talk.script.peer_sends(Disposition(role, first, (first + 0x7FFFFFFF) & MASK32, False, Received(0, 1)))
    assert len(talk.sink.calls) == 3000
    talk.script.peer_sends(Disposition(role, serial(-1), serial(0x7FFFFFFE), True))
    assert talk.session.deliveries.outgoing.count == talk.session.deliveries.incoming.count == 0
    talk.script.engine_reports()


@pytest.mark.parametrize(("first", "last", "fits"), [(0, 0x7FFFFFFF, True), (0, 0x80000000, False), (1, 0, False)])
@pytest.mark.amqp("2.8.10")
def test_a_range_of_half_of_all_ids_or_more_runs_backwards(first: int, last: int, fits: bool) -> None:
    talk = sending()
    talk.script.peer_sends(Disposition(True, serial(first), serial(last), True))
    assert talk.connection.sessions() == [talk.session]
    assert talk.session.mapped == fits
    if not fits:
        talk.script.engine_reports(like(SessionEnded, fault=like(PeerFault, fault=Fault.DISPOSITION_RANGE)))
    else:
        talk.script.engine_reports()


@pytest.mark.amqp("2.6.12")
def test_three_steps_of_rcv_settle_mode_second() -> None:
    """The receiver sends its outcome, the sender settles, and the receiver gets the settlement."""
    sender, receiver = sending(), receiving()
    sent = send(sender.link)
    receiver.script.peer_sends(transfer())
    (got,) = receiver.sink.deliveries
    receiver.session.settle_incoming(got, 0x24, ACCEPTED, False)
    receiver.script.engine_sends(Disposition(True, NEAR_WRAP, NEAR_WRAP, False, Accepted()))
    assert receiver.session.deliveries.incoming.count == 1

    sender.script.peer_sends(Disposition(True, NEAR_WRAP, NEAR_WRAP, False, Accepted()))
    assert (sent.remote_code, sent.remote_settled, sender.session.deliveries.outgoing.count) == (0x24, False, 1)
    sender.script.sent()
    sender.session.settle_outgoing(sent, 0x24, ACCEPTED, True)
    sender.script.engine_sends(Disposition(False, NEAR_WRAP, NEAR_WRAP, True, Accepted()))
    assert sender.session.deliveries.outgoing.count == 0

    receiver.sink.names()
    receiver.script.peer_sends(Disposition(False, NEAR_WRAP, NEAR_WRAP, True, Accepted()))
    assert receiver.sink.names() == ["disposition"]
    assert got.remote_settled
    assert receiver.session.deliveries.incoming.count == 0
    receiver.session.settle_incoming(got, 0x24, ACCEPTED, True)
    receiver.script.engine_sends()


def test_states_that_are_no_outcome_may_repeat_and_unknown_states_keep_their_bytes() -> None:
    talk = sending()
    sent = send(talk.link)
    for offset in range(3):
        talk.script.peer_sends(Disposition(True, NEAR_WRAP, None, False, Received(0, offset)))
        assert (sent.remote_code, sent.remote_settled) == (0x23, False)
    for state, code in ((Declared(b"txn"), 0x33), (Described(ULong(0x99), [1, "x"]), 0x99)):
        talk.script.peer_sends(Disposition(True, NEAR_WRAP, None, False, state))
        assert (sent.remote_code, sent.remote_state) == (code, encode_state(state))
    talk.script.peer_sends(Disposition(True, NEAR_WRAP, None, False, Described(Symbol("odd:state"), [])))
    assert (sent.remote_code, sent.remote_state) == (-1, encode_state(Described(Symbol("odd:state"), [])))
    talk.script.engine_reports()


def test_frames_before_the_local_begin_are_accepted() -> None:
    """A client need not wait for the router's begin before it attaches and grants credit."""
    talk = opened(peer=Open("peer"))
    talk.peer_sends(
        begin(), attach("out", 0, sends=False), flow(window=10, handle=0, delivery_count=NEAR_WRAP, link_credit=7)
    )
    session = talk.connection.sessions()[0]
    link = session.links.by_handle[0]
    assert link.credit == 7
    session.begin()
    link.attach(None, None)
    talk.engine_sends(Begin, Attach)
    assert link.is_ready()
    assert send(link).complete


def test_a_session_window_of_the_default_limits_is_bounded() -> None:
    talk, session = begun()
    assert session.windows.max_incoming_frames == 512
    assert session.windows.max_incoming_bytes == 8 * 1024 * 1024
    talk.engine_sends()
