"""Text of strangers is escaped: what does not print, what a terminal obeys, what would end a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter._text import escape_controls, escape_unprintable, visible_bytes
from trouter.logs.peer_text import name_word, quoted, word


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00e9", "plain \u00e9"),
        ("a\nb\t\x1b[2J", r"a\nb\t\x1b[2J"),
        ("\u202e\U000e0001\ud800", r"\u202e\U000e0001\ud800"),
        ("back\\slash", "back\\slash"),
    ],
)
def test_characters_that_do_not_print_have_escapes(text: str, shown: str) -> None:
    assert escape_unprintable(text) == shown


def test_special_characters_are_escaped_too() -> None:
    assert escape_unprintable("a 'b'\\\n", " '\\") == r"a\x20\x27b\x27\x5c\n"
    assert word("a b=c") == r"a\x20b=c"
    assert name_word("a b=c") == r"a\x20b\x3dc"
    assert quoted("it's \\") == r"'it\x27s \x5c'"


def test_joiners_of_letters_stay_where_only_controls_are_escaped() -> None:
    assert (
        escape_controls("\u0646\u200c\u0627 \U0001f468\u200d\U0001f469\xa0")
        == "\u0646\u200c\u0627 \U0001f468\u200d\U0001f469\xa0"
    )
    assert escape_controls("a\nb\x9b\u202e\ud800") == r"a\nb\x9b\u202e\ud800"


@given(st.text(st.characters()))
def test_what_is_escaped_is_one_line_that_can_be_encoded(text: str) -> None:
    for shown in (escape_unprintable(text), escape_controls(text)):
        assert len(shown.splitlines()) <= 1
        assert shown.encode().decode() == shown


def test_bytes_are_visible_as_ascii() -> None:
    assert visible_bytes(b'AMQP\x00\xff"', b'"') == r"AMQP\x00\xff\x22"
