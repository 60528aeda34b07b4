"""Finds listeners of one file that cannot be open at once, because they have one address."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter

from trouter.config.configuration import Configuration
from trouter.config.entities import ListenerEntity
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of

#: What a host without dots or colons stands for everywhere.
_KNOWN = {"": ("0.0.0.0", "::"), "localhost": ("127.0.0.1", "::1")}  # noqa: S104 - an address to compare
_VERSIONS = {"IPv4": 4, "IPv6": 6}

#: An address to bind; other host names stand for themselves, as only the system knows their addresses.
Bound = ipaddress.IPv4Address | ipaddress.IPv6Address | str


def same_addresses(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for each listener whose address an earlier one of the file has."""
    ports: dict[int | str, _Port] = {}
    for number, listener in enumerate(configuration.listeners):
        port = listener.port_or_service
        if port == 0 or configuration.unserved(listener):
            continue
        bound = _addresses(listener)
        present = ports.setdefault(port, _Port())
        other = present.first_at(bound)
        if other is None:
            present.open(number, listener, bound)
        else:
            address = _common_address(bound, _addresses(other))
            yield finding_of("same-address", listener, other=other.identity, address=f"{address} at port {port}")


class _Port:
    """The listeners of one port: by address, those to every address of a version, and those to any of a version."""

    def __init__(self) -> None:
        self._by_address: dict[Bound, tuple[int, ListenerEntity]] = {}
        self._of_every: dict[int, tuple[int, ListenerEntity]] = {}
        self._of_any: dict[int, tuple[int, ListenerEntity]] = {}

    def open(self, number: int, listener: ListenerEntity, bound: Iterable[Bound]) -> None:
        """Note that the listener with this number binds these addresses."""
        opened = number, listener
        for address in bound:
            self._by_address.setdefault(address, opened)
            if not isinstance(address, str):
                self._of_any.setdefault(address.version, opened)
                if _is_any(address):
                    self._of_every.setdefault(address.version, opened)

    def first_at(self, bound: Iterable[Bound]) -> ListenerEntity | None:
        """Return the first listener that binds one of these addresses; None if there is none."""
        found = []
        for address in bound:
            found.append(self._by_address.get(address))
            if not isinstance(address, str):
                found.append((self._of_any if _is_any(address) else self._of_every).get(address.version))
        return min((each for each in found if each is not None), key=itemgetter(0), default=(0, None))[1]


def _common_address(one: Iterable[Bound], other: Collection[Bound]) -> Bound:
    """Return an address that two listeners both bind, of which there is one."""
    return next(a if _is_any(b) else b for a in one for b in other if _overlap(a, b))


def _addresses(listener: ListenerEntity) -> list[Bound]:
    """Return what a listener binds."""
    found: list[Bound] = []
    version = _VERSIONS.get(listener.socket_address_family or "")
    for host in _KNOWN.get(listener.host.lower(), (listener.host,)):
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            found.append(host.lower())
        else:
            if version in {None, address.version}:
                found.append(address)
    return found


def _overlap(one: Bound, other: Bound) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return one.version == other.version and (one == other or _is_any(one) or _is_any(other))


def _is_any(address: Bound) -> bool:
    """Return whether it stands for every interface."""
    return not isinstance(address, str) and address.is_unspecified
