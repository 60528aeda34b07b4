"""The policy of a configuration, compiled: its vhosts, their groups, and the rules of these for addresses.

`Policy.compile` compiles the configuration; `judge` decides by what is here. Nothing here waits, and the objects never
change: a change of the configuration makes another Policy, which shares its unchanged parts with the former one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

from trouter.config.collector import held_back
from trouter.config.entities import GroupSettings, PolicyEntity, VhostEntity
from trouter.config.hosts import HostRange, place_of
from trouter.config.tenant_spaces import TenantSpaces, reach_of_all
from trouter.policy.choice import VhostChoice
from trouter.policy.coverage import uncovered
from trouter.policy.entries import plain_entries
from trouter.policy.hosts import HostRules, Resolved, names_by_address
from trouter.policy.kinds import MemberBy
from trouter.policy.names import NameRules
from trouter.policy.patterns import PatternRules
from trouter.policy.quota_rules import QuotaRule, rules_of
from trouter.policy.settings import Settings, largest_message, numbers_and_flags, settings_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

DEFAULT_GROUP: Final = "$default"
#: In `users`: every user with a name.
EVERY_USER: Final = "*"


class ConnectionLimits(NamedTuple):
    """Limits of the connections open at once in a vhost: of all, of one user, from one host. 0 allows none."""

    connections: int
    per_user: int
    per_host: int


class Entries(NamedTuple):
    """The entries of one attribute, as written, and with those in the router's spelling added (`plain`)."""

    written: NameRules | PatternRules
    plain: NameRules | PatternRules
    texts: tuple[str, ...]

    @classmethod
    def of_names(cls, texts: tuple[str, ...]) -> Entries:
        """Return the entries of `sources` or `targets`; EntryError if one is invalid."""
        return cls._make_entries(NameRules, texts, plain_entries(texts))

    @classmethod
    def of_patterns(cls, texts: tuple[str, ...]) -> Entries:
        """Return the entries of `sourcePattern` or `targetPattern`; EntryError if one is invalid."""
        return cls._make_entries(PatternRules, texts, plain_entries(texts, patterns=True))

    @classmethod
    def _make_entries(
        cls, make: Callable[[Iterable[str]], NameRules | PatternRules], texts: tuple[str, ...], plainly: tuple[str, ...]
    ) -> Entries:
        written = make(texts)
        return cls(written, written if len(plainly) == len(texts) else make(plainly), texts)


class AddressRules(NamedTuple):
    """The rules for receiving or for sending: the first part of their ids, and the entries."""

    label: str
    entries: Entries

    def find_uncovered(self, pattern: str, user: str) -> str | None:
        """Return an address that a link route's ``pattern`` takes and no entry covers, None if none.

        PatternError if the pattern has no token; TooComplexError.
        """
        patterns = isinstance(self.entries.written, PatternRules)
        return uncovered(pattern, self.entries.texts, patterns=patterns, user=user)


class Group(NamedTuple):
    """A group of a vhost, compiled: its settings, its hosts, and the rules for addresses."""

    name: str
    settings: Settings
    hosts: HostRules
    sources: AddressRules
    targets: AddressRules
    limits: ConnectionLimits
    quotas: tuple[QuotaRule, ...]
    substitute_anonymous: bool
    substitute_separated: bool
    tenant_addresses: bool
    #: To a client without a tenant the group means the whole router, if its vhost is a tenant's.
    is_of_all: bool


class Vhost(NamedTuple):
    """A vhost, compiled."""

    name: str
    #: The entity that it was compiled from, and the policy's largest message in bytes.
    entity: VhostEntity
    max_message_size: int
    groups: Mapping[str, Group]
    #: Listed user -> its group.
    by_user: Mapping[str, Group]
    every_user: Group | None
    unknown_user: Group | None
    #: By an entry of a group a user may reach the addresses of a longer name.
    reaches_longer_names: bool

    def group_of(self, user: str) -> tuple[Group, MemberBy] | None:
        """Return the group of a user, and why (security.md 4.4); None without one. The empty name is never listed."""
        if user and user != EVERY_USER and (group := self.by_user.get(user)) is not None:
            return group, MemberBy.LISTED
        if user and self.every_user is not None:
            return self.every_user, MemberBy.EVERY_USER
        return None if self.unknown_user is None else (self.unknown_user, MemberBy.UNKNOWN_USER)


