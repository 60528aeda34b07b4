"""The views of links to other containers that the configuration has: auto links and link routes."""

from __future__ import annotations

from collections.abc import Sequence

from .lookup import is_address
from .model import Field, Filter, Listing, Request, Row, Rows, View, attribute, simple

AUTO_LINK_FIELDS = (
    attribute("addr", "address"),
    attribute("dir", "direction"),
    attribute("phs", "phase"),
    attribute("extAddr", "externalAddress"),
    attribute("link", "linkRef"),
    attribute("status", "operStatus"),
    attribute("lastErr", "lastError", alarm=True),
)


def _prefix_or_pattern(row: Row) -> object:
    return row.get("prefix") or row.get("pattern")


LINK_ROUTE_FIELDS = (
    Field("address", _prefix_or_pattern),
    attribute("dir", "direction"),
    attribute("distrib", "distribution"),
    attribute("status", "operStatus"),
)
LINK_ROUTE_PREFIXES = (
    attribute("add-ext-prefix", "addExternalPrefix"),
    attribute("del-ext-prefix", "delExternalPrefix"),
)


def _link_routes(answers: Sequence[Rows]) -> list[Listing]:
    prefixed = any(row.get("addExternalPrefix") or row.get("delExternalPrefix") for row in answers[0])
    fields = LINK_ROUTE_FIELDS + LINK_ROUTE_PREFIXES if prefixed else LINK_ROUTE_FIELDS
    return simple("Link Routes", fields, sort="address", empty="Link Routes\nNo Link Routes found")(answers)


AUTO_LINKS = View(
    "autolinks",
    ("--autolinks",),
    "show auto links",
    (
        Request(
            "router.config.autoLink",
            ("address", "direction", "phase", "externalAddress", "linkRef", "operStatus", "lastError"),
            limited=True,
        ),
    ),
    simple("AutoLinks", AUTO_LINK_FIELDS, sort="addr", empty="AutoLinks\nNo AutoLinks found"),
    filters={"address": Filter(lambda row, wanted, _: is_address(str(row.get("address")), wanted))},
)

LINK_ROUTES = View(
    "linkroutes",
    ("--linkroutes",),
    "show link routes",
    (
        Request(
            "router.config.linkRoute",
            ("prefix", "direction", "distribution", "operStatus", "pattern", "addExternalPrefix", "delExternalPrefix"),
            limited=True,
        ),
    ),
    _link_routes,
    filters={"address": Filter(lambda row, wanted, _: is_address(str(_prefix_or_pattern(row)), wanted))},
)
