"""Whether a group's entries cover a link route's pattern: against all short addresses, judged one by one."""

from __future__ import annotations

import itertools
import random
import string

import pytest

from trouter.config.access import address_patterns
from trouter.core.addresses import plain
from trouter.core.patterns import PatternError, PatternTree
from trouter.policy import coverage
from trouter.policy.compiled import AddressRules, Entries
from trouter.policy.coverage import TooComplexError, uncovered
from trouter.policy.judge import judge_address

#: All addresses of up to five characters of these, in the router's spelling, without a separator at an end.
ADDRESSES = [
    "".join(letters)
    for length in range(1, 6)
    for letters in itertools.product("ab./", repeat=length)
    if letters[0] not in "./" and letters[-1] not in "./" and plain("".join(letters)) == "".join(letters)
]
USERS = ("", "a", "b", "a.b", "b/a")


def rules(*texts: str, patterns: bool = False) -> AddressRules:
    return AddressRules("v:g:sources", (Entries.of_patterns if patterns else Entries.of_names)(texts))


def taken(pattern: str) -> list[str]:
    """Return the addresses that a route with this pattern takes."""
    tree: PatternTree[bool] = PatternTree()
    tree.insert(pattern, True)
    return [address for address in ADDRESSES if tree.match(address) is not None]


NAMES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "a.#": (("a.*",), "a"),
    "a.b/#": (("a.*",), "a/b"),
    "a.b": (("a.*", "a/*"), None),
    "a/b/#": (("a.*", "a/*"), None),
    "b.#": (("a*",), "b"),
    "aa.#": (("a*",), None),
    "*": (("a*",), "x"),
    "#": (("*",), None),
    "*.a": (("*",), None),
    "a.*.b": (("a.*", "a/*"), None),
    "bob.#": (("${user}.*",), "bob"),
}


@pytest.mark.parametrize("pattern", NAMES)
def test_names_cover_a_pattern_with_every_separator_or_the_shortest_address_beside_them_is_told(pattern: str) -> None:
    entries, beside = NAMES[pattern]
    assert rules(*entries).find_uncovered(pattern, "alice") == beside


@pytest.mark.parametrize(
    ("pattern", "entry", "covered"),
    [
        ("a.*", "a.#", True),
        ("a.#", "a.*", False),
        ("a.#.b", "a.#", True),
        ("a/b/c", "a.*.c", True),
        ("*.*", "*.#", True),
        ("#", "#", True),
        ("#.a", "*.#", True),
        ("a.bob.#", "a.${user}", False),
        ("a.bob", "a.${user}", True),
        ("bob.x.#", "${user}.#", True),
        ("bob", "${user}.#", True),
        ("bobby.#", "${user}.#", False),
        ("alice.#", "${user}.#", False),
    ],
)
def test_a_pattern_covers_another_one(pattern: str, entry: str, covered: bool) -> None:
    assert (rules(entry, patterns=True).find_uncovered(pattern, "bob") is None) is covered


def test_an_entry_with_the_users_name_covers_nothing_for_a_user_without_one() -> None:
    assert rules("${user}*").find_uncovered("a", "") == "a"
    assert rules("${user}.#", patterns=True).find_uncovered("a", "") == "a"


def test_a_users_name_is_text() -> None:
    assert rules("x*", "${user}").find_uncovered("a.b", "*") == "a.b"
    assert rules("${user}.#", patterns=True).find_uncovered("a.b", "#") == "a.b"
    assert rules("${user}.#", patterns=True).find_uncovered("a.b.c", "a.b") == "a/b.c"


def test_several_entries_together_cover_what_none_covers_alone() -> None:
    assert rules("a", "a.*", "a/*").find_uncovered("a.#", "") is None
    assert rules("a", "a.*.#", patterns=True).find_uncovered("a.#", "") is None


def invented(chance: random.Random, letters: str, count: int) -> str:
    return chance.choice("./").join(chance.choice(letters.split()) for _ in range(chance.randint(1, count)))


@pytest.mark.parametrize("seed", range(60))
def test_what_is_covered_and_what_is_not_agrees_with_each_address(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        pattern = invented(chance, "a b ab * #", 3)
        user = chance.choice(USERS)
        patterns = chance.random() < 0.5
        if patterns:
            texts = [invented(chance, "a b ab * # *", 3) for _ in range(chance.randint(1, 3))]
            texts += chance.sample(["${user}", "${user}.#", "a.${user}", "#/${user}", "${user}.*"], 1)
            entries = rules(*address_patterns(tuple(texts)), patterns=True)
        else:
            texts = [invented(chance, "a b ab", 3) + chance.choice(["", "*", ".*", "/*"]) for _ in range(3)]
            entries = rules(*texts, *chance.sample(["*", "${user}", "${user}.*", "a.${user}*", "a", "a*"], 1))
        beside = entries.find_uncovered(pattern, user)
        missing = [address for address in taken(pattern) if not judge_address(entries, address, user)]
        told = f"{pattern} in {texts} for {user!r}: {beside} of {missing[:3]}"
        if beside is None:
            assert not missing, told
            continue
        if set(beside) <= set("ab./") and len(beside) <= 5:
            assert beside in missing, told
        assert not missing or len(beside) <= min(map(len, missing)), told
        tree: PatternTree[bool] = PatternTree()
        tree.insert(pattern, True)
        assert tree.match(beside) is not None, told
        assert not judge_address(entries, beside, user), told


def test_a_pattern_made_to_take_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "STEPS", 1000)
    texts = tuple(f"#.{'*.' * number}a.#" for number in range(12))
    with pytest.raises(TooComplexError):
        uncovered("#.a.*.*.*.*.*.*.*.*.#", texts, patterns=True, user="")


def test_many_entries_and_a_long_pattern_take_no_more_steps_than_their_length() -> None:
    texts = (*(f"tenant.{number}.*" for number in range(5_000)), "tenant/4999/*")
    long = "tenant.4999." + "x" * 3_000
    assert uncovered(f"{long}.#", texts, patterns=False, user="") == f"tenant.4999/{'x' * 3_000}"


def test_entries_that_do_not_matter_take_no_steps() -> None:
    assert uncovered("#", ("#", *(f"tenant.{number}.#" for number in range(5_000))), patterns=True, user="") is None


def test_a_token_that_no_entry_has_is_found_among_entries_with_many_letters() -> None:
    assert uncovered("*", ("x*", *(f"{letter}*" for letter in string.ascii_letters)), patterns=False, user="") == "¡"


def test_a_pattern_without_a_token_is_refused() -> None:
    with pytest.raises(PatternError):
        uncovered("..", ("*",), patterns=False, user="")
