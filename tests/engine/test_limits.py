"""Every limit of the engine at n, where nothing happens, and at n + 1, where the row of its fault applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import pytest

from tests.engine.talks import attach, begin, begun, opened, receiving, send, sending, server, transfer, with_limits
from tests.script import Script, encode
from trouter.engine.events import SaslInitReceived, SaslResponseReceived
from trouter.engine.faults import Fault
from trouter.engine.limits import EngineLimits
from trouter.engine.link import add_link
from trouter.engine.sasl import SaslServer
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER
from trouter.wire.performatives import Attach, Detach, Disposition, End, Flow, Open, SaslInit, SaslResponse, Transfer


def the_fault(talk: Script) -> Fault | None:
    """Return the first fault that was reported."""
    for event in talk.connection.events:
        fault = getattr(event, "fault", None)
        if fault is not None:
            found: Fault = fault.fault
            return found
    return None


def frame_size(limit: int, more: int) -> Script:
    talk = receiving(limits=with_limits(max_frame_bytes=limit)).script
    padding = limit + more - len(encode(transfer()))
    return talk.peer_sends(transfer(), payload=bytes(padding))


def sasl_frame_size(limit: int, more: int) -> Script:
    talk = Script(server(with_limits(max_sasl_frame_bytes=limit, max_frame_bytes=512), SaslServer(("PLAIN",), True)))
    padding = limit + more - len(encode(SaslInit("PLAIN", bytes(300)))) + 300
    return talk.peer_sends(SASL_HEADER, SaslInit("PLAIN", bytes(padding)))


def sasl_rounds(limit: int, more: int) -> Script:
    sasl = SaslServer(("X",), True, limit)
    talk = Script(server(sasl=sasl)).peer_sends(SASL_HEADER, SaslInit("X")).engine_reports(SaslInitReceived)
    for number in range(limit + more):
        sasl.send_challenge(b"")
        talk.peer_sends(SaslResponse(b""))
        if number < limit:
            talk.engine_reports(SaslResponseReceived)
    return talk


def open_frame_size(limit: int, more: int) -> Script:
    """Return the script of a frame of the limit's size, or one byte more; it comes after the open."""
    limits = with_limits(max_open_frame_bytes=limit, max_frame_bytes=100_000)
    introduction = Open("peer", properties={"x": bytes(limit // 2)})
    padding = limit - len(encode(introduction)) + more
    talk = Script(server(limits)).peer_sends(AMQP_HEADER, Open("peer", properties={"x": bytes(limit // 2 + padding)}))
    if not more:
        talk.connection.open()
        talk.peer_sends(begin(), Attach("x" * 1000, 0, True, properties={"x": bytes(limit)}))
    return talk


def open_values(limit: int, more: int) -> Script:
    """Return the script of an open with that many values; itself, its fields and the map's only entry are fifteen."""
    introduction = Open("peer", properties={"x": [None] * (limit - 15 + more)})
    return Script(server(with_limits(max_open_nodes=limit))).peer_sends(AMQP_HEADER, introduction)


def sasl_then_open_frame_size(limit: int, more: int) -> Script:
    limits = with_limits(max_open_frame_bytes=limit, max_frame_bytes=100_000)
    sasl = SaslServer(("X",), True)
    talk = Script(server(limits, sasl=sasl)).peer_sends(SASL_HEADER, SaslInit("X")).engine_reports(SaslInitReceived)
    sasl.send_outcome(0)
    introduction = Open("peer", properties={"x": bytes(limit // 2)})
    padding = limit - len(encode(introduction)) + more
    return talk.peer_sends(AMQP_HEADER, Open("peer", properties={"x": bytes(limit // 2 + padding)}))


def container_id(limit: int, more: int) -> Script:
    return Script(server()).peer_sends(AMQP_HEADER, Open("\u00e9" * (limit // 2) + "x" * more))


def link_name(limit: int, more: int) -> Script:
    return begun()[0].peer_sends(attach("\u00e9" * (limit // 2) + "x" * more, 0))


def channels(limit: int, more: int) -> Script:
    return opened(with_limits(channel_max=limit)).peer_sends(begin(), channel=limit + more)


def handles(limit: int, more: int) -> Script:
    return begun(with_limits(handle_max=limit))[0].peer_sends(attach("one", limit + more))


def links(limit: int, more: int) -> Script:
    talk = begun(with_limits(max_links=limit))[0].peer_sends(begin(), channel=1)
    return talk.peer_sends(*[attach(str(number), number) for number in range(limit - 1 + more)]).peer_sends(
        attach("there", 0), channel=1
    )


def window(limit: int, more: int) -> Script:
    talk = receiving(limits=with_limits(session_window_frames=limit)).script
    return talk.peer_sends(*[transfer(number, settled=True) for number in range(limit + more)])


def window_bytes(limit: int, more: int) -> Script:
    """Return the script of a window in bytes, which is never less than two frames."""
    assert with_limits(session_window_bytes=1).window_frames == 2
    limits = with_limits(session_window_bytes=limit, max_frame_bytes=512)
    talk = receiving(limits=limits).script
    return talk.peer_sends(*[transfer(number, settled=True) for number in range(limit // 512 + more)])


def credit(limit: int, more: int) -> Script:
    """Return the script of as many transfers beyond the credit as were granted, which the engine tolerates."""
    return receiving(credit=limit).script.peer_sends(*[transfer(number) for number in range(2 * limit + more)])


def message(limit: int, more: int) -> Script:
    talk = receiving(limits=with_limits(max_message_bytes=limit)).script
    talk.peer_sends(transfer(0, more=True), payload=bytes(limit // 2))
    return talk.peer_sends(Transfer(0), payload=bytes(limit - limit // 2 + more))


def delivery_frames(limit: int, more: int) -> Script:
    """Return the script of a delivery in many frames of few bytes; another delivery has as many again."""
    talk = receiving(limits=with_limits(max_delivery_frames=limit)).script
    for number in range(2):
        rest = [Transfer(0, more=True)] * (limit - 1 + more * number)
        talk.peer_sends(transfer(number, more=True), *rest, Transfer(0))
    return talk


def delivery_frames_of_a_size(limit: int, more: int) -> Script:
    """Return the script of a delivery in many frames: those of 256 bytes are not limited, smaller ones are."""
    talk = receiving(limits=with_limits(max_delivery_frames=limit)).script
    for number in range(20 * limit):
        talk.peer_sends(Transfer(0, more=True) if number else transfer(more=True), payload=bytes(256))
    return talk.peer_sends(*[Transfer(0, more=True)] * (limit + more))


CASES: list[tuple[Callable[[int, int], Script], int, Fault]] = [
    (frame_size, 512, Fault.FRAMING),
    (frame_size, 16384, Fault.FRAMING),
    (sasl_frame_size, 512, Fault.FRAMING),
    (sasl_frame_size, 8192, Fault.FRAMING),
    (open_frame_size, 65536, Fault.FRAMING),
    (open_values, 2000, Fault.DECODE),
    (sasl_then_open_frame_size, 65536, Fault.FRAMING),
    (container_id, 8192, Fault.CONTAINER_ID_SIZE),
    (link_name, 8192, Fault.LINK_NAME_SIZE),
    (sasl_rounds, 3, Fault.ILLEGAL_CONNECTION_STEP),
    (sasl_rounds, 16, Fault.ILLEGAL_CONNECTION_STEP),
    (channels, 0, Fault.CHANNEL_MAX),
    (channels, 32767, Fault.CHANNEL_MAX),
    (handles, 0, Fault.HANDLE_MAX),
    (handles, 65535, Fault.HANDLE_MAX),
    (links, 1, Fault.LINK_COUNT),
    (links, 50, Fault.LINK_COUNT),
    (window, 2, Fault.WINDOW_VIOLATION),
    (window, 100, Fault.WINDOW_VIOLATION),
    (window_bytes, 8 * 512, Fault.WINDOW_VIOLATION),
    (credit, 1, Fault.TRANSFER_LIMIT),
    (credit, 250, Fault.TRANSFER_LIMIT),
    (delivery_frames, 3, Fault.DELIVERY_FRAMES),
    (delivery_frames, 100, Fault.DELIVERY_FRAMES),
    (delivery_frames_of_a_size, 10, Fault.DELIVERY_FRAMES),
    (message, 1, Fault.MESSAGE_SIZE),
    (message, 10_000, Fault.MESSAGE_SIZE),
]


@pytest.mark.parametrize(
    ("case", "limit", "fault"), CASES, ids=[f"{case.__name__}-{limit}" for case, limit, _ in CASES]
)
def test_a_limit_holds_at_n_and_at_n_plus_1(case: Callable[[int, int], Script], limit: int, fault: Fault) -> None:
    assert the_fault(case(limit, 0)) is None
    assert the_fault(case(limit, 1)) is fault


def test_local_links_count_as_links_and_their_answers_do_not() -> None:
    talk, session = begun(with_limits(max_links=2))
    for name in "ab":
        add_link(session, name, True).attach(None, None)
    talk.peer_sends(attach("a", 0), attach("b", 1))
    assert the_fault(talk) is None
    talk.peer_sends(attach("c", 2))
    assert the_fault(talk) is Fault.LINK_COUNT


@pytest.mark.parametrize("rounds", range(3))
def test_a_link_that_went_leaves_its_place(rounds: int) -> None:
    talk, session = begun(with_limits(max_links=1))
    for _ in range(rounds):
        talk.peer_sends(attach("a", 0), Detach(0, True))
        session.links.by_handle[0].refuse(None)
    talk.peer_sends(attach("a", 0), End())
    assert talk.connection.link_count == 1
    session.end()
    talk.connection.drop_session(session)
    assert talk.connection.link_count == 0
    assert the_fault(talk) is None


def test_the_largest_message_is_reported_to_the_sender() -> None:
    talk, session = begun(with_limits(max_message_bytes=1000))
    talk.peer_sends(attach())
    session.links.by_handle[0].attach(None, None, max_message_size=0)
    performative = talk.sent()[0].performative
    assert isinstance(performative, Attach)
    assert performative.max_message_size == 1000


def test_output_pauses_at_its_high_water_mark() -> None:
    for waiting, size in ((False, 999), (True, 1000)):
        talk = sending(limits=with_limits(high_water_bytes=1000))
        send(talk.link, bytes(size - 37))
        assert len(talk.connection.out) == size
        send(talk.link, b"x")
        assert talk.link.waiting == waiting
        assert talk.connection.paused == waiting


@pytest.mark.parametrize(("begun_before", "reported"), [(2, 2), (3, 3), (4, 3)])
def test_input_beyond_the_most_events_waits_until_they_are_handled(begun_before: int, reported: int) -> None:
    connection = opened(with_limits(max_events=3)).connection
    connection.events.clear()
    frames = b"".join(encode(begin(), channel=channel) for channel in range(begun_before))
    connection.receive_data(frames)
    assert len(connection.events) == reported
    assert connection.has_more == (begun_before >= 3)
    while connection.has_more:
        connection.events.clear()
        connection.receive_data(b"")
    assert connection.session_count == begun_before


def test_nothing_waits_behind_a_fault() -> None:
    connection = opened(with_limits(max_events=2, channel_max=1)).connection
    connection.events.clear()
    connection.receive_data(b"".join(encode(begin(), channel=channel) for channel in (0, 2, 1)))
    assert not connection.has_more


@pytest.mark.parametrize(
    ("frame", "in_one"),
    [
        pytest.param(
            encode(Flow(next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9)), 3, id="flows"
        ),
        pytest.param(encode(Disposition(role=True, first=0, last=0)), 12, id="dispositions"),
    ],
)
def test_input_beyond_the_most_work_waits_for_the_next_call(frame: bytes, in_one: int) -> None:
    connection = opened(with_limits(max_work=12)).connection
    connection.receive_data(encode(begin()) + frame * (2 * in_one + 1))
    calls = 1
    while connection.has_more:
        connection.receive_data(b"")
        calls += 1
    assert calls == 3
    assert not connection.finished


def test_every_limit_is_known_here() -> None:
    """Check that each limit has a case here, or in other tests.

    Time-outs are tested with the clock, output with the sockets, states with their reader.
    """
    assert {field.name for field in fields(EngineLimits)} == {
        "max_events",
        "max_work",
        "max_attach_nodes",
        "whole_attaches",
        "max_frame_bytes",
        "channel_max",
        "handle_max",
        "max_links",
        "max_buffered_bytes",
        "session_window_bytes",
        "session_window_frames",
        "idle_timeout_s",
        "high_water_bytes",
        "low_water_bytes",
        "output_limit_bytes",
        "max_message_bytes",
        "max_delivery_frames",
        "max_sasl_rounds",
        "max_sasl_frame_bytes",
        "max_open_frame_bytes",
        "max_open_nodes",
        "max_name_bytes",
        "requires_container_id",
        "max_link_name_bytes",
        "undecodable_states",
        "first_outgoing_id",
    }
