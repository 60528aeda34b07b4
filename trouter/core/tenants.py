"""Tenants: separate spaces of addresses (security.md 5).

A tenant's address ``q`` has the key of ``SPACE/q``. The space is the tenant's name, written so that no address of
another tenant has the same key, and that it does not begin like a reserved address.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from .addresses import strip_location
from .identities import Identities

MAX_NAME_BYTES: Final = 255
#: Tenants without a connection whose counts are kept; the one idle longest is forgotten first.
MAX_IDLE: Final = 1000


def fault_of(name: str) -> str:
    """Return why ``name`` cannot be a tenant's; empty if it can."""
    if not name:
        return "a tenant must be named"
    if len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        return f"the name of a tenant is limited to {MAX_NAME_BYTES} bytes"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return "the name of a tenant must not contain control characters"
    return "the name of a tenant must not contain a slash" if "/" in name else ""


def space_of(name: str) -> str:
    """Return the first part of the tenant's addresses: unique for each name, without a slash or a leading ``_``."""
    space = name.replace("%", "%25").replace("/", "%2F")
    return f"%5F{space[1:]}" if space.startswith("_") else space


class Tenant:
    """One tenant, for all its connections."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.space = space_of(name)
        #: The numbers of its open connections.
        self.connections: set[int] = set()
        #: The counts of its incoming links that have ended.
        self.past: Counter[str] = Counter()

    def qualify(self, text: str) -> str:
        """Return the tenant's address ``text`` for clients without a tenant; it has the same key."""
        whole = f"{self.space}/{strip_location(text)}"
        return f"amqp:/{whole}" if ":/" in whole else whole

    def owns_key(self, key: str) -> bool:
        """Return whether a lookup key is that of a mobile address of the tenant, in any phase."""
        return key.startswith("M") and key.startswith(f"{self.space}/", 2)


class Tenants:
    """All tenants that have connections, and those that had some recently."""

    def __init__(self, on_idle: Callable[[Tenant], None] | None = None) -> None:
        """``on_idle`` is called when the last connection of a tenant has ended."""
        self._by_name: dict[str, Tenant] = {}
        self._idle: dict[str, Tenant] = {}
        self._on_idle = on_idle
        #: What all tenants see in place of the numbers of connections and links.
        self.identities = Identities()

    def enter_connection(self, name: str, number: int) -> Tenant:
        """Return the tenant ``name`` for a new connection with this number; the name must be valid."""
        tenant = self._idle.pop(name, None) or self._by_name.get(name) or Tenant(name)
        self._by_name[name] = tenant
        tenant.connections.add(number)
        return tenant

    def leave_connection(self, tenant: Tenant, number: int) -> None:
        """Remove a connection that has ended."""
        tenant.connections.discard(number)
        if not tenant.connections:
            self._idle[tenant.name] = tenant
            if self._on_idle is not None:
                self._on_idle(tenant)
            while len(self._idle) > MAX_IDLE:
                del self._by_name[next(iter(self._idle))]
                del self._idle[next(iter(self._idle))]

    def __iter__(self) -> Iterator[Tenant]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str) -> Tenant | None:
        """Return the tenant of that name; None if it is not remembered."""
        return self._by_name.get(name)
