"""The handling of a message from a control link (inter-router.md 2.5, 5.5)."""

from __future__ import annotations

import pytest

from trouter.mesh.messages import (
    ALL_ADDRESSES_TO,
    ALL_ROUTERS_TO,
    HELLO_TO,
    Hello,
    Message,
    MobileAddressUpdate,
    RouterAdvertisement,
    compose,
    mobile_address,
    router_address,
)
from trouter.mesh.paths import Paths
from trouter.mesh.relay import Dropped, Relay, first_hops, relay
from trouter.wire.annotations import MAX_TRACE_ENTRIES, compose_annotations
from trouter.wire.codec import encode
from trouter.wire.errors import DecodeError
from trouter.wire.types import Described, Symbol, ULong

# R1 - R2 - R3 - R4, with a spur R5 at R2.
LINKS = {
    "R1": {"R2": 1},
    "R2": {"R1": 1, "R3": 1, "R5": 1},
    "R3": {"R2": 1, "R4": 1},
    "R4": {"R3": 1},
    "R5": {"R2": 1},
}
AT_R2 = Paths("R2", LINKS)
HEADER = encode(Described(ULong(0x70), [False]))
BODY = encode(Described(ULong(0x77), {"id": "R1"}))


def encoded(to: str | None, trace: tuple[str, ...] = ("0/R1",), ingress: str | None = "0/R1", user: str = "") -> bytes:
    """Return a message from a control link, with an entry that ``user`` put into its annotations."""
    extra = encode(Symbol("x-user")) + encode(user) if user else b""
    annotations = compose_annotations(extra, 1 if user else 0, 0, False, None, ingress, trace)
    return HEADER + annotations + encode(Described(ULong(0x73), [None, None, to])) + BODY


@pytest.mark.parametrize(
    ("to", "trace", "address", "hops"),
    [
        (HELLO_TO, ("0/R1",), "qdhello", ()),
        ("_local/qdhello", ("0/R1",), "qdhello", ()),
        ("_local/qdhello", ("0/R9", "0/R8", "0/R2"), "qdhello", ()),
        (ALL_ROUTERS_TO, ("0/R1",), "qdrouter", ("R3", "R5")),
        ("_topo/all/all/qdrouter", ("0/R1",), "qdrouter", ("R3", "R5")),
        (ALL_ADDRESSES_TO, ("0/R1",), "qdrouter.ma", ("R3", "R5")),
        (f"amqp:/{ALL_ADDRESSES_TO}", ("0/R1",), "qdrouter.ma", ("R3", "R5")),
        (ALL_ROUTERS_TO, ("0/R1", "0/R5"), "qdrouter", ("R3",)),
        (ALL_ROUTERS_TO, ("0/R1", "0/R3", "0/R5"), "qdrouter", ()),
        (router_address("R2"), ("0/R1",), "qdrouter", ()),
        (router_address("R2"), ("0/R6", "0/R7", "0/R8", "0/R9", "0/R1"), "qdrouter", ()),
        ("_topo/all/R2/qdrouter", ("0/R1",), "qdrouter", ()),
        (mobile_address("R2"), ("0/R1",), "qdrouter.ma", ()),
        (router_address("R3"), ("0/R1",), "", ("R3",)),
        (router_address("R4"), ("0/R1",), "", ("R3",)),
        ("_topo/0/R4/what.is/never/looked at", ("0/R1",), "", ("R3",)),
    ],
)
def test_a_message_is_taken_here_or_sent_on(
    to: str, trace: tuple[str, ...], address: str, hops: tuple[str, ...]
) -> None:
    way = relay(encoded(to, trace), "R2", AT_R2)
    assert (way.address, way.hops) == (address, hops)
    assert way.data == (encoded(to, (*trace, "0/R2")) if hops else b"")


@pytest.mark.parametrize(
    ("ingress", "hops"),
    [("0/R1", ("R3", "R5")), ("0/R3", ("R1", "R5")), ("0/R4", ("R1", "R5")), ("0/R9", ()), ("1/R1", ())],
)
def test_a_broadcast_goes_on_to_the_routers_behind_this_one_for_its_author(ingress: str, hops: tuple[str, ...]) -> None:
    assert relay(encoded(ALL_ROUTERS_TO, ("0/R9",), ingress), "R2", AT_R2).hops == hops


