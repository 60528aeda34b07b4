"""Links, addresses and connections, read from the objects that own them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trouter.columns.addresses import ADDRESS
from trouter.columns.links import LINK
from trouter.columns.rows import Rows
from trouter.config.schema import EntityType
from trouter.core.router import Router
from trouter.management.ports import ControlPort

from .base import Provider, Row


class Links(Provider):
    """``router.link``; a key is the identity as a number."""

    rooted = False

    def __init__(self, kind: EntityType, router: Router) -> None:
        super().__init__(kind)
        self._router = router
        self._rows = Rows(LINK, router)

    def keys(self) -> Sequence[int]:
        return list(self._router.links)

    def row(self, key: int) -> Row | None:
        endpoint = self._router.links.get(key)
        return None if endpoint is None else self._rows.row(endpoint)

    def cells(self, key: int, columns: Sequence[str]) -> list[object] | None:
        endpoint = self._router.links.get(key)
        return None if endpoint is None else self._rows.cells(endpoint, columns)

    plain_cells = cells

    def by_identity(self, identity: str) -> int | None:
        number = number_of(identity)
        return number if number in self._router.links else None

    def by_name(self, name: str) -> Sequence[int]:
        return [key for key, endpoint in self._router.links.items() if endpoint.link.name == name]


class Addresses(Provider):
    """``router.address``; a key is the lookup key."""

    rooted = False

    def __init__(self, kind: EntityType, router: Router) -> None:
        super().__init__(kind)
        self._router = router
        self._rows = Rows(ADDRESS, router)

    def keys(self) -> Sequence[str]:
        return list(self._router.table.entries)

    def row(self, key: str) -> Row | None:
        entry = self._router.table.entries.get(key)
        return None if entry is None else self._rows.row(entry)

    def cells(self, key: str, columns: Sequence[str]) -> list[object] | None:
        entry = self._router.table.entries.get(key)
        return None if entry is None else self._rows.cells(entry, columns)

    plain_cells = cells

    def by_identity(self, identity: str) -> str | None:
        return identity if identity in self._router.table.entries else None

    def by_name(self, name: str) -> Sequence[str]:
        return (name,) if name in self._router.table.entries else ()


class OpenConnections(Provider):
    """``connection``; a key is the connection's number."""

    rooted = False

    def __init__(self, kind: EntityType, control: ControlPort, now: Callable[[], float]) -> None:
        super().__init__(kind)
        self._control = control
        self._now = now

    def keys(self) -> Sequence[int]:
        return list(self._control.running.connections())

    def row(self, key: int) -> Row | None:
        connection = self._control.running.connections().get(key)
        return None if connection is None else connection.build_management_row(self._now())

    def by_identity(self, identity: str) -> int | None:
        number = number_of(identity)
        return number if number in self._control.running.connections() else None

    def by_name(self, name: str) -> Sequence[int]:
        connections = self._control.running.connections()
        return [number for number, connection in connections.items() if connection.lifetime.name == name]


def number_of(identity: str) -> int:
    """Return a decimal identity as a number; -1 for any other."""
    return int(identity) if identity.isascii() and identity.isdigit() and len(identity) < 20 else -1
