"""The cost of a peer's bytes before it has logged in (security.md 7.3), and unusual values in an open (7.1, 7.2).

Costs are allocations, and processor time only as a multiple of the time for an ordinary frame of the size.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.advisories.examples import PERFORMATIVES, name
from tests.e2e.peer import Peer
from tests.engine.talks import server
from tests.management.node import node_of
from tests.routers import RunningRouter, running
from tests.script import Script, encode
from tests.wire.test_codec import BY_HAND
from trouter.config import load
from trouter.engine.connection import Connection
from trouter.engine.events import ConnectionClosed, ConnectionOpened
from trouter.engine.limits import EngineLimits
from trouter.engine.sasl import SaslServer
from trouter.testing import MemoryRouter, compose
from trouter.wire import codec
from trouter.wire.constants import MAX_NESTING
from trouter.wire.errors import DecodeError
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER, frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Open,
    Performative,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    Source,
    Target,
    encode_performative,
)
from trouter.wire.types import Array, PairMap, Symbol, UInt

pytestmark = pytest.mark.attack

MIB = 1024 * 1024
LARGE = EngineLimits(max_frame_bytes=MIB, idle_timeout_s=0.0)
DECODE = "amqp:decode-error"


def sized(code: int, body: bytes, count: int | None = None) -> bytes:
    """Return a value with its length, and its count if it has one, in four bytes."""
    counted = b"" if count is None else count.to_bytes(4, "big")
    return bytes([code]) + (len(body) + len(counted)).to_bytes(4, "big") + counted + body


def open_with(properties: bytes) -> bytes:
    """Return an open with these properties, valid or not."""
    return frame(0, b"\0\x53\x10" + sized(0xD0, b"\xa1\x04peer" + b"\x40" * 8 + properties, 10))


def init_with(field: bytes) -> bytes:
    return frame(0, b"\0\x53\x41" + sized(0xD0, b"\xa3\x05PLAIN" + field, 2), 1)


def before_open(octets: bytes) -> Connection:
    connection = server(LARGE)
    connection.receive_data(AMQP_HEADER + octets)
    return connection


def before_login(octets: bytes) -> Connection:
    connection = server(sasl=SaslServer(("PLAIN",), True))
    connection.receive_data(SASL_HEADER + octets)
    return connection


def condition(connection: Connection) -> str:
    """Return the condition of the close, "" if the connection is open."""
    faults = [event.fault for event in connection.events if isinstance(event, ConnectionClosed)]
    return faults[0].condition if faults and faults[0] is not None else ""


def growth(what: Callable[[], object]) -> int:
    """Return how many more bytes are allocated after ``what`` than before; a first call makes what is made once."""
    what()
    gc.collect()
    tracemalloc.start()
    try:
        what()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(8):
            what()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def peak(what: Callable[[], object]) -> int:
    """Return the peak of allocated bytes during ``what``, above those before it."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        what()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


# --- symbols are not kept


def numbers() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


FRESH = numbers()


def symbol() -> Symbol:
    """Return a symbol that was never decoded before."""
    return Symbol(f"x-a-symbol-of-a-stranger-{next(FRESH)}")


def symbols_in_an_open() -> None:
    properties = {symbol(): symbol() for _ in range(300)}
    capabilities = [symbol() for _ in range(300)]
    connection = before_open(encode(Open("peer", properties=properties, desired_capabilities=tuple(capabilities))))
    assert isinstance(connection.events[0], ConnectionOpened)


def symbols_as_mechanisms() -> None:
    for _ in range(40):
        before_login(encode(SaslInit(symbol())))


def symbols_in_an_attach() -> None:
    router = MemoryRouter()
    client = router.connect()
    for _ in range(15):
        capabilities = tuple(symbol() for _ in range(20))
        link = client.receiver("x", capabilities=capabilities, properties={symbol(): 1})
        router.pump()
        link.detach()
        router.pump()


