"""Whether the entries of a group cover every address that a link route takes (security.md 4.15).

A pattern of a route and a group's entries are each made into an automaton that reads an address character by character.
Both run side by side over all addresses that the pattern takes; the first that the entries do not cover is the answer.
The patterns of routes treat `.` and `/` alike, and `sources` do not, so `a.*` does not cover `a.#`: that takes `a` and
`a/b`, too. Addresses are in the router's spelling, without a separator at an end.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from trouter.config.access import USER_TOKEN, policy_tokens
from trouter.core.patterns import MANY, ONE, SEPARATORS, PatternError, pattern_tokens
from trouter.policy.entries import parse_entry, unescape

#: Limit of the states entered in one search; only patterns made for it come near.
STEPS: Final = 100_000
#: Entries that are kept as automata: those of the groups whose users made routes last.
_KEPT: Final = 8


class TooComplexError(PatternError):
    """The search was given up."""


class _State:
    """A state of an automaton: what it goes on to after a character, or without one."""

    __slots__ = ("accepts", "anything", "exact", "inside", "separator", "skip")

    def __init__(self) -> None:
        self.accepts = False
        self.exact: dict[str, _State] = {}
        #: After any character, after one that is no separator, and after a separator.
        self.anything: _State | None = None
        self.inside: _State | None = None
        self.separator: _State | None = None
        #: Without a character.
        self.skip: list[_State] = []

    def after_text(self, text: str) -> _State:
        """Return the state after ``text``."""
        state = self
        for character in text:
            state = state.exact.setdefault(character, _State())
        return state

    def next_token(self) -> _State:
        """Return the state after a separator."""
        if self.separator is None:
            self.separator = _State()
        return self.separator

    def after_character(self, character: str) -> list[_State]:
        others = self.separator if character in SEPARATORS else self.inside
        return [each for each in (self.exact.get(character), self.anything, others) if each is not None]

    @property
    def takes_all(self) -> bool:
        """Whether it accepts whatever comes."""
        return self.accepts and self.anything is self


class _Place(NamedTuple):
    """How far the tokens of a pattern are read: ``start`` before any of an address, ``later`` after at least one."""

    start: _State | None
    later: _State | None


class _Automaton:
    """The automaton of a group's entries, or of one pattern; entries with a common beginning share it."""

    def __init__(self) -> None:
        self.root = _State()
        self._read: dict[tuple[_Place, str], _Place] = {}

    def add_name(self, text: str, user: str) -> None:
        """Add an entry of `sources` or `targets`."""
        entry = parse_entry(text)
        if entry.has_user and not user:
            return
        state = self.root.after_text(entry.prefix + (user if entry.has_user else "") + entry.suffix)
        state.accepts = True
        if entry.wildcard:
            state.anything = state

    def add_pattern(self, text: str, user: str) -> None:
        """Add an entry of `sourcePattern` or `targetPattern`; the user's name is its first or last token, if any."""
        tokens = policy_tokens(text)
        named = [bool(USER_TOKEN.fullmatch(token)) for token in tokens]
        tokens = [unescape(token) for token in tokens]
        if any(named) and not user:
            return
        if named[0]:
            self._accept_at(self._walk_tokens(_Place(None, self.root.after_text(user)), tokens[1:]))
        elif named[-1]:
            place = self._walk_tokens(_Place(self.root, None), tokens[:-1])
            before = [place.start, place.later and place.later.next_token()]
            self._accept_at(_Place(*(each and each.after_text(user) for each in before)))
        else:
            self.add_tokens(tokens)

    def add_tokens(self, tokens: Sequence[str]) -> None:
        """Add a pattern without a user."""
        self._accept_at(self._walk_tokens(_Place(self.root, None), tokens))

    def _accept_at(self, place: _Place) -> None:
        for state in place:
            if state is not None:
                state.accepts = True

    def _walk_tokens(self, place: _Place, tokens: Iterable[str]) -> _Place:
        for token in tokens:
            following = self._read.get((place, token))
            if following is None:
                following = self._read[place, token] = _many(place) if token == MANY else _one(place, token)
            place = following
        return place


