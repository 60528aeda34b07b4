"""Entries that are patterns of tokens (`sourcePattern`, `targetPattern`; security.md 4.8), as trees.

The user's name is the first or the last token, and is compared as text: it may hold separators.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from trouter.config.access import USER_TOKEN
from trouter.core.patterns import POLICIES, SEPARATORS, Pattern, PatternTree, TooManyStepsError
from trouter.policy.entries import EntryError, unescape
from trouter.policy.names import NO_ENTRY

#: The answer if a search would take more than STEPS.
UNDECIDED: Final = -1
#: Limit of the steps of one search. Only patterns with several `#` and addresses made for them come near.
STEPS: Final = 20_000


#: The place of the user's name in an entry: its first or last token, or none.
FIRST: Final = "first"
LAST: Final = "last"
NOWHERE: Final = ""


def parse_pattern(text: str) -> tuple[Pattern, str]:
    """Return the tokens of an entry without the user's name, and the place of that.

    EntryError if the name is another token, or a part of one.
    """
    pattern = POLICIES.parse(text)
    if "{" not in text:
        return pattern, NOWHERE
    users = [at for at, token in enumerate(pattern) if isinstance(token, str) and USER_TOKEN.search(token)]
    exact = tuple(unescape(token) if isinstance(token, str) else token for token in pattern)
    if not users:
        return exact, NOWHERE
    named = pattern[users[0]]
    if len(users) > 1 or not (isinstance(named, str) and USER_TOKEN.fullmatch(named)):
        raise EntryError("the user's name must be one whole token of a pattern")
    if users == [0]:
        return exact[1:], FIRST
    if users == [len(pattern) - 1]:
        return exact[:-1], LAST
    raise EntryError("the user's name must be the first or the last token of a pattern")


class PatternRules:
    """The entries of one `sourcePattern` or `targetPattern`; EntryError if one is invalid."""

    __slots__ = ("_plain", "_user_first", "_user_last")

    def __init__(self, entries: Iterable[str]) -> None:
        self._plain: PatternTree[int] = PatternTree(POLICIES)
        self._user_first: PatternTree[int] = PatternTree(POLICIES)
        self._user_last: PatternTree[int] = PatternTree(POLICIES)
        trees = {NOWHERE: self._plain, FIRST: self._user_first, LAST: self._user_last}
        for number, text in enumerate(entries, 1):
            pattern, place = parse_pattern(text)
            if pattern not in trees[place]:
                trees[place].insert(pattern, number)

    def find_entry(self, address: str, user: str) -> int:
        """Return the number of an entry that covers `address`, NO_ENTRY, or UNDECIDED; see `NameRules.find_entry`."""
        if not address:
            return NO_ENTRY
        number = _find_in(self._plain, address)
        if number == NO_ENTRY and user and len(self._user_first) and address.startswith(user):
            rest = address[len(user) :]
            if not rest or rest[0] in SEPARATORS:
                number = _find_in(self._user_first, rest[1:] if rest else None)
        if number == NO_ENTRY and user and len(self._user_last) and address.endswith(user):
            rest = address[: len(address) - len(user)]
            if not rest or rest[-1] in SEPARATORS:
                number = _find_in(self._user_last, rest[:-1] if rest else None)
        return number


def _find_in(tree: PatternTree[int], text: str | None) -> int:
    """Return the number of an entry that covers a text, NO_ENTRY, or UNDECIDED; None has no token."""
    tokens = [] if text is None else POLICIES.split(text)
    try:
        return tree.match(tokens, STEPS) or NO_ENTRY
    except TooManyStepsError:
        return UNDECIDED
