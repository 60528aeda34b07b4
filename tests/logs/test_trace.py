"""Frame traces: every frame is logged, no secret is, and no bytes cause harm (docs/logging.md)."""

from __future__ import annotations

import uuid
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.script import encode
from tests.wire.values import values
from trouter.logs.frame_trace import KEPT_BYTES, FrameTrace
from trouter.wire import codec
from trouter.wire.framing import AMQP_HEADER, FRAME_SASL, SASL_HEADER, TLS_HEADER, frame
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
    Performative,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    Source,
    Target,
    Transfer,
    encode_performative,
)
from trouter.wire.types import Array, Char, Decimal32, Described, Float, PairMap, Symbol, Timestamp, UInt, ULong
from trouter.wire.value_text import MAX_SHOWN, trace_text

EMPTY = b"\x00\x00\x00\x08\x02\x00\x00\x00"
SECRET = b"open-sesame"
SASL = [
    SaslMechanisms(("PLAIN", "ANONYMOUS")),
    SaslInit("PLAIN", b"\0user\0" + SECRET, "example.org"),
    SaslChallenge(SECRET),
    SaslResponse(SECRET),
    SaslOutcome(0, SECRET),
]
AMQP = [
    Open("x", "example.org", channel_max=9, properties={"a": 1}),
    Begin(next_outgoing_id=0, incoming_window=8, outgoing_window=8),
    Attach("l", 0, False, source=Source("a"), target=Target("b")),
    Flow(incoming_window=8, next_outgoing_id=0, outgoing_window=8, handle=0, link_credit=5),
    Transfer(0, 0, b"\x01\xff", settled=True),
    Disposition(True, 0, settled=True, state=Accepted()),
    Detach(0, True),
    End(Error("amqp:not-found", 'no "x"\nhere')),
    Close(),
]


def told(*pieces: bytes, sent: bool = False, midway: bool = False) -> list[str]:
    """Return the lines about a stream in these pieces."""
    lines: list[str] = []
    trace = FrameTrace("[C5]", lines.append, midway=midway)
    for piece in pieces:
        (trace.sent if sent else trace.received)(piece)
    return lines


def about(value: Performative | bytes, channel: int = 0, payload: bytes = b"") -> str:
    """Return the one line about a frame, without its common parts."""
    (line,) = told(encode(value, channel, payload))
    return line.removeprefix(f"[C5]:FRAME: {channel} <- ")


def test_a_line_names_the_connection_the_channel_and_the_direction() -> None:
    octets = encode(End(), channel=7)
    assert told(octets) == ["[C5]:FRAME: 7 <- @end(23) []"]
    assert told(octets, sent=True) == ["[C5]:FRAME: 7 -> @end(23) []"]


def test_both_directions_are_reported_in_the_order_in_which_they_come() -> None:
    lines: list[str] = []
    trace = FrameTrace("[C1]", lines.append)
    end = encode(End())
    trace.received(end[:5])
    trace.sent(bytearray(encode(Close())))
    trace.received(end[5:])
    assert lines == ["[C1]:FRAME: 0 -> @close(24) []", "[C1]:FRAME: 0 <- @end(23) []"]


def test_protocol_headers_and_empty_frames_have_lines_of_their_own() -> None:
    assert told(SASL_HEADER + TLS_HEADER + AMQP_HEADER + EMPTY + b"AMQP\x00\x00\x09\x01" + b"AMQP\x01\x01\x00\x00") == [
        "[C5]:FRAME:   <- SASL",
        "[C5]:FRAME:   <- TLS",
        "[C5]:FRAME:   <- AMQP",
        "[C5]:FRAME: 0 <- EMPTY FRAME",
        "[C5]:FRAME:   <- AMQP 0.9.1",
        "[C5]:FRAME:   <- AMQP protocol 1",
    ]


def test_performatives_are_reported_field_by_field_without_null_fields() -> None:
    assert about(Open("x", None, 512, 9, properties={"a": 1, "b": "x y"})) == (
        '@open(16) [container-id="x", max-frame-size=0x200, channel-max=0x9, properties={:a=1, :b="x y"}]'
    )
    assert about(Detach(3, True, Error("amqp:not-found", 'no "x"\nhere'))) == (
        "@detach(22) [handle=0x3, closed=true, "
        'error=@error(29) [condition=:"amqp:not-found", description="no \\x22x\\x22\\nhere"]]'
    )
    assert about(encode(Disposition(True, 0, settled=True, state=Accepted()))).startswith(
        "@disposition(21) [role=true, first=0x0, settled=true, state=@accepted(36) []"
    )


def test_a_message_is_reported_by_its_length_alone() -> None:
    for length in (1, KEPT_BYTES, 3 * KEPT_BYTES):
        line = about(Transfer(0, 0, b"1\xff", settled=True), payload=SECRET * length)
        assert line.startswith('@transfer(20) [handle=0x0, delivery-id=0x0, delivery-tag=b"1\\xff", settled=true')
        assert line.endswith(f'] ({len(SECRET) * length}) "..."')
        assert "sesame" not in line


