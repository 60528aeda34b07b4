"""A worker keeps the counts of addresses that its clients use no more: clients of other workers may still use them.

A router of one process forgets the counts of an address with its last user. If each worker did so, the sum of all of
them would fall while the address still has users at another worker. The counts do not take part in routing; listings of
the whole router add them to those of the workers that have the address.
"""

from __future__ import annotations

from typing import Final

from .addresses import MOBILE
from .counters import AddressCounters
from .entry import AddressEntry
from .spaces import Spaces

#: What all past addresses may take, and what one takes beside its key, in bytes: a client chooses the names, so both
#: their number and their length are bounded. There is room for some 8,000 addresses with short names.
MAX_PAST_BYTES: Final = 8 * 1024 * 1024
ENTRY_BYTES: Final = 1_000


class PastAddresses:
    """The mobile addresses that were forgotten last, if they have counted anything."""

    def __init__(self, max_bytes: int = MAX_PAST_BYTES) -> None:
        #: By key, without users; the one forgotten first is dropped first.
        self.entries: dict[str, AddressEntry] = {}
        self.spaces = Spaces(self.entries)
        self._max_bytes = max_bytes
        self._bytes = 0

    def add_entry(self, entry: AddressEntry) -> None:
        """Keep the counts of an address that is removed, with those from before."""
        if not entry.key.startswith(MOBILE) or not any(entry.counters.as_dict().values()):
            return
        past = AddressEntry(entry.key, entry.text, entry.treatment, entry.priority)
        past.space = entry.space
        past.counters = entry.counters
        earlier = self._drop_entry(entry.key)
        if earlier is not None:
            past.counters = _sum(earlier.counters, entry.counters)
        self.entries[past.key] = past
        self.spaces.add(past)
        self._bytes += _size(past)
        while self._bytes > self._max_bytes:
            self._drop_entry(next(iter(self.entries)))

    def _drop_entry(self, key: str) -> AddressEntry | None:
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.spaces.remove(entry)
            self._bytes -= _size(entry)
        return entry


def _sum(*parts: AddressCounters) -> AddressCounters:
    total = AddressCounters()
    for name in total.as_dict():
        setattr(total, name, sum(getattr(part, name) for part in parts))
    return total


def _size(entry: AddressEntry) -> int:
    return ENTRY_BYTES + 2 * len(entry.key)
