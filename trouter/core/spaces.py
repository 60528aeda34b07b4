"""Which addresses are in which tenant's space, so that a tenant's listing costs what the tenant has and no more.

Nothing is kept of it until the first listing; from then on it follows the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .addresses import MOBILE


class Spaced(Protocol):
    """An address that may be in the space of a tenant."""

    @property
    def key(self) -> str:
        """Return its lookup key."""

    @property
    def space(self) -> str:
        """Return the space of the tenant that a dynamic address was made for; empty for every other address."""


class Spaces:
    """The keys of entries by the space they are in, in the order in which the entries were made."""

    def __init__(self, entries: Mapping[str, Spaced]) -> None:
        self._entries = entries
        self._keys: dict[str, dict[str, None]] | None = None

    def keys_of(self, space: str) -> list[str]:
        """Return the addresses of a space, and dynamic ones that were made for it."""
        if self._keys is None:
            self._keys = {}
            for entry in self._entries.values():
                self.add(entry)
        return list(self._keys.get(space, ()))

    def add(self, entry: Spaced) -> None:
        """Add an entry that has come, or was given a space."""
        if self._keys is not None and (space := space_of_entry(entry)):
            self._keys.setdefault(space, {})[entry.key] = None

    def remove(self, entry: Spaced) -> None:
        """Remove an entry that is gone, or about to be given another space."""
        if self._keys is None or not (space := space_of_entry(entry)):
            return
        keys = self._keys.get(space)
        if keys is not None:
            keys.pop(entry.key, None)
            if not keys:
                del self._keys[space]


def space_of_entry(entry: Spaced) -> str:
    """Return the space that an address may be in; empty for none."""
    if entry.space or not entry.key.startswith(MOBILE):
        return entry.space
    head, slash, _ = entry.key[2:].partition("/")
    return head if slash else ""