VALUES = {
    "null": None,
    "true": True,
    "-3": -3,
    "0x7": UInt(7),
    "1700000000000": Timestamp(1_700_000_000_000),
    "0.5": Float(0.5),
    "nan": float("nan"),
    "0x01020304": Decimal32(b"\1\2\3\4"),
    "'\\n'": Char("\n"),
    '"a\\x5cb\\x22c\\n"': 'a\\b"c\n',
    'b"a\\x00\\x22"': b'a\0"',
    ':"amqp:link:redirect"': Symbol("amqp:link:redirect"),
    ':"two words"': Symbol("two words"),
    "00000000-0000-0000-0000-000000000001": uuid.UUID(int=1),
    '[1, "x", []]': [1, "x", []],
    "{:a=1, 2=null}": {Symbol("a"): 1, 2: None},
    "{[]=1}": PairMap([([], 1)]),
    "@<symbol>[:a, :b]": Array("symbol", [Symbol("a"), Symbol("b")]),
    "@<@accepted(36) list>[[]]": Array("list", [[]], [ULong(0x24)]),
    '@:"a:filter" [1]': Described(Symbol("a:filter"), [1]),
    "@77 null": Described(ULong(77), None),
    "@accepted(36) [1, 2]": Described(ULong(0x24), [1, None, 2]),
    "@accepted(36) {}": Described(Symbol("amqp:accepted:list"), {}),
}


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_every_kind_of_value_has_its_own_look(text: str, value: object) -> None:
    assert trace_text(value) == text


@given(values)
def test_any_value_is_shown_on_one_line_that_is_not_too_long(value: object) -> None:
    text = trace_text(value)
    assert text.isprintable()
    assert len(text) <= MAX_SHOWN + 3


def test_long_texts_and_long_values_are_cut() -> None:
    assert trace_text("x" * 1000) == '"' + "x" * 256 + '..."'
    assert trace_text(b"\0" * 1000) == 'b"' + "\\x00" * 256 + '..."'
    text = trace_text(["x" * 100] * 100_000)
    assert MAX_SHOWN - 110 < len(text) <= MAX_SHOWN
    assert text.endswith(", ...]")


@pytest.mark.parametrize("performative", SASL, ids=lambda each: type(each).__name__)
def test_secrets_of_sasl_frames_are_hidden(performative: Performative) -> None:
    body = encode_performative(performative)
    for octets in (encode(performative), frame(0, body), frame(0, codec.encode([codec.decode_all(body)]), FRAME_SASL)):
        assert "sesame" not in "".join(told(octets))


def test_fields_without_secrets_are_reported() -> None:
    assert [about(each) for each in SASL] == [
        "@sasl-mechanisms(64) [sasl-server-mechanisms=@<symbol>[:PLAIN, :ANONYMOUS]]",
        '@sasl-init(65) [mechanism=:PLAIN, initial-response=<hidden>, hostname="example.org"]',
        "@sasl-challenge(66) [challenge=<hidden>]",
        "@sasl-response(67) [response=<hidden>]",
        "@sasl-outcome(68) [code=0x0, additional-data=<hidden>]",
    ]


SECRET_TEXT = SECRET.decode()
ODD_SASL = [
    Described(ULong(0x41), [SECRET]),  # a password in the place of the mechanism
    Described(ULong(0x41), [Symbol("PLAIN"), SECRET_TEXT]),
    Described(ULong(0x41), [Symbol("PLAIN"), Symbol(SECRET_TEXT)]),
    Described(ULong(0x41), [Symbol("PLAIN"), None, {"a": SECRET_TEXT}]),
    Described(ULong(0x41), [Symbol("PLAIN"), None, "x" * 300 + SECRET_TEXT]),
    Described(ULong(0x41), [Symbol("PLAIN"), None, None, SECRET_TEXT]),
    Described(ULong(0x41), SECRET_TEXT),
    Described(ULong(0x41), {"response": SECRET_TEXT}),
    Described(Symbol("amqp:sasl-init:list"), [Symbol("PLAIN"), SECRET_TEXT]),
    Described(ULong(0x41), [Array("list", [[SECRET_TEXT]])]),
    Described(ULong(0x99), [SECRET_TEXT]),
    SECRET_TEXT,
]


@pytest.mark.parametrize("value", ODD_SASL, ids=repr)
def test_secrets_of_sasl_are_hidden_in_every_place(value: object) -> None:
    octets = codec.encode(value)
    for kind in (octets, octets[:-1], octets + SECRET):
        assert "sesame" not in "".join(told(frame(0, kind, FRAME_SASL)))
    inside = codec.encode(Described(ULong(0x10), ["x", [value]]))
    if isinstance(value, Described) and value.descriptor != 0x99:
        assert "sesame" not in "".join(told(frame(0, inside)))
        assert "sesame" not in trace_text(Array("list", [[SECRET_TEXT]], [value.descriptor]))


