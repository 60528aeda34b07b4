"""Entries that are patterns of tokens (`sourcePattern`, `targetPattern`; security.md 4.8), as tries.

`.` and `/` separate tokens; a separator at an end has an empty token beside it (R-4.8). `*` is one token, `#` any
number. The user's name is the first or the last token, and is compared as text: it may hold separators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from trouter.config.access import USER_TOKEN, policy_tokens
from trouter.core.patterns import MANY, ONE, SEPARATORS
from trouter.policy.entries import EntryError, unescape
from trouter.policy.names import NO_ENTRY

#: The answer if a search would take more than STEPS.
UNDECIDED: Final = -1
#: Limit of the nodes visited in one search. Only patterns with several `#` and addresses made for them come near.
STEPS: Final = 20_000


class _Node:
    """Patterns that share a beginning; `number` is that of the pattern that ends here, or NO_ENTRY."""

    __slots__ = ("exact", "is_many", "many", "number", "one")

    def __init__(self, is_many: bool = False) -> None:
        self.exact: dict[str, _Node] = {}
        self.one: _Node | None = None
        self.many: _Node | None = None
        self.number = NO_ENTRY
        self.is_many = is_many

    def obtain_child(self, token: str) -> _Node:
        """Return the node after a pattern's next token; make it if it is missing."""
        if token == MANY:
            if self.many is None:
                self.many = _Node(is_many=True)
            return self if self.is_many else self.many
        if token == ONE:
            if self.one is None:
                self.one = _Node()
            return self.one
        return self.exact.setdefault(unescape(token), _Node())


class TokenRules:
    """Patterns without a user, each with its number; any match suffices, so all are tried side by side."""

    __slots__ = ("_root",)

    def __init__(self, patterns: Iterable[tuple[Sequence[str], int]]) -> None:
        self._root = _Node()
        for tokens, number in patterns:
            node = self._root
            for token in tokens:
                node = node.obtain_child(token)
            node.number = node.number or number

    def find_entry(self, tokens: Sequence[str]) -> int:
        """Return the number of a pattern that matches `tokens`, NO_ENTRY, or UNDECIDED."""
        reached = _with_many([self._root])
        steps = 0
        for token in tokens:
            following: dict[_Node, None] = {}
            for node in reached:
                if node.is_many:
                    if node.number:
                        return node.number  # a final `#` matches all further tokens
                    following[node] = None
                if (exact := node.exact.get(token)) is not None:
                    following[exact] = None
                if node.one is not None:
                    following[node.one] = None
            reached = _with_many(following)
            steps += len(reached)
            if steps > STEPS:
                return UNDECIDED
        return next((node.number for node in reached if node.number), NO_ENTRY)


def _with_many(nodes: Iterable[_Node]) -> list[_Node]:
    """Return the nodes, and those that follow them by a `#` of no tokens."""
    found = dict.fromkeys(nodes)
    for node in list(found):
        if node.many is not None:
            found[node.many] = None
    return list(found)


class PatternRules:
    """The entries of one `sourcePattern` or `targetPattern`; EntryError if one is invalid."""

    __slots__ = ("_plain", "_user_first", "_user_last")

    def __init__(self, entries: Iterable[str]) -> None:
        plain: list[tuple[Sequence[str], int]] = []
        first: list[tuple[Sequence[str], int]] = []
        last: list[tuple[Sequence[str], int]] = []
        for number, text in enumerate(entries, 1):
            tokens = policy_tokens(text)
            users = [at for at, token in enumerate(tokens) if "{" in token and USER_TOKEN.search(token)]
            if not users:
                plain.append((tokens, number))
            elif len(users) > 1 or not USER_TOKEN.fullmatch(tokens[users[0]]):
                raise EntryError("the user's name must be one whole token of a pattern")
            elif users == [0]:
                first.append((tokens[1:], number))
            elif users == [len(tokens) - 1]:
                last.append((tokens[:-1], number))
            else:
                raise EntryError("the user's name must be the first or the last token of a pattern")
        self._plain = TokenRules(plain) if plain else None
        self._user_first = TokenRules(first) if first else None
        self._user_last = TokenRules(last) if last else None

    def find_entry(self, address: str, user: str) -> int:
        """Return the number of an entry that covers `address`, NO_ENTRY, or UNDECIDED; see `NameRules.find_entry`."""
        if not address:
            return NO_ENTRY
        number = self._plain.find_entry(policy_tokens(address)) if self._plain else NO_ENTRY
        if number == NO_ENTRY and user and self._user_first and address.startswith(user):
            rest = address[len(user) :]
            if not rest or rest[0] in SEPARATORS:
                number = self._user_first.find_entry(policy_tokens(rest[1:]) if rest else ())
        if number == NO_ENTRY and user and self._user_last and address.endswith(user):
            rest = address[: len(address) - len(user)]
            if not rest or rest[-1] in SEPARATORS:
                number = self._user_last.find_entry(policy_tokens(rest[:-1]) if rest else ())
        return number
