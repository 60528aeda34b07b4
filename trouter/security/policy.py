"""The policy: the decision when a connection opens, and the rules for its links afterwards.

`Policy.compile` compiles the configuration. `admit` chooses the vhost (security.md 4.3) and the group (4.4), checks the
group's `remoteHosts` (4.5), and returns an Admission, bound to the user, or a Denial. `trouter.security.counts` counts
connections (4.10); texts for peers are made elsewhere. Nothing here waits, and returned objects never change: a change
of the configuration makes another Policy, which shares its unchanged parts with the former one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum, StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from trouter.config.collector import held_back
from trouter.config.entities import GroupSettings, PolicyEntity, VhostEntity
from trouter.config.hosts import HostRange
from trouter.core.addresses import plain
from trouter.hooks import Permissions
from trouter.security.choice import ChosenBy, VhostChoice
from trouter.security.coverage import uncovered
from trouter.security.entries import EntryError, plain_entries
from trouter.security.hosts import HostRules, Resolved, names_by_address
from trouter.security.names import NO_ENTRY, NameRules
from trouter.security.patterns import UNDECIDED, PatternRules
from trouter.security.quotas import QuotaRule, rules_of
from trouter.security.settings import Settings, largest_message, numbers_and_flags, settings_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

DEFAULT_GROUP: Final = "$default"
CONNECTOR_GROUP: Final = "$connector"
#: In `users`: every user with a name.
EVERY_USER: Final = "*"
#: The text of `${user}` for users without a name, if the group substitutes it for them.
ANONYMOUS: Final = "anonymous"


class Reason(StrEnum):
    """Why a connection is denied; stable words for records and counters."""

    NO_VHOST = "no-vhost"
    NO_GROUP = "no-group"
    NO_CONNECTOR_GROUP = "no-connector-group"
    REMOTE_HOST = "remote-host"
    BAD_PERMISSIONS = "bad-permissions"
    PLUGIN = "plugin"
    MAX_CONNECTIONS = "max-connections"
    MAX_CONNECTIONS_PER_USER = "max-connections-per-user"
    MAX_CONNECTIONS_PER_HOST = "max-connections-per-host"
    QUOTA = "quota"
    DECISION = "decision"


class MemberBy(Enum):
    """Why a user is in a group."""

    LISTED = "listed"
    EVERY_USER = "every user"
    UNKNOWN_USER = "allowUnknownUser"
    CONNECTOR = "connector"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on an address, and its rule: `VHOST:GROUP:ATTRIBUTE:N`, where N counts entries from 1.

    N is `none` if no entry covers the address, and `undecided` if the search was given up.
    """

    allowed: bool
    rule: str

    def __bool__(self) -> bool:
        return self.allowed


@dataclass(frozen=True, slots=True)
class Denial:
    """The refusal of a connection. `vhost` and `group` are empty if none was found."""

    reason: Reason
    vhost: str = ""
    group: str = ""

    @property
    def rule(self) -> str:
        """The deciding rule: the vhost and the group as far as they were found, and the reason."""
        return ":".join(part for part in (self.vhost, self.group, self.reason.value) if part)

    def __bool__(self) -> bool:
        return False


class Limits(NamedTuple):
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
        return cls._made(NameRules, texts, plain_entries(texts))

    @classmethod
    def of_patterns(cls, texts: tuple[str, ...]) -> Entries:
        """Return the entries of `sourcePattern` or `targetPattern`; EntryError if one is invalid."""
        return cls._made(PatternRules, texts, plain_entries(texts, patterns=True))

    @classmethod
    def _made(
        cls, make: Callable[[Iterable[str]], NameRules | PatternRules], texts: tuple[str, ...], plainly: tuple[str, ...]
    ) -> Entries:
        written = make(texts)
        return cls(written, written if len(plainly) == len(texts) else make(plainly), texts)

    def find(self, address: str, user: str) -> int:
        """Return the number of the entry that covers `address` as it is written, NO_ENTRY, or UNDECIDED.

        The router's spelling must be allowed too: else `pub:/secret`, which `pub*` covers, would reach `secret`.
        """
        number = self.written.find(address, user)
        meant = plain(address)
        if number <= NO_ENTRY or meant == address:
            return number
        found = self.plain.find(meant, user)
        return number if found > NO_ENTRY else found


class Rules(NamedTuple):
    """The rules for receiving or for sending: the first part of their ids, and the entries."""

    label: str
    entries: Entries

    def judge(self, address: str, user: str) -> Verdict:
        """Return the decision on `address`; entries with `${user}` cover nothing if `user` is empty."""
        number = self.entries.find(address, user)
        if number > NO_ENTRY:
            return Verdict(True, f"{self.label}:{number}")
        return Verdict(False, f"{self.label}:{'undecided' if number == UNDECIDED else 'none'}")

    def uncovered(self, pattern: str, user: str) -> str | None:
        """Return an address that a link route's ``pattern`` takes and no entry covers, None if none.

        PatternError if the pattern has no token; TooComplexError.
        """
        patterns = isinstance(self.entries.written, PatternRules)
        return uncovered(pattern, self.entries.texts, patterns=patterns, user=user)


