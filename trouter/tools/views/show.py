"""Takes one look at routers: sends the requests of a view, and writes the listings."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TextIO, TypeVar

from trouter.tools import formats
from trouter.tools.failures import StatusError, Timeout
from trouter.tools.node import NodeClient, Table, open_node
from trouter.tools.options import ConnectionOptions
from trouter.tools.words import PREFIX

from . import render
from .lookup import CONNECTION_ATTRIBUTES, LINK_ATTRIBUTES, Lookup
from .model import Listing, Row, Rows, View, ViewRequest
from .render import Look
from .sheet import Sheet, parts_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wishes:
    """The views to show, and their filters and format."""

    views: tuple[View, ...]
    limit: int = 0
    #: Texts by name of the filter.
    filters: Mapping[str, str] = field(default_factory=dict)
    all_routers: bool = False
    json: bool = False
    #: One CSV document; else `Look.csv` writes tables as qdstat does.
    csv: bool = False
    #: Look after look: of JSON, each on one line.
    repeated: bool = False


class Window:
    """The routers that are shown, and the output."""

    def __init__(self, wishes: Wishes, look: Look, out: TextIO) -> None:
        self._wishes = wishes
        self._look = look
        self._out = out
        self._node: NodeClient
        #: Every router of the network; empty if only one is shown.
        self._nodes: dict[str, NodeClient] = {}
        self._sheet: Sheet

    async def open(self, options: ConnectionOptions, stack: AsyncExitStack) -> None:
        """Connect, and open the nodes of the other routers if they are wanted."""
        self._node = await stack.enter_async_context(open_node(options))
        routers = await self._node.routers()
        if self._wishes.all_routers and self._node.workers:  # each can be asked alone, too
            listed = _rows(await self._node.query(f"{PREFIX}router.node", ("id",)))
            routers = [str(each["id"]) for each in listed]
        if self._wishes.all_routers and len(routers) > 1:
            whole = str(await _router_id(self._node)) if self._node.workers else ""
            for identity in routers:
                is_whole = identity == whole
                self._nodes[identity] = (
                    self._node if is_whole else await stack.enter_async_context(self._node.of_router(identity))
                )
        self._sheet = Sheet(self._out, several_routers=bool(self._nodes), repeated=self._wishes.repeated)

    def take_incomplete(self) -> str:
        """Return what the answers of this look lack, if a router said so; else an empty text."""
        return "\n".join(filter(None, [each.take_incomplete() for each in (self._node, *self._nodes.values())]))

    async def show(self, before: str = "") -> Timeout | None:
        """Get the answers and write them after ``before``; return the first timeout if some of several routers fail."""
        if self._wishes.json:
            return await self._show_json(before)
        if self._wishes.csv:
            return await self._show_csv()
        if self._nodes:
            return await self._show_each(before)
        parts = await self._parts(self._node)
        heading: tuple[str, ...] = ()
        if self._wishes.views[0].dated:
            heading = (formats.now_utc(), formats.plain(await _router_id(self._node)), "")
        self._out.write(before)
        self._lines(*heading)
        self._write(parts, self._look)
        return None

    async def _show_each(self, before: str) -> Timeout | None:
        found = [(identity, await _in_time(self._parts(node))) for identity, node in self._nodes.items()]
        self._out.write(before)
        self._line(formats.now_utc())
        for identity, parts in found:
            self._lines(f"Router  {formats.plain(identity)}", "")
            if isinstance(parts, Timeout):
                self._line("No answer")
            else:
                self._write(parts, replace(self._look, router=identity))
            self._line("")
        return _first_silence(parts for _, parts in found)

    async def _show_csv(self) -> Timeout | None:
        nodes = self._nodes or {"": self._node}
        found = [(identity, await _in_time(self._parts(node))) for identity, node in nodes.items()]
        silence = _first_silence(parts for _, parts in found)
        if silence is not None and not self._nodes:
            raise silence
        self._sheet.write(
            [
                part
                for identity, views in found
                if not isinstance(views, Timeout)
                for part in parts_of(identity, [listing for view in views for listing in view], self._look)
            ]
        )
        return silence

    async def _show_json(self, before: str) -> Timeout | None:
        whole: object
        found: list[dict[str, object] | Timeout] = []
        if self._nodes:
            found = [await _in_time(self._document(node)) for node in self._nodes.values()]
            names = zip(self._nodes, found, strict=True)
            whole = [
                {"router": name, "error": str(each)} if isinstance(each, Timeout) else each for name, each in names
            ]
        else:
            whole = await self._document(self._node)
        indent, separators = (None, (",", ":")) if self._wishes.repeated else (2, None)
        self._out.write(before)
        self._line(json.dumps(whole, indent=indent, separators=separators, default=formats.plain))
        return _first_silence(found)

    async def _parts(self, node: NodeClient) -> list[list[Listing]]:
        return [await self._listings(node, view) for view in self._wishes.views]

    def _write(self, parts: Sequence[Sequence[Listing]], look: Look) -> None:
        for listings in parts:
            for listing in listings:
                self._lines(*render.lines(listing, look))
            if len(parts) > 1:
                self._line("")

    async def _document(self, node: NodeClient) -> dict[str, object]:
        identity = await _router_id(node)
        look = replace(self._look, router=str(identity))
        listings = [listing for part in await self._parts(node) for listing in part]
        return {
            "time": datetime.now(tz=UTC).isoformat(),
            "router": identity,
            "tables": {listing.table: render.data(listing, look) for listing in listings if listing.table},
        }

    async def _listings(self, node: NodeClient, view: View) -> list[Listing]:
        """Return the listings of a view from the router's answers."""
        if view.gather is not None:
            return view.listings(await view.gather(node))
        filters = {name: wanted for name, wanted in self._wishes.filters.items() if name in view.filters}
        limit = 0 if filters else self._wishes.limit
        answers = [await _answer(node, request, limit) for request in view.requests]
        if filters:
            lookup = await _lookup(node, view, filters)
            kept = [
                row
                for row in answers[0]
                if all(view.filters[name].keep(row, wanted, lookup) for name, wanted in filters.items())
            ]
            first = view.requests[0]
            answers[0] = kept[: self._wishes.limit] if first.limited and self._wishes.limit > 0 else kept
        return view.listings(answers)

    def _lines(self, *lines: str) -> None:
        for line in lines:
            self._line(line)

    def _line(self, line: str) -> None:
        self._out.write(f"{line}\n")


