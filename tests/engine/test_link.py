"""Links: credit and drain both ways, deliveries in one frame or many, aborted, interleaved; attach and detach."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.talks import (
    ACCEPTED,
    MASK32,
    NEAR_WRAP,
    Recorder,
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
from tests.script import Like, Sent, like
from trouter.engine.connection import MAX_OUTGOING_FRAME
from trouter.engine.events import LinkAttached, LinkDetached
from trouter.engine.faults import Fault, Misuse, PeerFault
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.ports import Delivery, LinkPort, LinkSink
from trouter.wire.performatives import (
    Accepted,
    Attach,
    Begin,
    Detach,
    Disposition,
    Error,
    Flow,
    Open,
    Received,
    Source,
    Target,
    Transfer,
)


def serial(number: int) -> int:
    return (NEAR_WRAP + number) & MASK32


def credit(count: int, seen: int = 0, *, drain: bool = False) -> Like:
    """Return the flow with which trouter grants this credit."""
    return like(Flow, handle=0, delivery_count=serial(seen), link_credit=count, drain=drain)


# --- receiving: credit


@pytest.mark.amqp("2.6.7")
def test_credit_counts_deliveries_over_the_wrap_and_one_pass_sends_one_flow() -> None:
    talk = receiving(credit=0)
    talk.link.grant(10)
    talk.link.grant(10)
    talk.script.engine_sends(credit(20))
    for number in range(20):
        talk.script.peer_sends(transfer(number, more=True), Transfer(0, more=True), Transfer(0))
        assert talk.link.credit == 19 - number
    assert talk.link.delivery_count == serial(20)
    talk.link.grant(3)
    talk.script.engine_sends(credit(3, seen=20))


def test_as_much_again_as_was_granted_is_borne_with_and_no_more() -> None:
    talk = receiving(credit=2)
    talk.script.peer_sends(transfer(0), transfer(1)).engine_reports()
    assert talk.link.overdrawn == 0
    talk.script.peer_sends(transfer(2), transfer(3)).engine_reports()
    assert (talk.link.credit, talk.link.overdrawn, talk.sink.names().count("overdrawn")) == (-2, 2, 2)
    talk.script.peer_sends(transfer(4)).engine_reports(
        like(LinkDetached, link=talk.link, fault=like(PeerFault, fault=Fault.TRANSFER_LIMIT))
    )
    assert len(talk.sink.deliveries) == 4


def test_the_owner_of_a_link_may_bear_with_more() -> None:
    talk = receiving(credit=2)
    talk.link.overdraft = 3
    talk.script.peer_sends(*map(transfer, range(8))).engine_reports()
    assert (talk.link.credit, talk.link.overdrawn) == (-6, 6)
    talk.script.peer_sends(transfer(8)).engine_reports(
        like(LinkDetached, link=talk.link, fault=like(PeerFault, fault=Fault.TRANSFER_LIMIT))
    )


def test_the_next_grant_makes_up_for_deliveries_beyond_the_credit() -> None:
    talk = receiving(credit=3)
    talk.script.peer_sends(*map(transfer, range(5)), flow(handle=0, delivery_count=serial(5), link_credit=0, echo=True))
    talk.script.engine_sends(credit(0, seen=5))
    talk.link.grant(3)
    talk.script.engine_sends(credit(1, seen=5))
    talk.script.peer_sends(*map(transfer, range(5, 9))).engine_reports()
    assert (talk.link.credit, talk.link.max_credit, talk.link.overdrawn) == (-3, 3, 5)


def test_a_sender_that_never_had_credit_has_none_to_exceed() -> None:
    talk = receiving(credit=0)
    talk.script.peer_sends(transfer(0)).engine_reports(
        like(LinkDetached, link=talk.link, fault=like(PeerFault, fault=Fault.TRANSFER_LIMIT))
    )


def test_a_drain_is_over_when_deliveries_went_beyond_the_credit() -> None:
    talk = receiving(credit=1)
    talk.script.peer_sends(transfer(0), transfer(1))
    talk.link.grant(2)
    talk.link.drain()
    talk.script.peer_sends(transfer(2), transfer(3)).engine_reports()
    assert talk.sink.names().count("drained") == 1
    assert not talk.link.draining


def test_a_delivery_under_way_needs_no_further_credit() -> None:
    talk = receiving(credit=1)
    talk.script.peer_sends(transfer(0, more=True), *[Transfer(0, more=True)] * 20, Transfer(0)).engine_reports()
    assert talk.sink.deliveries[0].complete


def test_credit_granted_before_the_answer_to_an_attach_is_sent_behind_the_answer() -> None:
    talk, session = begun()
    link = add_link(session, "one", True)
    assert isinstance(link, IncomingLink)
    link.attach(Source("a"), Target("b"))
    link.grant(5)
    talk.engine_sends(Attach)
    talk.peer_sends(attach()).engine_reports(like(LinkAttached, link=link))
    talk.engine_sends(credit(5))


def test_an_echo_of_a_link_is_answered_with_the_links_state() -> None:
    talk = receiving(credit=5)
    talk.script.peer_sends(flow(handle=0, delivery_count=NEAR_WRAP, link_credit=5, echo=True)).engine_sends(credit(5))
    talk.script.peer_sends(flow(handle=0, delivery_count=NEAR_WRAP, link_credit=5)).engine_sends()


# --- receiving: drain


def test_a_drain_is_over_when_the_sender_gives_its_credit_back() -> None:
    talk = receiving(credit=5)
    talk.link.drain()
    talk.link.drain()
    talk.script.engine_sends(credit(5, drain=True))
    talk.script.peer_sends(transfer(0), transfer(1))
    assert talk.sink.names() == ["transfer", "transfer"]
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(5), link_credit=0, drain=True))
    assert talk.sink.names() == ["drained"]
    assert (talk.link.credit, talk.link.draining) == (0, False)
    talk.link.drain()
    talk.script.engine_sends()
    talk.link.grant(2)
    talk.script.engine_sends(credit(2, seen=5))
    talk.script.peer_sends(transfer(5), transfer(6)).engine_reports()


@pytest.mark.parametrize("aborted", [False, True])
def test_a_drain_is_over_when_deliveries_used_the_credit_up(aborted: bool) -> None:
    """Proton sends nothing more when there is no credit left to return."""
    talk = receiving(credit=2)
    talk.link.drain()
    talk.script.peer_sends(transfer(0), transfer(1, more=True))
    assert talk.sink.names() == ["transfer", "transfer"]
    talk.script.peer_sends(Transfer(0, aborted=aborted))
    assert talk.sink.names() == ["aborted" if aborted else "transfer", "drained"]
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(2), link_credit=0, drain=True))
    assert talk.sink.names() == []


def test_a_sender_that_gives_back_part_of_its_credit_or_too_much_is_still_draining() -> None:
    talk = receiving(credit=5)
    talk.link.drain()
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(3), link_credit=2))
    assert (talk.link.credit, talk.link.delivery_count) == (2, serial(3))
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(6), link_credit=0))  # more than it had: invalid
    assert (talk.link.credit, talk.link.delivery_count) == (2, serial(3))
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(2), link_credit=0))  # backwards: invalid
    assert (talk.link.credit, talk.link.delivery_count) == (2, serial(3))
    assert talk.sink.names() == []
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(5), link_credit=0))
    assert talk.sink.names() == ["drained"]


def test_a_grant_ends_a_drain() -> None:
    talk = receiving(credit=5)
    talk.link.drain()
    talk.script.engine_sends(credit(5, drain=True))
    talk.link.grant(1)
    talk.script.engine_sends(credit(6))


# --- receiving: deliveries


@pytest.mark.parametrize("piecemeal", [False, True], ids=["whole", "byte by byte"])
def test_a_delivery_in_many_frames_keeps_its_parts_in_order(piecemeal: bool) -> None:
    talk = receiving(piecemeal=piecemeal)
    talk.script.peer_sends(transfer(0, more=True), payload=b"one ")
    talk.script.peer_sends(Transfer(0, serial(0), b"tag0", more=True), payload=b"two ")
    talk.script.peer_sends(Transfer(0, more=True))
    talk.script.peer_sends(Transfer(0), payload=b"three")
    (delivery,) = talk.sink.deliveries
    assert talk.sink.bodies == {0: b"one two three"}
    assert (delivery.delivery_id, delivery.tag, delivery.payload_bytes, delivery.complete) == (
        NEAR_WRAP,
        b"tag0",
        13,
        True,
    )
    assert talk.link.partial is None
    assert talk.session.windows.next_incoming_id == serial(4)


def test_deliveries_of_several_links_interleave_frame_by_frame() -> None:
    talk = receiving()
    other, other_sink = attached(talk.script, attach("two", 9))
    assert isinstance(other, IncomingLink)
    other.grant(10)
    talk.script.peer_sends(transfer(0, more=True), payload=b"a")
    talk.script.peer_sends(transfer(1, handle=9, more=True), payload=b"1")
    talk.script.peer_sends(Transfer(0, more=True), payload=b"b")
    talk.script.peer_sends(Transfer(9), payload=b"2")
    talk.script.peer_sends(transfer(2, handle=9), payload=b"3")
    talk.script.peer_sends(Transfer(0), payload=b"c").engine_reports()
    assert talk.sink.bodies == {0: b"abc"}
    assert other_sink.bodies == {0: b"12", 1: b"3"}


@pytest.mark.amqp("2.6.14")
@pytest.mark.parametrize("place", ["first", "second", "last"])
def test_a_delivery_may_be_taken_back_at_each_place(place: str) -> None:
    talk = receiving(credit=3)
    if place == "first":
        talk.script.peer_sends(transfer(0, aborted=True), payload=b"ignored")
    else:
        talk.script.peer_sends(transfer(0, more=True), payload=b"part")
        talk.script.peer_sends(Transfer(0, aborted=True, more=place == "second"), payload=b"ignored")
    calls = talk.sink.calls[:]
    assert talk.sink.names() == (["aborted"] if place == "first" else ["transfer", "aborted"])
    delivery = calls[-1][1]
    assert (delivery.aborted, delivery.remote_settled, delivery.complete) == (True, True, True)
    assert talk.session.deliveries.incoming.count == 0
    assert talk.link.credit == 2
    talk.session.settle_incoming(delivery, 0x24, ACCEPTED, True)
    talk.script.peer_sends(transfer(1), payload=b"next").engine_reports()
    assert talk.sink.names() == ["transfer"]
    talk.script.engine_sends()


@pytest.mark.parametrize("settled", ["first", "second", "last", "never"])
def test_the_settled_flag_may_come_with_any_frame(settled: str) -> None:
    talk = receiving()
    talk.script.peer_sends(
        transfer(0, more=True, settled=settled == "first"),
        Transfer(0, more=True, settled=True if settled == "second" else None),
        Transfer(0, settled=settled == "last"),
    )
    (delivery,) = talk.sink.deliveries
    assert delivery.remote_settled == (settled != "never")
    assert talk.session.deliveries.incoming.count == (1 if settled == "never" else 0)


def test_a_delivery_settled_early_goes_on_to_its_end() -> None:
    talk = receiving()
    talk.script.peer_sends(transfer(0, more=True), payload=b"a")
    (delivery,) = talk.sink.deliveries
    talk.session.settle_incoming(delivery, 0x24, ACCEPTED, True)
    talk.script.engine_sends(Disposition(True, NEAR_WRAP, NEAR_WRAP, True, Accepted()))
    talk.script.peer_sends(Transfer(0, more=True), Transfer(0, settled=True)).engine_reports()
    assert delivery.complete
    assert talk.session.deliveries.incoming.count == 0


def test_a_state_on_a_transfer_and_its_format_are_kept() -> None:
    talk = receiving()
    talk.script.peer_sends(transfer(0, message_format=0x80000001, state=Received(1, 2)), payload=b"x")
    (delivery,) = talk.sink.deliveries
    assert delivery.message_format == 0x80000001
    assert (delivery.remote_code, delivery.transfer_state) == (0x23, delivery.remote_state)
    assert delivery.transfer_state == b"\x00\x53\x23\xc0\x05\x02\x52\x01\x53\x02"


def test_an_empty_tag_is_a_tag_and_ids_may_leave_gaps() -> None:
    talk = receiving()
    talk.script.peer_sends(Transfer(0, serial(0), b""), Transfer(0, serial(100), b"x"), Transfer(0, serial(1000), b""))
    talk.script.engine_reports()
    assert [each.tag for each in talk.sink.deliveries] == [b"", b"x", b""]
    assert [each.delivery_id for each in talk.session.deliveries.incoming.all()] == [
        serial(0),
        serial(100),
        serial(1000),
    ]


def test_a_link_that_keeps_no_tags_reads_none() -> None:
    talk = receiving()
    talk.link.keeps_tags = False
    talk.script.peer_sends(transfer(0))
    assert talk.sink.deliveries[0].tag is None


# --- sending: credit and drain


@pytest.mark.amqp("2.6.7")
def test_credit_is_counted_from_the_receivers_delivery_count_over_the_wrap() -> None:
    talk = sending(credit=20)
    for number in range(20):
        assert talk.link.is_ready()
        send(talk.link, number=number)
    assert not talk.link.is_ready()
    talk.sink.names()
    # the receiver wrote this after 18 of the 20
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(18), link_credit=5))
    assert (talk.link.credit, talk.sink.names()) == (3, ["credit"])
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(18), link_credit=1))
    assert talk.link.credit == 0
    talk.script.peer_sends(flow(handle=0, link_credit=4))
    assert talk.link.credit == 4
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(20), link_credit=MASK32))
    assert talk.link.credit == MASK32
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(21), link_credit=6))  # ahead of this end
    assert talk.link.credit == 6
    talk.script.engine_reports()


@pytest.mark.amqp("2.6.7")
@pytest.mark.parametrize("deliveries", [0, 2, 5])
def test_a_drain_is_answered_with_the_rest_of_the_credit(deliveries: int) -> None:
    talk = sending(credit=5)
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(0), link_credit=5, drain=True))
    assert talk.link.drain
    for number in range(deliveries):
        send(talk.link, number=number)
    talk.link.return_credit()
    talk.script.engine_sends(
        *[Transfer] * deliveries, like(Flow, handle=0, delivery_count=serial(5), link_credit=0, drain=True)
    )
    assert not talk.link.is_ready()
    talk.script.peer_sends(flow(sent=deliveries, handle=0, delivery_count=serial(5), link_credit=2))
    assert (talk.link.credit, talk.link.drain) == (2, False)
    talk.link.return_credit()
    talk.script.engine_sends()


def test_an_echo_is_answered_with_the_remaining_credit() -> None:
    talk = sending(credit=5)
    send(talk.link)
    talk.script.sent()
    talk.script.peer_sends(flow(handle=0, delivery_count=serial(1), link_credit=9, echo=True))
    talk.script.engine_sends(like(Flow, handle=0, delivery_count=serial(1), link_credit=9, drain=False))


def test_a_flow_before_the_local_attach_is_kept() -> None:
    talk, session = begun()
    talk.peer_sends(attach(sends=False), flow(handle=0, link_credit=3))
    link = session.links.by_handle[0]
    assert isinstance(link, OutgoingLink)
    assert not link.is_ready()
    link.attach(Source("a"), Target("b"))
    talk.engine_sends(like(Attach, role=False, initial_delivery_count=NEAR_WRAP))
    assert link.is_ready()
    assert link.credit == 3


# --- sending: deliveries


@pytest.mark.parametrize("size", [0, 1, 474, 475, 476, 963, 964, 5000])
@pytest.mark.parametrize("more", [False, True])
def test_a_delivery_is_cut_to_the_peers_frames(size: int, more: bool) -> None:
    talk = sending(peer=Open("peer", max_frame_size=512))
    body = bytes(number & 0xFF for number in range(size))
    delivery = Delivery(talk.link)
    delivery.number = 0x0102
    assert talk.link.send(delivery, body, 0, size, more) == size
    if more:
        assert not delivery.complete
        talk.link.send(delivery, b"the end", 0, 7, False)
    assert delivery.complete
    frames = talk.script.sent()
    assert b"".join(each.payload for each in frames) == body + (b"the end" if more else b"")
    assert max(each.size for each in frames) <= 512
    transfers: list[Any] = [each.performative for each in frames]
    assert transfers[0] == like(
        Transfer, handle=0, delivery_id=NEAR_WRAP, delivery_tag=b"\x02\x01" + bytes(6), settled=False
    )
    assert [each.delivery_id for each in transfers[1:]] == [None] * (len(transfers) - 1)
    assert [each.more for each in transfers] == [True] * (len(transfers) - 1) + [False]
    if not more and size <= 475:
        assert len(transfers) == 1
    assert talk.session.windows.sent_frames == len(frames)


@pytest.mark.parametrize(("allowed", "most"), [(70_000, 70_000), (0xFFFFFFFF, MAX_OUTGOING_FRAME)])
def test_a_frame_is_as_large_as_the_peer_allows_up_to_a_mebibyte(allowed: int, most: int) -> None:
    talk = sending(peer=Open("peer", max_frame_size=allowed))
    delivery = Delivery(talk.link)
    assert talk.link.frame_room(delivery) == most - 37
    body = bytes(most - 36)
    assert talk.link.send(delivery, body, 0, len(body), False) == len(body) - (0 if most < 512 * 1024 else 1)
    assert talk.script.sent()[0].size == most
    talk.connection.resume_output()
    exact = Delivery(talk.link)
    talk.link.send(exact, body, 0, most - 37, False)
    assert exact.complete
    assert [each.size for each in talk.script.sent()] == [most]


def test_every_byte_of_a_full_frame_is_used() -> None:
    talk = sending(peer=Open("peer", max_frame_size=512))
    send(talk.link, bytes(10_000))
    assert [each.size for each in talk.script.sent()[:-1]] == [512] * 20


@pytest.mark.parametrize("settled", [False, True])
def test_a_transfer_carries_the_tag_the_format_and_the_state_of_its_delivery(settled: bool) -> None:
    talk = sending(peer=Open("peer", max_frame_size=512))
    delivery = Delivery(talk.link)
    delivery.tag, delivery.message_format = b"t" * 32, 0x80000001
    if settled:
        delivery.mark_settled()
    delivery.transfer_state = b"\x00\x53\x23\xc0\x05\x02\x52\x01\x53\x02"
    talk.link.send(delivery, bytes(1000), 0, 1000, False)
    frames = talk.script.sent()
    assert frames[0].performative == Transfer(0, NEAR_WRAP, b"t" * 32, 0x80000001, settled, True, None, Received(1, 2))
    assert b"".join(each.payload for each in frames) == bytes(1000)
    assert max(each.size for each in frames) <= 512
    assert talk.session.deliveries.outgoing.count == (0 if settled else 1)
    delivery = Delivery(talk.link)
    delivery.transfer_state = bytes(257)
    with pytest.raises(Misuse):
        talk.link.send(delivery, b"", 0, 0, False)


def test_a_window_that_closes_within_a_delivery_pauses_the_delivery() -> None:
    talk = sending(window=2, peer=Open("peer", max_frame_size=512))
    delivery = send(talk.link, bytes(2000))
    assert delivery.offset == 475 + 488
    assert [delivery.complete] == [False]
    talk.script.engine_sends(Transfer, Transfer)
    talk.sink.names()
    talk.script.peer_sends(flow(sent=2, window=100))
    assert talk.sink.names() == ["credit"]
    assert talk.link.send(delivery, bytes(2000), delivery.offset, 2000, False) == 2000
    assert delivery.complete
    assert len(b"".join(each.payload for each in talk.script.sent())) == 2000 - delivery.offset


def test_a_delivery_that_lacks_only_its_last_frame_waits_for_the_window() -> None:
    talk = sending(window=1)
    delivery = Delivery(talk.link)
    assert talk.link.send(delivery, b"abc", 0, 3, True) == 3
    assert talk.link.send(delivery, b"abc", 3, 3, True) == 3
    assert not talk.link.waiting
    assert talk.link.send(delivery, b"abc", 3, 3, False) == 3
    assert (delivery.complete, talk.link.waiting) == (False, True)
    talk.script.peer_sends(flow(sent=1, window=1))
    talk.link.send(delivery, b"abc", 3, 3, False)
    assert delivery.complete
    talk.script.engine_sends(like(Transfer, more=True), like(Transfer, more=False))


@pytest.mark.amqp("2.6.14")
def test_an_abort_is_one_frame_and_only_for_a_delivery_under_way() -> None:
    talk = sending()
    never, under_way, complete = Delivery(talk.link), Delivery(talk.link), send(talk.link, number=7)
    talk.link.send(under_way, b"part", 0, 4, True)
    talk.script.sent()
    for delivery in (never, under_way, complete):
        talk.link.abort_delivery(delivery)
        talk.link.abort_delivery(delivery)
    talk.script.engine_sends(Transfer(0, None, None, None, True, aborted=True))
    assert talk.session.deliveries.outgoing.count == 0
    talk.script.peer_sends(Disposition(True, NEAR_WRAP, serial(1), True, Accepted()))
    assert "disposition" not in talk.sink.names()
    assert talk.session.windows.sent_frames == 3


# --- waiting links


class Pump(LinkSink):
    """A link sink that sends 400 bytes at a time whenever it may."""

    def __init__(self) -> None:
        self.sent = 0

    def on_credit(self, link: LinkPort) -> None:
        assert isinstance(link, OutgoingLink)
        while link.is_ready() and send(link, bytes(400)).complete:
            self.sent += 1


def test_links_that_wait_for_output_go_on_in_turn() -> None:
    talk, _ = begun(with_limits(high_water_bytes=1000))
    connection = talk.connection
    pumps = [Pump() for _ in range(3)]
    for number, pump in enumerate(pumps):
        link, _ = attached(talk, attach(str(number), number, sends=False))
        link.sink = pump
    for number in range(3):
        talk.peer_sends(flow(handle=number, delivery_count=NEAR_WRAP, link_credit=1000))
    assert connection.paused
    assert [pump.sent for pump in pumps] == [3, 0, 0]
    assert 1000 <= len(connection.out) < 1500
    # in any window and for any request, a full output is full
    talk.peer_sends(flow(window=2000, sent=3))
    connection.resume_output()
    assert [pump.sent for pump in pumps] == [3, 0, 0]
    for _ in range(30):
        talk.sent()
        connection.resume_output()
        assert max(pump.sent for pump in pumps) - min(pump.sent for pump in pumps) <= 6  # two rounds
    assert min(pump.sent for pump in pumps) == 30


def test_links_that_wait_for_the_window_go_on_in_turn() -> None:
    talk, _ = begun()
    pumps = [Pump() for _ in range(3)]
    for number, pump in enumerate(pumps):
        link, _ = attached(talk, attach(str(number), number, sends=False))
        link.sink = pump
    talk.peer_sends(flow(window=0))
    for number in range(3):
        talk.peer_sends(flow(window=0, handle=number, delivery_count=NEAR_WRAP, link_credit=1000))
    for turn in range(90):
        talk.sent()
        talk.peer_sends(flow(sent=turn, window=1))
        assert max(pump.sent for pump in pumps) - min(pump.sent for pump in pumps) <= 1
    assert [pump.sent for pump in pumps] == [30, 30, 30]


def test_a_link_detached_while_waiting_for_the_window_is_passed_over() -> None:
    talk = sending(window=0)
    other, other_sink = attached(talk.script, attach("two", 1, sends=False))
    assert isinstance(other, OutgoingLink)
    talk.script.peer_sends(flow(window=0, handle=1, delivery_count=NEAR_WRAP, link_credit=1))
    send(talk.link)
    send(other)
    talk.sink.names()
    other_sink.names()
    talk.script.peer_sends(Detach(0, True), flow(window=5))
    assert (talk.sink.names(), other_sink.names()) == ([], ["credit"])


def test_nothing_is_sent_on_a_link_that_is_not_attached() -> None:
    talk = sending()
    half = Delivery(talk.link)
    talk.link.send(half, b"abc", 0, 3, True)
    talk.script.peer_sends(Detach(0, True))
    talk.script.sent()
    assert talk.link.send(half, b"abc", 0, 3, False) == 0
    talk.link.abort_delivery(half)
    talk.link.return_credit()
    talk.link.request_flow()
    assert not talk.link.is_ready()
    talk.script.engine_sends()


# --- attach and detach


@pytest.mark.parametrize("closed", [False, True], ids=["detached", "closed"])
@pytest.mark.parametrize("ours_first", [False, True], ids=["the peer first", "we first"])
def test_a_link_ends_with_a_detach_from_each_side_and_may_come_back(closed: bool, ours_first: bool) -> None:
    talk = receiving()
    for _ in range(3):
        link = talk.session.links.by_handle[0]
        if ours_first:
            link.detach(closed)
            talk.script.engine_sends(Detach(0, closed))
            talk.script.peer_sends(transfer(0), flow(handle=0), Detach(0, closed)).engine_reports()
        else:
            talk.script.peer_sends(Detach(0, closed)).engine_reports(
                like(LinkDetached, link=link, closed=closed, error=None, fault=None)
            )
            link.detach(closed)
            talk.script.engine_sends(Detach(0, closed))
        assert link.closed == closed
        assert talk.session.links.list_links() == []
        assert talk.connection.link_count == 0
        again, sink = attached(talk.script, attach("one", 0))
        assert again is not link
        assert isinstance(again, IncomingLink)
        again.grant(1)
        talk.script.engine_sends(credit(1))
    talk.script.peer_sends(transfer(50))
    assert sink.names() == ["transfer"]


def test_a_detach_carries_its_error_both_ways() -> None:
    error = Error("amqp:not-found", "gone", {"why": "because"})
    talk = receiving()
    talk.script.peer_sends(Detach(0, True, error)).engine_reports(like(LinkDetached, error=error))
    talk.link.detach(True, error)
    talk.script.engine_sends(Detach(0, True, error))


@pytest.mark.amqp("2.6.3")
@pytest.mark.parametrize("sends", [True, False], ids=["the peer sends", "the peer receives"])
@pytest.mark.parametrize("hurried", [False, True], ids=["patient", "hurried"])
def test_a_refused_link_is_attached_without_terminus_and_closed(sends: bool, hurried: bool) -> None:
    """This holds also when the peer detached before it got the refusal: a detach needs an attach to end."""
    talk, session = begun()
    talk.peer_sends(attach(sends=sends))
    if hurried:
        talk.peer_sends(Detach(0, True))
    error = Error("amqp:not-found", "Node not found")
    link = session.links.by_handle[0]
    link.refuse(error)
    refusal = like(Attach, handle=0, source=None, target=None, role=sends)
    talk.engine_sends(refusal, Detach(0, True, error))
    if not hurried:
        talk.peer_sends(Detach(0, True))
    link.detach(True)
    talk.engine_sends()
    assert session.links.list_links() == []
    (first, *_) = talk.connection.events
    assert isinstance(first, LinkAttached)


def test_a_local_sender_always_sends_its_initial_delivery_count() -> None:
    for accepted in (True, False):
        talk, session = begun()
        talk.peer_sends(attach(sends=False))
        link = session.links.by_handle[0]
        if accepted:
            link.attach(None, None)
        else:
            link.refuse(None)
        assert talk.sent()[0].performative == like(Attach, role=False, initial_delivery_count=NEAR_WRAP)


def test_a_local_link_is_attached_pipelined_and_its_handles_differ() -> None:
    talk = opened()
    session = talk.connection.add_session()
    session.begin()
    add_link(session, "spare", True).attach(Source("x"), Target("y"))
    link = add_link(session, "ours", False)
    assert isinstance(link, OutgoingLink)
    sink = Recorder()
    link.sink = sink
    link.attach(Source("a"), Target("b"))
    talk.engine_sends(Begin, Attach, like(Attach, name="ours", handle=1, role=False))
    talk.peer_sends(begin(remote_channel=0), attach("ours", 42, sends=False), channel=3)
    talk.peer_sends(flow(handle=42, delivery_count=NEAR_WRAP, link_credit=1), channel=3)
    assert sink.names() == ["credit"]
    send(link)
    talk.engine_sends(like(Sent, channel=0, performative=like(Transfer, handle=1)))


def test_an_answer_to_a_link_detached_meanwhile_is_not_reported() -> None:
    talk, session = begun()
    link = add_link(session, "one", True)
    link.attach(None, None)
    link.detach(True)
    talk.engine_sends(Attach, Detach)
    talk.peer_sends(attach(), Detach(0, True)).engine_reports()
    assert session.links.list_links() == []


def test_one_name_serves_a_link_in_each_direction() -> None:
    talk, session = begun()
    one, _ = attached(talk, attach("same", 0))
    two, _ = attached(talk, attach("same", 1, sends=False))
    assert one is not two
    assert (one.incoming, two.incoming) == (True, False)
    talk.peer_sends(Detach(0, True)).engine_reports(like(LinkDetached, link=one))
    assert session.links.by_name == {(False, "same"): two}
