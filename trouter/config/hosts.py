"""Parses the hosts of users: addresses, ranges, networks and host names (security.md 4.5)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from trouter.config.schema import BadValue

Address = IPv4Address | IPv6Address

#: Hosts of listeners that stand for every address of the machine.
EVERY_ADDRESS: Final = frozenset({"", "0.0.0.0", "::", "*"})  # noqa: S104  # compared, not bound
#: Size of the cache of entries: thousands of vhosts have few different ones.
REMEMBERED: Final = 1024
#: Peers whose parsed address is cached: a flood comes from few of them.
MAX_PEERS: Final = 4096
_LABEL: Final = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
_HOST_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\.?")
_DIGITS_AND_DOTS: Final = re.compile(r"[0-9./*]+|.*\*.*")


@dataclass(frozen=True, slots=True)
class HostRange:
    """One entry of hosts: all, those from `first` to `last`, or the one called `name`."""

    first: Address | None = None
    last: Address | None = None
    name: str = ""

    @property
    def everybody(self) -> bool:
        return self.first is None and not self.name

    def holds(self, address: Address | None) -> bool:
        """Return whether the entry covers the address; False for a name, which is not looked up."""
        if self.first is None or self.last is None:
            return self.everybody
        return (
            address is not None
            and address.version == self.first.version
            and (int(self.first) <= int(address) <= int(self.last))
        )

    def __str__(self) -> str:
        if self.everybody:
            return "*"
        if self.name:
            return self.name
        if self.first is None or self.last is None or self.first == self.last:
            return str(self.first)
        size = int(self.last) - int(self.first) + 1
        if size & (size - 1) == 0 and int(self.first) % size == 0:
            return f"{self.first}/{self.first.max_prefixlen - size.bit_length() + 1}"
        return f"{self.first}-{self.last}"


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address or localhost."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def remote_hosts(entries: tuple[str, ...]) -> tuple[HostRange, ...]:
    """Return the entries of hosts; none covers no host. BadValue, also if `*` is not alone."""
    if "*" in entries and len(entries) > 1:
        raise BadValue("'*' must stand alone", "write: *")
    return tuple(dict.fromkeys(_range(entry) for entry in entries))


def remote_addresses(text: str) -> tuple[HostRange, ...]:
    """Return the entries of a text with commas; BadValue, also for a name, as names are not resolved here."""
    ranges = remote_hosts(tuple(word for part in text.split(",") if (word := part.strip())))
    for each in ranges:
        if each.name:
            raise BadValue(f"'{each.name}' is a name", "an address, A-B or A/BITS")
    return ranges


def proxy_addresses(text: str) -> tuple[HostRange, ...]:
    """Return the hosts in a list with commas; BadValue, also for `*`: the router believes what these hosts claim."""
    ranges = remote_addresses(text)
    if any(each.everybody for each in ranges):
        raise BadValue("every client could claim any address", "the addresses or networks of the proxies")
    return ranges


@lru_cache(REMEMBERED)
def _range(entry: str) -> HostRange:
    if entry == "*":
        return HostRange()
    if "/" in entry:
        return _network(entry)
    if (address := address_of(entry)) is not None:
        return HostRange(address, address)
    first, dash, last = entry.partition("-")
    low, high = address_of(first.strip()), address_of(last.strip())
    if dash and low is not None and high is not None:
        return _between(entry, low, high)
    if _DIGITS_AND_DOTS.fullmatch(entry) or not _HOST_NAME.fullmatch(entry):
        raise BadValue(f"'{entry}' is not a host", "an address, A-B, A/BITS, a host name, or * alone")
    return HostRange(name=entry.rstrip(".").lower())


def _between(entry: str, low: Address, high: Address) -> HostRange:
    if low.version != high.version:
        raise BadValue(f"'{entry}' goes from one kind of address to the other", "write one range for each")
    if int(low) > int(high):
        raise BadValue(f"'{entry}' ends before it begins", f"write: {high}-{low}")
    return HostRange(low, high)


def _network(entry: str) -> HostRange:
    try:
        network = ip_network(entry, strict=False)
    except ValueError:
        raise BadValue(f"'{entry}' is not a network", "e.g. 10.0.0.0/8 or fd00::/8") from None
    return HostRange(_unmapped(network[0]), _unmapped(network[-1]))


def address_of(text: str) -> Address | None:
    """Return the address in a text, None if it is none; IPv4 written as IPv6 becomes IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return _unmapped(address)


def _unmapped(address: Address) -> Address:
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


# --- peers


@lru_cache(MAX_PEERS)
def peer_address(host: str) -> Address | None:
    """Return the address of a peer, without the zone; None if the text is no address."""
    return address_of(host.partition("%")[0])


@lru_cache(MAX_PEERS)
def place_of(host: str) -> str:
    """Return the place of a peer: an IPv4 address, an IPv6 network of 64 bits, or the text if it is no address."""
    address = peer_address(host)
    if address is None:
        return host
    if address.version == 4 or address.is_loopback:
        return str(address)
    return str(ip_network((address, 64), strict=False))