def test_user_annotations_beside_the_trace_are_passed_on() -> None:
    way = relay(encoded(ALL_ROUTERS_TO, user="kept"), "R2", AT_R2)
    assert way.data == encoded(ALL_ROUTERS_TO, ("0/R1", "0/R2"), user="kept")


def test_a_message_without_annotations_has_this_router_as_its_ingress() -> None:
    bare = encode(Described(ULong(0x73), [None, None, ALL_ROUTERS_TO])) + BODY
    way = relay(bare, "R2", AT_R2)
    assert way.hops == ("R1", "R3", "R5")
    assert way.data == compose_annotations(b"", 0, 0, False, None, "0/R2", ("0/R2",)) + bare


def test_another_address_in_the_annotations_counts_before_that_of_the_properties() -> None:
    annotations = compose_annotations(b"", 0, 0, False, "_topo/0/R4/x", "0/R1", ("0/R1",))
    rest = encode(Described(ULong(0x73), [None, None, HELLO_TO])) + BODY
    behind = compose_annotations(b"", 0, 0, False, "_topo/0/R4/x", "0/R1", ("0/R1", "0/R2"))
    assert relay(HEADER + annotations + rest, "R2", AT_R2) == Relay("", ("R3",), HEADER + behind + rest, origin="R1")


@pytest.mark.parametrize(
    ("to", "trace", "complaint"),
    [
        (ALL_ROUTERS_TO, ("0/R1", "0/R2"), "it was here before"),
        (router_address("R2"), ("0/R2",), "it was here before"),
        (router_address("R9"), ("0/R1",), "no path"),
        (router_address("R1"), ("0/R1",), "no path"),
        (router_address("R4"), ("0/R3",), "no path"),
    ],
)
def test_a_message_that_leads_nowhere_is_dropped(to: str, trace: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(Dropped, match=complaint):
        relay(encoded(to, trace), "R2", AT_R2)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "empty"),
        (HEADER[:4], "cut short"),
        (BODY, "for no router"),
        (encoded(None), "for no router"),
        (encoded(""), "for no router"),
        (encoded("news"), "for no router"),
        (encoded("_topo/1/R2/qdrouter"), "for no router"),
        (encoded("_topo/0/R2"), "for no router"),
        (encoded("_topo/0//qdrouter"), "for no router"),
        (encoded("_local"), "for no router"),
        (encoded("_edge/R2/qdrouter"), "for no router"),
        (encoded(ALL_ROUTERS_TO, ("0/R1",) * (MAX_TRACE_ENTRIES + 1)), "trace list has more than"),
        (HEADER + encode(Described(ULong(0x72), ["0/R1"])) + BODY, "format code"),
        (encoded(ALL_ROUTERS_TO).replace(b"\xa1\x040/R1", b"\xa3\x040/R1"), "ingress router not a string"),
        (encoded(ALL_ROUTERS_TO, user="x" * 9000), "annotations of"),
        (HEADER + encode(Described(ULong(0x73), [None, None, 7])) + BODY, "format code"),
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        relay(data, "R2", AT_R2)


MESSAGES: list[tuple[Message, str]] = [
    (Hello("R1", 7, ("R2",)), HELLO_TO),
    (RouterAdvertisement("R1", 7, 1, 1), ALL_ROUTERS_TO),
    (MobileAddressUpdate("R1", 1, exist=("M0a",), hints=(3,)), router_address("R4")),
]


@pytest.mark.parametrize(("message", "to"), MESSAGES, ids=lambda value: type(value).__name__)
def test_every_damaged_message_is_relayed_or_refused(message: Message, to: str) -> None:
    whole = compose(message, to)
    for place in range(len(whole)):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            try:
                relay(damaged, "R2", AT_R2)
            except (DecodeError, Dropped):
                pass


@pytest.mark.parametrize(
    ("to", "hops"),
    [
        (ALL_ROUTERS_TO, ("R1", "R3", "R5")),
        (ALL_ADDRESSES_TO, ("R1", "R3", "R5")),
        (router_address("R4"), ("R3",)),
        (mobile_address("R1"), ("R1",)),
        (router_address("R9"), ()),
    ],
)
def test_messages_of_this_router_go_to_these_first_hops(to: str, hops: tuple[str, ...]) -> None:
    assert first_hops(to, AT_R2) == hops