async def _in_time(answering: Awaitable[T]) -> T | Timeout:
    """Return the result, or the Timeout that was raised instead."""
    try:
        return await answering
    except Timeout as failure:
        return failure


def _first_silence(found: Iterable[object]) -> Timeout | None:
    return next((each for each in found if isinstance(each, Timeout)), None)


async def _answer(node: NodeClient, request: ViewRequest, limit: int) -> Rows:
    limit = limit if request.limited else 0
    try:
        if request.operation:
            properties = dict(request.properties) | ({"limit": limit} if limit > 0 else {})
            answer = await node.call_self(request.operation, **properties)
            return request.rows(answer) if request.rows is not None else []
        attributes = request.attributes
        if attributes and node.workers:
            attributes = (*attributes, *request.of_workers)
        return _rows(await node.query(request.entity_type, attributes, limit))
    except StatusError:
        if request.optional:
            return []
        raise


def _rows(table: Table) -> list[Row]:
    """Return rows as maps; a null stays, as it shows that the router has the attribute."""
    return [dict(zip(table.names, row, strict=True)) for row in table.rows]


async def _lookup(node: NodeClient, view: View, filters: Mapping[str, str]) -> Lookup:
    needed = [view.filters[name] for name in filters]
    connections: Rows = ()
    links: Rows = ()
    if any(each.connections for each in needed):
        connections = _rows(await node.query(f"{PREFIX}connection", CONNECTION_ATTRIBUTES))
    if any(each.links for each in needed):
        links = _rows(await node.query(f"{PREFIX}router.link", LINK_ATTRIBUTES))
    return Lookup(connections, links)


async def _router_id(node: NodeClient) -> object:
    rows = _rows(await node.query(f"{PREFIX}router", ("id",)))
    return rows[0].get("id") if rows else None