@dataclass(frozen=True, slots=True)
class Admission:
    """The terms under which a connection may open. `vhost` is empty if no vhost applies."""

    vhost: str
    group: str
    user: str
    settings: Settings
    sources: Rules
    targets: Rules
    limits: Limits
    #: The text of `${user}`; empty if entries with it cover nothing.
    user_text: str = ""
    chosen_by: ChosenBy | None = None
    member_by: MemberBy | None = None
    #: The number of the entry of `remoteHosts`; 0 if they were not checked.
    host_entry: int = 0
    #: The quotas for all, for each user and for each host.
    quotas: tuple[QuotaRule, ...] = ()
    #: No policy applies to the connection: everything is allowed.
    unrestricted: bool = False

    def may_receive(self, address: str) -> Verdict:
        """Return whether a receiver may have `address` for its source."""
        return self.sources.judge(address, self.user_text)

    def may_send(self, address: str) -> Verdict:
        """Return whether a sender may have `address` for its target, or send messages to it."""
        return self.targets.judge(address, self.user_text)

    @property
    def rule(self) -> str:
        """The rule that admitted the connection."""
        if not self.vhost and not self.group:
            return self.sources.label
        if not self.host_entry:
            return f"{self.vhost}:{self.group}"
        return f"{self.vhost}:{self.group}:remoteHosts:{self.host_entry}"


class Group(NamedTuple):
    """A group of a vhost, compiled: its settings, its hosts, and the rules for addresses."""

    name: str
    settings: Settings
    hosts: HostRules
    sources: Rules
    targets: Rules
    limits: Limits
    quotas: tuple[QuotaRule, ...]
    substitute_anonymous: bool


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

    def vhost(self, entity: VhostEntity) -> Vhost:
        groups = {name: self._group(name, group, entity) for name, group in entity.groups.items()}
        by_user = {user: groups[name] for name, group in entity.groups.items() for user in group.users}
        return Vhost(
            entity.hostname,
            entity,
            self._max_message_size,
            groups,
            by_user,
            by_user.get(EVERY_USER),
            groups.get(DEFAULT_GROUP) if entity.allow_unknown_user else None,
        )

    def _group(self, name: str, group: GroupSettings, vhost: VhostEntity) -> Group:
        per_user, per_host = group.max_connections_per_user, group.max_connections_per_host
        label = f"{vhost.hostname}:{name}"
        return Group(
            name,
            self._settings(group, vhost),
            _once(self._hosts, HostRules, group.remote_hosts),
            self._rules(label, "source", group.sources, group.source_pattern),
            self._rules(label, "target", group.targets, group.target_pattern),
            Limits(
                vhost.max_connections,
                vhost.max_connections_per_user if per_user is None else per_user,
                vhost.max_connections_per_host if per_host is None else per_host,
            ),
            rules_of(vhost, name, group),
            group.substitute_anonymous,
        )

    def _settings(self, group: GroupSettings, vhost: VhostEntity) -> Settings:
        largest = largest_message(group.max_message_size, vhost.max_message_size, self._max_message_size)
        key = (largest, *numbers_and_flags(group))
        if key not in self._made_settings:
            self._made_settings[key] = settings_of(group, largest)
        return self._made_settings[key]

    def _rules(self, label: str, what: str, names: tuple[str, ...], patterns: tuple[str, ...]) -> Rules:
        if patterns:
            return Rules(f"{label}:{what}Pattern", _once(self._patterns, Entries.of_patterns, patterns))
        return Rules(f"{label}:{what}s", _once(self._names, Entries.of_names, names))


def _once(made: dict[K, V], make: Callable[[K], V], key: K) -> V:
    found = made.get(key)
    if found is None:
        found = made[key] = make(key)
    return found


#: Settings of a client without vhost and with permissions of an authentication service, which limit its addresses.
GRANTED: Final = Settings(allow_dynamic_source=True, allow_anonymous_sender=True)
_ALL_ALLOWED: Final[dict[str, Any]] = {row.name: True for row in fields(Settings) if row.name.startswith("allow_")}
UNRESTRICTED: Final = Settings(**_ALL_ALLOWED)


NO_POLICY: Final = Rules("no-policy", Entries.of_names(("*",)))
NO_LIMITS: Final = Limits(*[2**31 - 1] * 3)
#: First part of the rules that an authentication service grants.
SERVICE: Final = "auth-service"


