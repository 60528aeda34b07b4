"""Lines about messages (routing.md 4.8, messageLoggingComponents)."""

from __future__ import annotations

import re
import uuid

import pytest

from tests.core.joined import Joined
from trouter.core.inprocess import InsideMessage
from trouter.core.messagelog import APPLICATION_PROPERTIES, COMPONENTS, MAX_LINE, MessageLog
from trouter.core.terms import PeerTerms
from trouter.engine.link_base import Link
from trouter.testing import MemoryClient, MemoryRouter, compose
from trouter.wire.codec import encode
from trouter.wire.types import Described, Int, PairMap, Symbol, Timestamp, UInt, ULong
from trouter.wire.value_text import property_text

EVERYTHING = [
    "id",
    b"user\x00\xff",
    "to",
    "subject",
    "reply",
    ULong(7),
    Symbol("text/plain"),
    Symbol("gzip"),
    Timestamp(1_600_000_000_123),
    None,
    "group",
    UInt(3),
    "back",
]


def message(properties: list[object] | None = None, application: dict[str, object] | None = None) -> bytes:
    parts = []
    if properties is not None:
        parts.append(encode(Described(ULong(0x73), properties)))
    if application is not None:
        parts.append(encode(Described(ULong(0x74), application)))
    return b"".join([*parts, compose(b"body")])


class Room:
    """A router with a sender and a receiver whose connection logs."""

    def __init__(self, *components: str) -> None:
        self.lines: list[str] = []
        self.router = MemoryRouter()
        log = MessageLog(components, self.emit)
        self.client: MemoryClient = self.router.connect(PeerTerms(log=log))

    def emit(self, link: Link, text: str) -> None:
        self.lines.append(text)


def describe(data: bytes, *components: str) -> str:
    return MessageLog(components, lambda link, text: None).describe_message(data)


def test_everything_in_its_order() -> None:
    text = describe(message(EVERYTHING, {"k": Int(1), "flag": True}), "all")
    time = text[text.index("absolute-expiry-time=") :].split('"')[1]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.123 [+-]\d{4}", time)
    assert text == (
        'Message{message-id="id", user-id=b"user\\00\\ff", to="to", subject="subject", reply-to="reply", '
        'correlation-id=7, content-type=:"text/plain", content-encoding=:"gzip", '
        f'absolute-expiry-time="{time}", group-id="group", group-sequence=3, reply-to-group-id="back", '
        'app-properties={"k"=1, "flag"=T}}'
    )


@pytest.mark.parametrize("name", COMPONENTS)
def test_each_component_alone(name: str) -> None:
    text = describe(message([*EVERYTHING[:9], Timestamp(0), *EVERYTHING[10:]], {"k": "v"}), name)
    assert text.startswith(f"Message{{{name}=")
    assert text.count("=") == (2 if name == APPLICATION_PROPERTIES else 1)


def test_the_fields_have_a_fixed_order_and_absent_fields_are_left_out() -> None:
    assert describe(message(["id", None, "to"]), "to", "subject", "message-id") == 'Message{message-id="id", to="to"}'
    assert describe(message(None, {"k": 1}), "all") == 'Message{app-properties={"k"=1}}'
    assert describe(compose(b"x"), "all") == "Message{}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "T"),
        (False, "F"),
        (-5, "-5"),
        ('a"b', '"a"b"'),
        (Symbol("s"), ':"s"'),
        (b"\x00a", 'b"\\00a"'),
        ([1, "x", None], '[1, "x", null]'),
        ({"k": {"deep": 1}}, '{"k"={"deep"=1}}'),
        (PairMap([(Int(1), 2)]), "{1=2}"),
        (1.5, ""),
        (uuid.UUID(int=1), ""),
        (Timestamp(1 << 62), str(1 << 62)),
    ],
)
def test_values(value: object, text: str) -> None:
    assert property_text(value) == text


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\x53", b"\0\x53\x73", b"garbage", message(["a"])[:5], b"\0\x80\0"])
def test_a_broken_message_is_logged_without_its_unreadable_fields(data: bytes) -> None:
    assert describe(data, "all") == "Message{}"


def test_one_line_for_each_message_received_and_sent() -> None:
    room = Room("to", APPLICATION_PROPERTIES)
    room.client.receiver("q", credit=10, name="out")
    room.client.sender("q", name="in").send(message([None, None, "q"], {"k": 1}))
    room.router.pump()
    assert room.lines == [
        'Received Message{to="q", app-properties={"k"=1}} on link \'in\' ( -> q)',
        'Sent Message{to="q", app-properties={"k"=1}} on link \'out\' (q -> )',
    ]


