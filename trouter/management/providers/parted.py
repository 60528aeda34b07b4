"""The entities of one worker as a part of the router: without what joins the workers, each with the worker's number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trouter.columns.addresses import ADDRESS
from trouter.columns.rows import Rows
from trouter.config.entities import Entity
from trouter.config.schema import EntityType
from trouter.config.workers import STANDALONE, WORKERS_HOST, joins_workers, mode_of_whole
from trouter.core.router import Router
from trouter.management.merging import merged, merged_maps
from trouter.management.ports import ControlPort
from trouter.net.view import ConnectionView
from trouter.wire.types import UInt, ULong

from .base import Provider, Row
from .configured import Configured

#: The attribute with the number of the worker at which an entity lives.
WORKER: Final = "worker"
WORKER_TEXT: Final = "Number of the worker of the router that has it, from 1."
#: The types whose entities each live at one worker.
AT_ONE: Final = frozenset({"connection", "router.link", "router.connection.linkRoute", "denial", "alarm"})
#: A worker gives an address this type if its own clients use it no more. No requester sees such a row: the worker that
#: was asked adds its counts to those of the address, if another worker has that.
PAST: Final = "past address"
_ROUTER_KEY: Final = "R"


@dataclass(frozen=True, slots=True)
class WorkerPart:
    """One worker as a part of its router: its number, and the ids of the others."""

    number: int
    siblings: Collection[str]


class PartProvider(Provider):
    """The entities of another provider without those that join the workers, perhaps changed by ``shows``."""

    def __init__(self, whole: Provider, part: WorkerPart, *, shows: Callable[[Any], bool] = lambda _: True) -> None:
        super().__init__(whole.kind)
        self.rooted = whole.rooted
        self._whole = whole
        self._part = part
        self._shows = shows

    def keys(self) -> Sequence[Any]:
        return list(filter(self._shows, self._whole.keys()))

    def named_keys(self) -> Sequence[Any]:
        return list(filter(self._shows, self._whole.named_keys()))

    def row(self, key: Any) -> Row | None:
        return self._of_part(self._whole.row(key)) if self._shows(key) else None

    def plain_row(self, key: Any) -> Row | None:
        return self._of_part(self._whole.plain_row(key)) if self._shows(key) else None

    def _of_part(self, row: Row | None) -> Row | None:
        return row

    def by_identity(self, identity: str) -> Any | None:
        key = self._whole.by_identity(identity)
        return key if key is not None and self._shows(key) else None

    def by_name(self, name: str) -> Sequence[Any]:
        return [key for key in self._whole.by_name(name) if self._shows(key)]


class AtWorker(PartProvider):
    """Entities that live at one worker: each has its number."""

    def cells(self, key: Any, columns: Sequence[str]) -> list[object] | None:
        return self._numbered(self._whole.cells(key, columns), columns) if self._shows(key) else None

    def plain_cells(self, key: Any, columns: Sequence[str]) -> list[object] | None:
        return self._numbered(self._whole.plain_cells(key, columns), columns) if self._shows(key) else None

    def _numbered(self, cells: list[object] | None, columns: Sequence[str]) -> list[object] | None:
        if cells is not None and WORKER in columns:
            cells[columns.index(WORKER)] = UInt(self._part.number)
        return cells

    def _of_part(self, row: Row | None) -> Row | None:
        return None if row is None else {**row, WORKER: UInt(self._part.number)}


class RouterPart(PartProvider):
    """The row of the router with its mode, whose counts leave out what joins the workers."""

    def __init__(self, whole: Provider, part: WorkerPart, hidden: Hidden) -> None:
        super().__init__(whole, part)
        self._hidden = hidden

    def _of_part(self, row: Row | None) -> Row | None:
        if row is None:
            return None
        hidden = {
            "connectionCount": self._hidden.count_connections(),
            "linkCount": self._hidden.count_links(),
            "nodeCount": self._hidden.count_routers(),
        }
        counts = {name: ULong(max(int(str(row[name])) - count, 0)) for name, count in hidden.items()}
        return {**row, "mode": self._hidden.mode, **counts}


class AddressPart(PartProvider):
    """Addresses, for which the other workers are no other routers, with the counts that past ones left.

    Those that only have such counts are listed, too, as ``PAST``.
    """

    def __init__(self, whole: Provider, part: WorkerPart, router: Router, *, shows: Callable[[Any], bool]) -> None:
        super().__init__(whole, part, shows=shows)
        self._past = {} if router.table.past is None else router.table.past.entries
        self._past_rows = Rows(ADDRESS, router)

    def keys(self) -> Sequence[Any]:
        return list(dict.fromkeys((*super().keys(), *self._past)))

    def by_identity(self, identity: str) -> Any | None:
        return identity if identity in self._past else super().by_identity(identity)

    def by_name(self, name: str) -> Sequence[Any]:
        return (name,) if name in self._past else super().by_name(name)

    def cells(self, key: Any, columns: Sequence[str]) -> list[object] | None:
        cells = self._live_cells(key, columns)
        past = self._past.get(key)
        if past is None:
            return cells
        left = self._past_rows.cells(past, columns)
        if cells is not None:
            return merged(self.kind, columns, [cells, left])
        return [PAST if column == "type" else cell for column, cell in zip(columns, left, strict=True)]

    plain_cells = cells

    def _live_cells(self, key: Any, columns: Sequence[str]) -> list[object] | None:
        cells = self._whole.cells(key, columns) if self._shows(key) else None
        remote = self._remote(key) if cells is not None and {"remoteHostRouters", "remoteCount"} & set(columns) else {}
        return cells and [remote.get(column, cell) for column, cell in zip(columns, cells, strict=True)]

    def _remote(self, key: Any) -> dict[str, object]:
        found = self._whole.cells(key, ("remoteHostRouters",))
        hosts: Any = found[0] if found else []
        others = [each for each in hosts or () if each not in self._part.siblings]
        return {"remoteHostRouters": others, "remoteCount": UInt(len(others))}

    def row(self, key: Any) -> Row | None:
        row = super().row(key)
        live = None if row is None else {**row, **self._remote(key)}
        past = self._past.get(key)
        if past is None:
            return live
        left = self._past_rows.row(past)
        return {**left, "type": PAST} if live is None else merged_maps(self.kind, [live, left])


class NodePart(PartProvider):
    """The routers of the network, without the workers."""

    def _of_part(self, row: Row | None) -> Row | None:
        if row is None:
            return None
        return {**row, **{name: self._without(row.get(name)) for name in ("linkState", "validOrigins", "linkCosts")}}

    def _without(self, value: object) -> object:
        if isinstance(value, Mapping):
            return {name: cost for name, cost in value.items() if name not in self._part.siblings}
        return [each for each in value if each not in self._part.siblings] if isinstance(value, list) else value


class ConfiguredByFile(Configured):
    """The configured entities without those that join the workers."""

    def entities(self) -> Sequence[Entity]:
        return [each for each in super().entities() if not joins_workers(each)]

    def entity(self, key: str) -> Entity | None:
        found = super().entity(key)
        return found if found is not None and not joins_workers(found) else None


class Hidden:
    """What joins the workers: connections, links and routers."""

    def __init__(self, part: WorkerPart, router: Router, control: ControlPort) -> None:
        self._part = part
        self._router = router
        self._control = control

    @property
    def mode(self) -> str:
        """The mode of the whole router."""
        return mode_of_whole(self._control.configuration.router)

    def shows_connection(self, number: int) -> bool:
        connection = self._control.running.connections().get(number)
        return connection is not None and not _joins(connection)

    def shows_link(self, identity: int) -> bool:
        endpoint = self._router.links.get(identity)
        return endpoint is not None and endpoint.connection_number not in self._joining()

    def _joining(self) -> Collection[int]:
        """Return the numbers of the connections to other workers, on which routed links cross, too."""
        return [each.number for each in self._router.network.trunks if each.to_sibling]

    def shows_address(self, key: str) -> bool:
        return not key.startswith(_ROUTER_KEY) or key[1:] not in self._part.siblings

    def shows_node(self, identity: str) -> bool:
        return self.mode != STANDALONE and identity.partition("/")[2] not in self._part.siblings

    def count_connections(self) -> int:
        return sum(map(_joins, self._control.running.connections().values()))

    def count_links(self) -> int:
        joining = self._joining()
        return sum(each.connection_number in joining for each in self._router.links.values()) if joining else 0

    def count_routers(self) -> int:
        return sum(each in self._part.siblings for each in self._router.network.routers)


def _joins(connection: ConnectionView) -> bool:
    """Return whether a connection joins workers, whatever its peer says that it is."""
    return connection.facts.listener.host == WORKERS_HOST


def part_of(kind: EntityType, whole: Provider, part: WorkerPart, router: Router, control: ControlPort) -> Provider:
    """Return the provider of a type as a part of the router; ``whole`` is that of this worker alone."""
    hidden = Hidden(part, router, control)
    match kind.short:
        case "connection":
            return AtWorker(whole, part, shows=hidden.shows_connection)
        case "router.link":
            return AtWorker(whole, part, shows=hidden.shows_link)
        case "router.connection.linkRoute" | "denial" | "alarm":
            return AtWorker(whole, part)
        case "router":
            return RouterPart(whole, part, hidden)
        case "router.address":
            return AddressPart(whole, part, router, shows=hidden.shows_address)
        case "router.node":
            return NodePart(whole, part, shows=hidden.shows_node)
        case "listener" | "connector":
            return ConfiguredByFile(kind, control)
        case _:
            return whole
