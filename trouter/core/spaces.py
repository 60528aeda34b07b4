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
        """Its lookup key."""

    @property
    def space(self) -> str:
        """The space of the tenant that a dynamic address was made for; empty for every other address."""


class Spaces:
    """The keys of records by the space they are in, in the order in which the records were made."""

    def __init__(self, records: Mapping[str, Spaced]) -> None:
        self._records = records
        self._keys: dict[str, dict[str, None]] | None = None

    def keys_of(self, space: str) -> list[str]:
        """The addresses of a space, and dynamic ones that were made for it."""
        if self._keys is None:
            self._keys = {}
            for record in self._records.values():
                self.add(record)
        return list(self._keys.get(space, ()))

    def add(self, record: Spaced) -> None:
        """A record has come, or was given a space."""
        if self._keys is not None and (space := space_of_record(record)):
            self._keys.setdefault(space, {})[record.key] = None

    def remove(self, record: Spaced) -> None:
        """A record is gone, or about to be given another space."""
        if self._keys is None or not (space := space_of_record(record)):
            return
        keys = self._keys.get(space)
        if keys is not None:
            keys.pop(record.key, None)
            if not keys:
                del self._keys[space]


def space_of_record(record: Spaced) -> str:
    """The space that an address may be in; empty for none."""
    if record.space or not record.key.startswith(MOBILE):
        return record.space
    head, slash, _ = record.key[2:].partition("/")
    return head if slash else ""
