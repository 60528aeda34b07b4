"""The bindings of an exchange that match a subject: a tree of the tokens of their keys (docs/exchanges.md).

Two spellings: AMQP 0-10 with ``.`` between tokens, ``*`` for one token and ``#`` for any number of them; MQTT with
``/``, ``+`` and, as the last token only, ``#``. All matching keys count. Keys come from the operator and subjects from
clients: a search visits a node at most once for each token of the subject, without recursion, and a subject over
``MAX_BYTES`` or ``MAX_TOKENS`` matches no key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from .patterns import PatternError, pattern_tokens, split_tokens

T = TypeVar("T")

ANY: Final = "#"
#: The longest key and subject, in bytes, and the most tokens of either.
MAX_BYTES: Final = 4096
MAX_TOKENS: Final = 128


@dataclass(frozen=True, slots=True)
class Spelling:
    """The spelling of an exchange's keys."""

    separator: str
    one: str
    #: ``#`` is allowed only at the end of a key.
    many_is_last: bool


SPELLINGS: Final[dict[str, Spelling]] = {"amqp": Spelling(".", "*", False), "mqtt": Spelling("/", "+", True)}


def key_tokens(key: str, method: str) -> tuple[str, ...]:
    """Return the tokens of ``key``, with adjacent ``*`` and ``#`` in a fixed order; PatternError.

    Separators at the ends of a key are ignored, an empty token inside is not. ``method`` is one of ``SPELLINGS``.
    """
    spelling = SPELLINGS[method]
    if is_too_long(key):
        raise PatternError(f"more than {MAX_BYTES} bytes")
    if spelling.many_is_last:
        tokens = tuple(split_tokens(key, spelling.separator))
    else:
        tokens = pattern_tokens(key, spelling.separator)
    if not tokens:
        raise PatternError("no tokens")
    if len(tokens) > MAX_TOKENS:
        raise PatternError(f"more than {MAX_TOKENS} tokens")
    if spelling.many_is_last and ANY in tokens[:-1]:
        raise PatternError("# stands at the end or nowhere")
    return tokens


def is_too_long(text: str) -> bool:
    """Return whether a key or a subject has more than ``MAX_BYTES``."""
    return len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES


class _Node(Generic[T]):
    """The keys with a common beginning; ``values`` are those of the key that ends here."""

    __slots__ = ("children", "is_many", "many", "one", "values")

    def __init__(self, is_many: bool = False) -> None:
        self.children: dict[str, _Node[T]] = {}
        self.one: _Node[T] | None = None
        self.many: _Node[T] | None = None
        self.is_many = is_many
        self.values: list[T] = []

    @property
    def is_empty(self) -> bool:
        return not (self.children or self.values) and self.one is None and self.many is None


class KeyTree(Generic[T]):
    """Keys of one spelling, each with any number of values."""

    def __init__(self, method: str = "amqp") -> None:
        self.method = method
        self._spelling = SPELLINGS[method]
        self._root: _Node[T] = _Node()

    def insert(self, key: str, value: T) -> None:
        """Add a value for ``key``; PatternError."""
        self._path(key)[-1].values.append(value)

    def remove(self, key: str, value: T) -> None:
        """Remove a value of ``key``; ValueError if it is not there."""
        path = self._path(key)
        path[-1].values.remove(value)
        for parent, token, node in zip(
            reversed(path[:-1]), reversed(key_tokens(key, self.method)), reversed(path), strict=False
        ):
            if not node.is_empty:
                break
            if token == ANY:
                parent.many = None
            elif token == self._spelling.one:
                parent.one = None
            else:
                del parent.children[token]

    def _path(self, key: str) -> list[_Node[T]]:
        """Return the nodes on the path of a key, created if missing; PatternError."""
        path = [self._root]
        for token in key_tokens(key, self.method):
            path.append(self._child(path[-1], token))
        return path

    def _child(self, node: _Node[T], token: str) -> _Node[T]:
        if token == ANY:
            if node.many is None:
                node.many = _Node(is_many=True)
            return node.many
        if token == self._spelling.one:
            if node.one is None:
                node.one = _Node()
            return node.one
        return node.children.setdefault(token, _Node())

    def match(self, subject: str) -> list[T]:
        """Return the values of all keys that match ``subject``; a value once for each of its keys."""
        if is_too_long(subject):
            return []
        tokens = split_tokens(subject, self._spelling.separator)
        if len(tokens) > MAX_TOKENS:
            return []
        reached: dict[_Node[T], None] = {}
        _enter(reached, self._root)
        for token in tokens:
            here, reached = reached, {}
            for node in here:
                if node.is_many:
                    _enter(reached, node)
                if node.one is not None:
                    _enter(reached, node.one)
                child = node.children.get(token)
                if child is not None:
                    _enter(reached, child)
        return [value for node in reached for value in node.values]


def _enter(reached: dict[_Node[T], None], node: _Node[T]) -> None:
    """Add ``node``, and the node reached from it without a token."""
    reached[node] = None
    if node.many is not None:
        reached[node.many] = None
