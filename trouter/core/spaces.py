"""The addresses in each tenant's space, so that a tenant's listing costs only what the tenant has.

Nothing is kept before the first listing; from then on it follows the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .addresses import MOBILE


class Spaced(Protocol):
    """An address that may be in the space of a tenant."""

    @property
    def key(self) -> str:
        """Return the lookup key."""

    @property
    def space(self) -> str:
        """Return the space of the tenant that a dynamic address was made for; empty for other addresses."""


class Spaces:
    """The keys of entries by their space, in the order of their creation."""

    def __init__(self, entries: Mapping[str, Spaced]) -> None:
        self._entries = entries
        self._keys: dict[str, dict[str, None]] | None = None

    def keys_of(self, space: str) -> list[str]:
        """Return the keys of a space's addresses, dynamic ones included."""
        if self._keys is None:
            self._keys = {}
            for entry in self._entries.values():
                self.add(entry)
        return list(self._keys.get(space, ()))

    def add(self, entry: Spaced) -> None:
        """Add an entry that was created, or was given a space."""
        if self._keys is not None and (space := space_of_entry(entry)):
            self._keys.setdefault(space, {})[entry.key] = None

    def remove(self, entry: Spaced) -> None:
        """Remove an entry that is gone, or will be given another space."""
        if self._keys is None or not (space := space_of_entry(entry)):
            return
        keys = self._keys.get(space)
        if keys is not None:
            keys.pop(entry.key, None)
            if not keys:
                del self._keys[space]


def space_of_entry(entry: Spaced) -> str:
    """Return the space of an address; empty for none."""
    if entry.space or not entry.key.startswith(MOBILE):
        return entry.space
    head, slash, _ = entry.key[2:].partition("/")
    return head if slash else ""
