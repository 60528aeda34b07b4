"""The keys that match a subject, against a matcher that tries them one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.core.patterns import (
    KEYS,
    MAX_KEY_BYTES,
    MAX_KEY_TOKENS,
    DuplicatePatternError,
    PatternError,
    PatternTree,
    TooManyStepsError,
)

TOKENS = st.sampled_from(["a", "b", "", "*", "+", "ab"])
SUBJECTS = st.lists(TOKENS, max_size=6)
WRITTEN = st.lists(st.sampled_from(["a", "b", "", "*", "#", "+", "ab"]), min_size=1, max_size=5)


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


@given(st.lists(WRITTEN, max_size=8), st.lists(SUBJECTS, max_size=4), st.sampled_from(["amqp", "mqtt"]))
def test_a_subject_fits_the_keys_that_a_naive_matcher_finds(
    keys: list[list[str]], subjects: list[list[str]], method: str
) -> None:
    separator, one = (".", "*") if method == "amqp" else ("/", "+")
    tree: PatternTree[int] = PatternTree(KEYS[method])
    inserted: dict[int, str] = {}
    for number, key in enumerate(separator.join(key) for key in keys):
        try:
            tree.insert(key, number)
        except DuplicatePatternError:
            assert tree.get(key) in inserted
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
            assert sorted(tree.matches(subject)) == wanted
        if not inserted:
            break
        number, key = inserted.popitem()
        assert tree.remove(key) == number


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
    tree: PatternTree[str] = PatternTree(KEYS[method])
    tree.insert(key, key)
    assert [subject for subject in (*fitting, *others) if tree.matches(subject)] == fitting


def test_every_key_counts() -> None:
    tree: PatternTree[int] = PatternTree(KEYS["amqp"])
    for number, key in enumerate(["a.b", "a.*", "#", "a.#", "*.b", "b.a"]):
        tree.insert(key, number)
    assert sorted(tree.matches("a.b")) == [0, 1, 2, 3, 4]


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
        KEYS[method].parse(key)


def test_a_subject_that_is_too_long_fits_nothing() -> None:
    tree: PatternTree[int] = PatternTree(KEYS["amqp"])
    tree.insert("#", 1)
    assert tree.matches("a" * MAX_KEY_BYTES) == [1]
    assert tree.matches("a" * (MAX_KEY_BYTES + 1)) == []
    assert tree.matches("\u20ac" * (MAX_KEY_BYTES // 2)) == []
    assert tree.matches("a." * MAX_KEY_TOKENS) == [1]
    assert tree.matches("a." * (MAX_KEY_TOKENS + 1)) == []


@pytest.mark.parametrize("method", KEYS)
def test_a_search_visits_a_node_once_for_each_token(method: str) -> None:
    """Many keys full of wildcards and a subject that matches none: a matcher that backtracks would not end."""
    dialect = KEYS[method]
    tree: PatternTree[int] = PatternTree(dialect)
    key = ["#", "a"] * (MAX_KEY_TOKENS // 2) if method == "amqp" else ["+"] * (MAX_KEY_TOKENS - 1) + ["x"]
    tree.insert(dialect.separators.join(key), 1)
    value = ["a"] * (MAX_KEY_TOKENS - 2) + ["b"]
    assert tree.matches(dialect.separators.join(value)) == []
    assert tree.matches(value, max_steps=(len(key) + 1) * (len(value) + 1)) == []
    with pytest.raises(TooManyStepsError):
        tree.matches(value, max_steps=len(value) - 1)


def test_removed_keys_leave_nothing_in_the_tree() -> None:
    tree: PatternTree[int] = PatternTree(KEYS["amqp"])
    tree.insert("a.b", 1)
    before = tree.matches("a.b")
    for key in ("a.*.#", "#.c", "a.b.c"):
        tree.insert(key, 2)
        tree.remove(key)
    assert tree.matches("a.b") == before
    tree.remove("a.b")
    (root,) = tree.start()
    assert root.is_empty()
    with pytest.raises(KeyError):
        tree.remove("a.b")
