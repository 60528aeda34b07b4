"""Every row of the fault table: its cause, its error on its scope with its text, and the rest that goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.engine.talks import (
    LIMITS,
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
    sending,
    server,
    transfer,
    with_limits,
)
from tests.script import Script, Sent, encode, like
from trouter.engine.events import ConnectionClosed, ConnectionOpened, LinkDetached, SessionEnded
from trouter.engine.faults import Fault, PeerFault, Scope
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import Delivery, LinkPort, LinkSink
from trouter.engine.session import Session
from trouter.wire.framing import AMQP_HEADER, FRAME_SASL, TLS_HEADER, frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Open,
    Performative,
    Rejected,
    Source,
    Transfer,
    encode_state,
)

RIG = with_limits(
    channel_max=3,
    handle_max=7,
    max_links=4,
    session_window_frames=16,
    idle_timeout_s=16.0,
    max_message_bytes=100,
    max_delivery_frames=40,
)


@dataclass
class Rig:
    """Session 0 with the links one and three (the peer sends, 4 credits), two (it receives); session 1 with a one."""

    script: Script
    session: Session
    other_session: Session
    one: Link
    three: Link
    three_sink: Recorder
    elsewhere_sink: Recorder


def rig() -> Rig:
    script, session = begun(RIG)
    one, _ = attached(script, attach("one", 0))
    two = attached(script, attach("two", 1, sends=False))[0]
    three, three_sink = attached(script, attach("three", 2))
    script.peer_sends(begin(), channel=1)
    other_session = script.connection.sessions()[1]
    other_session.begin()
    script.connection.events.clear()
    script.sent()
    elsewhere, elsewhere_sink = attached(script, attach("one", 0), channel=1)
    for link in (one, three, elsewhere):
        assert isinstance(link, IncomingLink)
        link.grant(4)
    script.peer_sends(flow(handle=1, delivery_count=NEAR_WRAP, link_credit=3))
    script.sent()
    assert two.credit == 3
    return Rig(script, session, other_session, one, three, three_sink, elsewhere_sink)


Provoked = tuple[Scope, str]


def sends(*what: Performative | bytes, channel: int = 0, payload: bytes = b"") -> Callable[[Rig], object]:
    return lambda talk: talk.script.peer_sends(*what, channel=channel, payload=payload)


def is_never_done(talk: Rig) -> None:
    """Send one frame after the other, so that the window opens repeatedly."""
    talk.script.peer_sends(transfer(more=True))
    for _ in range(40):
        talk.script.connection.flush()
        talk.script.peer_sends(Transfer(0, more=True))


def is_silent(talk: Rig) -> None:
    connection = talk.script.connection
    connection.tick(100.0)
    connection.tick(115.9)
    assert not connection.failed
    connection.tick(116.0)


class Keeper(LinkSink):
    """A link sink that keeps every byte, as the core does for a receiver that takes none."""

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        link.session.windows.hold_bytes(end - start)


def is_kept(content: int) -> Callable[[Rig], object]:
    def provoke(talk: Rig) -> None:
        talk.script.connection.budget.limit = 50
        talk.one.sink = Keeper()
        talk.script.peer_sends(transfer(), payload=bytes(content))

    return provoke


def is_kept_by_the_connection(content: int) -> Callable[[Rig], object]:
    def provoke(talk: Rig) -> None:
        talk.script.connection.buffer_limit = 50
        talk.one.sink = Keeper()
        talk.script.peer_sends(transfer(), payload=bytes(content))

    return provoke


def rejected(content: int) -> Rejected:
    """Return a state of that many bytes."""
    return Rejected(Error("amqp:x", "y" * (content - len(encode_state(Rejected(Error("amqp:x", "y" * 200)))) + 200)))


def unknown(code: int) -> bytes:
    return frame(0, bytes((0, 0x53, code, 0x45)))


CASES: list[tuple[Fault, str, Callable[[Rig], object]]] = [
    (Fault.FRAMING, "frame of 7 bytes is smaller than its header", sends(b"\0\0\0\7\2\0\0\0")),
    (Fault.FRAMING, "frame of 16385 bytes exceeds the maximum of 16384", sends(b"\0\0\x40\1\2\0\0\0")),
    (Fault.FRAMING, "frame data offset of 4 bytes in a frame of 8", sends(b"\0\0\0\x08\1\0\0\0")),
    (Fault.FRAMING, "frame data offset of 12 bytes in a frame of 8", sends(b"\0\0\0\x08\3\0\0\0")),
    (Fault.DECODE, "a frame body is not a described value", sends(frame(0, b"\x45"))),
    (Fault.DECODE, "transfer: handle is missing", sends(frame(0, b"\0\x53\x14\x45"))),
    (Fault.DECODE, "", sends(frame(0, b"\0\x53\x12\xc0\xff\x01"))),
    (Fault.UNKNOWN_PERFORMATIVE, "no performative has the descriptor 0x19", sends(unknown(0x19))),
    (Fault.UNKNOWN_PERFORMATIVE, "no performative has the descriptor 0x41", sends(unknown(0x41))),
    (
        Fault.UNKNOWN_PERFORMATIVE,
        "no performative has the descriptor outside the standard",
        sends(frame(0, b"\0\xa3\1x\x45")),
    ),
    (Fault.FRAME_TYPE, "frame type 1 where AMQP frames are due", sends(frame(0, b"\0\x53\x41\x45", FRAME_SASL))),
    (Fault.FRAME_TYPE, "frame type 7 where AMQP frames are due", sends(frame(0, b"", 7))),
    (Fault.ILLEGAL_CONNECTION_STEP, "peer: receive open while opened", sends(Open("again"))),
    (Fault.CHANNEL_MAX, "remote channel 4 is above negotiated channel_max 3.", sends(begin(), channel=4)),
    (Fault.CHANNEL_IN_USE, "begin on channel 1, which has a session", sends(begin(), channel=1)),
    (
        Fault.REMOTE_CHANNEL,
        "begin answers channel 9, where no begin is waiting",
        sends(begin(remote_channel=9), channel=2),
    ),
    (
        Fault.REMOTE_CHANNEL,
        "begin answers channel 0, where no begin is waiting",
        sends(begin(remote_channel=0), channel=2),
    ),
    (Fault.CHANNEL_UNMAPPED, "transfer on channel 2, which has no session", sends(transfer(), channel=2)),
    (Fault.CHANNEL_UNMAPPED, "attach on channel 3, which has no session", sends(attach(), channel=3)),
    (Fault.IDLE_TIMEOUT, "local-idle-timeout expired", is_silent),
    (Fault.LINK_NAME_IN_USE, "link name already attached: one", sends(attach("one", 5))),
    (
        Fault.LINK_NAME_SIZE,
        "attach of a link whose name has more than 8192 bytes",
        sends(attach("x" * 8193, 5)),
    ),
    (Fault.HANDLE_MAX, "handle 8 exceeds handle-max 7", sends(attach("four", 8))),
    (Fault.HANDLE_IN_USE, "attach of four on handle 2, which has a link", sends(attach("four", 2))),
    (Fault.UNATTACHED_HANDLE, "transfer on handle 5, which has no link", sends(transfer(handle=5))),
    (Fault.UNATTACHED_HANDLE, "flow on handle 5, which has no link", sends(flow(handle=5))),
    (Fault.UNATTACHED_HANDLE, "detach on handle 5, which has no link", sends(Detach(5))),
    (Fault.WINDOW_VIOLATION, "transfer beyond the incoming window", sends(*[transfer(more=True)] * 33)),
    (Fault.ERRANT_LINK, "transfer on two, a link which the peer receives on", sends(transfer(handle=1))),
    (Fault.DELIVERY_ID, "delivery-id 4294967280 does not follow 4294967280", sends(transfer(), transfer())),
    (Fault.DELIVERY_ID, "delivery-id 4294967279 does not follow 4294967280", sends(transfer(), transfer(-1))),
    (Fault.DELIVERY_ID, "the first transfer of a delivery carries no delivery-id", sends(Transfer(0, None, b"tag"))),
    (
        Fault.DELIVERY_ID,
        "delivery 4294967281 began while 4294967280 was incomplete",
        sends(transfer(0, more=True), transfer(1)),
    ),
    (
        Fault.DELIVERY_ID,
        "delivery-id 4294967280 is not settled yet",
        sends(
            transfer(0),
            *[Transfer(0, (NEAR_WRAP + 0x60000000 * n) & MASK32, b"") for n in (1, 2)],
            Transfer(2, NEAR_WRAP, b""),
        ),
    ),
    (
        Fault.DISPOSITION_RANGE,
        "disposition of 2147483648 to 0, which runs backwards",
        sends(Disposition(True, 0x80000000, 0)),
    ),
    (
        Fault.DISPOSITION_RANGE,
        "disposition of 5 to 4, which runs backwards",
        sends(Disposition(False, 5, 4, settled=True)),
    ),
    (Fault.LINK_COUNT, "more than 4 links on one connection", sends(attach("four", 5), attach("five", 6))),
    (Fault.MEMORY, "the router has reached its limit of memory for messages", is_kept(51)),
    (Fault.BUFFERED, "the connection holds more than 50 bytes of messages", is_kept_by_the_connection(51)),
    (
        Fault.TRANSFER_LIMIT,
        "transfer without credit",
        sends(
            flow(handle=0, delivery_count=(NEAR_WRAP + 4) & MASK32, link_credit=0),
            *[transfer(number) for number in range(5)],
        ),
    ),
    (Fault.MESSAGE_SIZE, "Message size exceeded", sends(transfer(), payload=bytes(101))),
    (Fault.MESSAGE_SIZE, "Message size exceeded", sends(*[transfer(more=True)] * 3, payload=bytes(101))),
    (
        Fault.DELIVERY_FRAMES,
        "a delivery of 0 bytes in more than 40 frames",
        is_never_done,
    ),
    (Fault.DELIVERY_TAG, "the first transfer of a delivery carries no delivery-tag", sends(Transfer(0, NEAR_WRAP))),
    (
        Fault.TRANSFER_STATE,
        "delivery state of 257 bytes on a transfer; at most 256 are accepted",
        sends(transfer(state=rejected(257))),
    ),
]


def test_memory_may_be_held_up_to_the_limit_and_a_refused_transfer_is_not_counted() -> None:
    talk = rig()
    budget = talk.script.connection.budget
    is_kept(50)(talk)
    assert budget.held == talk.session.windows.held_bytes == 50
    talk.script.peer_sends(transfer(1), payload=b"x")
    assert budget.held == 50
    talk.session.release_bytes(50)
    assert budget.held == 0


@pytest.mark.parametrize(("fault", "text", "provoke"), CASES, ids=[f"{row.name}-{text}" for row, text, _ in CASES])
def test_a_fault_is_reported_on_its_scope_and_the_rest_goes_on(
    fault: Fault, text: str, provoke: Callable[[Rig], object]
) -> None:
    talk = rig()
    provoke(talk)
    row = fault.value
    found = like(PeerFault, fault=fault, condition=row.condition, scope=row.scope)
    error = like(Error, condition=row.condition, **({"description": text} if text else {}))
    script = talk.script
    event = [event for event in script.connection.events if getattr(event, "fault", None) is not None]
    script.connection.events.clear()
    sent = script.sent()
    if row.scope is Scope.LINK:
        assert event == [like(LinkDetached, link=talk.one, closed=True, fault=found)]
        assert sent[-1] == like(Sent, channel=0, performative=like(Detach, handle=0, closed=True, error=error))
        script.peer_sends(transfer(7, handle=2), payload=b"same session")
        assert talk.three_sink.calls == [("transfer", b"same session")]
        # frames on their way are skipped; then handle and name are free
        talk.one.detach(True)  # the application's detach at the event: nothing more
        script.peer_sends(transfer(9), Detach(0, closed=True)).engine_reports()
        again, _ = attached(script, attach("one", 0))
        assert again is not talk.one
    elif row.scope is Scope.SESSION:
        assert event == [like(SessionEnded, session=talk.session, fault=found)]
        assert sent[-1] == like(Sent, channel=0, performative=like(End, error=error))
        script.peer_sends(transfer(9), transfer(handle=9), attach("six", 1), Detach(9), flow(handle=9)).engine_reports()
        script.engine_sends()
        script.connection.drop_session(talk.session)
        script.peer_sends(End()).engine_reports()
        assert talk.session not in script.connection.sessions()
    else:
        assert event == [like(ConnectionClosed, error=None, fault=found)]
        assert sent[-1] == like(Sent, channel=0, performative=like(Close, error=error))
        assert script.connection.finished
        script.peer_sends(begin(), channel=2).engine_reports()
    if row.scope is not Scope.CONNECTION:
        script.peer_sends(transfer(), channel=1, payload=b"elsewhere").engine_reports()
        assert talk.elsewhere_sink.calls == [("transfer", b"elsewhere")]
        assert talk.other_session.deliveries.incoming.count == 1
        assert not script.connection.failed
    script.engine_sends()


def test_a_too_large_message_may_end_the_connection_and_only_the_close_has_the_error() -> None:
    """Clients report the first error that they read: the detach has none, and the close comes in the same write."""
    talk = rig()
    connection = talk.script.connection
    connection.oversize_error = why = Error("amqp:connection:forced", "Message size exceeded")
    sends(transfer(), payload=bytes(101))(talk)
    sent = [each.performative for each in talk.script.sent()]
    assert sent[-2:] == [like(Detach, handle=0, closed=True, error=None), like(Close, error=why)]
    talk.script.peer_sends(transfer(1, handle=2), payload=b"behind it")
    assert talk.three_sink.calls == []


TLS_HELLO = bytes.fromhex("1603010200010001fc03035a")


def opening(*what: Performative | bytes, limits: EngineLimits = LIMITS) -> Script:
    return Script(server(limits)).peer_sends(*what)


EARLY: list[tuple[Fault, str, Callable[[], Script]]] = [
    (Fault.FRAMING, r"Unknown protocol detected: 'GET / HT'", lambda: opening(b"GET / HTTP/1.1\r\n\r\n")),
    (
        Fault.FRAMING,
        r"Incompatible AMQP connection detected: 'AMQP\x00\x00\x09\x01'",
        lambda: opening(b"AMQP\0\0\x09\1"),
    ),
    (
        Fault.FRAMING,
        r"Incompatible AMQP connection detected: 'AMQP\x02\x01\x00\x09'",
        lambda: opening(b"AMQP\2\1\0\x09"),
    ),
    (Fault.FRAMING, r"Unknown protocol detected: 'AX'", lambda: opening(b"AX")),
    (Fault.NOT_OPEN, "begin before open", lambda: opening(AMQP_HEADER, begin())),
    (Fault.NOT_OPEN, "transfer before open", lambda: opening(AMQP_HEADER, transfer())),
    (
        Fault.ILLEGAL_CONNECTION_STEP,
        "peer: receive close while headers exchanged",
        lambda: opening(AMQP_HEADER, Close()),
    ),
    (
        Fault.CONTAINER_ID,
        "open carries no container-id",
        lambda: opening(AMQP_HEADER, Open(""), limits=with_limits(requires_container_id=True)),
    ),
    (
        Fault.CONTAINER_ID_SIZE,
        "open carries a container-id of more than 8192 bytes",
        lambda: opening(AMQP_HEADER, Open("x" * 8193)),
    ),
    (Fault.DECODE, "", lambda: opening(AMQP_HEADER, frame(0, b"\0\x53\x10\xc0\x02\x01\x40"))),
    (
        Fault.MAX_FRAME_SIZE,
        "max-frame-size 511 is below the minimum of 512",
        lambda: opening(AMQP_HEADER, Open("peer", max_frame_size=511)),
    ),
]


@pytest.mark.parametrize(("fault", "text", "provoke"), EARLY, ids=[f"{row.name}-{text}" for row, text, _ in EARLY])
def test_a_fault_before_the_opens_is_sent_behind_the_local_header_and_open(
    fault: Fault, text: str, provoke: Callable[[], Script]
) -> None:
    talk = provoke()
    talk.engine_reports(like(ConnectionClosed, error=None, fault=like(PeerFault, fault=fault)))
    fields = {"description": text} if text else {}
    error = like(Error, condition=fault.value.condition, **fields)
    talk.engine_sends(AMQP_HEADER, like(Open, container_id="R1"), like(Close, error=error))
    assert talk.connection.finished


@pytest.mark.parametrize("content", [TLS_HELLO, TLS_HELLO[:3], TLS_HEADER, TLS_HEADER + TLS_HELLO])
def test_a_tls_client_at_a_plain_listener_gets_no_answer_and_the_event_names_the_cause(content: bytes) -> None:
    talk = opening(content)
    talk.engine_reports(like(ConnectionClosed, error=None, fault=like(PeerFault, fault=Fault.TLS_NOT_CONFIGURED)))
    talk.engine_sends()
    assert talk.connection.finished


def test_half_a_header_of_tls_decides_nothing() -> None:
    talk = opening(TLS_HEADER[:5])
    assert not talk.connection.finished
    talk.engine_sends()
    talk.peer_sends(TLS_HEADER[5:])
    assert talk.connection.finished


LATER: list[tuple[Fault, str, Callable[[], Script]]] = [
    (
        Fault.FRAME_SIZE_TOO_SMALL,
        "our attach needs a frame of more than 512 bytes",
        lambda: answered(Open("peer", max_frame_size=512), attach(400 * "n")),
    ),
    (
        Fault.CHANNEL_MAX,
        "remote channel 1 is above negotiated channel_max 0.",
        lambda: begun(peer=Open("peer", channel_max=0))[0].peer_sends(begin(), channel=1),
    ),
    (
        Fault.HANDLE_MAX,
        "handle 1 exceeds handle-max 0",
        lambda: begun(handle_max=0)[0].peer_sends(attach("one"), attach("two", 1)),
    ),
]


def answered(peer: Open, wanted: Attach) -> Script:
    script, session = begun(peer=peer)
    script.peer_sends(wanted)
    link = session.links.by_handle[0]
    script.connection.events.clear()
    link.attach(Source("here" * 50), wanted.target)
    return script


@pytest.mark.parametrize(("fault", "text", "provoke"), LATER, ids=[row.name for row, _, _ in LATER])
def test_a_peer_whose_limits_leave_no_room_loses_its_connection(
    fault: Fault, text: str, provoke: Callable[[], Script]
) -> None:
    talk = provoke()
    assert talk.connection.events[-1] == like(ConnectionClosed, error=None, fault=like(PeerFault, fault=fault))
    talk.engine_sends(like(Close, error=Error(fault.value.condition, text)))


def test_no_row_is_dead() -> None:
    elsewhere = {Fault.TLS_NOT_CONFIGURED, Fault.FORBIDDEN}  # tested separately, and in test_sasl
    tested = {case[0] for case in CASES} | {case[0] for case in EARLY} | {case[0] for case in LATER}
    assert tested | elsewhere == set(Fault)


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_a_row_names_a_condition_of_the_standard(fault: Fault) -> None:
    namespace, _, name = fault.value.condition.rpartition(":")
    assert namespace in ("amqp", "amqp:connection", "amqp:session", "amqp:link")
    assert name.replace("-", "").isalpha()


def test_text_of_the_peer_is_cut_and_made_printable_before_it_is_repeated() -> None:
    name = "x\n\u202e\U0001f600" + 1000 * "y"
    talk = opened(peer=Open("peer", max_frame_size=512))
    talk.peer_sends(begin())
    talk.connection.sessions()[0].begin()
    talk.sent()
    talk.peer_sends(attach(name), attach(name, 1))
    (sent,) = talk.sent()
    assert isinstance(sent.performative, Close)
    assert sent.performative.error is not None
    text = sent.performative.error.description
    assert text is not None
    assert text.isprintable()
    assert text.startswith(r"link name already attached: x\n\u202e" + "\U0001f600yyy")
    assert len(encode(sent.performative)) <= 512


def test_a_fault_below_the_connection_is_sent_without_waiting_for_earlier_answers() -> None:
    """Open, begin, attach and the fault come in one read: the engine sends its own frames before the error."""
    talk = opening(AMQP_HEADER, Open("peer"), begin(), attach(), transfer())
    fault = like(PeerFault, fault=Fault.TRANSFER_LIMIT)
    events = list(talk.connection.events)
    talk.connection.events.clear()
    assert events[-1] == like(LinkDetached, fault=fault)
    assert isinstance(events[0], ConnectionOpened)
    talk.engine_sends(
        AMQP_HEADER,
        Open,
        Begin,
        like(Attach, handle=0, source=None, target=None),
        like(Detach, handle=0, closed=True, error=like(Error, condition="amqp:link:transfer-limit-exceeded")),
    )
    talk.connection.open()
    session = talk.connection.sessions()[0]
    session.begin()
    session.links.by_handle[0].attach(None, None)
    talk.engine_sends()


def test_a_session_without_a_local_begin_gets_its_fault_too() -> None:
    talk = opening(AMQP_HEADER, Open("peer"), begin(), transfer(), End())
    error = like(Error, condition="amqp:session:unattached-handle")
    talk.engine_sends(AMQP_HEADER, Open, Begin, like(End, error=error))
    talk.connection.open()
    for session in talk.connection.sessions():
        session.begin()
        session.end()
    talk.engine_sends()


def test_a_transfer_state_of_the_largest_size_taken_goes_on_in_the_smallest_frame() -> None:
    state = rejected(256)
    arriving = receiving()
    arriving.script.peer_sends(transfer(state=state), payload=b"body")
    (delivery,) = arriving.sink.deliveries
    assert delivery.transfer_state == encode_state(state)
    leaving = sending(peer=Open("peer", max_frame_size=512))
    copy = Delivery(leaving.link)
    copy.tag = bytes(32)
    copy.transfer_state = delivery.transfer_state
    assert leaving.link.send(copy, bytes(1000), 0, 1000, False) == 1000
    sent = leaving.script.sent()
    assert sent[0].performative == like(Transfer, state=state, delivery_tag=bytes(32))
    assert b"".join(each.payload for each in sent) == bytes(1000)
    assert max(each.size for each in sent) <= 512


def test_an_outcome_that_does_not_fit_the_peers_frames_is_reported_without_its_details() -> None:
    talk = receiving(peer=Open("peer", max_frame_size=512))
    talk.script.peer_sends(transfer(0), transfer(1))
    state = encode_state(Rejected(Error("amqp:x", "y" * 1000)))
    unknown = b"\0\x80" + bytes(7) + b"\x99\xb0" + (1000).to_bytes(4, "big") + bytes(1000)
    first, second = talk.sink.deliveries
    talk.session.settle_incoming(first, 0x25, state, True)
    talk.session.settle_incoming(second, -1, unknown, True)
    talk.script.engine_sends(
        Disposition(True, NEAR_WRAP, NEAR_WRAP, True, Rejected()), Disposition(True, NEAR_WRAP + 1, NEAR_WRAP + 1, True)
    )
    talk.script.engine_reports()
    assert talk.session.deliveries.incoming.count == 0
