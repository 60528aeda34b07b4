"""Rows are encoded as the codec encodes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trouter.management.cells import encode_row
from trouter.wire.codec import encode
from trouter.wire.types import Int, Long, Symbol, UInt, ULong

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=300),
    st.binary(max_size=300),
    st.integers(0, 2**64 - 1).map(ULong) | st.integers(0, 300).map(ULong),
    st.integers(0, 2**32 - 1).map(UInt) | st.integers(0, 300).map(UInt),
    st.integers(-(2**31), 2**31 - 1).map(Int),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.from_regex(r"[ -~]{0,20}", fullmatch=True).map(Symbol),
    st.dictionaries(st.text(max_size=5), st.booleans(), max_size=3),
)
ROWS = st.recursive(st.lists(CELLS, max_size=8), lambda inner: st.lists(CELLS | inner, max_size=8), max_leaves=40)


@given(ROWS)
def test_a_row_is_encoded_like_the_codec_encodes(row: list[object]) -> None:
    assert encode_row(row) == encode(row)


def test_rows_around_the_bounds_of_the_short_form_are_written_alike() -> None:
    for size in range(240, 262):
        assert encode_row(["x" * size]) == encode(["x" * size])
        assert encode_row([None] * size) == encode([None] * size)
        assert encode_row([ULong(size), UInt(size)]) == encode([ULong(size), UInt(size)])
