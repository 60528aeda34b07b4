"""The readers of transfer, disposition and flow against the table of performatives, in every encoding, and cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.wire.codec import encode
from trouter.wire.errors import DecodeError
from trouter.wire.performatives import (
    Accepted,
    Declared,
    Disposition,
    Error,
    Flow,
    Modified,
    Performative,
    Received,
    Rejected,
    Released,
    State,
    TransactionalState,
    Transfer,
    decode_performative,
    encode_performative,
    encode_state,
)
from trouter.wire.transfers import (
    SHORT_STATES,
    DispositionReader,
    FlowReader,
    TransferReader,
    Undecodable,
    read_descriptor,
)
from trouter.wire.types import Described, Symbol, UInt, ULong

UINTS = st.one_of(st.sampled_from([0, 1, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]), st.integers(0, 0xFFFFFFFF))
MAYBE_UINTS = st.none() | UINTS
FLAGS = st.booleans()
STATES: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        Accepted(),
        Released(),
        Modified(),
        Rejected(),
        Modified(True, True, {Symbol("x"): 1}),
        Rejected(Error("amqp:x", "y" * 300)),
        Received(1, 2**40),
        Declared(b"txn"),
        TransactionalState(b"txn", Accepted()),
        Described(ULong(0x99), [1, "x"]),
        Described(Symbol("odd:state"), []),
    ]
)
TRANSFERS = st.builds(
    Transfer,
    UINTS,
    MAYBE_UINTS,
    st.none() | st.binary(max_size=32),
    MAYBE_UINTS,
    st.none() | FLAGS,
    FLAGS,
    st.none() | st.sampled_from([0, 1]),
    STATES,
    FLAGS,
    FLAGS,
    FLAGS,
)
DISPOSITIONS = st.builds(Disposition, FLAGS, UINTS, MAYBE_UINTS, FLAGS, STATES, FLAGS)
FLOWS = st.builds(
    Flow,
    next_incoming_id=MAYBE_UINTS,
    incoming_window=UINTS,
    next_outgoing_id=UINTS,
    outgoing_window=UINTS,
    handle=MAYBE_UINTS,
    delivery_count=MAYBE_UINTS,
    link_credit=MAYBE_UINTS,
    available=MAYBE_UINTS,
    drain=FLAGS,
    echo=FLAGS,
    properties=st.none() | st.just({Symbol("k"): "v"}),
)
CODES = {Transfer: 0x14, Disposition: 0x15, Flow: 0x13}
NAMES = {Transfer: "amqp:transfer:list", Disposition: "amqp:disposition:list", Flow: "amqp:flow:list"}
Reader = TransferReader | DispositionReader | FlowReader


def reader_of(performative: type[Performative]) -> Reader:
    if performative is Transfer:
        return TransferReader()
    return DispositionReader() if performative is Disposition else FlowReader()


def number(value: int | None) -> int:
    return -1 if value is None else value


def wanted(performative: Any) -> dict[str, object]:
    """Return the expected attributes of the reader."""
    if isinstance(performative, Flow):
        optional = ("next_incoming_id", "handle", "delivery_count", "link_credit", "available")
        plain = ("incoming_window", "next_outgoing_id", "outgoing_window", "drain", "echo")
        return {name: number(getattr(performative, name)) for name in optional} | {
            name: getattr(performative, name) for name in plain
        }
    state = performative.state
    fields: dict[str, object] = {"state": None if state is None else encode_state(state)}
    descriptor = state.descriptor if state is not None else 0
    fields["state_code"] = -1 if isinstance(descriptor, str) else int(descriptor)
    if isinstance(performative, Disposition):
        last = performative.first if performative.last is None else performative.last
        return fields | {
            "role": performative.role,
            "first": performative.first,
            "last": last,
            "settled": performative.settled,
        }
    return fields | {
        "handle": performative.handle,
        "delivery_id": number(performative.delivery_id),
        "message_format": number(performative.message_format),
        "settled": number(performative.settled),
        "more": performative.more,
        "rcv_settle_mode": number(performative.rcv_settle_mode),
        "resume": performative.resume,
        "aborted": performative.aborted,
        "batchable": performative.batchable,
    }


def found(reader: Any, performative: Any) -> dict[str, object]:
    return {name: getattr(reader, name) for name in wanted(performative)}


@given(
    performative=st.one_of(TRANSFERS, DISPOSITIONS, FLOWS), before=st.binary(max_size=5), payload=st.binary(max_size=40)
)
def test_a_reader_finds_the_fields_that_the_table_wrote(performative: Any, before: bytes, payload: bytes) -> None:
    body = encode_performative(performative)
    data = before + body + payload
    reader: Any = reader_of(type(performative))
    assert read_descriptor(data, len(before), len(data)) == CODES[type(performative)]
    reader.parse(data, len(before), len(data))
    assert found(reader, performative) == wanted(performative)
    if isinstance(performative, Transfer):
        assert reader.payload == len(before) + len(body)
        assert reader.has_tag() == (performative.delivery_tag is not None)
        assert reader.copy_delivery_tag() == performative.delivery_tag


@given(first=TRANSFERS, second=TRANSFERS)
def test_nothing_of_the_frame_before_is_left(first: Transfer, second: Transfer) -> None:
    reader = TransferReader()
    for performative in (first, second, first):
        data = encode_performative(performative)
        reader.parse(data, 0, len(data))
        assert found(reader, performative) == wanted(performative)
        assert reader.copy_delivery_tag() == performative.delivery_tag


def encodings(value: object) -> list[bytes]:
    """Return every encoding of one field."""
    if value is None:
        return [b"\x40"]
    if isinstance(value, bool):
        return [b"\x41" if value else b"\x42", b"\x56\x01" if value else b"\x56\x00"]
    if isinstance(value, int):
        wide = b"\x70" + value.to_bytes(4, "big")
        return [wide, *([b"\x52" + bytes((value,))] if value < 256 else []), *([b"\x43"] if value == 0 else [])]
    assert isinstance(value, bytes)
    return [b"\xa0" + bytes((len(value),)) + value, b"\xb0" + len(value).to_bytes(4, "big") + value]


def lists(fields: list[bytes]) -> list[bytes]:
    """Return every encoding of the list of them."""
    body = b"".join(fields)
    wide = b"\xd0" + (len(body) + 4).to_bytes(4, "big") + len(fields).to_bytes(4, "big") + body
    short = b"\xc0" + bytes((len(body) + 1, len(fields))) + body if len(body) < 255 else wide
    return [wide, short, *([b"\x45"] if not fields else [])]


def descriptors(performative: type[Performative]) -> list[bytes]:
    """Return every encoding of the descriptor."""
    name = NAMES[performative].encode()
    code = CODES[performative]
    return [
        b"\0\x53" + bytes((code,)),
        b"\0\x80" + code.to_bytes(8, "big"),
        b"\0\xa3" + bytes((len(name),)) + name,
        b"\0\xb3" + len(name).to_bytes(4, "big") + name,
    ]


@given(
    data=st.data(),
    handle=UINTS,
    delivery_id=MAYBE_UINTS,
    tag=st.none() | st.binary(max_size=32),
    message_format=MAYBE_UINTS,
    settled=st.none() | FLAGS,
    more=st.none() | FLAGS,
    nulls=st.integers(0, 5),
    payload=st.binary(max_size=3),
)
def test_every_encoding_of_a_transfer_reads_the_same(
    data: st.DataObject,
    handle: int,
    delivery_id: int | None,
    tag: bytes | None,
    message_format: int | None,
    settled: bool | None,
    more: bool | None,
    nulls: int,
    payload: bytes,
) -> None:
    """The fast path for the usual form and the general one must not differ."""
    values = [handle, delivery_id, tag, message_format, settled, more, *[None] * nulls]
    fields = [data.draw(st.sampled_from(encodings(value))) for value in values]
    octets = data.draw(st.sampled_from(descriptors(Transfer))) + data.draw(st.sampled_from(lists(fields)))
    reader = TransferReader()
    reader.parse(octets + payload, 0, len(octets) + len(payload))
    assert found(reader, Transfer(handle)) == wanted(
        Transfer(handle, delivery_id, tag, message_format, settled, bool(more))
    )
    assert reader.copy_delivery_tag() == tag
    assert reader.payload == len(octets)


def parses(reader: Any, data: bytes, end: int) -> bool:
    try:
        if read_descriptor(data, 0, end) != reader_code(reader):
            return False
        reader.parse(data, 0, end)
    except DecodeError:
        return False
    return True


def reader_code(reader: Reader) -> int:
    return 0x14 if isinstance(reader, TransferReader) else 0x15 if isinstance(reader, DispositionReader) else 0x13


@given(performative=st.one_of(TRANSFERS, DISPOSITIONS, FLOWS), behind=st.binary(max_size=20))
def test_a_frame_cut_short_is_refused_without_reading_the_octets_behind_it(performative: Any, behind: bytes) -> None:
    data = encode_performative(performative)
    for end in range(len(data)):
        assert not parses(reader_of(type(performative)), data[:end], end)
        assert not parses(reader_of(type(performative)), data + behind, end)


SHORT_TRANSFER = b"\0\x53\x14\xc0"


@given(size=st.integers(0, 40), count=st.just(6) | st.integers(0, 255), body=st.binary(max_size=40))
def test_a_short_transfer_with_any_fields_is_read_or_refused_within_its_octets(
    size: int, count: int, body: bytes
) -> None:
    data = SHORT_TRANSFER + bytes((size, count)) + body
    quick = TransferReader()
    if parses(quick, data, len(data)):
        performative, behind = decode_performative(data, 0, len(data))
        assert found(quick, performative) == wanted(performative)
        assert quick.payload == behind


FIELD = st.sampled_from(
    [bytes((code,)) for code in (0x40, 0x41, 0x42, 0x43, 0x52, 0x70, 0xA0, 0xB0, 0x56, 0x50, 0, 0x53, 6, 32, 33)]
)


@given(pieces=st.lists(FIELD, max_size=20), slack=st.integers(-2, 2))
def test_a_short_list_of_likely_octets_is_read_or_refused(pieces: list[bytes], slack: int) -> None:
    body = b"".join(pieces)
    data = SHORT_TRANSFER + bytes((max(0, len(body) + 1 + slack), 6)) + body
    quick = TransferReader()
    if parses(quick, data, len(data)):
        performative, behind = decode_performative(data, 0, len(data))
        assert found(quick, performative) == wanted(performative)
        assert quick.payload == behind


@pytest.mark.parametrize("last", [0x40, 0x42, 0x43, 0x52, 0x70, 0xA0])
@pytest.mark.parametrize("room", range(1, 40))
def test_a_usual_transfer_that_ends_too_soon_is_refused(last: int, room: int) -> None:
    """No byte behind the end of the data is read, whatever the last byte announces."""
    for first in (b"\x43", b"\x52\1", b"\x70\0\0\0\1"):
        for second in (b"\x43", b"\x52\1", b"\x70\0\0\0\1"):
            body = (first + second + b"\xa0\x20" + bytes(32))[:room] + bytes((last,))
            data = SHORT_TRANSFER + bytes((len(body) + 1, 6)) + body
            assert not parses(TransferReader(), data, len(data))


@given(data=st.binary(max_size=60), code=st.sampled_from([0x13, 0x14, 0x15]))
def test_any_octets_are_read_or_refused(data: bytes, code: int) -> None:
    reader = {0x13: FlowReader, 0x14: TransferReader, 0x15: DispositionReader}[code]()
    for head in (b"", b"\0\x53" + bytes((code,)), b"\0\x53" + bytes((code, 0xC0, len(data), 5))):
        parses(reader, head + data, len(head) + len(data))


@pytest.mark.parametrize("size", [32, 33])
@pytest.mark.parametrize("wide", [False, True])
def test_a_delivery_tag_of_more_than_32_bytes_is_reported(size: int, wide: bool) -> None:
    tag = encodings(bytes(size))[1 if wide else 0]
    data = descriptors(Transfer)[0] + lists([b"\x43", b"\x43", tag, b"\x43", b"\x42", b"\x42"])[1]
    reader = TransferReader()
    reader.parse(data, 0, len(data))
    assert reader.copy_delivery_tag() == bytes(size)
    assert reader.has_long_tag() == (size > 32)


REFUSED = [
    (Transfer, [b"\x40"], "handle is missing"),
    (Transfer, [], "handle is missing"),
    (Transfer, [b"\x71\0\0\0\1"], "field 1 is not a uint"),
    (Transfer, [b"\x43", b"\x43", b"\xa1\1x"], "field 3 is not a binary"),
    (Transfer, [b"\x43", b"\x40", b"\x40", b"\x40", b"\x43"], "field 5 is not a boolean"),
    (Transfer, [b"\x43", b"\x40", b"\x40", b"\x40", b"\x56\2"], "field 5 is not a boolean"),
    (Transfer, [b"\x43", *[b"\x40"] * 5, b"\x43"], "field 7 is not a ubyte"),
    (Transfer, [b"\x43", *[b"\x40"] * 6, b"\x43"], "field 8 is not a delivery state"),
    (Transfer, [b"\x43", *[b"\x40"] * 10, b"\x41"], "too many fields"),
    (Disposition, [], "role or first is missing"),
    (Disposition, [b"\x41", b"\x40"], "role or first is missing"),
    (Disposition, [b"\x41", b"\x43", b"\x40", b"\x40", b"\x40", b"\x43"], "field 6 is not a boolean"),
    (Flow, [b"\x40", b"\x43", b"\x43"], "incoming-window, next-outgoing-id or outgoing-window is missing"),
    (Flow, [b"\x40", b"\x43", b"\x43", b"\x43", *[b"\x40"] * 4, b"\x43"], "field 9 is not a boolean"),
]


@pytest.mark.parametrize(("performative", "fields", "text"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_a_refusal_names_the_performative_and_the_field(
    performative: type[Performative], fields: list[bytes], text: str
) -> None:
    for octets in lists(fields):
        data = descriptors(performative)[0] + octets
        with pytest.raises(DecodeError, match=text) as refusal:
            reader_of(performative).parse(data, 0, len(data))
        assert str(refusal.value).startswith(NAMES[performative].split(":")[1])


@pytest.mark.parametrize("performative", NAMES)
def test_trailing_nulls_are_let_pass_and_a_count_without_fields_is_not(performative: type[Performative]) -> None:
    fields = {Transfer: [b"\x43"], Disposition: [b"\x41", b"\x43"], Flow: [b"\x40", b"\x43", b"\x43", b"\x43"]}[
        performative
    ]
    head = descriptors(performative)[0]
    for octets in lists(fields + [b"\x40"] * 30):
        data = head + octets
        reader_of(performative).parse(data, 0, len(data))
    for claimed in (0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        body = b"".join(fields)
        data = head + b"\xd0" + (len(body) + 4).to_bytes(4, "big") + claimed.to_bytes(4, "big") + body
        with pytest.raises(DecodeError, match="missing from the list"):
            reader_of(performative).parse(data, 0, len(data))
    for size in (0, 3, 100, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        data = head + b"\xd0" + size.to_bytes(4, "big") + bytes(4) + b"".join(fields)
        with pytest.raises(DecodeError, match="more bytes than the frame holds"):
            reader_of(performative).parse(data, 0, len(data))


def test_descriptors_outside_the_standard_are_distinguished_from_no_descriptor() -> None:
    for octets, code in {
        b"\0\x53\x14": 0x14,
        b"\0\x53\xff": 0xFF,
        b"\0\x44\x45": 0,
        b"\0\x80" + bytes(7) + b"\x18\x45": 0x18,
        b"\0\x80\1" + bytes(6) + b"\x18\x45": -1,
        b"\0\xa3\x0famqp:close:list\x45": 0x18,
        b"\0\xa3\x01x\x45": -1,
        b"\0\x40\x45": -1,
        b"\0\x54\xff\x45": -1,
    }.items():
        assert read_descriptor(octets, 0, len(octets)) == code
    for octets in (b"", b"\0", b"\x53\x14\x45", b"\0\x53", b"\0\xa3\x0fab", b"\0\0\0"):
        with pytest.raises(DecodeError):
            read_descriptor(octets, 0, len(octets))


def test_the_short_states_are_those_of_the_table() -> None:
    for state in (Accepted(), Released(), Modified(), Rejected()):
        assert SHORT_STATES[state.descriptor] == encode_state(state)
    for code, octets in SHORT_STATES.items():
        assert octets == b"\0\x53" + bytes((code,)) + b"\x45"
        body = b"\x41\x43\x40\x40" + octets
        data = descriptors(Disposition)[0] + b"\xc0" + bytes((len(body) + 1, 5)) + body
        reader = DispositionReader()
        reader.parse(data, 0, len(data))
        assert (reader.state_code, reader.state) == (code, octets)


def disposition_of(octets: bytes) -> bytes:
    body = b"\x41\x43\x40\x40" + octets
    return descriptors(Disposition)[0] + b"\xd0" + (len(body) + 4).to_bytes(4, "big") + b"\0\0\0\5" + body


def state_of(octets: bytes, what: Undecodable = Undecodable.REFUSED) -> tuple[int, bytes | None]:
    reader = DispositionReader()
    reader.undecodable = what
    reader.parse(disposition_of(octets), 0, len(disposition_of(octets)))
    return reader.state_code, reader.state


def described(code: int, *fields: object) -> bytes:
    return encode(Described(ULong(code), list(fields)))


ERROR = Described(ULong(0x1D), [Symbol("x:y"), "why"])
#: States that are AMQP, and of which a field is wrong: what is left of them.
MENDED: dict[str, tuple[bytes, int, State | None]] = {
    "a text for the error": (described(0x25, "rejected"), 0x25, Rejected()),
    "a number for the error": (described(0x25, UInt(7)), 0x25, Rejected()),
    "a state for the error": (described(0x25, Described(ULong(0x24), [])), 0x25, Rejected()),
    "an error without a condition": (described(0x25, Described(ULong(0x1D), [])), 0x25, Rejected()),
    "an error that is no list": (described(0x25, Described(ULong(0x1D), "x:y")), 0x25, Rejected()),
    "a condition of text": (
        described(0x25, Described(ULong(0x1D), ["x:y", "why"])),
        0x25,
        Rejected(Error("x:y", "why")),
    ),
    "a condition of a long text": (described(0x25, Described(ULong(0x1D), ["x" * 1025])), 0x25, Rejected()),
    "a condition of other letters": (described(0x25, Described(ULong(0x1D), ["\xe9"])), 0x25, Rejected()),
    "a description that is a number": (
        described(0x25, Described(ULong(0x1D), [Symbol("x:y"), UInt(4), {Symbol("k"): 1}])),
        0x25,
        Rejected(Error("x:y", info={Symbol("k"): 1})),
    ),
    "an info that is a list": (
        described(0x25, Described(ULong(0x1D), [Symbol("x:y"), "why", [1, 2]])),
        0x25,
        Rejected(Error("x:y", "why")),
    ),
    "a state without txn-id in the info": (
        described(0x25, Described(ULong(0x1D), [Symbol("x:y"), "why", {Symbol("k"): Described(ULong(0x33), [])}])),
        0x25,
        Rejected(Error("x:y", "why")),
    ),
    "a field behind the error": (described(0x25, ERROR, 3), 0x25, Rejected(Error("x:y", "why"))),
    "a rejected that is no list": (encode(Described(ULong(0x25), "x:y")), 0x25, Rejected()),
    "a rejected by its name": (encode(Described(Symbol("amqp:rejected:list"), ["x"])), 0x25, Rejected()),
    "an accepted with a field": (described(0x24, True), 0x24, Accepted()),
    "a released with a field": (described(0x26, ERROR), 0x26, Released()),
    "a number for a flag": (described(0x27, UInt(1), True), 0x27, Modified(undeliverable_here=True)),
    "a list for the annotations": (described(0x27, True, False, [1]), 0x27, Modified(True, False)),
    "an outcome in a transaction": (
        described(0x34, b"txn", Described(ULong(0x25), ["rejected"])),
        0x34,
        TransactionalState(b"txn", Rejected()),
    ),
    "a number for the outcome in a transaction": (described(0x34, b"txn", 5), 0x34, TransactionalState(b"txn")),
    "a received without its fields": (described(0x23), 0, None),
    "a received with texts": (described(0x23, "a", "b"), 0, None),
}


@pytest.mark.parametrize("what", [Undecodable.REFUSED, Undecodable.CUT])
@pytest.mark.parametrize("name", MENDED)
def test_a_state_loses_its_wrong_fields_and_what_is_left_is_well_formed(name: str, what: Undecodable) -> None:
    octets, code, wanted = MENDED[name]
    assert state_of(octets, what) == (code, None if wanted is None else encode_state(wanted))
    assert state_of(octets, Undecodable.KEPT)[1] in (octets, None)


NO_AMQP = b"\0\x53\x25\xc0\x0a\1\0\x53\x1d\xc0\4\1\xa3\x50x"


@pytest.mark.parametrize(
    "before", [b"", NO_AMQP, MENDED["a text for the error"][0], encode_state(Rejected(Error("x:y")))]
)
def test_a_state_that_is_no_amqp_is_refused_cut_or_kept(before: bytes) -> None:
    """The state is read alike after every other state."""
    data = disposition_of(NO_AMQP)
    kinds = {Undecodable.CUT: SHORT_STATES[0x25], Undecodable.KEPT: NO_AMQP, Undecodable.REFUSED: None}
    for what, wanted in kinds.items():
        reader = DispositionReader()
        reader.undecodable = what
        if before:
            parses(reader, disposition_of(before), len(disposition_of(before)))
        if wanted is None:
            with pytest.raises(DecodeError, match="disposition: delivery state: 80 bytes claimed"):
                reader.parse(data, 0, len(data))
        else:
            reader.parse(data, 0, len(data))
            assert (reader.state_code, reader.state) == (0x25, wanted)


def test_a_received_state_that_is_no_amqp_says_nothing() -> None:
    octets = b"\0\x53\x23" + NO_AMQP[3:]
    assert state_of(octets, Undecodable.CUT) == (0, None)
    with pytest.raises(DecodeError, match="bytes claimed"):
        state_of(octets)


@pytest.mark.parametrize("what", [Undecodable.REFUSED, Undecodable.CUT])
def test_a_state_of_no_known_kind_that_cannot_be_decoded_is_refused(what: Undecodable) -> None:
    reader = DispositionReader()
    reader.undecodable = what
    data = disposition_of(b"\0\x53\x99\xc0\x03\x02\x52\x07")
    with pytest.raises(DecodeError, match="disposition: delivery state"):
        reader.parse(data, 0, len(data))


@pytest.mark.parametrize("state", [b"\0\x53\x33\x45", b"\0\x53\x34\x45"], ids=["declared", "transactional-state"])
def test_a_state_without_its_mandatory_field_is_refused(state: bytes) -> None:
    data = disposition_of(state)
    with pytest.raises(DecodeError, match="txn-id is missing"):
        DispositionReader().parse(data, 0, len(data))


def test_a_state_keeps_its_octets_in_every_encoding() -> None:
    for octets in (
        b"\0\x80" + bytes(7) + b"\x24\x45",
        b"\0\xa3\x12amqp:accepted:list\xc0\1\0",
        b"\0\x53\x24\xc0\2\1\x40",
    ):
        body = b"\x41\x43\x40\x40" + octets
        data = descriptors(Disposition)[0] + b"\xc0" + bytes((len(body) + 1, 5)) + body
        reader = DispositionReader()
        reader.parse(data, 0, len(data))
        assert (reader.state_code, reader.state) == (0x24, octets)