def symbols_in_messages() -> None:
    router = MemoryRouter()
    client = router.connect()
    receiver = client.receiver("x", credit=100)
    sender = client.sender("x")
    for _ in range(50):
        sender.send(compose(b"x", annotations={symbol(): 1, symbol(): 2}), settled=True)
    router.pump()
    assert len(receiver.received) == 50


@pytest.mark.parametrize(
    "stranger", [symbols_in_an_open, symbols_as_mechanisms, symbols_in_an_attach, symbols_in_messages]
)
def test_symbols_of_strangers_are_not_kept(stranger: Callable[[], None]) -> None:
    """Eight rounds keep less than the symbols of one."""
    assert growth(stranger) < 8_000


def test_tens_of_thousands_of_symbols_leave_nothing_behind() -> None:
    def decode() -> None:
        octets = codec.encode(Array("symbol", [symbol() for _ in range(4_000)]))
        assert len(codec.decode_all(octets)) == 4_000

    assert growth(decode) < 8_000


# --- sizes and counts that lie

LIES = {
    "a list of 2^31 items": sized(0xD0, b"\x40", 1 << 31),
    "a map of 2^31 items": sized(0xD1, b"\x40\x40", 1 << 31),
    "a text of 2^32 - 1 bytes": b"\xb1\xff\xff\xff\xff" + b"x" * 10,
    "a binary of 2^32 - 1 bytes": b"\xb0\xff\xff\xff\xff" + b"x" * 10,
    "a symbol of 2^31 bytes": b"\xb3\x80\0\0\0" + b"x" * 10,
    "a list of 2^32 - 1 bytes": b"\xd0\xff\xff\xff\xff\0\0\0\1\x40",
    "an array of 2^31 nulls": sized(0xF0, b"\x40", 1 << 31),
    "an array of 2^31 trues": sized(0xF0, b"\x41", 1 << 31),
    "an array of 2^31 empty lists": sized(0xF0, b"\x45", 1 << 31),
    "an array of 2^31 zeros": sized(0xF0, b"\x43", 1 << 31),
    "an array of 2^31 described nulls": sized(0xF0, b"\0\x53\x01\x40", 1 << 31),
    "an array of 2^31 wide numbers": sized(0xF0, b"\x80", 1 << 31),
}


@pytest.mark.parametrize("said", [before_open, before_login])
@pytest.mark.parametrize("name", LIES)
def test_announced_sizes_allocate_no_memory(name: str, said: Callable[[bytes], Connection]) -> None:
    octets = open_with(LIES[name]) if said is before_open else init_with(LIES[name])
    assert len(octets) < 100
    said(octets)  # so that what is made once exists

    def listen() -> None:
        assert condition(said(octets)) == DECODE

    assert peak(listen) < 128 * 1024


@pytest.mark.parametrize("size", [1 << 31, 0xFFFFFFFF, MIB + 1])
def test_a_frame_of_any_size_is_refused_on_its_first_octets(size: int) -> None:
    header = size.to_bytes(4, "big") + b"\2\0\0\0"

    def listen() -> None:
        for opened in (b"", encode(Open("peer"))):
            assert condition(before_open(opened + header)) == "amqp:connection:framing-error"
        assert condition(before_login(header)) == "amqp:connection:framing-error"

    listen()
    assert peak(listen) < 128 * 1024


# --- nesting


def lists(depth: int) -> bytes:
    value = b"\x45"
    pieces = []
    size = len(value)
    for _ in range(depth):
        pieces.append(b"\xd0" + (size + 4).to_bytes(4, "big") + b"\0\0\0\1")
        size += 9
    return b"".join(reversed(pieces)) + value


def maps(depth: int) -> bytes:
    size = 1
    pieces = []
    for _ in range(depth):
        pieces.append(b"\xd1" + (size + 5).to_bytes(4, "big") + b"\0\0\0\2\x40")
        size += 10
    return b"".join(reversed(pieces)) + b"\x40"


