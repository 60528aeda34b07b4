"""Patterns of tokens: their dialects, and the values that they match (routing.md 5.2; docs/exchanges.md).

A pattern is tokens between separators. A token is exact or a wildcard, ``ONE`` for exactly one token of a value or
``MANY`` for any number; a wildcard is a whole token, and in a value it is an ordinary one. A ``Dialect`` has the
characters, and what else differs. Of adjacent wildcards each ``ONE`` is put first and then at most one ``MANY``: the
pattern matches the same values, and patterns that are the same are equal.

Of the patterns that match a value, the best is the one with the better token where they first differ: exact before
``ONE`` before ``MANY``, and inside ``MANY`` the fewest tokens. A search takes the tokens of a value in turn, with the
nodes of the tree that are reached, best first. It enters each node once for each token, whatever the patterns are: its
cost is at most nodes x (tokens + 1) steps, a caller may set a limit below that, and it does not recurse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

T = TypeVar("T")


class Wildcard(Enum):
    """A token of a pattern that is not exact."""

    ONE = "one token"
    MANY = "any number of tokens"


ONE: Final = Wildcard.ONE
MANY: Final = Wildcard.MANY
MANY_TEXT: Final = "#"
SEPARATORS: Final = "./"

#: A parsed pattern.
Pattern = tuple[str | Wildcard, ...]


class PatternError(ValueError):
    """The pattern is invalid, or cannot be inserted."""


class DuplicatePatternError(PatternError):
    """The tree has the same pattern already."""


class TooManyStepsError(PatternError):
    """A search was given up."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How patterns and values are written."""

    #: Each of them parts tokens; the last one parts those of a pattern that is shown.
    separators: str
    one: str = "*"
    #: ``MANY`` is allowed only at the end of a pattern.
    many_is_last: bool = False
    #: Separators at the ends are ignored. If not, there is an empty token beside each, as there is between two.
    ignores_ends: bool = True
    #: Limits of a pattern and of a value, 0 without one.
    max_bytes: int = 0
    max_tokens: int = 0

    def split(self, text: str) -> list[str]:
        """Return the tokens of a value."""
        first = self.separators[0]
        for other in self.separators[1:]:
            text = text.replace(other, first)
        if self.ignores_ends:
            text = text.strip(first)
            return text.split(first) if text else []
        return text.split(first)

    def split_within_limits(self, value: str) -> list[str] | None:
        """Return the tokens of a value; None if it is longer than any value that a pattern matches."""
        if self._has_too_many_bytes(value):
            return None
        tokens = self.split(value)
        return None if 0 < self.max_tokens < len(tokens) else tokens

    def parse(self, text: str) -> Pattern:
        """Return the pattern that is written so; PatternError if it is invalid."""
        if self._has_too_many_bytes(text):
            raise PatternError(f"more than {self.max_bytes} bytes")
        written = self.split(text)
        if not written:
            raise PatternError("no tokens")
        if self.many_is_last and MANY_TEXT in written[:-1]:
            raise PatternError(f"{MANY_TEXT} stands at the end or nowhere")
        tokens: list[str | Wildcard] = []
        pending_many = False
        for token in written:
            if token == MANY_TEXT:
                pending_many = True
            elif token == self.one:
                tokens.append(ONE)
            else:
                if pending_many:
                    tokens.append(MANY)
                    pending_many = False
                tokens.append(token)
        if pending_many:
            tokens.append(MANY)
        if 0 < self.max_tokens < len(tokens):
            raise PatternError(f"more than {self.max_tokens} tokens")
        return tuple(tokens)

    def normalise(self, text: str) -> str:
        """Return a pattern as it is shown: as written if each of its wildcards counts where it stands."""
        pattern = self.parse(text)
        spelled = [MANY_TEXT if token is MANY else self.one if token is ONE else token for token in pattern]
        return text.strip(self.separators) if spelled == self.split(text) else self.separators[-1].join(spelled)

    def _has_too_many_bytes(self, text: str) -> bool:
        limit = self.max_bytes
        return limit > 0 and (len(text) > limit or len(text.encode("utf-8", "replace")) > limit)


#: Of addresses, and of host names.
ADDRESSES: Final = Dialect(SEPARATORS)
HOSTS: Final = Dialect(".")
#: Of addresses in policies (security.md 4.8).
POLICIES: Final = Dialect(SEPARATORS, ignores_ends=False)
#: The longest key and subject of an exchange, in bytes, and the most tokens of either.
MAX_KEY_BYTES: Final = 4096
MAX_KEY_TOKENS: Final = 128
#: Of the keys of an exchange's bindings, by its match method: as in AMQP 0-10, and as in MQTT.
KEYS: Final = {
    "amqp": Dialect(".", max_bytes=MAX_KEY_BYTES, max_tokens=MAX_KEY_TOKENS),
    "mqtt": Dialect("/", one="+", many_is_last=True, max_bytes=MAX_KEY_BYTES, max_tokens=MAX_KEY_TOKENS),
}


def is_exact(pattern: Pattern) -> bool:
    """Return whether a pattern has no wildcard."""
    return not any(isinstance(token, Wildcard) for token in pattern)


def prefix_pattern(prefix: str) -> str:
    """Return the pattern of addresses for a ``prefix``: itself and all below. PatternError if it has no token."""
    if not ADDRESSES.split(prefix):
        raise PatternError("no tokens")
    return f"{prefix.strip(SEPARATORS)}/{MANY_TEXT}"


