"""Another router's id in a line of the log."""

from __future__ import annotations

import pytest

from trouter.mesh.names import shown


@pytest.mark.parametrize(
    ("router", "text"),
    [
        ("Router.A-1", "Router.A-1"),
        ("Zürich", "Zürich"),
        ("a b='c'", r"a\x20b\x3d\x27c\x27"),
        ("a\0\x7f\n\x9b", r"a\x00\x7f\n\x9b"),
        ("a\u2028b", r"a\u2028b"),
        ("R" * 300, "R" * 128),
    ],
)
def test_an_id_is_shown_as_one_printable_word(router: str, text: str) -> None:
    assert shown(router) == text
