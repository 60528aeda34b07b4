"""Finds listeners of one file that cannot be open at once, because they have one address."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

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
    opened: list[ListenerEntity] = []
    for listener in configuration.listeners:
        if configuration.unserved(listener):
            continue
        for other in opened:
            if address := _common_address(listener, other):
                yield finding_of("same-address", listener, other=other.identity, address=address)
                break
        else:
            opened.append(listener)


def _common_address(one: ListenerEntity, other: ListenerEntity) -> str:
    """Return an address that two listeners both bind; empty if there is none, as far as the file says."""
    port = one.port_or_service
    if port != other.port_or_service or port == 0:
        return ""
    common = (a if _is_any(b) else b for a in _addresses(one) for b in _addresses(other) if _overlap(a, b))
    found = next(common, None)
    return "" if found is None else f"{found} at port {port}"


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
