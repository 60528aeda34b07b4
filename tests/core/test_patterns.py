"""routing.md 5.2: tokens, wildcards, precedence; and the cost of hostile values."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trouter.core.patterns import (
    ADDRESSES,
    MANY,
    ONE,
    DuplicatePatternError,
    Pattern,
    PatternError,
    PatternTree,
    TooManyStepsError,
    prefix_pattern,
)


def tree_of(*patterns: str) -> PatternTree[str]:
    tree: PatternTree[str] = PatternTree()
    for pattern in patterns:
        tree.insert(pattern, pattern)
    return tree


REFERENCE = {
    "a.b.c.d": "closest",
    "#.b.c.d": "multicast",
    "a/*/#/d": "closest",
    "*/b/c/d": "multicast",
    "a.x.d": "closest",
    "a.*.d": "multicast",
}


@pytest.mark.parametrize(
    ("value", "distribution"),
    [
        ("a.b.c.d", "closest"),
        ("b.c.d", "multicast"),
        ("f.a.b.c.d", "multicast"),
        ("a.c.d", "multicast"),
        ("a/c/c/d", "closest"),
        ("a/x/z/z/d", "closest"),
        ("a/x/d", "closest"),
        ("a.x.e", "balanced"),
        ("m.b.c.d", "multicast"),
    ],
)
def test_reference_table(value: str, distribution: str) -> None:
    tree: PatternTree[str] = PatternTree()
    for pattern, configured in REFERENCE.items():
        tree.insert(pattern, configured)
    assert (tree.match(value) or "balanced") == distribution


# Tokens.


def test_both_separators_mean_the_same() -> None:
    assert tree_of("a/*/b").match("a.x.b") == "a/*/b"
    assert ADDRESSES.split("a.b/c") == ["a", "b", "c"]


@pytest.mark.parametrize("value", ["a.b", "/a/b/", "..a/b./", "//a.b"])
def test_separators_at_the_ends_do_not_count(value: str) -> None:
    assert ADDRESSES.split(value) == ["a", "b"]
    assert tree_of("a/b").match(value) == "a/b"
    assert ADDRESSES.normalise(value).replace(".", "/") == "a/b"


def test_an_empty_token_inside_is_a_token() -> None:
    tree = tree_of("a.*.b")
    assert tree.match("a..b") == "a.*.b"
    assert tree.match("a.b") is None


@pytest.mark.parametrize("value", ["", "/", "..", "./"])
def test_an_empty_value_has_no_token(value: str) -> None:
    assert ADDRESSES.split(value) == []
    assert tree_of("#").match(value) == "#"
    assert tree_of("*").match(value) is None


@pytest.mark.parametrize("pattern", ["", "/", "..", "./."])
def test_a_pattern_or_prefix_without_tokens_is_refused(pattern: str) -> None:
    tree: PatternTree[int] = PatternTree()
    with pytest.raises(PatternError, match="no tokens"):
        tree.insert(pattern, 1)
    with pytest.raises(PatternError, match="no tokens"):
        prefix_pattern(pattern)
    assert len(tree) == 0


def test_matching_is_case_sensitive() -> None:
    assert tree_of("A").match("a") is None


# Wildcards.


@pytest.mark.parametrize(
    ("value", "matches"), [("p", True), ("p.q", True), ("p/q.r", True), ("px", False), ("q.p", False)]
)
def test_a_prefix_matches_itself_and_the_addresses_below_it(value: str, matches: bool) -> None:
    assert (tree_of(prefix_pattern("p")).match(value) is not None) is matches


def test_a_prefix_is_the_pattern_with_many() -> None:
    assert prefix_pattern("/p/q/") == "p/q/#"
    tree = tree_of("p/#")
    with pytest.raises(DuplicatePatternError):
        tree.insert(prefix_pattern("p"), "p")


@pytest.mark.parametrize(
    ("value", "matches"), [("a.b", True), ("a.x.b", True), ("a.x.y.b", True), ("a.x", False), ("b", False)]
)
def test_many_matches_zero_or_more_tokens(value: str, matches: bool) -> None:
    assert (tree_of("a.#.b").match(value) is not None) is matches


@pytest.mark.parametrize(("value", "matches"), [("a.b", False), ("a.x.b", True), ("a.x.y.b", False)])
def test_one_matches_exactly_one_token(value: str, matches: bool) -> None:
    assert (tree_of("a.*.b").match(value) is not None) is matches


@pytest.mark.parametrize("pattern", ["a*", "*a", "a#", "##", "**"])
def test_a_wildcard_is_a_whole_token(pattern: str) -> None:
    tree = tree_of(pattern)
    assert tree.match(pattern) == pattern
    assert tree.match("ab") is None


def test_wildcards_in_a_value_are_ordinary_tokens() -> None:
    tree = tree_of("a.#.b", "c.*")
    assert tree.match("a.#.b") == "a.#.b"
    assert tree.match("a.#") is None
    assert tree.match("c.*") == "c.*"
    assert tree.match("c.#") == "c.*"
    assert tree_of("a.b").match("#") is None


# Normalisation.


@pytest.mark.parametrize(
    ("pattern", "normalised"),
    [
        ("#.#", "#"),
        ("#/*", "*/#"),
        ("#.#.*.#", "*/#"),
        ("a.#.*.b", "a/*/#/b"),
        ("a.#.*.#.*", "a/*/*/#"),
        ("a.*.#", "a.*.#"),
        ("/a.b/", "a.b"),
        ("#.a.#", "#.a.#"),
    ],
)
def test_rows_of_wildcards_are_normalised(pattern: str, normalised: str) -> None:
    assert ADDRESSES.normalise(pattern) == normalised
    assert ADDRESSES.parse(pattern) == ADDRESSES.parse(normalised)
    assert normalised in tree_of(pattern)


@pytest.mark.parametrize(("first", "second"), [("a.b", "/a/b"), ("#.#", "#"), ("a.#.*", "a.*.#"), ("a.b", "a.b")])
def test_a_duplicate_is_refused_and_leaves_the_first(first: str, second: str) -> None:
    tree = tree_of(first)
    with pytest.raises(DuplicatePatternError, match="already exists"):
        tree.insert(second, "second")
    assert second in tree
    assert (tree.get(second), len(tree)) == (first, 1)


# Precedence.


def test_exact_before_one_before_many() -> None:
    tree = tree_of("#", "a.#", "a.*", "a.b")
    assert tree.match("a.b") == "a.b"
    assert tree.match("a.c") == "a.*"
    assert tree.match("a.c.d") == "a.#"
    assert tree.match("b") == "#"


def test_a_dead_end_is_left_for_the_next_alternative() -> None:
    tree = tree_of("a.b.c.x", "a.*.c.y", "a.#.z")
    assert tree.match("a.b.c.y") == "a.*.c.y"
    assert tree.match("a.b.c.z") == "a.#.z"


def test_an_earlier_token_outweighs_all_later_tokens() -> None:
    assert tree_of("a.#", "*.b.c").match("a.b.c") == "a.#"


def test_where_the_value_ends_its_own_pattern_wins() -> None:
    tree = tree_of("a.#", "a")
    assert tree.match("a") == "a"
    tree.remove("a")
    assert tree.match("a") == "a.#"


def test_inside_many_a_continuation_wins_over_the_bare_wildcard() -> None:
    tree = tree_of("a.#", "a.#.z")
    assert tree.match("a.b.c.z") == "a.#.z"
    assert tree.match("a.b.c") == "a.#"


def test_inside_many_the_fewest_tokens_are_tried_first() -> None:
    tree = tree_of("#.b.#.c", "#.a.#")
    assert tree.match("x.a.b.c") == "#.a.#"
    assert tree.match("x.b.a.c") == "#.b.#.c"


# Removal.


def test_a_removed_pattern_no_longer_matches() -> None:
    tree = tree_of("a.b", "a.*", "a.#")
    assert tree.remove("/a/b") == "a.b"
    assert tree.match("a.b") == "a.*"
    assert "a.b" not in tree
    assert len(tree) == 2
    with pytest.raises(KeyError):
        tree.remove("a.b")


@given(st.lists(st.lists(st.sampled_from("ab*#"), min_size=1, max_size=4).map(".".join), unique_by=ADDRESSES.parse))
def test_removing_everything_leaves_nothing_behind(patterns: list[str]) -> None:
    tree = tree_of(*patterns)
    assert len(tree) == len(patterns)
    for pattern in patterns:
        assert tree.remove(pattern) == pattern
    (root,) = tree.start()
    assert root.is_empty()
    assert len(tree) == 0


# An independent implementation: the rules of 5.2 over a flat list, without tree, stack or memory.


def preferred(candidates: list[tuple[Pattern, str]], value: list[str]) -> str | None:
    """Return the winner among (rest of a pattern, pattern), where all took the same path up to here."""
    if not value and (ended := [name for rest, name in candidates if not rest]):
        return ended[0]
    if value:
        for wanted in (value[0], ONE):
            going = [(rest[1:], name) for rest, name in candidates if rest and rest[0] == wanted]
            if going and (winner := preferred(going, value[1:])):
                return winner
    inside = [(rest[1:], name) for rest, name in candidates if rest and rest[0] is MANY]
    for eaten in range(len(value)):
        going = [(rest[1:], name) for rest, name in inside if rest and rest[0] == value[eaten]]
        if going and (winner := preferred(going, value[eaten + 1 :])):
            return winner
    return next((name for rest, name in inside if not rest), None)


def is_member(pattern: Pattern, value: list[str]) -> bool:
    """Return whether the pattern alone matches the value: a table over both, no precedence."""
    fits = [[False] * (len(value) + 1) for _ in range(len(pattern) + 1)]
    fits[0][0] = True
    for row, token in enumerate(pattern, 1):
        for column in range(len(value) + 1):
            before = column > 0 and fits[row - 1][column - 1]
            if token is MANY:
                fits[row][column] = fits[row - 1][column] or (column > 0 and fits[row][column - 1])
            else:
                fits[row][column] = before and (token is ONE or token == value[column - 1])
    return fits[-1][-1]


PATTERNS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "*", "#"]), min_size=1, max_size=5), min_size=1, max_size=8
)
VALUES = st.lists(st.sampled_from(["a", "b", "c", "x", "#", "*"]), max_size=7)


@given(PATTERNS, VALUES)
@example([["#", "b"], ["#", "a", "#", "b"]], ["a", "b", "b"])
def test_the_tree_agrees_with_an_independent_matcher(patterns: list[list[str]], value: list[str]) -> None:
    texts = {ADDRESSES.parse(".".join(pattern)): ".".join(pattern) for pattern in patterns}
    tree = tree_of(*texts.values())
    found = tree.match(".".join(value))
    assert found == preferred(list(texts.items()), value)
    every = tree.matches(".".join(value))
    assert sorted(every) == sorted(text for tokens, text in texts.items() if is_member(tokens, value))
    assert every[:1] == ([] if found is None else [found])


@given(PATTERNS, VALUES)
def test_normalisation_keeps_the_values_that_a_pattern_covers(patterns: list[list[str]], value: list[str]) -> None:
    for pattern in patterns:
        written: Pattern = tuple({"*": ONE, "#": MANY}.get(token, token) for token in pattern)
        assert is_member(written, value) == is_member(ADDRESSES.parse(".".join(pattern)), value)


# Hostile values: steps are counted, not time.


def nodes_of(patterns: list[str]) -> int:
    return 1 + len({tokens[:depth] for tokens in map(ADDRESSES.parse, patterns) for depth in range(1, len(tokens) + 1)})


@pytest.mark.parametrize(
    "patterns",
    [
        ["#.a" + ".#.a" * 20 + ".b"],
        ["*.a.#." * 12 + "b", "#.a.*." * 12 + "b", "a.#." * 12 + "b"],
        [f"#.a.{'#.a.' * depth}b{depth}" for depth in range(12)],
        [".".join("*" if number >> bit & 1 else "a" for bit in range(8)) + ".b" for number in range(256)],
    ],
)
@pytest.mark.parametrize("length", [10, 100, 1000])
def test_a_search_takes_at_most_nodes_times_positions(patterns: list[str], length: int) -> None:
    tree = tree_of(*patterns)
    assert tree.matches(["a"] * length, max_steps=nodes_of(patterns) * (length + 1)) == []


@given(PATTERNS, VALUES)
def test_no_search_takes_more_steps_than_that(patterns: list[list[str]], value: list[str]) -> None:
    texts = list({ADDRESSES.parse(".".join(pattern)): ".".join(pattern) for pattern in patterns}.values())
    tree_of(*texts).matches(value, max_steps=nodes_of(texts) * (len(value) + 1))


def test_a_search_does_not_recurse() -> None:
    tree = tree_of(".".join("a" * 5000), "#.z")
    assert tree.match(".".join("a" * 5000)) is not None
    assert tree.match("a." * 5000 + "z") == "#.z"
    tree.remove(".".join("a" * 5000))
    assert tree.match(".".join("a" * 5000)) is None


def test_a_plain_prefix_costs_one_step_a_token() -> None:
    tree = tree_of(*(prefix_pattern(f"p{number}") for number in range(1000)))
    value = ["p7", "x", "y"]
    assert tree.matches(value, max_steps=5) == ["p7/#"]  # the root, p7, and # after none, one and two tokens
    with pytest.raises(TooManyStepsError):
        tree.matches(value, max_steps=4)


def test_the_best_is_found_where_nothing_better_can_follow() -> None:
    tree = tree_of("p/#", "#.a.#.a.#", "#")
    assert tree.match(["p", *["x"] * 1000], max_steps=8) == "p/#"
    assert tree.match(["a"] * 1000, max_steps=16) == "#.a.#.a.#"
    assert len(tree.matches(["a"] * 1000)) == 2
