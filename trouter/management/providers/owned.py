"""The tenant's own links, addresses and connections (security.md R-5c).

A tenant sees numbers of connections and links that do not count those of others (``core/identities.py``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Final

from trouter.core.identities import Identities, Permutation
from trouter.core.links import Endpoint
from trouter.core.router import Router
from trouter.core.tenants import Tenant
from trouter.management.ports import ControlPort
from trouter.net.view import ConnectionView

from .base import Provider, Row
from .routing import number_of

_CONNECTIONS: Final = attrgetter("connections")
_LINKS: Final = attrgetter("links")


class Owned(Provider):
    """The entities of another provider that are the tenant's."""

    rooted = False
    #: The columns with numbers of connections or links, and what the tenant sees in place of these.
    numbers: ClassVar[Mapping[str, Callable[[Identities], Permutation]]] = {}

    def __init__(self, whole: Provider, tenant: Tenant, router: Router, control: ControlPort) -> None:
        super().__init__(whole.kind)
        self._whole = whole
        self._tenant = tenant
        self._router = router
        self._control = control

    @abstractmethod
    def is_own(self, key: Any) -> bool:
        """Return whether the entity exists and is the tenant's."""

    def row(self, key: Any) -> Row | None:
        row = self._whole.row(key) if self.is_own(key) else None
        return None if row is None else self.shown_row(row)

    def shown_row(self, row: Row) -> Row:
        return {name: self._show(name, value) for name, value in row.items()}

    def cells(self, key: Any, columns: Sequence[str]) -> list[object] | None:
        return self._show_all(self._whole.cells(key, columns), columns) if self.is_own(key) else None

    def plain_cells(self, key: Any, columns: Sequence[str]) -> list[object] | None:
        return self._show_all(self._whole.plain_cells(key, columns), columns) if self.is_own(key) else None

    def by_identity(self, identity: str) -> Any | None:
        permutation = self._permutation("identity")
        if permutation is not None:
            shown = number_of(identity)
            if shown < 0:
                return None
            identity = str(permutation.find(shown))
        key = self._whole.by_identity(identity)
        return key if key is not None and self.is_own(key) else None

    def _show_all(self, cells: list[object] | None, columns: Sequence[str]) -> list[object] | None:
        """Return the cells as the tenant sees them."""
        if cells is None or self.numbers.keys().isdisjoint(columns):
            return cells
        return [self._show(name, cell) for name, cell in zip(columns, cells, strict=True)]

    def _show(self, column: str, cell: object) -> object:
        permutation = self._permutation(column)
        return cell if permutation is None or not isinstance(cell, str) else str(permutation.show(int(cell)))

    def _permutation(self, column: str) -> Permutation | None:
        choose = self.numbers.get(column)
        return None if choose is None else choose(self._router.table.tenants.identities)

    def by_name(self, name: str) -> Sequence[Any]:
        return [key for key in self.keys() if self.cells(key, ("name",)) == [name]]

    def _connections(self) -> Mapping[int, ConnectionView]:
        """Return the tenant's open connections by number, ascending."""
        known = self._control.running.connections()
        return {number: known[number] for number in sorted(self._tenant.connections) if number in known}


class OwnConnections(Owned):
    """The tenant's connections, by number."""

    numbers: ClassVar = {"identity": _CONNECTIONS}

    def keys(self) -> Sequence[int]:
        return list(self._connections())

    def is_own(self, key: int) -> bool:
        return key in self._tenant.connections and key in self._control.running.connections()


class TenantLinks(Owned):
    """The links of the tenant's connections, by number."""

    numbers: ClassVar = {"identity": _LINKS, "peer": _LINKS, "connectionId": _CONNECTIONS}

    def keys(self) -> Sequence[int]:
        sessions = (session for each in self._connections().values() for session in each.engine.sessions())
        sinks = (link.sink for session in sessions for link in session.links.list_links())
        return sorted(
            sink.identity for sink in sinks if isinstance(sink, Endpoint) and sink.identity in self._router.links
        )

    def is_own(self, key: int) -> bool:
        endpoint = self._router.links.get(key)
        return endpoint is not None and endpoint.connection_number in self._tenant.connections


class TenantAddresses(Owned):
    """Addresses of the tenant's space, and its dynamic ones, by key."""

    def keys(self) -> Sequence[str]:
        table, space = self._router.table, self._tenant.space
        past = [] if table.past is None else table.past.spaces.keys_of(space)
        return list(dict.fromkeys((*table.spaces.keys_of(space), *past)))

    def is_own(self, key: str) -> bool:
        table = self._router.table
        entry = table.entries.get(key)
        if entry is None and table.past is not None:
            entry = table.past.entries.get(key)
        return entry is not None and (self._tenant.owns_key(key) or entry.space == self._tenant.space)


#: The types of which a tenant has entities.
OWNED: Final[dict[str, type[Owned]]] = {
    "connection": OwnConnections,
    "router.link": TenantLinks,
    "router.address": TenantAddresses,
}