def arrays(depth: int) -> bytes:
    size = 0
    pieces = []
    for number in range(depth):
        constructor = b"\xf0" if number else b"\x40"
        pieces.append((size + 5).to_bytes(4, "big") + (b"\0\0\0\1" if number else b"\0\0\0\0") + constructor)
        size += 9
    return b"\xf0" + b"".join(reversed(pieces))


def descriptions(depth: int) -> bytes:
    return b"\0\x40" * depth + b"\x40"


def descriptors(depth: int) -> bytes:
    return b"\0" * depth + b"\x40" * (depth + 1)


@pytest.mark.parametrize("nested", [lists, maps, arrays, descriptions, descriptors])
@pytest.mark.parametrize("depth", [1, MAX_NESTING, MAX_NESTING + 1, 1_000, 100_000])
def test_nesting_is_bounded_for_every_type(nested: Callable[[int], bytes], depth: int) -> None:
    octets = nested(depth)
    if depth <= MAX_NESTING:
        codec.decode_all(octets)
        assert codec.skip(octets, 0, len(octets)) == len(octets)
        return
    with pytest.raises(DecodeError, match=f"nested more than {MAX_NESTING} deep"):
        codec.decode_all(octets)


@pytest.mark.parametrize("nested", [lists, maps, arrays, descriptions, descriptors])
@pytest.mark.parametrize("depth", [MAX_NESTING + 1, 500, 5_000])
def test_nesting_ends_the_connection_before_any_user_is_known(nested: Callable[[int], bytes], depth: int) -> None:
    assert condition(before_open(open_with(nested(depth)))) in {DECODE, "amqp:connection:framing-error"}
    if depth <= 500:
        assert condition(before_open(open_with(nested(depth)))) == DECODE
        assert condition(before_login(init_with(nested(depth)))) == DECODE


# --- what one frame may cost


