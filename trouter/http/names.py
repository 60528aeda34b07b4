"""The names under which requests may address a listener: who controls the DNS name of a page can point it here.

The browser then takes the router for the page's own server, and lets the page read what it answers (DNS rebinding).
Such a request has the page's name in its Host header. An address is no such name. Nor is any over TLS: the browser
compares it with the certificate. A name without a dot is one: who answers in the local network decides where it leads
(as `wpad`), so it counts only if it is the machine's or the operator names it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import h11

from trouter.config import ListenerEntity
from trouter.config.files import opened

#: A host and port, as in a Host header.
HOST_AND_PORT: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/@?#\s]+)(?::(\d{1,5}))?")
#: The names of hosts that the machine knows by itself (hosts(5)), and the octets of it that are read.
HOSTS_FILE: Final = Path("/etc/hosts")
_MAX_HOSTS_BYTES: Final = 1 << 20
_AUTHORITY: Final = re.compile(rb"https?://([^/?#]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names of a listener in lower case, of which the first label may be `*`; ``every`` stands for all names."""

    every: bool
    names: frozenset[str]

    def hold(self, host: str) -> bool:
        """Return whether a request may name ``host``, with or without a port; an empty one is not of a browser."""
        if self.every or not host:
            return True
        match = HOST_AND_PORT.fullmatch(host.lower())
        name = "" if match is None else match[1].removesuffix(".")
        if not name or "*" in name:
            return False
        _, dot, parent = name.partition(".")
        known = name in self.names or (bool(dot) and f"*.{parent}" in self.names)
        return known or is_address(name) or is_loopback_name(name)


def known_names(entity: ListenerEntity) -> KnownNames:
    """Return the names of ``entity``: those it allows, its host, those of its pages' origins, and the machine's."""
    origins = (urlsplit(each).hostname or "" for each in entity.web_socket_origins if each != "*")
    names = _lower((*entity.allowed_hosts, entity.host, *origins))
    return KnownNames("*" in entity.allowed_hosts, (frozenset(names) | machine_names()) - {"", "*"})


def machine_names(hosts: Path = HOSTS_FILE) -> frozenset[str]:
    """Return the machine's name, its first label, and those that the file ``hosts`` has beside it, in lower case.

    A name server is not asked: it could answer late, or with a name of its own.
    """
    (name,) = _lower((socket.gethostname(),))
    found = {name, name.partition(".")[0]}
    try:
        with opened(str(hosts)) as file:
            lines = file.read(_MAX_HOSTS_BYTES).decode("latin-1").splitlines()
    except (OSError, ValueError):
        return frozenset(found)
    for line in lines:
        names = set(_lower(line.partition("#")[0].split()[1:]))
        if name in names:
            found |= names
    return frozenset(found)


def hosts_in(request: h11.Request) -> tuple[str, ...]:
    """Return the hosts that ``request`` names: that of its Host header, and of its target if that is a whole URL."""
    match = _AUTHORITY.match(request.target)
    named = [value for name, value in request.headers if name == b"host"]
    return tuple(each.decode("latin-1") for each in (*named, *(() if match is None else (match[1],))))


def is_address(name: str) -> bool:
    """Return whether a host is an address, one of version 6 in brackets."""
    try:
        return ip_address(name.strip("[]")) is not None
    except ValueError:
        return False


def is_loopback_name(name: str) -> bool:
    """Return whether a name or address can only mean this machine."""
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _lower(names: Iterable[str]) -> Iterable[str]:
    return (name.lower().removesuffix(".") for name in names)
