"""Connections: opens and closes from both sides, any cut of the stream, time-outs of both ends."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.talks import (
    ACCEPTED,
    NEAR_WRAP,
    OPEN,
    Recorder,
    attach,
    attached,
    begin,
    begun,
    client,
    flow,
    opened,
    receiving,
    send,
    sending,
    server,
    transfer,
    with_limits,
)
from tests.script import Script, encode, like
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.faults import Fault, Misuse, PeerFault
from trouter.engine.link import IncomingLink, add_link
from trouter.engine.ports import Delivery, LinkPort
from trouter.engine.states import ConnectionState
from trouter.wire.framing import AMQP_HEADER, frame
from trouter.wire.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
)

EMPTY = frame(0, b"")


# --- opening and closing


def test_a_server_answers_the_header_at_once_and_opens_on_request() -> None:
    talk = Script(server(max_frame_size=16384, channel_max=99))
    talk.engine_sends()
    talk.peer_sends(AMQP_HEADER).engine_sends(AMQP_HEADER)
    talk.peer_sends(Open("peer", "host", 4096)).engine_reports(like(ConnectionOpened, open=like(Open, hostname="host")))
    assert talk.connection.remote_max_frame_bytes == 4096
    talk.connection.open()
    talk.engine_sends(Open("R1", max_frame_size=16384, channel_max=99))
    assert talk.connection.state is ConnectionState.OPENED


def test_a_client_may_send_everything_at_once() -> None:
    connection = client()
    talk = Script(connection)
    connection.open()
    session = connection.add_session()
    session.begin()
    link = add_link(session, "one", True)
    assert isinstance(link, IncomingLink)
    link.attach(Source("a"), Target("b"))
    connection.close()
    talk.engine_sends(AMQP_HEADER, Open, Begin, Attach, Close())
    talk.peer_sends(AMQP_HEADER, OPEN, begin(remote_channel=0), attach(), Close())
    talk.engine_reports(ConnectionClosed(None))
    assert connection.state is ConnectionState.END
    assert connection.finished


@pytest.mark.parametrize("piecemeal", [False, True], ids=["whole", "byte by byte"])
def test_a_peer_may_send_everything_at_once(piecemeal: bool) -> None:
    """Answers come in the order of the requests; frames that cross them are kept or skipped."""
    talk = Script(server(), piecemeal=piecemeal)
    talk.peer_sends(
        AMQP_HEADER,
        OPEN,
        begin(),
        attach("in", 0),
        attach("out", 1, sends=False),
        flow(handle=1, delivery_count=NEAR_WRAP, link_credit=2),
        flow(handle=0),
        Disposition(True, 5),
        Detach(0, True),
        End(),
        Close(),
    )
    events = list(talk.connection.events)
    assert [type(event) for event in events] == [
        ConnectionOpened, SessionBegun, LinkAttached, LinkAttached, LinkDetached, SessionEnded, ConnectionClosed,
    ]  # fmt: skip
    answer(talk.connection, {})
    talk.engine_sends(AMQP_HEADER, Open, Close())  # the peer waits for no answer to the rest
    assert talk.connection.state is ConnectionState.END


def test_sessions_that_are_forgotten_are_kept_by_nothing() -> None:
    """Each goes when it is forgotten, and not all of them with the last, which takes long when there are many."""
    talk = opened()
    for channel in range(3):
        talk.peer_sends(begin(), channel=channel)
    for left in (2, 1, 0):
        assert talk.connection.channels.forget_sessions(1) == (left > 0)
        assert len(talk.connection.channels.by_remote_channel) == left


def test_nothing_is_reported_behind_the_close() -> None:
    talk = opened()
    talk.peer_sends(Close(Error("amqp:x")), begin(), Close(), OPEN, b"garbage")
    talk.engine_reports(ConnectionClosed(Error("amqp:x")))
    talk.connection.close()
    talk.engine_sends(Close())
    talk.connection.tick(1000.0)
    talk.engine_reports().engine_sends()


def test_a_fault_behind_the_local_close_ends_the_wait_for_the_close_of_the_peer() -> None:
    talk = opened()
    talk.connection.close()
    talk.peer_sends(b"garbage!")
    talk.engine_reports(like(ConnectionClosed, fault=like(PeerFault, fault=Fault.FRAMING)))
    talk.engine_sends(Close())
    assert talk.connection.finished


def test_a_close_stands_behind_everything_gathered() -> None:
    talk = receiving()
    talk.script.peer_sends(transfer())
    talk.session.settle_incoming(talk.sink.deliveries[0], 0x24, ACCEPTED, True)
    talk.link.grant(5)
    talk.connection.close(Error("amqp:connection:forced"))
    talk.script.engine_sends(Disposition, Flow, Close(Error("amqp:connection:forced")))


def test_the_limits_of_the_peer_bound_local_sessions_and_links() -> None:
    talk = opened(peer=Open("peer", channel_max=1))
    sessions = [talk.connection.add_session() for _ in range(2)]
    with pytest.raises(Misuse):
        talk.connection.add_session()
    sessions[0].begin()
    talk.peer_sends(begin(remote_channel=0, handle_max=1))
    for name in "ab":
        add_link(sessions[0], name, True)
    with pytest.raises(Misuse):
        add_link(sessions[0], "c", True)
    assert talk.connection.link_count == 2


# --- the cuts of the stream


class Keeping(Recorder):
    """A link sink that settles each delivery, and returns its credit."""

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        assert isinstance(link, IncomingLink)
        super().on_transfer(link, delivery, data, start, end)
        if delivery.complete:
            link.session.settle_incoming(delivery, 0x24, ACCEPTED, True)
            link.grant(1)


def answer(connection: Connection, sinks: dict[str, Recorder]) -> None:
    """Answer all events, accepting each."""
    while connection.events:
        event: Event = connection.events.pop(0)
        if isinstance(event, ConnectionOpened):
            connection.open()
        elif isinstance(event, SessionBegun):
            event.session.begin()
        elif isinstance(event, LinkAttached):
            event.link.sink = sinks.setdefault(event.link.name, Keeping())
            event.link.attach(event.attach.source, event.attach.target)
            if isinstance(event.link, IncomingLink):
                event.link.grant(50)
        elif isinstance(event, LinkDetached):
            event.link.detach(event.closed)
        elif isinstance(event, SessionEnded):
            event.session.end()
            connection.drop_session(event.session)
        elif isinstance(event, ConnectionClosed):
            connection.close()


STREAM = b"".join(
    [
        AMQP_HEADER,
        encode(OPEN),
        EMPTY,
        encode(begin(), 3),
        encode(attach("in", 4), 3),
        encode(attach("out", 5, sends=False), 3),
        encode(flow(handle=5, delivery_count=NEAR_WRAP, link_credit=9, echo=True), 3),
    ]
)
LATER = b"".join(
    [
        *[encode(transfer(number, handle=4), 3, b"%d" % number * 100) for number in range(20)],
        encode(transfer(20, handle=4, more=True), 3, b"a" * 300),
        encode(Transfer(4, more=True), 3, b"b" * 300),
        EMPTY,
        encode(Transfer(4), 3, b"c"),
        encode(transfer(21, handle=4, aborted=True), 3),
        encode(Disposition(True, NEAR_WRAP, NEAR_WRAP + 9, True, Accepted()), 3),
        encode(Detach(4, True), 3),
        EMPTY,
    ]
)
#: Nothing before an end or a close is answered after it, so the answers would depend on the reads.
ENDS = [encode(End(), 3), encode(Close())]


def converse(pieces: list[bytes]) -> tuple[dict[int, bytes], bytes, ConnectionState]:
    """Return the bodies, the output without flows and dispositions (they depend on the reads), and the final state."""
    connection = server()
    sinks: dict[str, Recorder] = {}
    talk = Script(connection)
    out = []
    for piece in pieces + ENDS:
        connection.receive_data(piece)
        answer(connection, sinks)
        out += [sent for sent in talk.sent() if not isinstance(sent.performative, Flow | Disposition)]
    return sinks["in"].bodies, repr(out).encode(), connection.state


@given(cuts=st.lists(st.integers(0, len(LATER)), max_size=30))
def test_a_conversation_does_not_depend_on_how_the_stream_was_cut(cuts: list[int]) -> None:
    whole = converse([STREAM, LATER])
    assert len(whole[0]) == 21
    assert whole[2] is ConnectionState.END
    edges = [0, *sorted(cuts), len(LATER)]
    pieces = [LATER[start:end] for start, end in pairwise(edges)]
    assert converse([STREAM, *pieces]) == whole


def test_a_conversation_byte_by_byte_is_the_same() -> None:
    content = STREAM + LATER
    assert converse([content[at : at + 1] for at in range(len(content))]) == converse([STREAM, LATER])


# --- time


@pytest.mark.amqp("2.4.5")
def test_a_connection_without_a_frame_for_its_limit_is_idle() -> None:
    talk = opened(with_limits(idle_timeout_s=16.0))
    connection = talk.connection
    assert connection.idle.tick_period_s == 4.0
    connection.tick(100.0)
    for now_s in (104.0, 108.0, 112.0, 115.9):
        connection.tick(now_s)
    talk.peer_sends(EMPTY)
    connection.tick(116.0)
    for now_s in (120.0, 131.9):
        connection.tick(now_s)
    talk.engine_sends().engine_reports()
    connection.tick(132.0)
    talk.engine_sends(Close(Error("amqp:resource-limit-exceeded", "local-idle-timeout expired")))
    talk.engine_reports(like(ConnectionClosed, fault=like(PeerFault, fault=Fault.IDLE_TIMEOUT)))
    connection.tick(200.0)
    talk.engine_sends().engine_reports()
    assert connection.finished


def test_bytes_that_never_make_a_frame_are_silence() -> None:
    talk = opened(with_limits(idle_timeout_s=4.0))
    talk.connection.tick(0.0)
    for second, byte in enumerate(encode(begin())[:5]):
        talk.peer_sends(bytes((byte,)))
        talk.connection.tick(float(second + 1))
    talk.engine_reports(like(ConnectionClosed, fault=like(PeerFault, fault=Fault.IDLE_TIMEOUT)))


def test_no_time_out_on_either_side_needs_no_ticks() -> None:
    talk = opened(with_limits(idle_timeout_s=0.0))
    assert talk.connection.idle.tick_period_s == 0.0
    for now_s in range(0, 10_000, 100):
        talk.connection.tick(float(now_s))
    talk.engine_sends().engine_reports()


@pytest.mark.amqp("2.4.5")
@pytest.mark.parametrize("busy", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("theirs_ms", "ours_s"), [(1000, 0.0), (1000, 16.0), (60_000, 16.0), (60_000, 0.0), (400, 300.0)]
)
def test_a_frame_goes_out_at_least_every_half_of_the_idle_timeout_of_the_peer(
    theirs_ms: int, ours_s: float, busy: float
) -> None:
    talk = opened(with_limits(idle_timeout_s=ours_s), Open("peer", idle_time_out=theirs_ms))
    connection = talk.connection
    chance = random.Random(7)
    now_s, written_s, empty, ticks = 0.0, 0.0, 0, 0
    period_s = connection.idle.tick_period_s
    assert 0 < period_s <= theirs_ms / 4000
    for _ in range(400):
        now_s += period_s
        ticks += 1
        if chance.random() < busy:  # somewhere between two ticks
            talk.peer_sends(begin(), End())
            for session in connection.sessions():
                session.end()
                connection.drop_session(session)
            connection.events.clear()
            assert talk.sent()
            written_s = now_s - chance.random() * period_s
        else:
            talk.peer_sends(EMPTY)
        connection.tick(now_s)
        sent = talk.sent()
        if sent:
            assert [each.performative for each in sent] == [None]
            written_s = now_s
            empty += 1
        assert now_s + period_s - written_s <= theirs_ms / 2000 + period_s
        assert now_s - written_s < theirs_ms / 2000 + 1e-9
    assert empty > 0
    assert busy < 0.9 or empty < ticks / 2


def test_a_peer_cannot_cause_endless_ticks() -> None:
    talk = opened(peer=Open("peer", idle_time_out=1))
    assert talk.connection.idle.tick_period_s == 0.1


@pytest.mark.parametrize("state", ["header", "open received", "closing"])
def test_ticks_send_no_frame_before_the_local_open_and_behind_the_local_close(state: str) -> None:
    talk = Script(server(with_limits(idle_timeout_s=1.0)))
    talk.peer_sends(AMQP_HEADER)
    if state != "header":
        talk.peer_sends(Open("peer", idle_time_out=1000))
    if state == "closing":
        talk.connection.open()
        talk.connection.close()
    talk.sent()
    talk.connection.events.clear()
    for now_s in range(100):
        talk.connection.tick(float(now_s))
    talk.engine_sends().engine_reports()


# --- the outbox


def touched(what: Callable[[], object], connection: Connection) -> bool:
    connection.flush()
    connection.outbox.clear()
    what()
    return connection.outbox == [connection]


def test_each_call_with_output_requests_one_flush() -> None:
    talk, out = receiving(), sending()
    connection = talk.connection
    talk.script.peer_sends(transfer())
    (delivery,) = talk.sink.deliveries

    def settle() -> None:
        for _ in range(3):
            talk.session.settle_incoming(delivery, 0x23, b"\0\x53\x23\x45", False)

    assert touched(lambda: talk.link.grant(1), connection)
    assert touched(settle, connection)
    assert touched(lambda: send(out.link), out.connection)
    assert touched(lambda: send(out.link), out.connection)
    assert touched(lambda: talk.script.peer_sends(flow(echo=True)), connection)
    assert touched(talk.connection.close, connection)
    assert not touched(lambda: talk.script.peer_sends(EMPTY), connection)


def test_a_peer_may_leave_its_container_without_a_name() -> None:
    talk = opened(peer=Open(""))
    assert talk.connection.remote_open == Open("")


REASONS = [b"\x52\7", b"\xa3\6forced", b"\0\x53\x1d\x45", b"\0\x53\x1d\xa1\1x", b"\0\x53\x25\x45"]


@pytest.mark.parametrize("reason", REASONS, ids=bytes.hex)
def test_a_close_with_a_malformed_reason_is_a_close(reason: bytes) -> None:
    talk = opened()
    talk.peer_sends(frame(0, b"\0\x53\x18\xc0" + bytes((len(reason) + 1, 1)) + reason))
    talk.engine_reports(ConnectionClosed(None))
    talk.connection.close()
    talk.engine_sends(Close())


@pytest.mark.parametrize("reason", REASONS, ids=bytes.hex)
def test_an_end_and_a_detach_with_malformed_reasons_end_no_more_than_they_say(reason: bytes) -> None:
    talk, session = begun()
    link, _ = attached(talk, attach("one", 0))
    talk.peer_sends(frame(0, b"\0\x53\x16\xc0" + bytes((len(reason) + 3, 3)) + b"\x43\x41" + reason))
    talk.engine_reports(LinkDetached(link, True, None))
    talk.peer_sends(frame(0, b"\0\x53\x17\xc0" + bytes((len(reason) + 1, 1)) + reason))
    talk.engine_reports(SessionEnded(session, None))
    assert not talk.connection.finished
