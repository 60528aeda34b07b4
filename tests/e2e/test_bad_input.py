"""Invalid input of strangers: it gets the standard's condition, on the right scope, and a log line with its reason.

The traffic of two neighbours goes on complete, and the router's memory stays within limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.neighbours import Neighbours
from tests.e2e.peer import FIRST_ID, WIDE, Gone, Link, Peer, message
from tests.routers import DEADLINE_S, RunningRouter, running
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER, frame
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
    Modified,
    Open,
    Rejected,
    Released,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    Source,
    Target,
    Transfer,
    encode_performative,
)

CONFIGURATION = """
router { id: R, mode: interior, usersFile: %s }
listener { host: 127.0.0.1, port: 0, maxFrameSize: 16384 }
listener { host: 127.0.0.1, port: 0, maxFrameSize: 262144 }
listener { host: 127.0.0.1, port: 0, initialHandshakeTimeoutSeconds: 1, idleTimeoutSeconds: 1 }
listener { host: 127.0.0.1, port: 0, maxSessionFrames: 8, maxFrameSize: 16384, maxBufferedBytes: 524288 }
listener { host: 127.0.0.1, port: 0, role: edge, allowInsecureRole: yes }
"""
#: How far memory may rise above its value with the neighbours connected: two session windows and a reserve.
GROWTH_BYTES = 48 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Scene:
    router: RunningRouter
    neighbours: Neighbours

    def __post_init__(self) -> None:
        self.neighbours.go_on()

    @property
    def plain(self) -> int:
        return self.router.ports[0]

    @property
    def large_frames(self) -> int:
        return self.router.ports[1]

    @property
    def short_deadlines(self) -> int:
        return self.router.ports[2]

    @property
    def small_window(self) -> int:
        return self.router.ports[3]

    @property
    def routers(self) -> int:
        return self.router.ports[4]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, int]]:
    folder: Path = tmp_path_factory.mktemp("router")
    users = folder / "users"
    users.touch(0o600)
    with running(CONFIGURATION % users, folder) as router, Neighbours(router.ports[0]) as neighbours:
        yield Scene(router, neighbours), router.resident_bytes()


@pytest.fixture
def scene(shared: tuple[Scene, int]) -> Iterator[Scene]:
    """Yield the router with its neighbours, whose traffic must have gone on when the test ends."""
    scene, before = shared
    line = len(scene.router.lines)
    yield scene
    scene.neighbours.go_on()
    assert scene.router.resident_bytes() - before < GROWTH_BYTES
    scene.router.assert_no_fault_of_ours(since=line)


def attach(name: str = "link", handle: int = 0) -> Attach:
    return Attach(name, handle, False, source=Source(), target=Target("nobody"), initial_delivery_count=0)


def nested_lists(depth: int) -> bytes:
    """Return a list nested ``depth`` deep."""
    value = b"\x45"
    for _ in range(depth):
        value = b"\xd0" + (len(value) + 4).to_bytes(4, "big") + b"\0\0\0\x01" + value
    return value


def nested_descriptors(depth: int) -> bytes:
    return b"\0" * depth + b"\x40" * (depth + 1)


def open_with(field: bytes) -> bytes:
    """Return an attach whose properties are ``field``."""
    fields = b"\xa1\x04link\x43\x42" + b"\x40" * 10 + field
    return b"\0\x53\x12\xd0" + (len(fields) + 4).to_bytes(4, "big") + (14).to_bytes(4, "big") + fields


# --- faults that end the connection

FRAMING = "amqp:connection:framing-error"
DECODE = "amqp:decode-error"
ILLEGAL = "amqp:illegal-state"
SESSIONS = Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10)

CONNECTION_FAULTS: dict[str, tuple[bytes, str, str]] = {
    "a frame smaller than its own header": (b"\0\0\0\x07\2\0\0\0", FRAMING, "smaller than its header"),
    "a frame of no size at all": (b"\0\0\0\0\2\0\0\0", FRAMING, "smaller than its header"),
    "a frame above max-frame-size": (b"\0\0\x40\x01\2\0\0\0", FRAMING, "exceeds the maximum of 16384"),
    "a frame of 4 GB": (b"\xff\xff\xff\xff\2\0\0\0", FRAMING, "exceeds the maximum of 16384"),
    "a SASL frame after SASL": (b"\0\0\0\x08\2\1\0\0", FRAMING, "frame type 1"),
    "a frame of a type that is none": (b"\0\0\0\x08\2\x07\0\0", FRAMING, "frame type 7"),
    "a data offset before the body": (b"\0\0\0\x08\1\0\0\0", FRAMING, "data offset of 4"),
    "a data offset behind the frame": (b"\0\0\0\x08\3\0\0\0", FRAMING, "data offset of 12"),
    "no descriptor": (frame(0, b"\x40"), DECODE, ""),
    "a list where a descriptor should be": (frame(0, b"\0\x45\x45"), "amqp:not-implemented", ""),
    "a format code that is none": (frame(0, b"\0\x53\x12\xc0\x02\x01\x3f"), DECODE, ""),
    "a truncated list": (frame(0, b"\0\x53\x12\xc0\x20\x03\xa1\x01x"), DECODE, ""),
    "a list that ends inside a field": (frame(0, b"\0\x53\x12\xc0\x04\x01\xa1\x09x"), DECODE, ""),
    "a list of more items than bytes": (frame(0, b"\0\x53\x12\xd0\0\0\0\x04\xff\xff\xff\xff"), DECODE, ""),
    "a name of 4 GB": (frame(0, b"\0\x53\x12\xc0\x08\x01\xb1\xff\xff\xff\xffabc"), DECODE, ""),
    "a name that is not UTF-8": (frame(0, b"\0\x53\x12\xc0\x07\x03\xa1\x02\xff\xfe\x43\x42"), DECODE, ""),
    "an array of 4,294,967,295 nulls": (frame(0, open_with(b"\xf0\0\0\0\x05\xff\xff\xff\xff\x40")), DECODE, ""),
    "a map with half a pair": (frame(0, open_with(b"\xc1\x03\x01\xa3\x00")), DECODE, ""),
    "an attach without a name": (frame(0, b"\0\x53\x12\x45"), DECODE, "attach"),
    "an attach with a number for a name": (frame(0, b"\0\x53\x12\xc0\x05\x03\x52\x01\x43\x42"), DECODE, "attach"),
    "a performative that is none": (frame(0, b"\0\x53\x99\x45"), "amqp:not-implemented", "0x99"),
    "a performative by a name that is none": (frame(0, b"\0\xa3\x04nope\x45"), "amqp:not-implemented", ""),
    "a second open": (frame(0, encode_performative(Open("again"))), ILLEGAL, "receive open"),
    "a begin on a channel in use": (frame(0, encode_performative(SESSIONS)), "amqp:not-allowed", "channel 0"),
    "a begin that answers none of ours": (
        frame(
            1, encode_performative(Begin(remote_channel=9, next_outgoing_id=0, incoming_window=1, outgoing_window=1))
        ),
        "amqp:invalid-field",
        "channel 9",
    ),
    "an attach on a channel without a session": (
        frame(5, encode_performative(attach())),
        "amqp:not-allowed",
        "channel 5",
    ),
    "a transfer on a channel without a session": (
        frame(5, encode_performative(Transfer(0))),
        "amqp:not-allowed",
        "channel 5",
    ),
    "an end on a channel without a session": (frame(5, encode_performative(End())), "amqp:not-allowed", "channel 5"),
    "a begin above channel-max": (
        frame(65_535, encode_performative(SESSIONS)),
        FRAMING,
        "remote channel 65535 is above negotiated channel_max",
    ),
    "a handle above handle-max": (frame(0, encode_performative(attach(handle=WIDE))), FRAMING, "exceeds handle-max"),
    "a SASL performative in an AMQP frame": (
        frame(0, encode_performative(SaslInit("ANONYMOUS"))),
        "amqp:not-implemented",
        "0x41",
    ),
}


@pytest.mark.parametrize("name", CONNECTION_FAULTS)
def test_connection_is_closed_for(scene: Scene, name: str) -> None:
    octets, condition, text = CONNECTION_FAULTS[name]
    with Peer(scene.plain) as bad:
        bad.raw(octets)
        error = bad.expect_close()
        assert error is not None
        assert (error.condition, text in (error.description or "")) == (condition, True), error
        scene.router.wait_for_line(rf"\[C{bad.number}\] .*{bad.address}.*{condition}")
    scene.router.wait_for_line(rf"\[C{bad.number}\] Connection Closed")


@pytest.mark.parametrize(
    "value", [nested_lists(10_000), nested_descriptors(10_000)], ids=["lists in lists", "described descriptors"]
)
def test_a_value_nested_10_000_deep_closes_the_connection(scene: Scene, value: bytes) -> None:
    with Peer(scene.large_frames) as bad:
        bad.raw(frame(0, open_with(value)))
        error = bad.expect_close()
        assert error is not None
        assert error.condition == DECODE
        scene.router.wait_for_line(rf"\[C{bad.number}\] .*{DECODE}")


@pytest.mark.parametrize(
    "section", [b"\0\x53\x72", b"\0\x53\x73", b"\0\x53\x70"], ids=["annotations", "properties", "header"]
)
def test_a_message_nested_10_000_deep_is_rejected_or_passed_on_unread(scene: Scene, section: bytes) -> None:
    """The router reads only the sections that routing needs, and never by recursion."""
    with Peer(scene.large_frames) as receiver, Peer(scene.large_frames) as bad:
        source = receiver.attach_receiver("deep", credit=10)
        link = bad.attach_sender(None)
        octets = section + nested_lists(10_000) + message(b"x")
        deliveries = [bad.transfer(link, octets[:200_000])]
        assert isinstance(bad.expect_outcome(deliveries[0]), Rejected)
        good = bad.attach_sender("deep")
        delivery = bad.send_message(good, b"fine")
        assert receiver.take_message(source) == message(b"fine")
        assert bad.expect_outcome(delivery) == Accepted()


BEFORE_OPEN: dict[str, tuple[bytes, str, str]] = {
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", FRAMING, "Unknown protocol detected: 'GET / HT'"),
    "another version of AMQP": (b"AMQP\0\0\x09\x01", FRAMING, "Incompatible AMQP connection detected"),
    "a begin before open": (AMQP_HEADER + frame(0, encode_performative(SESSIONS)), ILLEGAL, "begin before open"),
    "a transfer before open": (
        AMQP_HEADER + frame(0, encode_performative(Transfer(0))),
        ILLEGAL,
        "transfer before open",
    ),
    "a close before open": (AMQP_HEADER + frame(0, encode_performative(Close())), ILLEGAL, "close"),
    "an open with a max-frame-size of 100": (
        AMQP_HEADER + frame(0, encode_performative(Open("x", max_frame_size=100))),
        "amqp:invalid-field",
        "max-frame-size 100",
    ),
}


@pytest.mark.parametrize("name", BEFORE_OPEN)
def test_connection_is_refused_for(scene: Scene, name: str) -> None:
    octets, condition, text = BEFORE_OPEN[name]
    with Peer(scene.plain, opened=False) as bad:
        bad.raw(octets)
        bad.expect_header(AMQP_HEADER)
        bad.remote_open = bad.expect(Open)
        error = bad.expect_close()
        assert error is not None
        assert error.condition == condition
        assert text in (error.description or "")
        scene.router.wait_for_line(rf"\[C{bad.number}\] .*{bad.address}.*{condition}")


BAD_STATES: dict[str, tuple[bytes, str]] = {
    "a rejected whose error ends inside a text": (b"\0\x53\x25\xc0\x0a\1\0\x53\x1d\xc0\4\1\xa3\x50x", "bytes claimed"),
    "a declared without a transaction": (b"\0\x53\x33\x45", "declared: txn-id is missing"),
    "a state nested 40 deep": (b"\0\x53\x99" + nested_lists(40), "nested more than 32 deep"),
    "a state of 2000 values": (
        b"\0\x53\x99\xd0" + (2004).to_bytes(4, "big") + (2000).to_bytes(4, "big") + bytes((0x43,)) * 2000,
        "more than 1024 values",
    ),
}
#: States of which a field is wrong, and what the other side gets.
ODD_STATES: dict[str, tuple[bytes, object]] = {
    "a rejected whose error is a text": (b"\0\x53\x25\xc0\x0b\1\xa3\x08rejected", Rejected()),
    "a rejected whose error is a number": (b"\0\x53\x25\xc0\x03\1\x52\7", Rejected()),
    "a rejected whose error has no condition": (b"\0\x53\x25\xc0\x05\1\0\x53\x1d\x45", Rejected()),
    "a rejected whose condition is a string": (
        b"\0\x53\x25\xc0\x0c\1\0\x53\x1d\xc0\x06\1\xa1\3x:y",
        Rejected(Error("x:y")),
    ),
    "a rejected by its name": (b"\0\xa3\x12amqp:rejected:list\xc0\x03\1\x52\7", Rejected()),
    "a modified with a number for a flag": (
        b"\0\x53\x27\xc0\x04\2\x52\1\x41",
        Modified(undeliverable_here=True),
    ),
    "an accepted with a field": (b"\0\x53\x24\xc0\x02\1\x41", Accepted()),
}


def disposition(delivery: int, state: bytes) -> bytes:
    fields = b"\x41\x70" + delivery.to_bytes(4, "big") + b"\x40\x41" + state
    return frame(0, b"\0\x53\x15\xd0" + (len(fields) + 4).to_bytes(4, "big") + (5).to_bytes(4, "big") + fields)


def taken(receiver: Peer, link: Link) -> int:
    """Return the id of the next delivery."""
    transfer = receiver.expect(Transfer)
    assert transfer.handle == link.remote_handle
    assert transfer.delivery_id is not None
    return transfer.delivery_id


@pytest.mark.parametrize("name", BAD_STATES)
def test_a_receiver_whose_state_cannot_be_decoded_loses_its_connection_and_the_sender_does_not(
    scene: Scene, name: str
) -> None:
    """Otherwise the sender would take the fault of the receiver for a fault of the router."""
    state, text = BAD_STATES[name]
    with Peer(scene.plain) as sender, Peer(scene.plain) as bad:
        link = bad.attach_receiver("states", credit=10)
        source = sender.attach_sender("states")
        sent = sender.send_message(source, b"a")
        bad.raw(disposition(taken(bad, link), state))
        error = bad.expect_close()
        assert error is not None
        assert (error.condition, text in (error.description or "")) == (DECODE, True), error
        assert sender.expect_outcome(sent) == Modified(delivery_failed=True)
        with Peer(scene.plain) as good:
            again = good.attach_receiver("states", credit=1)
            sent = sender.send_message(source, b"b")
            good.accept(taken(good, again))
            assert sender.expect_outcome(sent) == Accepted()


@pytest.mark.parametrize("name", ODD_STATES)
def test_an_outcome_goes_on_without_its_wrong_details_and_costs_no_connection(scene: Scene, name: str) -> None:
    state, wanted = ODD_STATES[name]
    with Peer(scene.plain) as sender, Peer(scene.plain) as odd:
        link = odd.attach_receiver("reasons", credit=10)
        source = sender.attach_sender("reasons")
        sent = sender.send_message(source, b"a")
        odd.raw(disposition(taken(odd, link), state))
        assert sender.expect_outcome(sent) == wanted
        sent = sender.send_message(source, b"b")
        odd.accept(taken(odd, link))
        assert sender.expect_outcome(sent) == Accepted()


def test_a_detach_an_end_and_a_close_with_malformed_reasons_are_answered(scene: Scene) -> None:
    with Peer(scene.plain) as odd:
        link = odd.attach_receiver("leaving", credit=10)
        fields = b"\x52" + bytes((link.handle,)) + b"\x41\xa3\6forced"
        odd.raw(frame(0, b"\0\x53\x16\xc0" + bytes((len(fields) + 1, 3)) + fields))
        assert odd.expect_detach() is None
        reason = b"\0\x53\x1d\xc0\7\1\xa1\4text"
        odd.raw(frame(0, b"\0\x53\x17\xc0" + bytes((len(reason) + 1, 1)) + reason))
        assert odd.expect(End).error is None
        odd.raw(frame(0, b"\0\x53\x18\xc0" + bytes((len(reason) + 1, 1)) + reason))
        assert odd.expect(Close).error is None


def test_a_sender_whose_state_cannot_be_decoded_loses_its_connection(scene: Scene) -> None:
    with Peer(scene.plain) as receiver, Peer(scene.plain) as bad:
        link = receiver.attach_receiver("told", credit=10)
        source = bad.attach_sender("told")
        body = b"\x43\x43\xa0\1t\x43\x42\x42\x40" + BAD_STATES["a rejected whose error ends inside a text"][0]
        bad.raw(frame(0, b"\0\x53\x14\xc0" + bytes((len(body) + 1, 8)) + body + message(b"x")))
        error = bad.expect_close()
        assert error is not None
        assert error.condition == DECODE
        assert (error.description or "").startswith("transfer: delivery state: "), error
        assert source.handle == 0
        with Peer(scene.plain) as good:
            good.send_message(good.attach_sender("told"), b"fine")
            assert receiver.take_message(link) == message(b"fine")


@pytest.mark.parametrize("code", [0x24, 0x25, 0x26, 0x27])
def test_an_undecodable_state_of_a_neighbouring_router_is_passed_on_as_its_bare_outcome(
    scene: Scene, code: int
) -> None:
    """The state belongs to a receiver behind the neighbour: one client must not cost two routers their link."""
    with Peer(scene.plain) as sender, Peer(scene.routers) as neighbour:
        link = neighbour.attach_receiver("beyond", credit=10)
        source = sender.attach_sender("beyond")
        sent = sender.send_message(source, b"a")
        neighbour.raw(disposition(taken(neighbour, link), b"\0\x53" + bytes((code,)) + b"\xc0\x03\1\x52\7"))
        outcome = sender.expect_outcome(sent)
        assert outcome == {0x24: Accepted(), 0x25: Rejected(), 0x26: Released(), 0x27: Modified()}[code]
        neighbour.be_heard()


# --- faults that end the session

SESSION_FAULTS: dict[str, tuple[bytes, str, str]] = {
    "a transfer on a handle without a link": (
        frame(0, encode_performative(Transfer(7, 0, b"tag")) + message(b"x")),
        "amqp:session:unattached-handle",
        "transfer on handle 7",
    ),
    "a flow on a handle without a link": (
        frame(0, encode_performative(Flow(incoming_window=1, next_outgoing_id=FIRST_ID, outgoing_window=1, handle=7))),
        "amqp:session:unattached-handle",
        "flow on handle 7",
    ),
    "a detach on a handle without a link": (
        frame(0, encode_performative(Detach(7))),
        "amqp:session:unattached-handle",
        "detach on handle 7",
    ),
    "a disposition that runs backwards": (
        frame(0, encode_performative(Disposition(True, 9, 3, True, Accepted()))),
        "amqp:invalid-field",
        "runs backwards",
    ),
}


@pytest.mark.parametrize("name", SESSION_FAULTS)
def test_session_is_ended_for(scene: Scene, name: str) -> None:
    octets, condition, text = SESSION_FAULTS[name]
    with Peer(scene.plain) as bad:
        bad.raw(octets)
        expect_session_fault(scene, bad, condition, text)


def expect_session_fault(scene: Scene, bad: Peer, condition: str, text: str) -> None:
    """Check that the fault ends only the session: the connection accepts another one."""
    error = bad.expect_session_end()
    assert error is not None
    assert (error.condition, text in (error.description or "")) == (condition, True), error
    scene.router.wait_for_line(rf"\[C{bad.number}\] Session .*{condition}")
    bad.begin()
    bad.attach_receiver("after a fault", credit=1)
    bad.be_heard()


def test_an_attach_on_a_handle_in_use_ends_the_session(scene: Scene) -> None:
    with Peer(scene.plain) as bad:
        bad.attach_receiver("somewhere")
        bad.say(attach("another", 0))
        expect_session_fault(scene, bad, "amqp:session:handle-in-use", "handle 0")


def test_an_attach_with_a_name_in_use_closes_the_connection(scene: Scene) -> None:
    with Peer(scene.plain) as bad:
        bad.attach(attach("the name", 0))
        bad.say(attach("the name", 1))
        error = bad.expect_close()
        assert error is not None
        assert (error.condition, error.description) == ("amqp:invalid-field", "link name already attached: the name")
        scene.router.wait_for_line(rf"\[C{bad.number}\] .*link name already attached: the name")


def test_a_sender_that_ignores_its_window_is_slowed_and_not_ended(scene: Scene) -> None:
    """The receiver has no credit yet, so the router keeps the messages, and the window does not open."""
    with Peer(scene.small_window) as receiver, Peer(scene.small_window) as careless:
        source = receiver.attach_receiver("window", credit=0)
        receiver.be_heard()
        link = careless.attach_sender("window")
        assert careless.window == 8
        whole = message(bytes(40_000))
        for _ in range(10):
            careless.send_message(link, bytes(40_000))

        def send_rest() -> None:
            for _ in range(140):
                careless.send_message(link, bytes(40_000))

        with ThreadPoolExecutor(1) as other_thread:
            rest = other_thread.submit(send_rest)
            receiver.grant(source, 1000)
            for _ in range(150):
                assert receiver.take_message(source) == whole
            rest.result(DEADLINE_S)
        careless.be_heard()


def test_a_peer_that_receives_too_loses_its_session_far_beyond_its_window(scene: Scene) -> None:
    """It is read on, because the credit that it gives may be what its messages wait for."""
    with Peer(scene.small_window) as receiver, Peer(scene.small_window) as bad:
        receiver.attach_receiver("overrun", credit=0)
        receiver.be_heard()
        bad.attach_receiver("elsewhere", credit=0)
        link = bad.attach_sender("overrun")
        for _ in range(8):
            bad.transfer(link, message(bytes(16_000)))
        for _ in range(32):
            bad.transfer(link, message(b"beyond the window"))
        bad.be_heard()
        bad.transfer(link, message(b"one too many"))
        expect_session_fault(scene, bad, "amqp:session:window-violation", "window")


def test_a_peer_that_receives_too_loses_its_session_beyond_the_bytes_of_its_connection(scene: Scene) -> None:
    with Peer(scene.small_window) as receiver, Peer(scene.small_window) as bad:
        receiver.attach_receiver("much", credit=0)
        receiver.be_heard()
        bad.attach_receiver("elsewhere", credit=0)
        link = bad.attach_sender("much")
        for _ in range(32):
            bad.transfer(link, message(bytes(16_000)))
        bad.be_heard()
        bad.transfer(link, message(bytes(16_000)))
        expect_session_fault(scene, bad, "amqp:resource-limit-exceeded", "524288")


def test_a_transfer_on_a_link_that_the_peer_receives_on_ends_the_session(scene: Scene) -> None:
    with Peer(scene.plain) as bad:
        link = bad.attach_receiver("errant", credit=1)
        bad.transfer(link, message(b"x"))
        expect_session_fault(scene, bad, "amqp:session:errant-link", "errant")


def test_a_delivery_id_that_does_not_follow_ends_the_session(scene: Scene) -> None:
    with Peer(scene.plain) as receiver, Peer(scene.plain) as bad:
        receiver.attach_receiver("ids", credit=10)
        link = bad.attach_sender("ids")
        bad.say(Transfer(link.handle, 5, b"5"), message(b"x"))
        bad.say(Transfer(link.handle, 5, b"5"), message(b"x"))
        expect_session_fault(scene, bad, "amqp:invalid-field", "delivery-id 5 does not follow 5")


# --- faults that end the link


def expect_link_fault(scene: Scene, bad: Peer, link: Link, condition: str) -> None:
    """Check that the fault detaches only the link."""
    error = bad.expect_detach()
    assert error is not None
    assert error.condition == condition
    bad.say(Detach(link.handle, True))
    scene.router.wait_for_line(rf"\[C{bad.number}\]\[L\d+\] Link detached: del=.* blocked=no: {condition}")
    bad.be_heard()


def test_a_transfer_without_credit_detaches_the_link(scene: Scene) -> None:
    with Peer(scene.plain) as bad:
        link = bad.attach_sender("nobody listens here", credit=False)
        bad.send_message(link, b"x")
        expect_link_fault(scene, bad, link, "amqp:link:transfer-limit-exceeded")


def test_more_transfers_than_twice_the_credit_detach_the_link(scene: Scene) -> None:
    with Peer(scene.plain) as receiver, Peer(scene.plain) as bad:
        receiver.attach_receiver("credit", credit=0)
        receiver.be_heard()
        link = bad.attach_sender("credit")
        assert link.credit == 250
        for _ in range(501):
            bad.send_message(link, b"x")
        expect_link_fault(scene, bad, link, "amqp:link:transfer-limit-exceeded")


def test_a_delivery_without_a_tag_detaches_the_link(scene: Scene) -> None:
    with Peer(scene.plain) as receiver, Peer(scene.plain) as bad:
        receiver.attach_receiver("tags", credit=1)
        link = bad.attach_sender("tags")
        bad.say(Transfer(link.handle, 0), message(b"x"))
        expect_link_fault(scene, bad, link, "amqp:invalid-field")


@pytest.mark.parametrize("frames", [1, 3])
def test_a_delivery_with_a_tag_of_more_than_32_bytes_is_rejected_and_the_link_goes_on(
    scene: Scene, frames: int
) -> None:
    with Peer(scene.plain) as receiver, Peer(scene.plain) as sender:
        taken = receiver.attach_receiver(f"tags.{frames}", credit=10)
        link = sender.attach_sender(f"tags.{frames}")
        for size in (33, 200, 300):
            for number in range(frames):
                more = number < frames - 1
                delivery = sender._next_delivery
                tag = bytes(size) if number == 0 else None
                sender.say(Transfer(link.handle, delivery, tag, 0, more=more), message(b"x" * 10))
            sender._next_delivery = (delivery + 1) & 0xFFFFFFFF
            outcome = sender.expect_outcome(delivery)
            assert isinstance(outcome, Rejected)
            assert outcome.error is not None
            assert outcome.error.condition == "amqp:invalid-field"
        delivery = sender.send_message(link, b"good")
        assert receiver.take_message(taken) == message(b"good")
        assert sender.expect_outcome(delivery) == Accepted()
    scene.router.wait_for_line(rf"\[C{sender.number}\]\[L\d+\] Link lost: del=4 presett=0 psdrop=0 acc=1 rej=3 ")


@pytest.mark.parametrize("size", [990, 2000, 4096])
def test_links_may_be_named_after_an_address_of_any_allowed_length(scene: Scene, size: int) -> None:
    address = ("a" * size)[:size]
    with Peer(scene.plain) as receiver, Peer(scene.plain) as sender:
        for peer, role in ((receiver, True), (sender, False)):
            source, target = (Source(address), Target()) if role else (Source(), Target(address))
            answer = peer.attach(Attach(f"{'c' * 1000}-{address}", 0, role, source=source, target=target))
            assert (answer.source if role else answer.target) is not None


# --- SASL frames in the wrong order

ANONYMOUS = SaslInit("ANONYMOUS", b"")


def sasl(*performatives: object) -> bytes:
    return b"".join(frame(0, encode_performative(each), 1) for each in performatives)  # type: ignore[arg-type]


SASL_FAULTS: dict[str, bytes] = {
    "a response before any challenge": sasl(SaslResponse(b"")),
    "an outcome from a client": sasl(SaslOutcome(0)),
    "mechanisms from a client": sasl(SaslMechanisms(("ANONYMOUS",))),
    "an open inside the SASL layer": frame(0, encode_performative(Open("x")), 1),
    "an AMQP frame inside the SASL layer": frame(0, encode_performative(Open("x"))),
    "the AMQP header before the outcome": AMQP_HEADER,
    "a mechanism that was not offered": sasl(SaslInit("SCRAM-SHA-512", b"")),
    "a mechanism with a name of 10 kB": sasl(SaslInit("X" * 10_000, b"")),
    "a truncated init": frame(0, b"\0\x53\x41\xc0\x20\x01\xa3\x09ANON", 1),
    "an init without a mechanism": frame(0, b"\0\x53\x41\x45", 1),
    "a frame larger than any SASL frame": b"\0\x01\0\0\2\1\0\0" + bytes(4_000),
    "values nested deep": frame(0, b"\0\x53\x41" + nested_lists(1_500), 1),
}


@pytest.mark.parametrize("name", SASL_FAULTS)
def test_no_client_is_let_in_for(scene: Scene, name: str) -> None:
    with Peer(scene.plain, opened=False) as bad:
        assert bad.begin_sasl()
        bad.raw(SASL_FAULTS[name])
        expect_sasl_refusal(bad)
        scene.router.wait_for_line(rf"\[C\d+\] Connection from {bad.address} .*(failed|refused)")


def expect_sasl_refusal(bad: Peer) -> None:
    """Check that there is no successful outcome and that the stream ends: never an AMQP layer."""
    try:
        assert bad.expect(SaslOutcome).code != 0
        bad.expect_end_of_stream()
    except Gone:
        pass


def test_a_second_init_after_the_outcome_closes_the_connection(scene: Scene) -> None:
    with Peer(scene.plain, opened=False, sasl=True) as bad:
        bad.raw(sasl(ANONYMOUS))
        bad.expect_header(AMQP_HEADER)
        bad.remote_open = bad.expect(Open)
        error = bad.expect_close()
        assert error is not None
        assert error.condition == FRAMING
        scene.router.wait_for_line(rf"\[C{bad.number}\] .*{FRAMING}")


def test_two_inits_at_once_are_no_way_in_either(scene: Scene) -> None:
    with Peer(scene.plain, opened=False) as bad:
        bad.raw(SASL_HEADER + sasl(ANONYMOUS, ANONYMOUS) + AMQP_HEADER + frame(0, encode_performative(Open("x"))))
        bad.expect_header(SASL_HEADER)
        bad.expect(SaslMechanisms)
        assert bad.expect(SaslOutcome).code == 0
        bad.expect_header(AMQP_HEADER)
        bad.expect(Open)
        error = bad.expect_close()
        assert error is not None
        assert error.condition == FRAMING


# --- slow peers


def trickle(bad: Peer, octets: bytes, pause_s: float) -> None:
    """Send one byte after the other, until the router closes."""
    bad.sock.settimeout(pause_s)
    for octet in octets:
        try:
            bad.sock.sendall(bytes((octet,)))
            if not bad.sock.recv(65_536):
                return
        except TimeoutError:
            continue
        except OSError:
            return
    raise AssertionError("the router waits for ever")


STOPS: dict[str, Callable[[Peer], None]] = {
    "that says nothing": lambda bad: None,
    "that stops inside the protocol header": lambda bad: bad.raw(AMQP_HEADER[:3]),
    "that stops inside the SASL header": lambda bad: bad.raw(SASL_HEADER[:7]),
    "that stops inside a frame header": lambda bad: bad.raw(AMQP_HEADER + b"\0\0\0"),
    "that stops inside its open": lambda bad: bad.raw(AMQP_HEADER + frame(0, encode_performative(Open("x")))[:-1]),
    "that stops before its open": lambda bad: bad.raw(AMQP_HEADER),
    "that sends one byte at a time": lambda bad: trickle(bad, AMQP_HEADER + frame(0, bytes(1_000)), 0.1),
}


@pytest.mark.parametrize("how", STOPS)
def test_a_peer_that_never_opens_is_disconnected(scene: Scene, how: str) -> None:
    with Peer(scene.short_deadlines, opened=False) as bad:
        STOPS[how](bad)
        scene.neighbours.go_on()
        while True:
            try:
                if not bad.sock.recv(65_536):
                    break
            except ConnectionResetError:
                break
        scene.router.wait_for_line(rf"\[C\d+\] Connection from {bad.address} .*(timed out|failed)")


IDLES: dict[str, Callable[[Peer], None]] = {
    "that falls silent": lambda bad: None,
    "that stops inside a frame": lambda bad: bad.raw(frame(0, encode_performative(attach()))[:-1]),
}


@pytest.mark.parametrize("how", IDLES)
def test_an_open_peer_is_closed_for_its_silence(scene: Scene, how: str) -> None:
    with Peer(scene.short_deadlines) as bad:
        IDLES[how](bad)
        scene.neighbours.go_on()
        error = bad.expect_close()
        assert error is not None
        assert (error.condition, error.description) == ("amqp:resource-limit-exceeded", "local-idle-timeout expired")
        scene.router.wait_for_line(rf"\[C{bad.number}\] .*local-idle-timeout expired")


def test_a_frame_that_comes_one_octet_at_a_time_is_no_sign_of_life(scene: Scene) -> None:
    with Peer(scene.short_deadlines) as bad:
        trickle(bad, frame(0, encode_performative(attach()) + bytes(1_000)), 0.1)
        scene.router.wait_for_line(rf"\[C{bad.number}\] .*local-idle-timeout expired")


def test_a_receiver_that_never_reads_costs_no_more_than_a_window(scene: Scene) -> None:
    """100 MB are sent to a receiver that grants credit for all of it and then does not read."""
    before = scene.router.resident_bytes()
    with Peer(scene.plain, receive_buffer=4096) as bad, Peer(scene.plain) as sender:
        bad.attach_receiver("never read", credit=1_000_000)
        bad.be_heard()
        link = sender.attach_sender("never read")
        body = bytes(100_000)
        sent = 0
        while sent < 1_000 and sender.window >= 7 and link.credit > 0:
            sender.send_message(link, body, settled=True)
            sent += 1
            if sent % 8 == 0:
                sender.be_heard()
        assert sent < 1_000, "the router has taken in everything"
        scene.neighbours.go_on(500)
        assert scene.router.resident_bytes() - before < GROWTH_BYTES


def test_a_sender_that_never_reads_costs_no_more_than_its_answers(scene: Scene) -> None:
    """A million flows request 40 MB of answers: the router merges them, or stops reading."""
    before = scene.router.resident_bytes()
    with Peer(scene.plain, receive_buffer=4096) as bad:
        link = bad.attach_receiver("nobody sends here")
        flow = frame(0, encode_performative(Flow(
            next_incoming_id=0, incoming_window=1, next_outgoing_id=FIRST_ID, outgoing_window=1, handle=link.handle,
            delivery_count=0, link_credit=1, echo=True,
        )))  # fmt: skip
        bad.sock.settimeout(0.5)
        rest, stalls = memoryview(flow * 1_000_000), 0
        while rest and stalls < 2:  # a busy router gets more time; one that serves others meanwhile has stopped
            try:
                rest, stalls = rest[bad.sock.send(rest[:65_536]) :], 0
            except TimeoutError:
                stalls += 1
                scene.neighbours.go_on(250)
        scene.neighbours.go_on(500)
        assert scene.router.resident_bytes() - before < 16 * 1024 * 1024