def filled(value: Callable[[int], bytes], size: int = 60_000) -> bytes:
    """Repeat items up to ``size`` bytes, as the body of a compound."""
    return b"".join(value(number) for number in range(size // len(value(0))))


def counted(code: int, value: Callable[[int], bytes], per: int = 1) -> bytes:
    body = filled(value)
    return sized(code, body, per * (len(body) // len(value(0))))


ONE_HASH = (1 << 61) - 1
FRAMES: dict[str, bytes] = {
    "nulls": counted(0xD0, lambda number: b"\x40"),
    "empty lists": counted(0xD0, lambda number: b"\x45"),
    "lists of lists": counted(0xD0, lambda number: b"\xc0\x02\x01\x45"),
    "a map of numbers": counted(0xD1, lambda number: b"\x80" + number.to_bytes(8, "big") + b"\x40", 2),
    "a map of uuids of one hash": counted(
        0xD1, lambda number: b"\x98" + (number * ONE_HASH).to_bytes(16, "big") + b"\x40", 2
    ),
    "a map of described uuids of one hash": counted(
        0xD1, lambda number: b"\0\x40\x98" + (number * ONE_HASH).to_bytes(16, "big") + b"\x40", 2
    ),
    "a map whose keys are lists": counted(
        0xD1, lambda number: b"\xc0\x06\x01\x70" + number.to_bytes(4, "big") + b"\x40", 2
    ),
    "the same key again and again": counted(0xD1, lambda number: b"\xa3\x01a\x40", 2),
    "symbols": sized(0xF0, b"\xa3" + b"\x01a" * 29_000, 29_000),
    "arrays of nulls": counted(0xD0, lambda number: b"\xe0\x02\xff\x40"),
    "described numbers": counted(0xD0, lambda number: b"\0\x53\x01\x43"),
}  # fmt: skip


def time_of(connection: Connection, octets: bytes) -> float:
    before = time.process_time()
    connection.receive_data(octets)
    return time.process_time() - before


def opened_for(octets: bytes) -> Connection:
    connection = before_open(encode(Open("peer")))
    connection.open()
    connection.receive_data(encode(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)))
    return connection


@pytest.mark.parametrize("name", FRAMES)
def test_no_open_costs_much_more_than_an_ordinary_one(name: str) -> None:
    """Of the largest frame before the open (security.md 8.9). An ordinary one has a thousand values."""
    pairs = b"".join(b"\xa3\x08key-%04d\xa1\x6e" % number + b"x" * 110 for number in range(500))
    ordinary = open_with(sized(0xD1, pairs, 1000))
    assert condition(before_open(ordinary)) == ""
    hostile = open_with(FRAMES[name])
    assert len(hostile) <= 65_536

    def quickest(octets: bytes) -> float:
        return min(time_of(server(LARGE), AMQP_HEADER + octets) for _ in range(5))

    assert condition(before_open(hostile)) == DECODE
    assert quickest(hostile) < 20 * quickest(ordinary)


def test_values_of_a_performative_are_counted() -> None:
    """PROTON-2952, 2954: nested values count, too; an attach may list unsettled deliveries."""

    def nulls(count: int) -> dict[str, Any]:
        return {"all": [None] * count}

    spare = 1024 - 10 - 14
    assert condition(before_open(encode(Open("peer", properties=nulls(spare))))) == ""
    assert condition(before_open(encode(Open("peer", properties=nulls(1024))))) == DECODE
    assert condition(before_open(encode(Open("peer", properties={"a": Array("uint", [UInt(0)] * 1024)})))) == DECODE
    for count, expected in ((10_000, ""), (65_536, DECODE)):
        connection = server(LARGE)
        talk = Script(connection).peer_sends(AMQP_HEADER, Open("peer"))
        connection.open()
        talk.peer_sends(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
        talk.peer_sends(Attach("x", 0, True, source=Source("x"), target=Target(), properties=nulls(count)))
        assert condition(connection) == expected


# --- performatives where they do not belong: PROTON-2945, CVE-2016-4432

SASL: list[Performative] = [
    SaslMechanisms(("PLAIN",)),
    SaslInit("PLAIN", b"\0a\0b"),
    SaslChallenge(b""),
    SaslResponse(b""),
    SaslOutcome(0),
]


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("wrong", PERFORMATIVES, ids=name)
def test_no_performative_of_amqp_belongs_into_the_sasl_layer(wrong: Performative, kind: int) -> None:
    connection = before_login(frame(0, encode_performative(wrong), kind) + AMQP_HEADER + encode(Open("x")))
    assert condition(connection) != ""
    assert connection.finished
    assert not any(isinstance(event, ConnectionOpened) for event in connection.events)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("wrong", SASL, ids=name)
def test_sasl_performatives_are_refused_above_the_sasl_layer(wrong: Performative, kind: int) -> None:
    octets = frame(0, encode_performative(wrong), kind)
    for before in (b"", encode(Open("x"))):
        assert condition(before_open(before + octets)) in {"amqp:connection:framing-error", "amqp:not-implemented"}


@pytest.mark.parametrize("early", [each for each in PERFORMATIVES if not isinstance(each, Open)], ids=name)
def test_nothing_is_done_before_the_open(early: Performative) -> None:
    connection = before_open(encode(early))
    assert condition(connection) == "amqp:illegal-state"
    assert connection.sessions() == []


# --- unusual values in an open, through a real router: Q-01, DISPATCH-883, DISPATCH-2307

CONFIGURATION = """
router { id: R }
listener { host: 127.0.0.1, port: 0, maxFrameSize: 262144, saslMechanisms: ANONYMOUS }
listener { host: 127.0.0.1, port: 0, maxFrameSize: 262144, saslMechanisms: ANONYMOUS, role: route-container }
"""


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(CONFIGURATION, tmp_path_factory.mktemp("router")) as process:
        yield process


@pytest.fixture(autouse=True)
def others_are_served(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check after the test that other clients are served."""
    yield
    if "router" in request.fixturenames:
        process: RunningRouter = request.getfixturevalue("router")
        process.assert_no_fault_of_ours()
        with Peer(process.port) as peer:
            peer.attach_receiver("x")


ALTERNATES: dict[str, Any] = {
    "one entry": [{Symbol("network-host"): "h", Symbol("port"): "5672"}],
    "no network-host": [{Symbol("port"): "5672"}],
    "entries that are no maps": [1, "h", None, [], b"x"],
    "no list": "h:5672",
    "an array of maps": Array("map", [{Symbol("network-host"): "h"}] * 3),
    "an empty list": [],
    "a hundred entries": [{Symbol("network-host"): f"h{number}"} for number in range(100)],
    "a map of odd keys": [{1: 2, None: "h", 2.5: b""}],
}


@pytest.mark.parametrize("listener", [0, 1])
@pytest.mark.parametrize("name", ALTERNATES)
def test_alternates_that_a_client_names_are_ignored(router: RunningRouter, name: str, listener: int) -> None:
    properties = {"failover-server-list": ALTERNATES[name]}
    with Peer(router.ports[listener], hostname="h.example", properties=properties) as peer:
        peer.attach_receiver("x")


def test_ten_thousand_alternates_are_too_many(router: RunningRouter) -> None:
    alternates = sized(0xD0, b"\xc1\x01\0" * 10_000, 10_000)
    octets = open_with(sized(0xD1, b"\xa3\x14failover-server-list" + alternates, 2))
    for port in router.ports:
        with Peer(port, opened=False) as peer:
            peer.raw(AMQP_HEADER + octets)
            peer.expect_header(AMQP_HEADER)
            peer.remote_open = peer.expect(Open)
            error = peer.expect_close()
            assert error is not None
            assert error.condition == DECODE


@pytest.mark.parametrize("key", [b"\xa3\x07product", b"\xa3\x07version", b"\xa3\x0dx-opt-unknown", b"\xa3\x08hostname"])
def test_dispatch_883_properties_of_every_type(router: RunningRouter, key: bytes) -> None:
    with node_of(router.port) as node:
        for text, _ in BY_HAND:
            value = bytes.fromhex(text)
            with Peer(router.ports[0], opened=False) as peer:
                peer.raw(AMQP_HEADER + open_with(sized(0xD1, key + value, 2)))
                peer.expect_header(AMQP_HEADER)
                peer.remote_open = peer.expect(Open)
                peer.begin()
                rows = node.query("connection", ["identity", "properties", "container"])
                assert str(peer.number) in {row["identity"] for row in rows}, text


@pytest.mark.parametrize("text", [text for text, value in BY_HAND if not isinstance(value, dict | PairMap | None)])
def test_dispatch_883_properties_that_are_no_map(text: str) -> None:
    assert condition(before_open(open_with(bytes.fromhex(text)))) == DECODE


@pytest.mark.parametrize("size", [1, 64, 65, 127, 128, 255, 256, 1024, 8192])
def test_dispatch_2307_a_container_may_have_a_long_name(router: RunningRouter, size: int) -> None:
    with Peer(router.port, container_id="x" * size) as peer, node_of(router.port) as node:
        peer.attach_receiver("x")
        assert "x" * size in {row["container"] for row in node.query("connection")}


@pytest.mark.parametrize("size", [8193, 12_000])
def test_dispatch_2307_a_container_may_not_have_a_longer_name(router: RunningRouter, size: int) -> None:
    with Peer(router.port, opened=False) as peer:
        peer.raw(AMQP_HEADER + encode(Open("x" * size)))
        peer.expect_header(AMQP_HEADER)
        peer.expect(Open)
        error = peer.expect_close()
        assert error is not None
        assert error.condition == "amqp:invalid-field"


def test_dispatch_2307_a_router_has_a_name_of_1_to_127_characters() -> None:
    for size in (1, 64, 65, 127):
        router = MemoryRouter(router_id=load(text=f"router {{ id: {'R' * size} }}").router.id)
        client = router.connect()
        receiver = client.receiver(None, dynamic=True, credit=1)
        router.pump()
        client.sender(receiver.address).send(compose(b"x"))
        router.pump()
        assert len(receiver.received) == 1
    for size in (128, 4096):
        with pytest.raises(Exception, match="127"):
            load(text=f"router {{ id: {'R' * size} }}")