@pytest.mark.parametrize("key", ["password", "Password", "client_secret", "access-token", "x-api-key", "authorization"])
def test_a_value_is_hidden_where_its_key_speaks_of_a_secret(key: str) -> None:
    line = about(Open("x", properties={key: SECRET_TEXT, "product": "y"}))
    assert "=<hidden>, :product=" in line
    assert "sesame" not in line


def test_a_performative_that_cannot_be_read_is_reported_with_the_reason() -> None:
    assert about(frame(0, b"\x00\x53\x10\xff")) == "@open(16) (4), cannot be read: unknown format code 0xff"
    assert about(frame(0, b"\x00\xff")) == "(2), cannot be read: unknown format code 0xff"
    assert about(frame(0, b"\x00\x53\x41\xff", FRAME_SASL)) == "@sasl-init(65) (4), cannot be read"
    assert about(frame(0, codec.encode([1]))) == "no performative (5)"
    long = Open("x", properties={"a": "y" * KEPT_BYTES})
    assert about(long) == f"@open(16) ({len(encode_performative(long))}), too long to be shown"


def test_an_extended_header_is_passed_over() -> None:
    body = encode_performative(End())
    octets = (12 + len(body)).to_bytes(4, "big") + b"\x03\x00\x00\x02" + b"\xff" * 4 + body
    for cut in range(len(octets)):
        assert told(octets[:cut], octets[cut:]) == ["[C5]:FRAME: 2 <- @end(23) []"]
    assert told(b"\x00\x00\x00\x0c\x03\x00\x00\x01" + b"\xff" * 4) == ["[C5]:FRAME: 1 <- EMPTY FRAME"]


GARBAGE = [
    b"GET / HTTP/1.1\r\nAuthorization: Basic b3Blbi1zZXNhbWU=\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03open-sesame",
    b"\x00" * 100,
    b"\x00\x00\x00\x07\x02\x00\x00\x00",
    b"\x00\x00\x00\x0b\x01\x00\x00\x00",
    b"\x00\x00\x00\x0b\x03\x00\x00\x00",
    b"\x00\x00\x00\x0b\x02\x02\x00\x00",
    b"\x00\x00\x00\x05\x02\x00\x00\x00\x00\x53\x10" * 10,
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=repr)
def test_after_bytes_that_are_no_frames_the_next_frame_is_found(garbage: bytes) -> None:
    assert told(encode(End()) + garbage + encode(Close())) == [
        "[C5]:FRAME: 0 <- @end(23) []",
        "[C5]:FRAME:   <- no frame here, waiting for the next one",
        f"[C5]:FRAME:   <- {len(garbage)} bytes skipped",
        "[C5]:FRAME: 0 <- @close(24) []",
    ]


def test_tracing_may_begin_anywhere_in_a_frame() -> None:
    first, second = encode(Transfer(0, 0, b"1"), payload=b"\x00" * 50), encode(Close())
    for at in range(1, len(first)):
        assert told(first[at:] + second, midway=True) == [
            f"[C5]:FRAME:   <- {len(first) - at} bytes skipped",
            "[C5]:FRAME: 0 <- @close(24) []",
        ]
    assert told(second, midway=True) == ["[C5]:FRAME: 0 <- @close(24) []"]
    assert told(EMPTY, second, midway=True) == ["[C5]:FRAME: 0 <- EMPTY FRAME", "[C5]:FRAME: 0 <- @close(24) []"]


pieces = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([SASL_HEADER, AMQP_HEADER, EMPTY]),
    st.sampled_from([encode(each) for each in [*SASL, *AMQP]]),
    st.builds(lambda each, payload: encode(each, 3, payload), st.sampled_from(AMQP), st.binary(max_size=300)),
    values.map(lambda value: frame(1, codec.encode(value))),
    values.map(lambda value: frame(0, codec.encode(value), FRAME_SASL)),
)
streams = st.lists(pieces, max_size=8).map(b"".join)


@pytest.mark.fuzz
@given(streams, st.lists(st.integers(0, 2000)), st.booleans())
def test_no_bytes_hurt_and_how_they_are_cut_makes_no_difference(stream: bytes, cuts: list[int], midway: bool) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parts = [stream[a:b] for a, b in pairwise(edges)]
    whole = told(stream, midway=midway)
    assert told(*parts, midway=midway) == whole
    assert all(line.isprintable() and len(line) <= MAX_SHOWN + 100 for line in whole)


def test_little_is_kept_of_a_frame_for_any_announced_size() -> None:
    lines: list[str] = []
    trace = FrameTrace("[C5]", lines.append)
    trace.received(b"\xff\xff\xff\xff\x02\x00\x00\x00" + b"\x00\x53\x14\x45")
    for _ in range(100):
        trace.received(bytes(65536))
    assert lines == []
    kept = trace._in
    assert len(kept._kept) + len(kept._head) <= KEPT_BYTES + 8
    lost = FrameTrace("[C5]", lines.append, midway=True)
    for _ in range(100):
        lost.received(bytes(65536))
    assert len(lost._in._kept) + len(lost._in._head) <= 16
