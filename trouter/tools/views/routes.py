"""The views of what the configuration connects to other containers: connectors, auto links and link routes."""

from __future__ import annotations

from collections.abc import Sequence

from trouter.config.entities import AutoLinkEntity, ConnectorEntity, LinkRouteEntity

from .lookup import is_address
from .model import Filter, Listing, Row, Rows, View, ViewField, ViewRequest, attribute, attributes_of, fields_of, simple

AUTO_LINK_FIELDS = fields_of(AutoLinkEntity.type.own)


def _prefix_or_pattern(row: Row) -> object:
    return row.get("prefix") or row.get("pattern")


_PREFIXES = ("addExternalPrefix", "delExternalPrefix")
#: In the order of qdstat, the prefixes last.
LINK_ROUTE_FIELDS = fields_of(
    LinkRouteEntity.type.own,
    (
        ViewField("address", _prefix_or_pattern, reads=("prefix", "pattern")),
        "dir", "distrib", "status", "add-ext-prefix", "del-ext-prefix",
    ),
)  # fmt: skip


def _link_routes(answers: Sequence[Rows]) -> list[Listing]:
    prefixed = any(row.get(name) for row in answers[0] for name in _PREFIXES)
    fields = [each for each in LINK_ROUTE_FIELDS if prefixed or not {*_PREFIXES}.intersection(each.reads)]
    return simple(
        "Link Routes", fields, "router.config.linkRoute", sort="address", empty="Link Routes\nNo Link Routes found"
    )(answers)


CONNECTOR_FIELDS = fields_of(
    ConnectorEntity.type.own,
    (
        attribute("name", "name"),
        ViewField("to", lambda row: f"{row.get('host')}:{row.get('port')}", reads=("host", "port")),
        attribute("role", "role"),
        "status", "attempts", "down since",
    ),
)  # fmt: skip

CONNECTORS = View(
    "connectors",
    ("--connectors",),
    "show connectors: their state, since when they are down, and why",
    (ViewRequest("connector", attributes_of(CONNECTOR_FIELDS), limited=True),),
    simple("Connectors", CONNECTOR_FIELDS, "connector", sort="name", empty="Connectors\nNo connectors found"),
)

AUTO_LINKS = View(
    "autolinks",
    ("--autolinks",),
    "show auto links",
    (ViewRequest("router.config.autoLink", attributes_of(AUTO_LINK_FIELDS), limited=True),),
    simple("AutoLinks", AUTO_LINK_FIELDS, "router.config.autoLink", sort="addr", empty="AutoLinks\nNo AutoLinks found"),
    filters={"address": Filter(lambda row, wanted, _: is_address(str(row.get("address")), wanted))},
)

LINK_ROUTES = View(
    "linkroutes",
    ("--linkroutes",),
    "show link routes",
    (
        ViewRequest(
            "router.config.linkRoute",
            attributes_of(LINK_ROUTE_FIELDS, last=("pattern", *_PREFIXES)),
            limited=True,
        ),
    ),
    _link_routes,
    filters={"address": Filter(lambda row, wanted, _: is_address(str(_prefix_or_pattern(row)), wanted))},
)
