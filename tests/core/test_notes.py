"""Notes between an edge router and its interior router: written as always, and no bytes are read with another error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.core.notes import Note, read, write
from trouter.wire.errors import DecodeError


def test_a_note_has_the_bytes_that_qpid_dispatch_writes() -> None:
    note = Note(["a", True], to="t", reply_to="r", correlation_id="c", properties={"version": 1})
    assert write(note).hex(" ") == (
        "00 53 70 d0 00 00 00 05 00 00 00 01 42"
        " 00 53 73 d0 00 00 00 10 00 00 00 06 40 40 a1 01 74 40 a1 01 72 a1 01 63"
        " 00 53 74 d1 00 00 00 0f 00 00 00 02 a1 07 76 65 72 73 69 6f 6e 55 01"
        " 00 53 77 d0 00 00 00 08 00 00 00 02 a1 01 61 41"
    )


def test_a_note_is_read_as_it_was_written() -> None:
    note = read(write(Note(["a"], to="t", reply_to="r", correlation_id="c", properties={"version": 1})))
    assert (note.body, note.reply_to, note.correlation_id) == (["a"], "r", "c")
    assert note.properties == {"version": 1}
    assert read(write(Note(None, headless=True))).body is None


@pytest.mark.parametrize(
    "data", [b"\x40", b"\x00\x45\x40", b"\x00\xc1\x01\x00\x40", b"\x00\x53\x77", b"\x00\x53\x79\x40"]
)
def test_bytes_that_are_no_section_are_a_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read(data)


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda rest: b"\x00" + rest))
def test_any_bytes_are_a_note_or_a_decode_error(data: bytes) -> None:
    try:
        read(data)
    except DecodeError:
        return
