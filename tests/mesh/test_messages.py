"""The messages of routers, byte for byte as Dispatch Router 1.19 sends them (inter-router.md 3.4)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from trouter.backbone.backbone import DETOUR_COST
from trouter.mesh import messages
from trouter.mesh.messages import (
    ALL_ADDRESSES_TO,
    ALL_ROUTERS_TO,
    HELLO_TO,
    MAX_MESSAGE_BYTES,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    Message,
    MobileAddressRequest,
    MobileAddressUpdate,
    Newer,
    RouterAdvertisement,
    compose,
    mobile_address,
    parse,
    router_address,
)
from trouter.wire.codec import encode
from trouter.wire.errors import DecodeError
from trouter.wire.types import Described, Symbol, ULong

INSTANCE_A, INSTANCE_B = 1795171884, 1795171885

EXAMPLES: list[tuple[Message, str, str]] = [
    (
        Hello("RB", INSTANCE_B, ("RA",)),
        HELLO_TO,
        """005370d0000000050000000142005372c13204a310782d6f70742d71642e696e6772657373a104302f5242
        a30e782d6f70742d71642e7472616365c00701a104302f5242005373d00000001f000000064040a114616d
        71703a2f5f6c6f63616c2f716468656c6c6f404040005374d10000001300000002a1066f70636f6465a105
        48454c4c4f005377d10000003d0000000aa1026964a1025242a10270765401a10461726561a10130a10869
        6e7374616e6365716b00262da1047365656ed00000000800000001a1025241""",
    ),
    (
        RouterAdvertisement("RA", INSTANCE_A, 1, 1),
        ALL_ROUTERS_TO,
        """005370d0000000050000000142005372c13204a310782d6f70742d71642e696e6772657373a104302f5241
        a30e782d6f70742d71642e7472616365c00701a104302f5241005373d000000025000000064040a11a616d
        71703a2f5f746f706f2f302f616c6c2f7164726f75746572404040005374d10000001000000002a1066f70
        636f6465a1025241005377d1000000420000000ca1026964a1025241a10270765401a10461726561a10130
        a108696e7374616e6365716b00262ca1066c735f7365715401a10a6d6f62696c655f7365715401""",
    ),
    (
        LinkStateRequest("RA"),
        router_address("RB"),
        """005370d0000000050000000142005372c13204a310782d6f70742d71642e696e6772657373a104302f5241
        a30e782d6f70742d71642e7472616365c00701a104302f5241005373d000000024000000064040a119616d
        71703a2f5f746f706f2f302f52422f7164726f75746572404040005374d10000001100000002a1066f7063
        6f6465a1034c5352005377d10000001b00000006a1026964a1025241a10270765401a10461726561a10130""",
    ),
    (
        LinkStateUpdate("RB", INSTANCE_B, 0, {"RA": 1}),
        router_address("RA"),
        """005370d0000000050000000142005372c13204a310782d6f70742d71642e696e6772657373a104302f5242
        a30e782d6f70742d71642e7472616365c00701a104302f5242005373d000000024000000064040a119616d
        71703a2f5f746f706f2f302f52412f7164726f75746572404040005374d10000001100000002a1066f7063
        6f6465a1034c5355005377d1000000720000000ca1026964a1025242a10270765401a10461726561a10130
        a108696e7374616e6365716b00262da1066c735f7365715400a1026c73d10000003500000008a1026964a1
        025242a10461726561a10130a1066c735f7365715400a1057065657273d10000000a00000002a102524154
        01""",
    ),
    (
        MobileAddressRequest("RB", 0),
        mobile_address("RA"),
        """005370d0000000050000000142005372c13204a310782d6f70742d71642e696e6772657373a104302f5242
        a30e782d6f70742d71642e7472616365c00701a104302f5242005373d000000024000000034040a11c616d
        71703a2f5f746f706f2f302f52412f7164726f757465722e6d61005374d10000001100000002a3066f7063
        6f6465a1034d4152005377d10000002700000008a3026964a1025242a30270765501a30461726561a10130
        a308686176655f7365715500""",
    ),
    (
        MobileAddressUpdate("RA", 1, exist=("M0pre",), hints=(3,)),
        mobile_address("RB"),
        """005370d0000000050000000142005372c13204a310782d6f70742d71642e696e6772657373a104302f5241
        a30e782d6f70742d71642e7472616365c00701a104302f5241005373d000000024000000034040a11c616d
        71703a2f5f746f706f2f302f52422f7164726f757465722e6d61005374d10000001100000002a3066f7063
        6f6465a1034d4155005377d1000000520000000ca3026964a1025241a30270765501a30461726561a10130
        a30a6d6f62696c655f7365715501a3056578697374d00000000b00000001a1054d30707265a30568696e74
        73d000000006000000015403""",
    ),
    (
        MobileAddressUpdate("RB", 1, added=("M0addr1",), hints=(3,)),
        ALL_ADDRESSES_TO,
        """005370d0000000050000000142005372c13204a310782d6f70742d71642e696e6772657373a104302f5242
        a30e782d6f70742d71642e7472616365c00701a104302f5242005373d00000001f000000034040a1175f74
        6f706f2f302f616c6c2f7164726f757465722e6d61005374d10000001100000002a3066f70636f6465a103
        4d4155005377d1000000600000000ea3026964a1025242a30270765501a30461726561a10130a30a6d6f62
        696c655f7365715501a30568696e7473d000000006000000015403a303616464d00000000d00000001a107
        4d306164647231a30364656cd00000000400000000""",
    ),
]
NAMES = [type(message).__name__ for message, _, _ in EXAMPLES]


def encoded(text: str) -> bytes:
    return bytes.fromhex(re.sub(r"\s", "", text))


@pytest.mark.parametrize(("message", "to", "text"), EXAMPLES, ids=NAMES)
def test_a_message_is_written_byte_for_byte_like_the_peers(message: Message, to: str, text: str) -> None:
    assert compose(message, to).hex() == encoded(text).hex()


@pytest.mark.parametrize(("message", "to", "text"), EXAMPLES, ids=NAMES)
def test_a_message_of_the_peer_is_understood(message: Message, to: str, text: str) -> None:
    assert parse(encoded(text)) == message


def test_the_cost_of_a_router_that_drains_is_written_as_the_older_router_writes_a_large_int() -> None:
    """It writes its instance so; and it reads each cost of a neighbour as an int of any width."""
    plain = compose(LinkStateUpdate("RB", INSTANCE_B, 0, {"RA": 1}), router_address("RA"))
    dear = compose(LinkStateUpdate("RB", INSTANCE_B, 0, {"RA": 1 + DETOUR_COST}), router_address("RA"))
    assert plain.endswith(bytes.fromhex("5401"))
    assert dear.endswith(b"\x71" + (1 + DETOUR_COST).to_bytes(4))
    assert b"\x71" + INSTANCE_B.to_bytes(4) in dear


ids = some.text(min_size=1, max_size=300).filter(lambda text: text.isprintable())
numbers = some.integers(0, 2**63 - 1)
keys = some.lists(ids, max_size=5).map(tuple)
six_messages = some.one_of(
    some.builds(Hello, ids, numbers, keys),
    some.builds(RouterAdvertisement, ids, numbers, numbers, numbers),
    some.builds(LinkStateRequest, ids),
    some.builds(LinkStateUpdate, ids, numbers, numbers, some.dictionaries(ids, some.integers(1, 2**31 - 1))),
    some.builds(MobileAddressRequest, ids, numbers),
    some.builds(MobileAddressUpdate, ids, numbers, exist=keys),
    some.builds(MobileAddressUpdate, ids, numbers, added=keys, deleted=keys),
)


@given(six_messages)
def test_a_written_message_is_parsed_back(message: Message) -> None:
    assert parse(compose(message, HELLO_TO)) == message


def body(opcode: object, **fields: object) -> bytes:
    """Return a message as another author may write it: without annotations, in any types."""
    properties = encode(Described(ULong(0x74), {"opcode": opcode}))
    return properties + encode(Described(ULong(0x77), fields))


def test_a_message_without_header_and_annotations_in_other_types_is_understood() -> None:
    plain = {"id": Symbol("RA"), "pv": 1, "instance": ULong(7), "seen": []}
    data = encode(Described(ULong(0x74), {Symbol("opcode"): "HELLO"}))
    data += encode(Described(ULong(0x77), {Symbol(key): value for key, value in plain.items()}))
    assert parse(data) == Hello("RA", 7)


def test_absent_fields_count_as_zero() -> None:
    assert parse(body("RA", id="RB")) == RouterAdvertisement("RB", 0, 0, 0)


@pytest.mark.parametrize("hints", [[3], [3, ULong(1 << 63)], [3, True]], ids=["too few", "too large", "no number"])
def test_hints_that_do_not_fit_the_addresses_are_ignored(hints: list[int]) -> None:
    update = parse(body("MAU", id="RB", pv=1, mobile_seq=1, exist=["M0a", "M0b"], hints=hints))
    assert update == MobileAddressUpdate("RB", 1, exist=("M0a", "M0b"))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "no body"),
        (body("RA", id="RB")[:-1], "claimed"),
        (encode("HELLO"), "not a section of a message"),
        (encode(Described(ULong(0x77), {"id": "RB"})), "no opcode"),
        (encode(Described(ULong(0x76), ["RB"])), "a section that router messages do not have"),
        (encode(Described(ULong(0x74), {"opcode": "RA"})), "no body"),
        (encode(Described(ULong(0x74), {"opcode": "RA"})) + encode(Described(ULong(0x77), [1])), "not a map"),
        (body("NONSENSE", id="RB"), "unknown opcode of a router message: 'NONSENSE'"),
        (body(7, id="RB"), "no opcode"),
        (body("RA"), "id is not a text"),
        (body("RA", id=""), "id is not a text"),
        (body("RA", id="R" * 4097), "id is not a text"),
        (body("RA", id=7), "id is not a text"),
        (body("RA", id="RB", ls_seq=-1), "ls_seq is not a whole number"),
        (body("RA", id="RB", ls_seq="1"), "ls_seq is not a whole number"),
        (body("RA", id="RB", ls_seq=True), "ls_seq is not a whole number"),
        (body("RA", id="RB", mobile_seq=ULong(2**63)), "mobile_seq is not a whole number"),
        (body("HELLO", id="RB"), "seen is not a list"),
        (body("HELLO", id="RB", seen="RA"), "seen is not a list"),
        (body("HELLO", id="RB", seen=["RA", 1]), "seen is not a list"),
        (body("LSU", id="RB"), "ls is not a map"),
        (body("LSU", id="RB", ls={"ls_seq": 1}), "peers is not a map"),
        (body("LSU", id="RB", ls={"ls_seq": 1, "peers": {"RA": "1"}}), "the cost in peers"),
        (body("LSU", id="RB", ls={"ls_seq": 1, "peers": {"RA": 2**31}}), "the cost in peers"),
        (body("LSU", id="RB", ls={"ls_seq": 1, "peers": {7: 1}}), "a key of peers"),
        (b"\x00\x45" + body("RA", id="RB"), "not a section of a message"),
        (body("HELLO", id="RB", seen=["R" * 4097]), "seen has a text of more than"),
        (body("MAU", id="RB", mobile_seq=1, exist=["M0" + "a" * 4095]), "exist has a text of more than"),
        (b"\x00" * (MAX_MESSAGE_BYTES + 1), "bytes; at most"),
        (body("MAU", id="RB", mobile_seq=1), "either exist"),
        (body("MAU", id="RB", mobile_seq=1, add=["M0a"]), "either exist"),
        (body("MAU", id="RB", mobile_seq=1, exist=[], add=[], **{"del": []}), "either exist"),
        (body("MAU", id="RB", mobile_seq=1, exist=["M0a", 1]), "exist is not a list"),
    ],
)
def test_bytes_that_are_no_message_are_refused_with_the_reason(data: bytes, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        parse(data)


def test_a_message_of_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_VALUES", 1000)
    update = {"id": "RB", "mobile_seq": 1, "hints": []}
    parse(body("MAU", exist=["M0a"] * 990, **update))
    with pytest.raises(DecodeError, match="more than 1000 values"):
        parse(body("MAU", exist=["M0a"] * 1000, **update))


def test_a_cost_of_nothing_is_a_cost_of_one() -> None:
    update: Any = parse(body("LSU", id="RB", ls={"ls_seq": 1, "peers": {"RA": 0}}))
    assert dict(update.peers) == {"RA": 1}


@given(some.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        parse(data)
    except DecodeError:
        pass


@pytest.mark.parametrize(("message", "to", "text"), EXAMPLES, ids=NAMES)
def test_a_damaged_message_is_read_or_refused(message: Message, to: str, text: str) -> None:
    whole = encoded(text)
    for place in range(len(whole)):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            try:
                parse(damaged)
            except DecodeError:
                pass


@pytest.mark.parametrize("opcode", ["LSR", "MAU", "ONE OF THEM"])
def test_only_the_author_is_read_of_a_message_of_a_newer_version(opcode: str) -> None:
    assert parse(body(opcode, id="RB", pv=2, exist=[["M0a", 3]])) == Newer("RB", 2)