def _one(place: _Place, token: str) -> _Place:
    """Read one token: any, or this one."""
    following = _State()
    for begin in (place.start, place.later and place.later.next_token()):
        if begin is None:
            continue
        if token == ONE:
            inside = _State()
            begin.skip.append(inside)
            inside.inside = inside
            inside.skip.append(following)
        else:
            begin.after_text(token).skip.append(following)
    return _Place(None, following)


def _many(place: _Place) -> _Place:
    """Read any number of tokens."""
    following, inside = _State(), _State()
    following.next_token().skip.append(inside)
    inside.inside = inside
    inside.skip.append(following)
    if place.start is not None:
        place.start.skip.append(inside)
    if place.later is not None:
        place.later.skip.append(following)
    return _Place(place.start, following)


@lru_cache(_KEPT)
def _of_entries(texts: tuple[str, ...], patterns: bool, user: str) -> _State:
    automaton = _Automaton()
    add = automaton.add_pattern if patterns else automaton.add_name
    for text in texts:
        add(text, user)
    return automaton.root


def uncovered(pattern: str, texts: tuple[str, ...], *, patterns: bool, user: str) -> str | None:
    """Return the shortest address that a route's ``pattern`` takes and no entry of ``texts`` covers, None if none.

    patterns: the entries are `sourcePattern` or `targetPattern`. user: the text of `${user}`, empty without one.
    PatternError if the pattern has no token, or TooComplexError.
    """
    route = _Automaton()
    route.add_tokens(pattern_tokens(pattern))
    return _Search(route.root, _of_entries(texts, patterns, user)).find_address()


class _Pair(NamedTuple):
    """The states of both automata after the same characters, of which the last is a separator or none (``open``)."""

    route: frozenset[_State]
    entries: frozenset[_State]
    open: bool


class _Search:
    """A search for the shortest address that a route takes and no entry covers."""

    def __init__(self, route: _State, entries: _State) -> None:
        self._first = _Pair(_closed([route]), _closed([entries]), True)
        self._steps = 0

    def find_address(self) -> str | None:
        """Return the address; None if there is none."""
        came: dict[_Pair, tuple[_Pair, str] | None] = {self._first: None}
        waiting = [self._first]
        for pair in waiting:  # grows
            characters = _characters(pair)
            if pair is self._first:
                characters = [each for each in characters if each not in SEPARATORS]
            for character in characters:
                following = self._follow_character(pair, character)
                if following in came or not following.route or any(each.takes_all for each in following.entries):
                    continue
                came[following] = pair, character
                if not following.open and _accepts(following.route) and not _accepts(following.entries):
                    return _read(came, following)
                waiting.append(following)
        return None

    def _follow_character(self, pair: _Pair, character: str) -> _Pair:
        route, entries = (
            _closed([after for state in states for after in state.after_character(character)])
            for states in (pair.route, pair.entries)
        )
        self._steps += 1 + len(route) + len(entries)
        if self._steps > STEPS:
            raise TooComplexError("it cannot be told in reasonable time which addresses the pattern takes")
        return _Pair(route, entries, character in SEPARATORS)


def _closed(states: list[_State]) -> frozenset[_State]:
    """Return the states, and those that follow them without a character."""
    found = dict.fromkeys(states)
    waiting = list(found)
    for state in waiting:  # grows
        for each in state.skip:
            if each not in found:
                found[each] = None
                waiting.append(each)
    return frozenset(found)


def _characters(pair: _Pair) -> list[str]:
    """Return one character of each kind that the states distinguish."""
    named = dict.fromkeys(character for state in pair.route for character in state.exact)
    if any(state.inside for state in pair.route):
        among = {character for state in pair.entries for character in state.exact} | named.keys()
        other = next((each for each in "x" + string.ascii_letters if each not in among), "")
        named[other or next(chr(code) for code in range(0xA1, 0x10000) if chr(code) not in among)] = None
        named |= dict.fromkeys(sorted(among))
    if any(state.separator for state in pair.route):
        named |= dict.fromkeys(SEPARATORS)
    return list(named)


def _accepts(states: Iterable[_State]) -> bool:
    return any(state.accepts for state in states)


def _read(came: Mapping[_Pair, tuple[_Pair, str] | None], pair: _Pair) -> str:
    """Return the characters that led to ``pair``."""
    characters = []
    while (step := came[pair]) is not None:
        pair, character = step
        characters.append(character)
    return "".join(reversed(characters))