class _Compiler:
    """Compiler of groups and vhosts; equal parts are compiled once."""

    def __init__(self, max_message_size: int) -> None:
        self._max_message_size = max_message_size
        self._names: dict[tuple[str, ...], Entries] = {}
        self._patterns: dict[tuple[str, ...], Entries] = {}
        self._hosts: dict[tuple[HostRange, ...], HostRules] = {}
        self._made_settings: dict[tuple[object, ...], Settings] = {}

    def compile_vhost(self, entity: VhostEntity) -> Vhost:
        groups = {name: self._compile_group(name, group, entity) for name, group in entity.groups.items()}
        by_user = {user: groups[name] for name, group in entity.groups.items() for user in group.users}
        return Vhost(
            entity.hostname,
            entity,
            self._max_message_size,
            groups,
            by_user,
            by_user.get(EVERY_USER),
            groups.get(DEFAULT_GROUP) if entity.allow_unknown_user else None,
            any(group.entry_for_longer_names() for group in entity.groups.values()),
        )

    def _compile_group(self, name: str, group: GroupSettings, vhost: VhostEntity) -> Group:
        per_user, per_host = group.max_connections_per_user, group.max_connections_per_host
        label = f"{vhost.hostname}:{name}"
        return Group(
            name,
            self._compile_settings(group, vhost),
            _once(self._hosts, HostRules, group.remote_hosts),
            self._compile_rules(label, "source", group.sources, group.source_pattern),
            self._compile_rules(label, "target", group.targets, group.target_pattern),
            ConnectionLimits(
                vhost.max_connections,
                vhost.max_connections_per_user if per_user is None else per_user,
                vhost.max_connections_per_host if per_host is None else per_host,
            ),
            rules_of(vhost, name, group),
            group.substitute_anonymous,
            group.substitute_separated,
            group.tenant_addresses,
            bool(reach_of_all(group)),
        )

    def _compile_settings(self, group: GroupSettings, vhost: VhostEntity) -> Settings:
        largest = largest_message(group.max_message_size, vhost.max_message_size, self._max_message_size)
        key = (largest, *numbers_and_flags(group))
        if key not in self._made_settings:
            self._made_settings[key] = settings_of(group, largest)
        return self._made_settings[key]

    def _compile_rules(self, label: str, what: str, names: tuple[str, ...], patterns: tuple[str, ...]) -> AddressRules:
        if patterns:
            return AddressRules(f"{label}:{what}Pattern", _once(self._patterns, Entries.of_patterns, patterns))
        return AddressRules(f"{label}:{what}s", _once(self._names, Entries.of_names, names))


def _once(made: dict[K, V], make: Callable[[K], V], key: K) -> V:
    found = made.get(key)
    if found is None:
        found = made[key] = make(key)
    return found


@dataclass(frozen=True, slots=True)
class Policy:
    """The compiled policy of a configuration; `compile` makes it."""

    entity: PolicyEntity
    vhosts: Mapping[str, Vhost]
    choice: VhostChoice[Vhost]
    #: The names in `remoteHosts` to look up, and the results.
    host_names: frozenset[str]
    #: By an entry of some vhost a user may reach the addresses of a longer name, which has `.` or `/`.
    reaches_longer_names: bool = False
    resolved: Resolved = field(default_factory=dict)
    #: The tenants, which clients of other listeners are kept from.
    tenants: TenantSpaces = field(default_factory=TenantSpaces, compare=False)
    #: With secureDefaults a grant is judged as a group is that lacks the settings, and a network counts as a host.
    secure: bool = False

    @classmethod
    def compile(
        cls,
        entity: PolicyEntity,
        vhosts: Iterable[VhostEntity],
        addresses: Mapping[str, Iterable[str]] | None = None,
        previous: Policy | None = None,
        tenants: Iterable[str] = (),
        secure: bool = False,
    ) -> Policy:
        """Return the policy of a configuration; EntryError if it has an entry that `trouter.config` would refuse.

        addresses: the resolved addresses of `host_names`, as text. previous: the former policy, whose unchanged parts
        are reused, also its addresses if none are given. tenants: the host names of the vhosts of tenants.
        secure: secureDefaults.
        """
        with held_back():
            compiled = cls._compile_vhosts(entity, vhosts, previous)
            policy = replace(compiled, tenants=TenantSpaces(tenants), secure=secure)
        return policy if addresses is None else policy.with_addresses(addresses)

    @classmethod
    def _compile_vhosts(cls, entity: PolicyEntity, vhosts: Iterable[VhostEntity], previous: Policy | None) -> Policy:
        compiler = _Compiler(entity.max_message_size)
        before = {} if previous is None else previous.vhosts
        compiled: dict[str, Vhost] = {}
        for one in vhosts:
            old = before.get(one.hostname)
            same = old is not None and old.entity is one and old.max_message_size == entity.max_message_size
            compiled[one.hostname] = old if old is not None and same else compiler.compile_vhost(one)
        named = ((vhost.name, vhost.entity.aliases, vhost) for vhost in compiled.values())
        return cls(
            entity,
            compiled,
            VhostChoice(named, entity.enable_vhost_name_patterns, entity.default_vhost),
            frozenset(
                host.name
                for vhost in compiled.values()
                for group in vhost.entity.groups.values()
                for host in group.remote_hosts
                if host.name
            ),
            any(vhost.reaches_longer_names for vhost in compiled.values()),
            {} if previous is None else previous.resolved,
        )

    def counted_host(self, host: str) -> str:
        """Return what the limits by host count a client as: with secureDefaults the IPv6 network that it may have."""
        return place_of(host) if self.secure else host

    def with_addresses(self, addresses: Mapping[str, Iterable[str]]) -> Policy:
        """Return the same policy with other addresses of `host_names`."""
        return replace(self, resolved=names_by_address(addresses))
