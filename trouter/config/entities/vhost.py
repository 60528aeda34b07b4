"""Who may do what: the policy and its vhosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trouter.config import access, files, texts
from trouter.config.entities.base import NOTHING, Entity, Single, entity
from trouter.config.entities.group import LEVELS, MAX_CONNECTIONS, GroupSettings
from trouter.config.entities.held import HeldToQuotas, mode
from trouter.config.groups import parse_groups
from trouter.config.schema import NEXT, boolean, choice, counter, integer, mapping, path, string


@entity("policy", "What holds for all vhosts. At most one.", "policy", singleton=True, extra_operations=("UPDATE",))
@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntity(Single):
    """What holds for all vhosts."""

    max_connections: int = integer("Connections open at once, of all listeners.", MAX_CONNECTIONS)
    max_message_size: int = integer(
        "The largest message in octets, where neither group nor vhost say otherwise; 0 means no limit.",
        0,
        high=2**63 - 1,
    )
    enable_vhost_policy: bool = boolean("Hold every connection to the rules of its vhost.", False)
    enable_vhost_name_patterns: bool = boolean(
        "Names of vhosts are patterns: `*` is one token, `#` any number of them.", False
    )
    policy_dir: str = path(
        "A directory; the vhosts in its files `*.json`, taken in the order of their names, are read too.",
        "",
        parse=files.directory,
    )
    default_vhost: str = string(
        "The vhost of connections that ask for one which there is not; empty: none.", "$default"
    )
    oversize_action: str = choice(
        "What a message that is too large ends: its link, or its connection as in the older router.",
        "connection",
        values=("link", "connection"),
        reload=NEXT,
        extra=True,
    )
    router_connections: int = integer(
        "Connections of other routers that are let in beyond maxConnections, so that clients cannot keep them out.",
        64,
        high=MAX_CONNECTIONS,
        extra=True,
    )
    router_management: str = choice(
        "With vhost policy: what requests to `$management` may do that come from another router, whose user is not "
        "known here: nothing, look, operate what runs, or everything.",
        "admin",
        values=LEVELS,
        default_doc="`admin`; with secureDefaults `none`",
        extra=True,
    )
    host_names_seconds: int = integer(
        "How often the host names in remoteHosts are looked up; in between, or if that fails, the last answer counts.",
        300,
        low=1,
        high=86400,
        extra=True,
    )
    connections_processed: None = counter("Connections accepted or refused.")
    connections_denied: None = counter("Connections refused.")
    connections_current: None = counter("Connections open now.")
    links_denied: None = counter("Links refused.")
    max_message_size_denied: None = counter("Messages refused as too large.")
    total_denials: None = counter("Connections refused for their number, sessions, links and messages too large.")
    vhost_connections_denied: None = counter("Connections that the policy refused when they opened.", extra=True)
    messages_denied: None = counter("Messages without a link of their own to an address refused for it.", extra=True)
    user_id_denied: None = counter("Messages refused for the name of another user.", extra=True)
    management_denied: None = counter("Requests refused by the agent.", extra=True)


def limit(doc: str) -> Any:
    return integer(doc, MAX_CONNECTIONS, high=MAX_CONNECTIONS, extra=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Vhost(Entity):
    """Who may connect under a host name."""

    hostname: str = string(
        "The host name that clients ask for in their Open; without it `name` is taken.",
        old_names=("id",),
        required=True,
        update=False,
    )
    aliases: tuple[str, ...] = string(
        "Other host names for it, separated by commas.", (), parse=access.aliases, entries=True
    )
    max_connections: int = limit("Connections open at once.")
    max_message_size: int | None = integer(
        "The largest message in octets; 0 means no limit.", default_doc="the policy's", high=2**63 - 1
    )
    max_connections_per_user: int = limit("Connections of one user open at once.")
    max_connections_per_host: int = integer(
        "Connections from one host open at once.",
        MAX_CONNECTIONS,
        high=MAX_CONNECTIONS,
        old_names=("maxConnectionsPerRemoteHost",),
    )
    allow_unknown_user: bool = boolean("Users whom no group names belong to the group `$default`.", False)
    apply_to: str = choice(
        "Whom a change of these rules is for: all connections, or those that open afterwards.",
        "all",
        values=("new", "all"),
        extra=True,
    )


@entity(
    "vhost",
    "Who may connect under a host name, and what they may do. Any number.",
    "vhost",
    operations=("CREATE", "UPDATE", "DELETE"),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class VhostEntity(HeldToQuotas, _Vhost):
    """Who may connect under a host name, what they may do, and how much."""

    quota_mode: str = mode("enforce")
    sample_messages: int = integer(
        "Of so many messages that its users send, one is recorded with its body, in logs that want `message.sampled`, "
        "and at most 100 in a second; 0 records none.",
        0,
        high=1_000_000_000,
        extra=True,
    )
    sample_bytes: int = integer("The octets of a body that are recorded at most.", 256, low=1, high=65_536, extra=True)
    sample_hash_fields: frozenset[str] = string(
        "Fields of JSON bodies, separated by commas, whose values are recorded as keyed hashes; `*` is all of a body. "
        "A body in which they cannot be found is recorded as a hash.",
        frozenset(),
        parse=texts.names,
        extra=True,
    )
    sample_key_file: str | None = path(
        "The key of these hashes: a file of 16 to 4096 octets.", parse=files.readable_file, extra=True
    )
    groups: Mapping[str, GroupSettings] = mapping(
        "Groups of users: a name, and a map of what they may do.",
        factory=lambda: NOTHING,
        shown=NOTHING,
        default_doc="none: no user may connect",
        parse=parse_groups,
    )

    @property
    def identity(self) -> str:
        return f"vhost/{self.hostname}"

    def _default_name(self) -> str:
        return self.identity
