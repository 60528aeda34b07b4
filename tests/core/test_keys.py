"""The keys that match a subject, against a matcher that tries them one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.core.keys import MAX_BYTES, MAX_TOKENS, KeyTree, key_tokens
from trouter.core.patterns import PatternError

TOKENS = st.sampled_from(["a", "b", "", "*", "+", "ab"])
SUBJECTS = st.lists(TOKENS, max_size=6)
KEYS = st.lists(st.sampled_from(["a", "b", "", "*", "#", "+", "ab"]), min_size=1, max_size=5)


def fits(key: list[str], subject: list[str], one: str) -> bool:
    """Return whether a key matches a subject, by trying every distribution of the tokens."""
    if not key:
        return not subject
    if key[0] == "#":
        return any(fits(key[1:], subject[taken:], one) for taken in range(len(subject) + 1))
    return bool(subject) and (key[0] in (one, subject[0])) and fits(key[1:], subject[1:], one)


def tokens(text: str, separator: str) -> list[str]:
    """Return the tokens of a text; separators at its ends do not count."""
    text = text.strip(separator)
    return text.split(separator) if text else []


@given(st.lists(KEYS, max_size=8), st.lists(SUBJECTS, max_size=4), st.sampled_from(["amqp", "mqtt"]))
def test_a_subject_fits_the_keys_that_a_naive_matcher_finds(
    keys: list[list[str]], subjects: list[list[str]], method: str
) -> None:
    separator, one = (".", "*") if method == "amqp" else ("/", "+")
    tree: KeyTree[int] = KeyTree(method)
    inserted: dict[int, str] = {}
    for number, key in enumerate(separator.join(key) for key in keys):
        try:
            tree.insert(key, number)
        except PatternError:
            many_inside = method == "mqtt" and "#" in tokens(key, separator)[:-1]
            assert many_inside or not tokens(key, separator)
        else:
            inserted[number] = key
    while True:
        for subject in (separator.join(subject) for subject in subjects):
            wanted = [
                number
                for number, key in inserted.items()
                if fits(tokens(key, separator), tokens(subject, separator), one)
            ]
            assert sorted(tree.match(subject)) == wanted
        if not inserted:
            break
        number, key = inserted.popitem()
        tree.remove(key, number)


@pytest.mark.parametrize(
    ("method", "key", "fitting", "others"),
    [
        ("amqp", "a.b", ["a.b", ".a.b."], ["a", "a/b", "a.b.c", "A.b"]),
        ("amqp", "a.*", ["a.b", "a.*"], ["a", "a.b.c"]),
        ("amqp", "a.#", ["a", "a.b", "a.b.c"], ["b", "ab"]),
        ("amqp", "#.z", ["z", "a.z", "a.b.z"], ["a.z.b"]),
        ("amqp", "a.#.z", ["a.z", "a.b.z", "a.b.c.z"], ["a", "z"]),
        ("amqp", "a.*.#", ["a.b", "a.b.c"], ["a"]),
        ("amqp", "a.+", ["a.+"], ["a.b"]),
        ("amqp", "#", ["", "a", "a.b", "a/b"], []),
        ("mqtt", "a/b", ["a/b"], ["a.b", "a/b/c"]),
        ("mqtt", "a/+", ["a/b"], ["a", "a/b/c"]),
        ("mqtt", "a/#", ["a", "a/b", "a/b/c"], ["b/a"]),
        ("mqtt", "+/b", ["a/b"], ["b", "a/a/b"]),
        ("mqtt", "a/*", ["a/*"], ["a/b"]),
        ("mqtt", "a.b", ["a.b"], ["a/b"]),
        ("mqtt", "#", ["", "a", "a/b"], []),
    ],
)
def test_a_key_matches_its_subjects_and_no_others(method: str, key: str, fitting: list[str], others: list[str]) -> None:
    tree: KeyTree[str] = KeyTree(method)
    tree.insert(key, key)
    assert [subject for subject in (*fitting, *others) if tree.match(subject)] == fitting


def test_every_key_counts_and_each_of_its_values() -> None:
    tree: KeyTree[int] = KeyTree()
    for number, key in enumerate(["a.b", "a.b", "a.*", "#", "a.#", "*.b", "b.a"]):
        tree.insert(key, number)
    assert sorted(tree.match("a.b")) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("key", "method"),
    [
        ("", "amqp"),
        ("..", "amqp"),
        ("/", "mqtt"),
        ("a/#/b", "mqtt"),
        ("#/a", "mqtt"),
        ("k" * 4097, "amqp"),
        ("k." * 129, "amqp"),
        ("k/" * 129, "mqtt"),
    ],
)
def test_an_invalid_key_is_refused(key: str, method: str) -> None:
    with pytest.raises(PatternError):
        key_tokens(key, method)


def test_a_subject_that_is_too_long_fits_nothing() -> None:
    tree: KeyTree[int] = KeyTree()
    tree.insert("#", 1)
    assert tree.match("a" * MAX_BYTES) == [1]
    assert tree.match("a" * (MAX_BYTES + 1)) == []
    assert tree.match("\u20ac" * (MAX_BYTES // 2)) == []
    assert tree.match("a." * MAX_TOKENS) == [1]
    assert tree.match("a." * (MAX_TOKENS + 1)) == []


def test_a_search_visits_a_node_once_for_each_token() -> None:
    """Many keys full of wildcards and a subject that matches none: a matcher that backtracks would not end."""
    tree: KeyTree[int] = KeyTree()
    tree.insert(".".join(["#", "a"] * (MAX_TOKENS // 2)), 1)
    assert tree.match(".".join("a" * (MAX_TOKENS - 1) + "b")) == []


def test_removed_keys_leave_nothing_in_the_tree() -> None:
    tree: KeyTree[int] = KeyTree()
    tree.insert("a.b", 1)
    before = tree.match("a.b")
    for key in ("a.*.#", "#.c", "a.b.c"):
        tree.insert(key, 2)
        tree.remove(key, 2)
    assert tree.match("a.b") == before
    tree.remove("a.b", 1)
    assert tree._root.is_empty
    with pytest.raises(ValueError, match="not in list"):
        tree.remove("a.b", 1)
