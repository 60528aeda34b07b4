"""Vhosts: their limits, the groups of their users, and what was allowed and denied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from trouter.columns.security import VHOST
from trouter.config.entities import VhostEntity
from trouter.tools import formats

from .lookup import Lookup
from .model import Filter, Listing, Row, Rows, View, ViewField, ViewRequest, attribute, fields_of

_NO_VHOSTS = "No Vhosts"
#: The type of groups, which are part of their vhost.
_GROUP = "vhostUserGroupSettings"


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _is_vhost(row: Row, wanted: str, _: Lookup) -> bool:
    return row.get("hostname") == wanted


_FILTERS = {"vhost": Filter(_is_vhost)}

VHOST_FIELDS = (
    *fields_of(VhostEntity.type.own),
    ViewField("groups", lambda row: len(_mapping(row.get("groups")))),
)

_LIMITS = (
    "maxConnectionsPerUser", "maxConnectionsPerHost", "maxMessageSize", "maxFrameSize", "maxSessionWindow",
    "maxSessions", "maxSenders", "maxReceivers",
)  # fmt: skip
_SWITCHES = (
    "allowDynamicSource",
    "allowAnonymousSender",
    "allowUserIdProxy",
    "allowWaypointLinks",
    "allowDynamicLinkRoutes",
    "allowAdminStatusUpdate",
    "allowFallbackLinks",
)
_TEXTS = ("users", "remoteHosts", "sources", "targets", "sourcePattern", "targetPattern")


def _setting(name: str, without: object) -> Callable[[Row], object]:
    """Return a setting of a group; what the schema gives it by default if it is not set, else ``without``."""

    def value(row: Row) -> object:
        for source in ("settings", "defaults"):
            found = _mapping(row.get(source)).get(name)
            if found is not None:
                return found
        return without

    return value


_NAMES = (attribute("vhost", "vhost"), attribute("group", "group"))
GROUP_FIELDS = (
    *_NAMES,
    *(
        ViewField(name, _setting(name, "(nil)"), needs="maxMessageSize" * (name == "maxMessageSize"))
        for name in _LIMITS
    ),
    *(ViewField(name, _setting(name, False)) for name in _SWITCHES),
)
GROUP_TEXT_FIELDS = (*_NAMES, *(ViewField(name, _setting(name, "(nil)")) for name in _TEXTS))


def _vhosts(answers: Sequence[Rows]) -> list[Listing]:
    return [Listing("Vhosts", VHOST_FIELDS, answers[0], empty=_NO_VHOSTS, key="hostname", table="vhost")]


def _groups(answers: Sequence[Rows]) -> list[Listing]:
    vhosts, schema = answers
    if not vhosts:
        return [Listing("Vhost Groups", GROUP_FIELDS, (), empty=_NO_VHOSTS, table=_GROUP)]
    sizes = {"maxMessageSize": None} if "maxMessageSize" in vhosts[0] else {}
    defaults = {name: _mapping(facts).get("default") for name, facts in (schema[0] if schema else {}).items()}
    groups: list[Row] = [
        {
            "vhost": vhost.get("hostname"),
            "group": name,
            "settings": settings,
            "defaults": defaults,
            **sizes,
        }
        for vhost in vhosts
        for name, settings in _mapping(vhost.get("groups")).items()
    ]
    return [
        Listing("Vhost Groups", GROUP_FIELDS, groups, key="group", table=_GROUP),
        *(
            Listing(
                f"\nVhost '{formats.plain(group['vhost'])}' UserGroup '{formats.plain(group['group'])}'",
                GROUP_TEXT_FIELDS,
                [group],
                upright=True,
            )
            for group in groups
        ),
    ]


def _group_schema(schema: object) -> Rows:
    """Return the attributes of a group, of the reply to GET-SCHEMA."""
    types = _mapping(_mapping(schema).get("entityTypes"))
    return [_mapping(_mapping(types.get("vhostUserGroupSettings")).get("attributes"))]


STATS_FIELDS = fields_of(VHOST)
USER_FIELDS = (
    attribute("vhost", "vhost"),
    attribute("user", "user"),
    attribute("remote hosts", "hosts", formats.listed),
)


def _stats(answers: Sequence[Rows]) -> list[Listing]:
    vhosts = answers[0]
    if not vhosts:
        return [Listing("Vhost Stats", STATS_FIELDS, (), empty="No Vhost Stats", table="vhostStats")]
    users: list[Row] = [
        {"vhost": vhost.get("hostname"), "user": user, "hosts": hosts}
        for vhost in vhosts
        for user, hosts in _mapping(vhost.get("perUserState")).items()
    ]
    return [
        Listing("Vhost Stats", STATS_FIELDS, vhosts, key="hostname", table="vhostStats"),
        Listing("\nVhost User Stats", USER_FIELDS, users, key="user"),
    ]


VHOSTS = View("vhosts", ("--vhosts",), "show vhosts", (ViewRequest("vhost"),), _vhosts, dated=False, filters=_FILTERS)

VHOST_GROUPS = View(
    "vhostgroups",
    ("--vhostgroups",),
    "show the user groups of vhosts",
    (ViewRequest("vhost"), ViewRequest(operation="GET-SCHEMA", rows=_group_schema)),
    _groups,
    dated=False,
    filters=_FILTERS,
)

VHOST_STATS = View(
    "vhoststats",
    ("--vhoststats",),
    "show what was allowed and denied in vhosts",
    (ViewRequest("vhostStats"),),
    _stats,
    dated=False,
    filters=_FILTERS,
)
