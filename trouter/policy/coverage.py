"""Whether the entries of a group cover every address that a link route takes (security.md 4.15).

Addresses that the route takes are made token by token, the shortest first, and followed through a tree of the entries;
the first that no entry covers is the answer. Where the route has a wildcard, one token that is in no entry stands for
all others: what covers it covers them, too. The empty token stands beside it, because it is shorter. The patterns of
routes treat `.` and `/` alike, and `sources` do not, so `a.*` does not cover `a.#`: that takes `a` and `a/b`, too.
Addresses are in the router's spelling, without a separator at an end.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from functools import lru_cache
from heapq import heappop, heappush
from itertools import chain
from typing import Final, NamedTuple

from trouter.core.patterns import (
    ADDRESSES,
    POLICIES,
    SEPARATORS,
    Pattern,
    PatternError,
    PatternNode,
    PatternTree,
    follow,
)
from trouter.policy.entries import parse_entry
from trouter.policy.names import Texts
from trouter.policy.patterns import FIRST, NOWHERE, parse_pattern

#: Limit of the nodes followed in one search; only patterns made for it come near.
STEPS: Final = 100_000
#: Entries that are kept as trees: those of the groups whose users made routes last.
_KEPT: Final = 8
#: The last token of an address that goes on.
_UNFINISHED: Final = ("", *SEPARATORS)
_BEFORE_SEPARATOR: Final = re.compile(f"(?=[{re.escape(SEPARATORS)}])")


class TooComplexError(PatternError):
    """The search was given up."""


@lru_cache(_KEPT)
def _tree_of(texts: tuple[str, ...], patterns: bool, user: str) -> PatternTree[Texts]:
    """Return the entries with a user's name as a tree; after its tokens an address ends, or goes on with a text there.

    A token that holds its separator, `.b`, follows that one only; one without follows any.
    """
    tree: PatternTree[Texts] = PatternTree(POLICIES)
    found: dict[Pattern, list[tuple[str, int, bool]]] = {}
    for tokens, rest in _paths(texts, patterns, user):
        found.setdefault(tokens, []).append((rest or "", 1, rest is not None))
    for tokens, rests in found.items():
        tree.insert(tokens, Texts(rests))
    return tree


def _paths(texts: Iterable[str], patterns: bool, user: str) -> Iterator[tuple[Pattern, str | None]]:
    """Yield the tokens of each entry; the last is apart, if anything may follow it, else None."""
    named = _literal(user)
    for text in texts:
        if patterns:
            pattern, place = parse_pattern(text)
            if place == NOWHERE:
                yield pattern, None
            elif user:
                yield (named + pattern if place == FIRST else pattern + named), None
            continue
        entry = parse_entry(text)
        if entry.before is None or user:
            tokens = _literal(entry.text if entry.before is None else entry.before + user + entry.text)
            yield (tokens[:-1], tokens[-1]) if entry.is_open else (tokens, None)


def _literal(text: str) -> tuple[str, ...]:
    """Return the tokens of a text, each but the first with its separator."""
    return tuple(_BEFORE_SEPARATOR.split(text))


class _Begun(NamedTuple):
    """The beginning of an address, the shortest first in order."""

    length: int
    #: Unique in a search, and ascending.
    number: int
    #: The beginning without the last token, and the text of that, with its separator.
    shorter: _Begun | None
    text: str
    #: The nodes that are reached in the trees of the route and of the entries.
    taking: frozenset[PatternNode[bool]]
    covering: frozenset[PatternNode[Texts]]

    def read(self) -> str:
        """Return the whole text."""
        texts = [self.text]
        begun = self.shorter
        while begun is not None:
            texts.append(begun.text)
            begun = begun.shorter
        return "".join(reversed(texts))


def uncovered(pattern: str, texts: tuple[str, ...], *, patterns: bool, user: str) -> str | None:
    """Return the shortest address that a route's ``pattern`` takes and no entry of ``texts`` covers, None if none.

    patterns: the entries are `sourcePattern` or `targetPattern`. user: the text of `${user}`, empty without one.
    PatternError if the pattern has no token, or TooComplexError.
    """
    route: PatternTree[bool] = PatternTree(ADDRESSES)
    route.insert(pattern, True)
    entries = _tree_of(texts, patterns, user)
    other = _other_token(pattern, user, *texts)
    waiting = [_Begun(0, 0, None, "", frozenset(route.start()), frozenset(entries.start()))]
    seen = set()
    steps = 0
    while waiting:
        begun = heappop(waiting)
        taking, covering = begun.taking, begun.covering
        rests = [node.entry for node in covering if node.entry is not None]
        if begun.text not in _UNFINISHED and any(node.entry for node in taking) and not _covers(rests, ""):
            return begun.read()
        if (taking, covering) in seen:
            continue
        seen.add((taking, covering))
        for text, token in _further_tokens(taking, other, is_first=begun.shorter is None):
            steps += 1 + len(taking) + len(covering)
            if steps > STEPS:
                raise TooComplexError("it cannot be told in reasonable time which addresses the pattern takes")
            if not _covers(rests, text):
                following = frozenset(follow(taking, token))
                covered = frozenset((*follow(covering, token), *follow(covering, text)))
                heappush(waiting, _Begun(begun.length + len(text), steps, begun, text, following, covered))
    return None


def _covers(rests: Iterable[Texts], text: str) -> bool:
    return any(each.find_entry(text) for each in rests)


def _further_tokens(taking: Iterable[PatternNode[bool]], other: str, *, is_first: bool) -> list[tuple[str, str]]:
    """Return the tokens that an address goes on with, each as its text with a separator, and without."""
    tokens = {token for node in taking for token in node.exact}
    if any(node.is_many or node.one is not None for node in taking):
        tokens |= {"", other}
    if is_first:
        return [(token, token) for token in sorted(tokens) if token]
    return [(separator + token, token) for token in sorted(tokens) for separator in SEPARATORS]


def _other_token(*texts: str) -> str:
    """Return a token that none of the texts contains."""
    taken = set().union(*texts)
    for character in chain("x", string.ascii_letters, map(chr, range(0xA1, 0xD800))):
        if character not in taken:
            return character
    raise TooComplexError("the entries have every character")