def test_a_message_without_application_properties_is_logged_too() -> None:
    room = Room("all")
    room.client.sender(name="in").send(compose(b"x", to="nowhere"))
    room.router.pump()
    assert room.lines == ["Received Message{to=\"nowhere\"} on link 'in' ( -> )"]


@pytest.mark.parametrize("size", [10, 300_000])
def test_a_waiting_message_is_logged_as_sent_when_the_router_sends_it(size: int) -> None:
    room = Room("to")
    receiver = room.client.receiver("q", name="out")
    sent = room.client.sender("q", name="in").begin(compose(bytes(size), to="q"))
    room.router.pump()
    sent.finish(b"")
    room.router.pump()
    assert len(room.lines) == 1
    receiver.grant(1)
    room.router.pump()
    assert room.lines[1:] == ["Sent Message{to=\"q\"} on link 'out' (q -> )"]


def test_an_aborted_message_is_logged() -> None:
    room = Room()
    room.client.receiver("q")
    room.client.sender("q", name="in").send(compose(bytes(1000)), frames=3, abort=True)
    room.router.pump()
    assert room.lines == ["Received aborted message on link 'in' ( -> q)"]


def test_texts_of_messages_that_are_dropped_are_not_kept() -> None:
    room = Room("to")
    room.client = room.router.connect(PeerTerms(link_capacity=5, log=MessageLog(["to"], room.emit)))
    room.client.receiver("q")
    sender = room.client.sender("q")
    for _ in range(300):
        sender.send(compose(b"x", to="q"), settled=True)
        room.router.pump()
    (outgoing,) = room.router.core.outgoing_endpoints()
    assert outgoing.log is not None
    assert len(outgoing.log._texts) < 100


def test_a_line_is_bounded() -> None:
    room = Room("subject")
    room.client.sender().send(message([None, None, None, "s" * 100_000]))
    room.router.pump()
    assert len(room.lines[0]) == MAX_LINE


def test_connections_without_a_message_log_write_no_line() -> None:
    room = Room("all")
    silent = room.router.connect()
    silent.receiver("q", credit=1)
    silent.sender("q").send(compose(b"x"))
    room.router.pump()
    assert room.lines == []


# --- between routers


class Passing:
    """Two routers whose connection logs at both ends."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {"A": [], "B": []}

        def log_of(name: str) -> MessageLog:
            return MessageLog(["to"], lambda _, text: self.lines[name].append(re.sub("'.*'", "x", text)))

        self.joined = Joined({("A", "B"): 1}, logs={name: log_of(name) for name in "AB"})


@pytest.mark.parametrize("size", [10, 100_000, 300_000])
@pytest.mark.parametrize("frames", [1, 5])
def test_messages_between_routers_are_logged_once_at_each_end(size: int, frames: int) -> None:
    """Messages on links of their own are logged too; messages of the routing protocol are not."""
    passing = Passing()
    receiver = passing.joined["B"].connect().receiver("q", credit=10)
    passing.joined["A"].connect().sender("q").send(compose(bytes(size), to="here"), frames=frames)
    passing.joined.pump()
    assert len(receiver.bodies) == 1
    assert passing.lines == {
        "A": ['Sent Message{to="here"} on link x ( -> )'],
        "B": ['Received Message{to="here"} on link x ( -> )'],
    }


class Reader:
    """A consumer inside a router."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def receive(self, received: InsideMessage) -> None:
        self.taken.append(received.message)
        received.settle()


def test_a_message_for_the_router_itself_is_logged_once() -> None:
    passing, reader = Passing(), Reader()
    passing.joined["B"].core.inside.subscribe("_local/inside", reader)
    passing.joined["A"].connect().sender("_topo/0/B/inside").send(compose(bytes(300_000), to="here"), frames=7)
    passing.joined.pump()
    assert len(reader.taken) == 1
    assert passing.lines["B"] == ['Received Message{to="here"} on link x ( -> )']


def test_a_message_that_breaks_off_between_routers_is_logged() -> None:
    passing = Passing()
    passing.joined["B"].connect().receiver("q", credit=10)
    sent = passing.joined["A"].connect().sender("q").begin(compose(bytes(300_000), to="here")[:200_000])
    passing.joined.pump()
    sent.abort()
    passing.joined.pump()
    assert passing.lines["B"] == [
        'Received Message{to="here"} on link x ( -> )',
        "Received aborted message on link x ( -> )",
    ]
