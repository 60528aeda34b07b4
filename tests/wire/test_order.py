"""The order of sections, whole and in pieces of every size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.wire.codec import encode
from trouter.wire.order import SectionOrder
from trouter.wire.sections import SECTIONS_BY_SYMBOL, InvalidMessage
from trouter.wire.types import Described, Symbol, ULong

BODY = {0x75: b"octets", 0x76: [1, "two", [3]], 0x77: {"key": Described(ULong(7), [None, 1.5, True])}}
CONTENT = {0x70: [True, None], 0x71: {}, 0x72: {}, 0x73: [None, b"user"], 0x74: {"a": "b"}, 0x78: {}} | BODY


def message(*codes: int) -> bytes:
    return b"".join(encode(Described(ULong(code), CONTENT[code])) for code in codes)


def stands(data: bytes, cuts: tuple[int, ...] = ()) -> bool:
    """Return whether the message passes, fed in the pieces that ``cuts`` make of it."""
    order = SectionOrder()
    whole = stands_whole(order, data)
    order.begin_message()
    places = sorted({min(cut, len(data)) for cut in cuts} - {len(data)})
    try:
        for start, end in zip([0, *places], [*places, len(data)], strict=True):
            order.check_bytes(b"##" + data[start:end] + b"##", 2, 2 + end - start, end == len(data))
    except InvalidMessage:
        assert not whole
        return False
    assert whole
    return True


def stands_whole(order: SectionOrder, data: bytes) -> bool:
    """Return whether the message passes in one piece."""
    try:
        order.check_message(b"##" + data + b"##", 2, 2 + len(data))
    except InvalidMessage:
        return False
    return True


RIGHT = [
    (0x75,), (0x77,), (0x76,), (0x75, 0x75, 0x75), (0x76, 0x76), (0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x78),
    (0x70, 0x77), (0x73, 0x77, 0x78), (0x73,), (0x72, 0x75, 0x75, 0x78), (0x74, 0x78),
]  # fmt: skip
WRONG = [
    (0x73, 0x73, 0x75), (0x75, 0x73), (0x77, 0x73), (0x74, 0x73, 0x75), (0x70, 0x70, 0x75), (0x72, 0x71, 0x75),
    (0x75, 0x76), (0x76, 0x75), (0x77, 0x77), (0x75, 0x77), (0x78, 0x78), (0x78, 0x73), (0x75, 0x78, 0x75),
    (0x77, 0x70),
]  # fmt: skip


@pytest.mark.parametrize("codes", RIGHT)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_sections_in_the_order_of_the_standard_pass_at_every_cut(codes: tuple[int, ...], size: int) -> None:
    data = message(*codes)
    assert stands(data, tuple(range(size, len(data), size)))


@pytest.mark.parametrize("codes", WRONG)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_any_other_does_not(codes: tuple[int, ...], size: int) -> None:
    data = message(*codes)
    assert not stands(data, tuple(range(size, len(data), size)))


@pytest.mark.parametrize(("name", "code"), SECTIONS_BY_SYMBOL.items())
@pytest.mark.parametrize("constructor", [b"\xa3", b"\xb3"])
@pytest.mark.parametrize("cut", [1, 5, 20, 1000])
def test_a_section_may_be_spelt_as_a_symbol(name: bytes, code: int, constructor: bytes, cut: int) -> None:
    size = len(name).to_bytes(1 if constructor == b"\xa3" else 4, "big")
    data = b"\0" + constructor + size + name + encode(CONTENT[code])
    assert stands(data, (cut,))
    assert stands(b"\0\x80" + ULong(code).to_bytes(8, "big") + encode(CONTENT[code]), (cut,))
    assert not stands(data + message(0x70), (cut,))


@pytest.mark.parametrize(
    "octets",
    [b"x", b"\0\x53\x79\x45", b"\0\x53\x6f\x45", b"\0\x80\1\0\0\0\0\0\0\x75\xa0\0", b"\0\xa3\x03abc\x40",
     b"\0\xb3" + b"\xff" * 60, b"\0\xa3\x40" + b"a" * 64, b"\0\x53\x77\x10", b"\0\0\x53\x75\xa0\0",
     b"\0" + encode(Symbol("amqp:data")) + b"\xa0\0"],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 1000])
def test_octets_that_are_no_section_do_not_pass(octets: bytes, size: int) -> None:
    assert not stands(octets, tuple(range(size, len(octets), size)))
    behind = message(0x75) + octets
    assert not stands(behind, tuple(range(size, len(behind), size)))


@given(codes=st.sampled_from(RIGHT), data=st.data())
def test_a_message_that_is_cut_short_does_not_pass(codes: tuple[int, ...], data: st.DataObject) -> None:
    whole = message(*codes)
    boundaries = {len(message(*codes[:count])) for count in range(len(codes))}
    end = data.draw(st.sampled_from(sorted(set(range(1, len(whole))) - boundaries)))
    assert not stands(whole[:end], (data.draw(st.integers(0, end)),))


@given(octets=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=5))
def test_any_octets_get_the_same_answer_however_they_are_cut(octets: bytes, cuts: list[int]) -> None:
    assert stands(octets) == stands(octets, tuple(cuts))
