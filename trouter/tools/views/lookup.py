"""Finds the connections and addresses that belong together, for filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache

Row = Mapping[str, object]

CONNECTION_ATTRIBUTES = ("identity", "container", "host", "tenant")
LINK_ATTRIBUTES = ("connectionId", "owningAddr")

_CLASSES = {
    "M": "mobile",
    "R": "router",
    "A": "area",
    "L": "local",
    "T": "topo",
    "C": "link-in",
    "E": "link-in",
    "D": "link-out",
    "F": "link-out",
    "H": "edge",
}


def address_class(key: object) -> str:
    """Return the word for an address key's first letter."""
    text = _text(key)
    return _CLASSES.get(text[0], f"unknown: {text[0]}") if text else ""


def address_text(key: object) -> str:
    """Return the address within a key."""
    text = _text(key)
    return text[2:] if text.startswith("M") else text[1:]


def address_phase(key: object) -> str:
    """Return the phase of a mobile address."""
    text = _text(key)
    return text[1:2] if text.startswith("M") else ""


def tenant_of(row: Row) -> str:
    """Return the vhost of a connection, without the slash that ends it as a prefix of addresses."""
    return _text(row.get("tenant")).removesuffix("/")


def is_address(text: str, wanted: str) -> bool:
    """Return whether the address is the wanted one, or matches it as a shell's pattern."""
    return text == wanted or fnmatchcase(text, wanted)


def is_connection(row: Row, wanted: str) -> bool:
    """Return whether the connection has this number, container or remote host."""
    return wanted in {_text(row.get("identity")), _text(row.get("container")), _text(row.get("host"))}


def _text(value: object) -> str:
    return "" if value is None else str(value)


class Lookup:
    """The router's connections and links, each as its attributes named above."""

    def __init__(self, connections: Sequence[Row] = (), links: Sequence[Row] = ()) -> None:
        self._connections = connections
        self._links = links
        self.like = cache(self._like)
        self.of_vhost = cache(self._of_vhost)
        self.using = cache(self._using)
        self.keys_of = cache(self._keys_of)

    def _like(self, wanted: str) -> frozenset[str]:
        """Return the identities of the connections that ``wanted`` stands for."""
        return frozenset(_text(row.get("identity")) for row in self._connections if is_connection(row, wanted))

    def _of_vhost(self, vhost: str) -> frozenset[str]:
        """Return the identities of a vhost's connections."""
        return frozenset(_text(row.get("identity")) for row in self._connections if tenant_of(row) == vhost)

    def _using(self, address: str) -> frozenset[str]:
        """Return the identities of the connections with a link on the address."""
        return frozenset(
            _text(row.get("connectionId"))
            for row in self._links
            if is_address(address_text(row.get("owningAddr")), address)
        )

    def _keys_of(self, wanted: str) -> frozenset[str]:
        """Return the keys of the addresses of the connections' links."""
        found = self.like(wanted)
        return frozenset(_text(row.get("owningAddr")) for row in self._links if _text(row.get("connectionId")) in found)