def normal_form(text: str, *, is_prefix: bool) -> str:
    """Return a prefix or pattern of addresses without what makes no difference; PatternError."""
    return prefix_pattern(text).removesuffix(f"/{MANY_TEXT}") if is_prefix else ADDRESSES.normalise(text)


class PatternNode(Generic[T]):
    """The patterns with a common beginning; ``entry`` is the value of the pattern that ends here, None for none."""

    __slots__ = ("entry", "exact", "is_many", "many", "one")

    def __init__(self, is_many: bool = False) -> None:
        self.exact: dict[str, PatternNode[T]] = {}
        self.one: PatternNode[T] | None = None
        self.many: PatternNode[T] | None = None
        self.is_many = is_many
        self.entry: T | None = None

    def takes_all(self) -> bool:
        """Return whether a pattern ends here that matches whatever tokens follow, and no other goes on from here."""
        return self.is_many and self.entry is not None and not self.exact and self.one is None

    def is_empty(self) -> bool:
        """Return whether no pattern leads here."""
        return self.entry is None and not self.exact and self.one is None and self.many is None

    def obtain_child(self, token: str | Wildcard) -> PatternNode[T]:
        """Return the node after a pattern's next token, made if it is missing."""
        if token is ONE:
            if self.one is None:
                self.one = PatternNode()
            return self.one
        if token is MANY:
            if self.many is None:
                self.many = PatternNode(is_many=True)
            return self.many
        return self.exact.setdefault(token, PatternNode())

    def remove_child(self, token: str | Wildcard) -> None:
        """Remove the node after a token."""
        if token is ONE:
            self.one = None
        elif token is MANY:
            self.many = None
        else:
            del self.exact[token]


def follow(reached: Iterable[PatternNode[T]], token: str) -> list[PatternNode[T]]:
    """Return the nodes reached from others by a token of a value, best first and each once."""
    following: dict[PatternNode[T], None] = {}
    for node in reached:
        for child in (node.exact.get(token), node.one):
            if child is not None:
                following[child] = None
                if child.many is not None:
                    following[child.many] = None
        if node.is_many:
            following[node] = None
    return list(following)


class PatternTree(Generic[T]):
    """Patterns of one dialect, as written or parsed, each with a value that is not None."""

    def __init__(self, dialect: Dialect = ADDRESSES) -> None:
        self._dialect = dialect
        self._root: PatternNode[T] = PatternNode()
        self._values: dict[Pattern, T] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, pattern: str | Pattern) -> bool:
        return self._parsed(pattern) in self._values

    def get(self, pattern: str | Pattern) -> T | None:
        """Return the value of a pattern, None if it is not there; PatternError."""
        return self._values.get(self._parsed(pattern))

    def insert(self, pattern: str | Pattern, value: T) -> None:
        """Add a pattern; DuplicatePatternError, PatternError."""
        tokens = self._parsed(pattern)
        if tokens in self._values:
            raise DuplicatePatternError("already exists")
        node = self._root
        for token in tokens:
            node = node.obtain_child(token)
        node.entry = self._values[tokens] = value

    def remove(self, pattern: str | Pattern) -> T:
        """Remove a pattern, and return its value; KeyError if it is not there."""
        tokens = self._parsed(pattern)
        value = self._values.pop(tokens)
        path = [self._root]
        for token in tokens:
            path.append(path[-1].obtain_child(token))
        path[-1].entry = None
        for parent, token, node in zip(reversed(path[:-1]), reversed(tokens), reversed(path), strict=False):
            if not node.is_empty():
                break
            parent.remove_child(token)
        return value

    def _parsed(self, pattern: str | Pattern) -> Pattern:
        return self._dialect.parse(pattern) if isinstance(pattern, str) else pattern

    def match(self, value: str | list[str], max_steps: int = 0) -> T | None:
        """Return what the best pattern for ``value`` has; None if no pattern matches.

        ``value`` is as written, or its tokens. TooManyStepsError if more than ``max_steps`` nodes are entered, each
        counted once for each token; 0 for no limit.
        """
        reached = self._reach(value, max_steps, best_only=True)
        return next((node.entry for node in reached if node.entry is not None), None)

    def matches(self, value: str | list[str], max_steps: int = 0) -> list[T]:
        """Return what each pattern that matches ``value`` has, the best first; see ``match``."""
        reached = self._reach(value, max_steps, best_only=False)
        return [node.entry for node in reached if node.entry is not None]

    def start(self) -> list[PatternNode[T]]:
        """Return the nodes reached without a token."""
        many = self._root.many
        return [self._root] if many is None else [self._root, many]

    def _reach(self, value: str | list[str], max_steps: int, *, best_only: bool) -> list[PatternNode[T]]:
        """Return the nodes reached by the tokens of a value, or by so many that the first node is the best."""
        tokens = self._dialect.split_within_limits(value) if isinstance(value, str) else value
        if tokens is None:
            return []
        reached = self.start()
        steps = len(reached)
        for token in tokens:
            if not reached or (best_only and reached[0].takes_all()):
                break
            reached = follow(reached, token)
            steps += len(reached)
            if 0 < max_steps < steps:
                raise TooManyStepsError("the search takes too many steps")
        return reached
