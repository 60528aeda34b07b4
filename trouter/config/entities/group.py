"""The rights and quotas of a group of users within a vhost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from trouter.config import access, hosts
from trouter.config.entities.base import NOTHING
from trouter.config.entities.held import mode, per_host, per_user
from trouter.config.entities.quotas import Quotas, quota
from trouter.config.hosts import HostRange
from trouter.config.point import Point, with_points
from trouter.config.schema import BASES, EntityType, boolean, choice, integer, string

MAX_CONNECTIONS: Final = 65535
#: The limit of links that every number of them meets.
ANY_NUMBER: Final = 2**31 - 1
#: The rights in management, each including those before it.
LEVELS: Final = ("none", "read", "operate", "admin")
#: Those of operators, who may change what runs.
OPERATORS: Final = LEVELS[2:]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The rights and quotas of the users of one group."""

    users: tuple[str, ...] = string(
        "The users of the group, separated by commas; `*` is every user with a name that no group names.",
        (),
        parse=access.names,
        entries=True,
    )
    remote_hosts: tuple[HostRange, ...] = string(
        "Where they may come from: addresses, ranges `A-B`, networks `A/N`, host names, separated by commas; or `*`.",
        (),
        default_doc="nowhere",
        parse=hosts.remote_hosts,
        entries=True,
    )
    max_connections_per_user: int | None = integer(
        "Connections of one user open at once; replaces the limit of the vhost.",
        default_doc="the vhost's",
        high=MAX_CONNECTIONS,
    )
    max_connections_per_host: int | None = integer(
        "Connections from one host open at once, as for the vhost; replaces its limit.",
        default_doc="the vhost's",
        high=MAX_CONNECTIONS,
        old_names=("maxConnectionsPerRemoteHost",),
    )
    max_message_size: int | None = integer(
        "The largest message in bytes, 0 means no limit; replaces the limit of the vhost.",
        default_doc="the vhost's",
        high=2**63 - 1,
    )
    max_frame_size: int | None = integer(
        "The largest frame in bytes; replaces that of the listener, unless it is 0.",
        default_doc="the listener's",
        parse=access.frame_size,
    )
    max_session_window: int | None = integer(
        "The incoming window of a session in bytes; replaces that of the listener, unless it is 0.",
        default_doc="the listener's",
    )
    max_sessions: int | None = integer(
        "Sessions on one connection; replaces the limit of the listener, unless it is 0.",
        default_doc="the listener's",
        high=65535,
    )
    max_senders: int = integer(
        "Senders of one connection. 0 means any number, as in Qpid Dispatch; with secureDefaults it means none.",
        ANY_NUMBER,
    )
    max_receivers: int = integer("Receivers of one connection; 0 means the same.", ANY_NUMBER)
    allow_dynamic_source: bool = with_points(
        boolean("May receive from addresses made for them.", False),
        Point(
            name="dynamic-link-routes",
            compatible="a dynamic link that names a link route by `x-opt-qd.address` reaches it, whatever the sources "
            "and targets are; a sender needs allowAnonymousSender for it",
            strict="the sources, or targets, must have that address, too",
            page="policy.md",
        ),
    )
    allow_anonymous_sender: bool = boolean("May send over a link without an address.", False)
    allow_user_id_proxy: bool = boolean("May send messages in the name of others.", False)
    allow_waypoint_links: bool = boolean("May attach the links of a waypoint.", True)
    allow_dynamic_link_routes: bool = boolean(
        "May make link routes for their own connection, over management: where `management` is none or read, only if "
        "given, and only of addresses that their sources (direction in) or targets (out) cover.",
        True,
    )
    allow_admin_status_update: bool = boolean("May close connections of others.", True)
    allow_fallback_links: bool = boolean("May attach the links of a fallback.", True)
    sources: tuple[str, ...] = string(
        "Addresses they may receive from, separated by commas: whole, or ending in `*`; `${user}` is the user's name.",
        (),
        parse=access.address_names,
        entries=True,
    )
    targets: tuple[str, ...] = string(
        "Addresses they may send to, written in the same way.", (), parse=access.address_names, entries=True
    )
    source_pattern: tuple[str, ...] = string(
        "Addresses they may receive from, as patterns by tokens; not together with sources.",
        (),
        parse=access.address_patterns,
        entries=True,
    )
    target_pattern: tuple[str, ...] = string(
        "Addresses they may send to, as patterns by tokens; not together with targets.",
        (),
        parse=access.address_patterns,
        entries=True,
    )
    management: str = choice(
        "What they may do through `$management`, if targets let them reach it: nothing, read, also operate what "
        "runs, or everything.",
        "admin",
        values=LEVELS,
        default_doc="`admin`; with secureDefaults `none`",
        extra=True,
    )
    substitute_anonymous: bool = boolean(
        "The user's name in an address is also that of a user who did not prove it, `anonymous` if there is none.",
        True,
        default_doc="`yes`; with secureDefaults `no`",
        extra=True,
    )
    substitute_separated: bool = boolean(
        "The user's name in an address may hold `.` or `/`. If `no`, entries with `${user}` cover nothing for users of "
        "such names while any group of any vhost has an entry with `.` or `/` after `${user}`, or a pattern with a "
        "wildcard before it.",
        True,
        default_doc="`yes`; with secureDefaults `no`",
        extra=True,
    )
    tenant_addresses: bool = boolean(
        "At a listener without multiTenant, entries with `${user}` may cover addresses of tenants, which begin with "
        "`TENANT/`, and a group of a tenant's vhost may have every address, or management, of the whole router.",
        True,
        default_doc="`yes`; with secureDefaults `no`",
        extra=True,
    )
    max_links: int | None = quota("max_links")
    max_addresses: int | None = quota("max_addresses")
    max_connections_per_second: int | None = quota("max_connections_per_second")
    max_attaches_per_second: int | None = quota("max_attaches_per_second")
    max_messages_per_second: int | None = quota("max_messages_per_second")
    max_bytes_per_second: int | None = quota("max_bytes_per_second")
    max_buffered_bytes: int | None = quota("max_buffered_bytes")
    per_user: Quotas | None = per_user()  # noqa: RUF009  # a field, like all the others
    per_host: Quotas | None = per_host()  # noqa: RUF009  # a field, like all the others
    quota_mode: str | None = mode(None, "the vhost's")
    #: The attributes as they were given, by field; no attribute.
    written: Mapping[str, Any] = field(default_factory=lambda: NOTHING, repr=False, compare=False)

    def entry_for_longer_names(self) -> str:
        """Return an entry by which a user may reach the addresses of a longer name, one with `.` or `/`; else empty."""
        patterns = (*self.source_pattern, *self.target_pattern)
        entries = filter(access.goes_on, (*self.sources, *self.targets, *patterns))
        return next(chain(entries, filter(access.is_preceded, patterns)), "")


GROUP_SETTINGS: Final = EntityType(
    "vhostUserGroupSettings",
    "What the users of one group of a vhost may do; it stands within `groups`.",
    entity=GroupSettings,
    bases=BASES["configuration"],
    lenient="unknown-in-group",
)
