"""The rows of links, addresses and the router as management reads them."""

from __future__ import annotations

from collections.abc import Sequence

from trouter.columns.addresses import ADDRESS
from trouter.columns.links import LINK
from trouter.columns.router import ROUTER, ProcessFacts
from trouter.columns.rows import Rows
from trouter.core.entry import AddressEntry
from trouter.core.links import Endpoint
from trouter.core.router import Router


def link_row(router: Router, link: Endpoint, names: Sequence[str] = ()) -> dict[str, object]:
    rows = Rows(LINK, router)
    return dict(zip(names, rows.cells(link, names), strict=True)) if names else rows.row(link)


def address_row(router: Router, entry: AddressEntry, names: Sequence[str] = ()) -> dict[str, object]:
    rows = Rows(ADDRESS, router)
    return dict(zip(names, rows.cells(entry, names), strict=True)) if names else rows.row(entry)


def router_row(router: Router) -> dict[str, object]:
    return Rows(ROUTER, router).row(ProcessFacts())