@dataclass(frozen=True, slots=True)
class Policy:
    """The compiled policy of a configuration; `compile` makes it."""

    entity: PolicyEntity
    vhosts: Mapping[str, Vhost]
    choice: VhostChoice[Vhost]
    #: The names in `remoteHosts` to look up, and the results.
    host_names: frozenset[str]
    resolved: Resolved = field(default_factory=dict)

    @classmethod
    def compile(
        cls,
        entity: PolicyEntity,
        vhosts: Iterable[VhostEntity],
        addresses: Mapping[str, Iterable[str]] | None = None,
        previous: Policy | None = None,
    ) -> Policy:
        """Return the policy of a configuration; EntryError if it has an entry that `trouter.config` would refuse.

        addresses: the resolved addresses of `host_names`, as text. previous: the former policy, whose unchanged parts
        are reused, also its addresses if none are given.
        """
        with held_back():
            policy = cls._compiled(entity, vhosts, previous)
        return policy if addresses is None else policy.with_addresses(addresses)

    @classmethod
    def _compiled(cls, entity: PolicyEntity, vhosts: Iterable[VhostEntity], previous: Policy | None) -> Policy:
        compiler = _Compiler(entity.max_message_size)
        before = {} if previous is None else previous.vhosts
        compiled: dict[str, Vhost] = {}
        for one in vhosts:
            old = before.get(one.hostname)
            same = old is not None and old.entity is one and old.max_message_size == entity.max_message_size
            compiled[one.hostname] = old if old is not None and same else compiler.vhost(one)
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
            {} if previous is None else previous.resolved,
        )

    def with_addresses(self, addresses: Mapping[str, Iterable[str]]) -> Policy:
        """Return the same policy with other addresses of `host_names`."""
        return replace(self, resolved=names_by_address(addresses))

    def admit(
        self,
        hostname: str | None,
        user: str,
        host: str,
        *,
        authenticated: bool,
        policy_vhost: str | None = None,
        connector: bool = False,
        permissions: Permissions | None = None,
    ) -> Admission | Denial:
        """Return the decision on a connection that opens, without its links and the limits of connections.

        hostname: of its open. user: empty without one; `authenticated` if it is proven. host: the peer's address, as
        text. policy_vhost: of the listener or connector, empty or None without one. connector: the router dialled;
        without policy_vhost such a connection is unrestricted. permissions: the grant of an authentication service.
        """
        if not self.entity.enable_vhost_policy or (connector and not policy_vhost):
            admission: Admission | Denial = _without_vhost(user)
        elif connector:
            admission = self._to_connector(policy_vhost or "")
        else:
            admission = self._to_vhost(policy_vhost or hostname or "", user, host, authenticated)
        if permissions is None or isinstance(admission, Denial):
            return admission
        return _with_permissions(admission, permissions)

    def _to_connector(self, policy_vhost: str) -> Admission | Denial:
        found = self.choice.find(policy_vhost)
        if found is None:
            return Denial(Reason.NO_VHOST)
        vhost, chosen_by = found
        group = vhost.groups.get(CONNECTOR_GROUP)
        if group is None:
            return Denial(Reason.NO_CONNECTOR_GROUP, vhost.name)
        settings = replace(group.settings, max_frame_size=None, max_session_window=None, max_sessions=None)
        return Admission(
            vhost.name,
            group.name,
            "",
            settings,
            group.sources,
            group.targets,
            NO_LIMITS,
            ANONYMOUS if group.substitute_anonymous else "",
            chosen_by,
            MemberBy.CONNECTOR,
        )

    def _to_vhost(self, name: str, user: str, host: str, authenticated: bool) -> Admission | Denial:
        found = self.choice.choose(name)
        if found is None:
            return Denial(Reason.NO_VHOST)
        vhost, chosen_by = found
        assigned = vhost.group_of(user)
        if assigned is None:
            return Denial(Reason.NO_GROUP, vhost.name)
        group, member_by = assigned
        host_entry = group.hosts.find(host, self.resolved)
        if not host_entry:
            return Denial(Reason.REMOTE_HOST, vhost.name, group.name)
        user_text = user if authenticated else ""
        if group.substitute_anonymous:
            user_text = user or ANONYMOUS
        return Admission(
            vhost.name,
            group.name,
            user,
            group.settings,
            group.sources,
            group.targets,
            group.limits,
            user_text,
            chosen_by,
            member_by,
            host_entry,
            group.quotas,
        )


def _without_vhost(user: str) -> Admission:
    """Return the terms of a connection without a vhost: everything is allowed, in messages of any size."""
    return Admission("", "", user, UNRESTRICTED, NO_POLICY, NO_POLICY, NO_LIMITS, user, unrestricted=True)


def _with_permissions(admission: Admission, permissions: Permissions) -> Admission | Denial:
    """Return the admission with a service's grant instead of sources and targets; patterns stay (security.md 3.3)."""
    try:
        sources = Rules(f"{SERVICE}:sources", Entries.of_names(tuple(permissions.sources)))
        targets = Rules(f"{SERVICE}:targets", Entries.of_names(tuple(permissions.targets)))
    except EntryError:
        return Denial(Reason.BAD_PERMISSIONS, admission.vhost, admission.group)
    if admission.unrestricted:
        settings = GRANTED
    else:
        settings = replace(admission.settings, allow_dynamic_source=True, allow_anonymous_sender=True)
    return replace(
        admission,
        settings=settings,
        sources=admission.sources if isinstance(admission.sources.entries.written, PatternRules) else sources,
        targets=admission.targets if isinstance(admission.targets.entries.written, PatternRules) else targets,
        unrestricted=False,
    )
