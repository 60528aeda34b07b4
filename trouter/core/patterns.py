"""The configured pattern that an address matches (routing.md 5.2): a tree of tokens with wildcards and precedence.

``.`` and ``/`` both separate tokens. ``*`` is exactly one token, ``#`` any number of them; a wildcard is a whole token.
At each position an exact token is preferred to ``*`` and that to ``#``, depth first, with backtracking. Patterns come
from the operator, values from clients: a search enters each (node, position) once, so its cost is at most nodes x
tokens, and it does not recurse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

ONE: Final = "*"
MANY: Final = "#"
WILDCARDS: Final = frozenset({ONE, MANY})
SEPARATORS: Final = "./"


class PatternError(ValueError):
    """The pattern is invalid, or cannot be inserted."""


class DuplicatePatternError(PatternError):
    """The tree has the same pattern, after normalisation, already."""


def split_tokens(value: str, separators: str = SEPARATORS) -> list[str]:
    """Return the tokens of ``value``; separators at its ends are ignored, an empty token inside is not."""
    first = separators[0]
    for other in separators[1:]:
        value = value.replace(other, first)
    value = value.strip(first)
    return value.split(first) if value else []


def pattern_tokens(pattern: str, separators: str = SEPARATORS) -> tuple[str, ...]:
    """Return the tokens of ``pattern``, normalised: of adjacent wildcards first every ``*``, then at most one ``#``.

    PatternError if there is no token.
    """
    tokens: list[str] = []
    pending_many = False
    for token in split_tokens(pattern, separators):
        if token == MANY:
            pending_many = True
            continue
        if pending_many and token != ONE:
            tokens.append(MANY)
            pending_many = False
        tokens.append(token)
    if pending_many:
        tokens.append(MANY)
    if not tokens:
        raise PatternError("no tokens")
    return tuple(tokens)


def prefix_pattern(prefix: str) -> str:
    """Return the pattern for a ``prefix``: itself and all below. PatternError if it has no token."""
    if not split_tokens(prefix):
        raise PatternError("no tokens")
    return f"{prefix.strip(SEPARATORS)}/{MANY}"


def normalise_pattern(pattern: str, separators: str = SEPARATORS) -> str:
    """Return ``pattern`` for display: trimmed if normalising changes no more, else its tokens joined by ``/``."""
    tokens = pattern_tokens(pattern, separators)
    if tokens == tuple(split_tokens(pattern, separators)):
        return pattern.strip(separators)
    return separators[-1].join(tokens)


class _Node(Generic[T]):
    """The patterns with a common beginning. ``entry`` is the pattern that ends here, normalised, and its value."""

    __slots__ = ("children", "entry", "is_many")

    def __init__(self, is_many: bool = False) -> None:
        self.children: dict[str, _Node[T]] = {}  # by the token of the pattern, wildcards included
        self.entry: tuple[str, T] | None = None
        self.is_many = is_many


class PatternTree(Generic[T]):
    """Patterns and their values. Patterns that are equal after normalisation are the same."""

    def __init__(self, separators: str = SEPARATORS) -> None:
        self._separators = separators
        self._root: _Node[T] = _Node()
        self._entries: dict[tuple[str, ...], tuple[str, T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, pattern: str) -> bool:
        return pattern_tokens(pattern, self._separators) in self._entries

    def items(self) -> Iterator[tuple[str, T]]:
        """Return an iterator over (normalised pattern, value) in the order of insertion."""
        return iter(list(self._entries.values()))

    def insert(self, pattern: str, value: T) -> str:
        """Add ``pattern``, and return it normalised; DuplicatePatternError, or PatternError if it has no token."""
        tokens = pattern_tokens(pattern, self._separators)
        if tokens in self._entries:
            raise DuplicatePatternError("already exists")
        node = self._root
        for token in tokens:
            if token not in node.children:
                node.children[token] = _Node(is_many=token == MANY)
            node = node.children[token]
        node.entry = self._entries[tokens] = (normalise_pattern(pattern, self._separators), value)
        return node.entry[0]

    def remove(self, pattern: str) -> T:
        """Remove ``pattern``, and return its value; KeyError if it is not there."""
        tokens = pattern_tokens(pattern, self._separators)
        _, value = self._entries.pop(tokens)
        path = [self._root]
        for token in tokens:
            path.append(path[-1].children[token])
        path[-1].entry = None
        for parent, token, node in zip(reversed(path[:-1]), reversed(tokens), reversed(path), strict=False):
            if node.children or node.entry is not None:
                break
            del parent.children[token]
        return value

    def match(self, value: str) -> T | None:
        """Return the value of the best pattern for ``value``; None if no pattern matches."""
        entry, _ = self._search(split_tokens(value, self._separators))
        return None if entry is None else entry[1]

    def _search(self, tokens: list[str]) -> tuple[tuple[str, T] | None, int]:
        """Return the entry found, and the number of steps.

        Alternatives are stacked least preferred first. A state met twice has failed before: all its successors were
        above it on the stack, and a deeper node never leads back.
        """
        end = len(tokens)
        seen: set[tuple[_Node[T], int]] = set()
        stack: list[tuple[_Node[T], int]] = [(self._root, 0)]
        while stack:
            state = stack.pop()
            if state in seen:
                continue
            seen.add(state)
            node, position = state
            if position == end and node.entry is not None:
                return node.entry, len(seen)
            children = node.children
            if MANY in children:
                stack.append((children[MANY], position))
            if position == end:
                continue
            if node.is_many:
                stack.append((node, position + 1))
            if ONE in children:
                stack.append((children[ONE], position + 1))
            token = tokens[position]
            if token in children and token not in WILDCARDS:  # a "#" in a client's value is an ordinary token
                stack.append((children[token], position + 1))
        return None, len(seen)
