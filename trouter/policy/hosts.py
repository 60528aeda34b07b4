"""The hosts of users (security.md 4.5): finds the entry of `remoteHosts` that covers an address.

The caller resolves names beforehand, so a search does not block. An IPv4 address written as IPv6 counts as IPv4.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address

from trouter.config.hosts import Address, HostRange, address_of
from trouter.policy.names import NO_ENTRY

#: Address -> the names that resolve to it.
Resolved = Mapping[Address, frozenset[str]]


def names_by_address(addresses: Mapping[str, Iterable[str]]) -> Resolved:
    """Return the names of each address from the addresses of each name; texts that are no addresses are left out."""
    found: dict[Address, set[str]] = {}
    for name, texts in addresses.items():
        for text in texts:
            if (address := address_of(text)) is not None:
                found.setdefault(address, set()).add(name)
    return {address: frozenset(names) for address, names in found.items()}


class _Ranges:
    """Ranges of addresses of one family, sorted by their beginnings; they may overlap."""

    __slots__ = ("_firsts", "_reach")

    def __init__(self, ranges: Iterable[tuple[int, int, int]]) -> None:
        self._firsts: list[int] = []
        #: For each range, the farthest end among it and those before it, and that range's entry number.
        self._reach: list[tuple[int, int]] = []
        for first, last, number in sorted(ranges):
            self._firsts.append(first)
            farthest = (last, number)
            self._reach.append(max(self._reach[-1], farthest, key=lambda reach: reach[0]) if self._reach else farthest)

    def find_entry(self, address: int) -> int:
        at = bisect_right(self._firsts, address)
        if not at:
            return NO_ENTRY
        last, number = self._reach[at - 1]
        return number if address <= last else NO_ENTRY


class HostRules:
    """The entries of one `remoteHosts`."""

    __slots__ = ("_everybody", "_names", "_of_family")

    def __init__(self, entries: Iterable[HostRange]) -> None:
        self._everybody = NO_ENTRY
        self._names: dict[str, int] = {}
        ranges: dict[type, list[tuple[int, int, int]]] = {IPv4Address: [], IPv6Address: []}
        for number, entry in enumerate(entries, 1):
            if entry.everybody:
                self._everybody = number
            elif entry.first is None or entry.last is None:
                self._names[entry.name] = number
            else:
                ranges[type(entry.first)].append((int(entry.first), int(entry.last), number))
        self._of_family = {family: _Ranges(found) for family, found in ranges.items() if found}

    def find_entry(self, host: str, resolved: Resolved) -> int:
        """Return the number of an entry that covers the address `host`, else NO_ENTRY; only `*` covers other texts."""
        if self._everybody:
            return self._everybody
        address = address_of(host)
        if address is None:
            return NO_ENTRY
        ranges = self._of_family.get(type(address))
        if ranges is not None and (number := ranges.find_entry(int(address))):
            return number
        names = resolved.get(address, ()) if self._names else ()
        return min((self._names[name] for name in names if name in self._names), default=NO_ENTRY)
