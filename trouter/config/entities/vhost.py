"""The policy and its vhosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trouter.columns.column import Form, Head
from trouter.config import access, files, texts
from trouter.config.entities.base import NOTHING, Entity, Single, entity
from trouter.config.entities.group import LEVELS, MAX_CONNECTIONS, GroupSettings
from trouter.config.entities.held import mode, per_host, per_user
from trouter.config.entities.quotas import Quotas, quota
from trouter.config.groups import parse_groups
from trouter.config.point import Point, with_points
from trouter.config.problems import Severity
from trouter.config.schema import NEXT, Kind, boolean, choice, counter, integer, mapping, path, reported, string


@entity(
    "policy",
    "The rules for all vhosts. At most one.",
    "policy",
    singleton=True,
    extra_operations=("UPDATE",),
    parted=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntity(Single):
    """The settings for all vhosts."""

    max_connections: int = integer(
        "Connections open at once, of all listeners.",
        MAX_CONNECTIONS,
        head=Head("Maximum Concurrent Connections", needs=False),
    )
    max_message_size: int = with_points(
        integer(
            "The largest message in bytes on connections that have a vhost, if neither the group nor the vhost sets "
            "one; 0 means no limit.",
            0,
            high=2**63 - 1,
            head=Head("Maximum Message Size"),
        ),
        Point(
            name="idle-message-size",
            compatible="it limits the messages of connections that have a vhost: none without "
            "enableVhostPolicy, and none on connections of other routers, or on those that the "
            "router opened without a policyVhost",
            warning="will limit no message",
            cure="write enableVhostPolicy: yes",
            page="policy.md",
        ),
    )
    enable_vhost_policy: bool = with_points(
        boolean(
            "Apply the rules of its vhost to every connection.", False, head=Head("Enable Vhost Policy", needs=False)
        ),
        Point(
            name="vhost-policy",
            compatible="no, unless it is given: the rules of vhosts apply to no connection",
            strict="yes, unless it is given: a connection that no vhost allows is refused",
            warning="will not apply the rules of any vhost",
            cure="write enableVhostPolicy: yes",
            page="policy.md",
        ),
    )
    enable_vhost_name_patterns: bool = boolean(
        "Names of vhosts are patterns: `*` is one token, `#` any number of them.",
        False,
        head=Head("Enable Vhost Name Patterns", needs=False),
    )
    policy_dir: str = with_points(
        path(
            "A directory; the vhosts in its files `*.json`, taken in the order of their names, are read too.",
            "",
            parse=files.directory,
            head=Head("Policy Directory", Form.OR_NIL, needs=False),
        ),
        Point(
            name="writable-by-others",
            compatible="a file that grants trust, a log or a folder of records is used although others than root and "
            "the router's user can change or replace it",
            strict="the file is refused",
            warning="all users of this machine can change {path}",
            cure="chmod o-w {path}",
            page="hardening.md",
        ),
    )
    default_vhost: str = string(
        "The vhost of connections that ask for a vhost that does not exist; empty: the router refuses them.",
        "$default",
        head=Head("Default Vhost", Form.OR_NIL, needs=False),
    )
    oversize_action: str = choice(
        "What the router ends after a message that is too large: the link, or the connection, as Qpid Dispatch does.",
        "connection",
        values=("link", "connection"),
        reload=NEXT,
        extra=True,
    )
    router_connections: int = integer(
        "Connections of other routers that are admitted beyond maxConnections, so that clients cannot keep "
        "routers out.",
        64,
        high=MAX_CONNECTIONS,
        extra=True,
    )
    router_management: str = with_points(
        choice(
            "With vhost policy: the rights of requests to `$management` that come from another router, because "
            "their user is unknown here: nothing (`none`), reading, also operating what runs, or everything.",
            "admin",
            values=LEVELS,
            default_doc="`admin`; with secureDefaults `none`",
            extra=True,
        ),
        Point(
            name="router-management",
            compatible="admin, unless it is given: requests to `$management` from other routers may do everything",
            strict="none, unless it is given",
            warning="will let users of other routers do everything through $management",
            cure="write routerManagement: read, or another level",
            page="policy.md",
        ),
    )
    host_names_seconds: int = integer(
        "How often the router looks up the host names in remoteHosts. It uses the last answer until then, and "
        "if a look-up fails.",
        300,
        low=1,
        high=86400,
        extra=True,
    )
    connections_processed: None = counter(
        "Connections accepted or refused.", head=Head("Connections Processed", needs=False, counter=True)
    )
    connections_denied: None = counter(
        "Connections refused.", head=Head("Connections Denied", needs=False, counter=True, alarm=True)
    )
    connections_current: None = counter("Connections open now.", head=Head("Connections Current", needs=False))
    links_denied: None = counter("Links refused.", head=Head("Links Denied", needs=False, counter=True, alarm=True))
    max_message_size_denied: None = counter(
        "Messages refused because they were too large.",
        head=Head("Maximum Message Size Denied", counter=True, alarm=True),
    )
    total_denials: None = counter(
        "Denials in total: of connections over a limit, sessions, links, and messages too large.",
        head=Head("Total Denials", needs=False, counter=True, alarm=True),
    )
    vhost_connections_denied: None = counter("Connections that the policy refused when they opened.", extra=True)
    messages_denied: None = counter("Messages on anonymous links, refused because of their address.", extra=True)
    user_id_denied: None = counter("Messages refused because their user-id names another user.", extra=True)
    management_denied: None = counter("Requests refused by the agent.", extra=True)
    policy_digest: None = reported(
        Kind.STRING,
        "The digest of the policy and its vhosts as they are written: the same on all routers that have the same.",
        extra=True,
    )


#: What Qpid Dispatch reads otherwise in a group.
DIFFERENCES_OF_GROUPS: Final = (
    Point(
        name="flag-with-capitals",
        there="`True` is no: of all spellings, only `true` is yes",
        compatible="`True` and `TRUE` are yes",
        direction="wider",
        warning="will allow this to the group {group}; Qpid Dispatch reads True as no",
        cure="write true or false",
        page="policy.md",
        severity=Severity.PROBLEM,
    ),
    Point(
        name="comma-in-item",
        there="an item with a comma in a list of addresses breaks the list: its other items match no more",
        compatible="the item is one address, and the others match",
        direction="wider",
        warning="will let the group {group} use the addresses beside the one with the comma; Qpid Dispatch denies them",
        cure="make two items of it",
        page="policy.md",
        severity=Severity.PROBLEM,
    ),
    Point(
        name="star-pattern",
        there="the pattern `*` matches nothing",
        compatible="it matches each address of one token",
        direction="wider",
        warning="will let the group {group} use every address of one token, by the pattern *, which matches nothing in "
        "Qpid Dispatch",
        cure="leave the pattern out, or write #",
        page="policy.md",
        severity=Severity.PROBLEM,
    ),
    Point(
        name="separators-at-ends",
        there="separators at the ends of patterns and addresses do not count",
        compatible="they count: `/a` is another address than `a`",
        direction="narrower",
        warning="will match only addresses with the separators of the pattern at their ends",
        cure="leave the separators at the ends out, unless the clients write them",
        page="policy.md",
        severity=Severity.NOTE,
    ),
    Point(
        name="user-with-star",
        there="a user whose name ends in `*` may use, by `${user}`, the addresses of all users whose names begin so",
        compatible="names are text: such a user has the addresses of the own name",
        direction="narrower",
        warning="will give a user whose name ends in * no addresses of others",
        cure="name these addresses",
        page="policy.md",
        severity=Severity.NOTE,
    ),
    Point(
        name="user-without-name",
        there="`${user}` of a user without a name is empty",
        compatible="it is `anonymous`",
        direction="other",
        warning="`${{user}}` of a client without a name will be anonymous; in Qpid Dispatch it may be empty",
        cure="write substituteAnonymous: no, or authenticatePeer: yes at the listeners",
        page="policy.md",
        severity=Severity.NOTE,
    ),
    Point(
        name="group-without-users",
        there="users without a name belong to a group without `users`",
        compatible="such a group has no users",
        direction="narrower",
        warning="the group {group} will have no users",
        cure="add users, or leave the group out; $default with allowUnknownUser: yes is for users without a name",
        page="policy.md",
        severity=Severity.NOTE,
    ),
    Point(
        name="hosts-unknown-there",
        there="`remoteHosts` knows no networks, and takes a host name with a hyphen for a range: the vhost is refused",
        compatible="both are understood",
        direction="other",
        warning="will admit the group {group} by a network or a host name with a hyphen; Qpid Dispatch has neither",
        cure="write ranges A-B if that router is to read the file too",
        page="policy.md",
        severity=Severity.NOTE,
    ),
)


def limit(doc: str, name: str) -> Any:
    return integer(doc, MAX_CONNECTIONS, high=MAX_CONNECTIONS, extra=False, head=Head(name, needs=False))


@entity(
    "vhost",
    "The users that may connect under a host name, and their rights. Any number.",
    "vhost",
    operations=("CREATE", "UPDATE", "DELETE"),
    points=(
        Point(
            name="idle-vhost",
            compatible="a vhost without enableVhostPolicy applies to no connection",
            warning="the rules of this vhost will apply to no connection",
            cure="write policy { enableVhostPolicy: yes }",
            page="policy.md",
        ),
    ),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class VhostEntity(Entity):
    """The rules for connections to a host name, with its groups of users and quotas."""

    hostname: str = with_points(
        string(
            "The host name that clients ask for in their open; without it `name` is used.",
            old_names=("id",),
            required=True,
            update=False,
            head=Head("hostname", needs=False),
        ),
        Point(
            name="host-names-folded",
            there="compares host names with their case and port",
            compatible="without, so that more clients belong to a vhost whose name is written with capitals or a port",
            direction="wider",
            warning="will apply to clients that ask for {key}, however they spell it; in Qpid Dispatch only to those "
            "that ask for {name} exactly",
            cure="write {key}",
            page="policy.md",
            severity=Severity.PROBLEM,
        ),
    )
    aliases: tuple[str, ...] = string(
        "Other host names for it, separated by commas.", (), parse=access.aliases, entries=True
    )
    max_connections: int = limit("Connections open at once.", "maxConnections")
    max_message_size: int | None = integer(
        "The largest message in bytes; 0 means no limit.",
        default_doc="the policy's",
        high=2**63 - 1,
        head=Head("maxMessageSize"),
    )
    max_connections_per_user: int = limit("Connections of one user open at once.", "maxConnectionsPerUser")
    max_connections_per_host: int = integer(
        "Connections from one host open at once; with secureDefaults an IPv6 network of 64 bits counts as one host.",
        MAX_CONNECTIONS,
        high=MAX_CONNECTIONS,
        old_names=("maxConnectionsPerRemoteHost",),
        head=Head("maxConnectionsPerHost", needs=False),
    )
    allow_unknown_user: bool = boolean(
        "A user that no group names belongs to the group `$default`.", False, head=Head("allowUnknownUser", needs=False)
    )
    apply_to: str = choice(
        "Which connections a change of these rules applies to: all, or those that open afterwards.",
        "all",
        values=("new", "all"),
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
    quota_mode: str = mode("enforce")
    sample_messages: int = integer(
        "The router records one of so many messages of its users with its body, in record logs with "
        "`message.sampled`, at most 100 in a second; 0 records none.",
        0,
        high=1_000_000_000,
        extra=True,
    )
    sample_bytes: int = integer("At most so many bytes of a body are recorded.", 256, low=1, high=65_536, extra=True)
    sample_hash_fields: frozenset[str] = string(
        "Fields of JSON bodies, separated by commas, whose values are recorded as keyed hashes; `*` is all of a body. "
        "If a body does not have these fields, the router records a hash of the body.",
        frozenset(),
        parse=texts.names,
        extra=True,
    )
    sample_key_file: str | None = path(
        "The key of these hashes: a file of 16 to 4096 bytes.", parse=files.readable_file, extra=True
    )
    groups: Mapping[str, GroupSettings] = with_points(
        mapping(
            "Groups of users: the name of each, and a map of the rights of its users.",
            factory=lambda: NOTHING,
            shown=NOTHING,
            default_doc="none: no user may connect",
            parse=parse_groups,
        ),
        Point(
            name="unknown-in-group",
            compatible="an unknown attribute of a group is ignored",
            strict="the file is refused",
            warning="it will be ignored",
            cure="leave it out",
            page="policy.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="group-management",
            compatible="a group without `management` may do everything through `$management`, if its "
            "targets let it send there",
            strict="it may do nothing there",
            warning="will let users of the group {group} do everything through $management",
            cure="write management: read, or another level",
            page="policy.md",
        ),
        Point(
            name="unproven-name",
            compatible="`${user}` in addresses is `anonymous` for a user who did not authenticate",
            strict="such a user has no addresses with `${user}`, unless substituteAnonymous: yes is given",
            page="policy.md",
        ),
        Point(
            name="open-group",
            compatible="a group that admits users without a name from every host is served",
            warning="will let in clients without a name from every host, through {listener}",
            cure="name the hosts, or write authenticatePeer: yes there",
            page="policy.md",
        ),
        Point(
            name="open-user-entry",
            compatible="`${user}*` covers what begins with the user's name, also with a longer name",
            warning="'{entry}' will let a user reach those of each user whose name begins with the same letters",
            cure="write {closed}",
            page="policy.md",
        ),
        Point(
            name="longer-users",
            compatible="an entry with `${user}.` or `${user}/`, or a pattern with a wildcard before `${user}`, covers "
            "addresses of users whose names begin or end with the user's, beside a separator",
            strict="users whose names have `.` or `/` have no addresses with `${user}` where such an entry is, unless "
            "substituteSeparated: yes is given",
            warning="'{entry}' of the group {group} will let a user `a` reach the addresses of users as `a.b` or `b/a`",
            cure="write substituteSeparated: no in the group, or keep `.` and `/` out of the names of users",
            page="policy.md",
        ),
        Point(
            name="user-as-tenant",
            compatible="at a listener without multiTenant an entry with `${user}` also covers addresses of tenants, "
            "`TENANT/...`",
            strict="entries with `${user}` cover nothing for a user by whose name one of them would, unless "
            "tenantAddresses: yes is given",
            warning="'{entry}' of the group {group} will let a user whose name fits reach addresses of the tenant "
            "{tenant}, through {listeners}",
            cure="put text before the user's name with which no tenant's name begins, as in users.{entry}; or write "
            "tenantAddresses: no",
            page="multi-tenancy.md",
        ),
        Point(
            name="tenant-without-tenancy",
            compatible="clients of a listener without multiTenant may ask for the vhost of a tenant, and its addresses "
            "and its `management` are those of the whole router there",
            strict="a client without a tenant is not admitted to a group of a tenant's vhost that has `*` or "
            "management of the whole router, unless tenantAddresses: yes is given",
            warning="clients of {listeners} have no tenant and may ask for this vhost, and there {what} of the group "
            "{group} means the whole router",
            cure="write policyVhost at {listeners}, with the name of a vhost that is no tenant's; or "
            "tenantAddresses: no in the group",
            page="multi-tenancy.md",
        ),
        Point(
            name="no-links",
            compatible="`maxSenders: 0` and `maxReceivers: 0` of a group allow any number",
            strict="they allow none",
            warning="0 will allow the group {group} any number",
            cure="write a number; to allow none, leave out sources or targets",
            page="policy.md",
        ),
        *DIFFERENCES_OF_GROUPS,
    )

    @property
    def identity(self) -> str:
        return f"vhost/{self.hostname}"

    def _default_name(self) -> str:
        return self.identity
