"""Router annotations: the keys that are read and written, and the sender's own entries, which keep each byte."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.values import values
from trouter.wire import types
from trouter.wire.annotations import (
    MAX_TRACE_ENTRIES,
    InvalidAnnotation,
    RouterAnnotations,
    compose_annotations,
    join_annotations,
    parse_annotations,
    router_entries,
)
from trouter.wire.codec import decode_all, encode
from trouter.wire.errors import EncodeError
from trouter.wire.types import Array, Described, Symbol

PREFIX = b"\0\x53\x72"
TEXTS = st.text(max_size=20) | st.text(min_size=250, max_size=260)


def section(pairs: list[tuple[bytes, bytes]], wide: bool = False) -> bytes:
    body = b"".join(key + value for key, value in pairs)
    if wide or len(body) > 254 or len(pairs) > 127:
        return PREFIX + b"\xd1" + struct.pack(">II", len(body) + 4, 2 * len(pairs)) + body
    return PREFIX + b"\xc1" + bytes((len(body) + 1, 2 * len(pairs))) + body


def router(key: str, value: object) -> tuple[bytes, bytes]:
    return encode(Symbol(f"x-opt-qd.{key}")), encode(value)


def user(key: object, value: object) -> tuple[bytes, bytes]:
    return encode(key), encode(value)


def parse(data: bytes, honour: bool = True) -> RouterAnnotations:
    return parse_annotations(b"before" + data + b"behind", 6, 6 + len(data), honour)


def with_one(key: str, value: object) -> bytes:
    return section([user(Symbol("x-opt-a"), 1), router(key, value), user("b", 2)])


# ---- examples of the peers' specification


EXAMPLE = bytes.fromhex(
    "005372c15e0aa309782d6f70742d666f6f5501a306782d75736572a10176a30b782d6f70742d71642e746fa1056164647231a310782d6f7074"
    "2d71642e696e6772657373a104302f5241a30e782d6f70742d71642e7472616365c00701a104302f5241"
)


def test_the_example_of_another_router_is_understood() -> None:
    found = parse(EXAMPLE)
    assert (found.to, found.ingress, found.trace) == ("addr1", "0/RA", ("0/RA",))
    assert (found.phase, found.stream, found.had_router_keys) == (0, False, True)
    assert found.user_count == 2
    assert found.user == encode(Symbol("x-opt-foo")) + encode(1) + encode(Symbol("x-user")) + encode("v")


def test_the_same_annotations_are_written_octet_for_octet() -> None:
    found = parse(EXAMPLE)
    assert compose_annotations(found.user, found.user_count, 0, False, found.to, found.ingress, found.trace) == EXAMPLE


def test_entries_are_written_in_the_order_user_phase_stream_to_ingress_trace() -> None:
    own = encode("k") + encode(1)
    composed = decode_all(compose_annotations(own, 1, 5, True, "t", "0/A", ["0/A", "0/B"])).value
    assert list(composed.items()) == [
        ("k", 1),
        ("x-opt-qd.phase", 5),
        ("x-opt-qd.stream", 1),
        ("x-opt-qd.to", "t"),
        ("x-opt-qd.ingress", "0/A"),
        ("x-opt-qd.trace", ["0/A", "0/B"]),
    ]
    assert [type(key) for key in composed] == [str] + [Symbol] * 5
    assert type(composed["x-opt-qd.phase"]) is types.Int


# ---- the sender's entries


ENTRIES = st.lists(
    st.one_of(
        st.tuples(st.just(True), st.tuples(values.map(encode), values.map(encode))),
        st.tuples(
            st.just(False),
            st.one_of(
                st.builds(router, st.just("to"), TEXTS),
                st.builds(router, st.just("ingress"), TEXTS),
                st.builds(router, st.just("trace"), st.lists(TEXTS, max_size=3)),
                st.builds(router, st.just("phase"), st.integers(0, 300).map(types.Int)),
                st.builds(router, st.just("stream"), st.just(types.Int(1))),
                st.builds(router, st.sampled_from(["", "class"]), values),
            ),
        ),
    ),
    max_size=8,
)


def is_router_key(key: bytes) -> bool:
    value = decode_all(key)
    return type(value) is Symbol and value in {
        f"x-opt-qd.{end}" for end in ("", "class", "phase", "stream", "to", "ingress", "trace")
    }


@given(ENTRIES, st.booleans(), st.booleans())
def test_the_senders_entries_keep_their_octets_and_order_wherever_they_stand(
    entries: list[tuple[bool, tuple[bytes, bytes]]], wide: bool, honour: bool
) -> None:
    own = [pair for is_own, pair in entries if is_own and not is_router_key(pair[0])]
    found = parse(section([pair for _, pair in entries], wide), honour)
    assert found.user == b"".join(key + value for key, value in own)
    assert found.user_count == len(own)
    assert found.had_router_keys == (len(own) < len(entries))


@given(ENTRIES, st.integers(0, 300), st.booleans(), st.none() | TEXTS, st.none() | TEXTS, st.lists(TEXTS, max_size=4))
def test_composed_annotations_are_parsed_back(
    entries: list[tuple[bool, tuple[bytes, bytes]]],
    phase: int,
    stream: bool,
    to: str | None,
    ingress: str | None,
    trace: list[str],
) -> None:
    own = [pair for is_own, pair in entries if is_own and not is_router_key(pair[0])]
    octets = b"".join(key + value for key, value in own)
    composed = compose_annotations(octets, len(own), phase, stream, to, ingress, trace)
    if not own and not phase and not stream and to is None and ingress is None and not trace:
        assert composed == b""
        return
    found = parse(composed)
    assert (found.user, found.user_count) == (octets, len(own))
    assert (found.phase, found.stream, found.to, found.ingress) == (phase, stream, to, ingress)
    assert found.trace == tuple(trace)
    # Without honouring, the router's entries are not seen, and nothing else is lost.
    stripped = parse(composed, honour=False)
    assert (stripped.phase, stripped.stream, stripped.to, stripped.ingress, stripped.trace) == (
        0,
        False,
        None,
        None,
        (),
    )
    assert (stripped.user, stripped.user_count) == (octets, len(own))


@given(st.lists(st.tuples(st.text(max_size=30), st.integers())))
def test_the_composed_section_is_one_valid_map(pairs: list[tuple[str, int]]) -> None:
    own = list({encode(key): encode(key) + encode(value % 100) for key, value in pairs}.values())
    composed = compose_annotations(b"".join(own), len(own), 0, False, "to", None, ())
    described = decode_all(composed)
    assert described.descriptor == types.ULong(0x72)
    assert len(described.value) == len(own) + 1


@pytest.mark.parametrize("filler", range(200, 260))
def test_the_map_has_the_narrowest_form_that_fits(filler: int) -> None:
    own = encode("k") + b"\xb1" + struct.pack(">I", filler) + b"x" * filler
    composed = compose_annotations(own, 1, 0, False, None, None, ())
    assert composed[3] == (0xC1 if len(own) <= 254 else 0xD1)
    assert len(decode_all(composed).value["k"]) == filler
    entries, count = router_entries(0, False, None, None, ["x" * 60, "y" * (filler - 60)])
    assert decode_all(join_annotations(b"", 0, entries, count)).value == {
        "x-opt-qd.trace": ["x" * 60, "y" * (filler - 60)]
    }


@pytest.mark.parametrize(("count", "constructor"), [(127, 0xC1), (128, 0xD1)])
def test_more_than_255_items_need_a_wide_map(count: int, constructor: int) -> None:
    # 256 items in at most 254 bytes cannot be: each has one byte at least. So the wide map comes by size.
    own = b"".join(encode(None) + encode(None) for _ in range(count))
    assert compose_annotations(own, count, 0, False, None, None, ())[3] == constructor


# ---- keys that resemble the router's


@pytest.mark.parametrize(
    "key",
    ["x-opt-qd.to", Symbol("x-opt-qd.To"), Symbol("x-opt-qd.foo"), Symbol("x-opt-qd.to2"), Symbol("x-opt-qd"),
     Symbol("x-opt-qdxto"), Symbol("X-opt-qd.to"), Symbol("y-opt-qd.trace"), Symbol(""), types.ULong(1), b"x-opt-qd.to",
     Described(1, Symbol("x-opt-qd.to"))],
    ids=repr,
)  # fmt: skip
def test_other_keys_belong_to_the_sender(key: object) -> None:
    own = user(key, "v")
    found = parse(section([own]))
    assert (found.user, found.user_count, found.had_router_keys) == (own[0] + own[1], 1, False)


@pytest.mark.parametrize("key", ["", "class"])
@pytest.mark.parametrize("honour", [False, True])
def test_class_and_the_bare_prefix_are_swallowed(key: str, honour: bool) -> None:
    found = parse(with_one(key, [1, 2]), honour)
    assert (found.user_count, found.had_router_keys) == (2, True)
    assert found.to is found.ingress is None


def test_a_wide_symbol_names_the_same_key() -> None:
    name = b"x-opt-qd.to"
    found = parse(section([(b"\xb3" + struct.pack(">I", len(name)) + name, encode("t"))]))
    assert (found.to, found.user_count) == ("t", 0)


@pytest.mark.parametrize("encoded", [b"\xa1\x01t", b"\xb1\0\0\0\x01t"])
def test_strings_are_read_in_both_encodings(encoded: bytes) -> None:
    found = parse(section([(encode(Symbol("x-opt-qd.to")), encoded), (encode(Symbol("x-opt-qd.ingress")), encoded)]))
    assert (found.to, found.ingress) == ("t", "t")


@pytest.mark.parametrize(
    ("encoded", "trace"),
    [("45", ()), ("c00100", ()), ("d00000000400000000", ()), ("c00401a10161", ("a",)),
     ("d00000000d00000002a10161b10000000162", ("a", "b"))],
)  # fmt: skip
def test_a_trace_is_read_in_every_list_encoding(encoded: str, trace: tuple[str, ...]) -> None:
    found = parse(section([(encode(Symbol("x-opt-qd.trace")), bytes.fromhex(encoded))]))
    assert found.trace == trace


@pytest.mark.parametrize(
    "number", [types.Int(9), types.Int(1000), 9, types.UInt(9), types.UInt(0), types.ULong(300), types.UByte(9)]
)
def test_a_phase_of_any_whole_type_is_read(number: int) -> None:
    assert parse(with_one("phase", number)).phase == number


@pytest.mark.parametrize(("number", "stream"), [(types.Int(1), True), (types.Int(0), False), (1, True)])
def test_stream_is_a_number_used_as_a_flag(number: int, stream: bool) -> None:
    assert parse(with_one("stream", number)).stream is stream


def test_the_last_of_equal_keys_counts() -> None:
    assert parse(section([router("to", "a"), router("to", "b")])).to == "b"


# ---- routing.md 4.2: annotations that are rejected, and the texts


NOT_STRINGS: list[object] = [None, True, 1, b"x", Symbol("x"), ["x"], {}, Described(1, "x"), types.Char("x")]
NOT_LISTS: list[object] = [None, True, 1, b"x", "x", {}, Array("string", ["x"]), Described(1, ["x"])]
NOT_WHOLE: list[object] = [None, True, 1.0, "1", [1], {}, types.Int(-1), types.UInt(2**31), -1, Described(1, 1)]
REJECTED = [
    *[("to", value, "to-override not a valid string type") for value in NOT_STRINGS],
    *[("ingress", value, "ingress router not a string type") for value in NOT_STRINGS],
    *[("trace", value, "trace annotation is not a list") for value in NOT_LISTS],
    *[("trace", ["a", value], "trace list contains non-string entries") for value in NOT_STRINGS],
    *[("phase", value, "phase not a valid int type") for value in NOT_WHOLE],
    *[("stream", value, "stream not a valid int type") for value in NOT_WHOLE],
]


@pytest.mark.parametrize(("key", "value", "description"), REJECTED, ids=str)
def test_a_router_annotation_of_the_wrong_type_is_rejected_in_known_words(
    key: str, value: object, description: str
) -> None:
    with pytest.raises(InvalidAnnotation) as caught:
        parse(with_one(key, value))
    assert str(caught.value) == description


@pytest.mark.parametrize(("key", "value", "description"), REJECTED, ids=str)
def test_with_annotations_stripped_types_are_not_checked(key: str, value: object, description: str) -> None:
    assert parse(with_one(key, value), honour=False).user_count == 2


@pytest.mark.parametrize("key", ["to", "ingress"])
def test_a_string_that_is_not_utf8_is_rejected(key: str) -> None:
    pair = (encode(Symbol(f"x-opt-qd.{key}")), b"\xa1\x01\xff")
    with pytest.raises(InvalidAnnotation, match="string type"):
        parse(section([pair]))


@pytest.mark.parametrize("honour", [False, True])
def test_an_odd_map_is_rejected(honour: bool) -> None:
    with pytest.raises(InvalidAnnotation, match=r"^Odd Number of Elements in a Map$"):
        parse(PREFIX + b"\xc1\x02\x01\x40", honour)


@pytest.mark.parametrize("honour", [False, True])
@pytest.mark.parametrize(
    "body",
    ["45", "c00100", "40", "a00101", "e0020040", "c100", "d100000003000000", "c1050240", "c1020240", "c1034140",
     "c10402404040", "d100000004ffffffff", "d100000004fffffffe", "c10302a305", "c103025f40", "", "c1", "d1000000"],
)  # fmt: skip
def test_annotations_that_are_no_whole_map_are_rejected(body: str, honour: bool) -> None:
    with pytest.raises(InvalidAnnotation):
        parse(PREFIX + bytes.fromhex(body), honour)


@pytest.mark.parametrize("honour", [False, True])
def test_annotations_cut_anywhere_are_rejected(honour: bool) -> None:
    for end in range(len(EXAMPLE)):
        with pytest.raises(InvalidAnnotation):
            parse_annotations(EXAMPLE, 0, end, honour)


@pytest.mark.parametrize(
    "trace", ["c00501a1016161", "c00402a10161", "c00401a10261", "d000000004ffffffff", "c00141", "c00101"]
)
def test_a_trace_that_lies_about_its_length_is_rejected(trace: str) -> None:
    with pytest.raises(InvalidAnnotation):
        parse(section([(encode(Symbol("x-opt-qd.trace")), bytes.fromhex(trace))]))


def test_a_trace_is_read_to_its_bound_and_rejected_beyond() -> None:
    assert len(parse(with_one("trace", ["0/r"] * MAX_TRACE_ENTRIES)).trace) == MAX_TRACE_ENTRIES
    with pytest.raises(InvalidAnnotation, match=f"more than {MAX_TRACE_ENTRIES} entries"):
        parse(with_one("trace", ["0/r"] * (MAX_TRACE_ENTRIES + 1)))


@given(st.binary(max_size=100), st.booleans())
def test_any_octets_are_parsed_or_rejected(data: bytes, honour: bool) -> None:
    for prefix in (b"", PREFIX, PREFIX + b"\xc1"):
        try:
            parse(prefix + data, honour)
        except InvalidAnnotation:
            pass


@given(values, st.booleans())
def test_any_value_as_the_section_is_parsed_or_rejected(value: object, honour: bool) -> None:
    try:
        parse(PREFIX + encode(value), honour)
    except InvalidAnnotation:
        return
    assert encode(value)[0] in (0xC1, 0xD1)


# ---- values that must not be written


@pytest.mark.parametrize("phase", [-1, 2**31])
def test_a_phase_out_of_range_is_refused(phase: int) -> None:
    with pytest.raises(EncodeError, match="phase"):
        compose_annotations(b"", 0, phase, False, None, None, ())


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(EncodeError, match="surrogate"):
        compose_annotations(b"", 0, 0, False, chr(0xD800), None, ())


def test_entries_made_once_serve_many_messages() -> None:
    entries, count = router_entries(1, True, "to", "0/A", ("0/A",))
    assert count == 5
    for number in range(3):
        own = encode("n") + encode(number)
        assert join_annotations(own, 1, entries, count) == compose_annotations(own, 1, 1, True, "to", "0/A", ("0/A",))
