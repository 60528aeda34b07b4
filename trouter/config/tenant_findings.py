"""Findings about vhosts by which clients without a tenant reach the addresses of tenants (docs/multi-tenancy.md).

A tenant's address `q` is the router's address `TENANT/q`. At a listener without multiTenant the entries of a group are
compared with addresses in that form, and `management` is about the whole router.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import takewhile
from typing import Final

from trouter.config.access import USER_TOKEN, WILDCARDS, host_key, is_separated, leads_to_management
from trouter.config.configuration import ROUTER_ROLES, Configuration
from trouter.config.entities import ConnectorEntity, GroupSettings, ListenerEntity, VhostEntity
from trouter.config.logins import speaks_amqp
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of
from trouter.config.workers import WORKERS_HOST
from trouter.core.patterns import POLICIES, PatternTree, follow
from trouter.core.tenants import space_of

#: The group of users that no group names, and the word for every user with a name.
_DEFAULT_GROUP: Final = "$default"
_EVERY_USER: Final = "*"
#: The name of any user, as tokens of a pattern: without a separator, and with any number of them.
_PLAIN_NAME: Final = "*"
_LONG_NAME: Final = "*/#"


def tenant_findings(configuration: Configuration) -> Iterator[Problem]:
    """Yield findings about vhosts that tenants share with others, and users who can be named as a tenant."""
    tenants = _tenants(configuration) if configuration.policy.enable_vhost_policy else ()
    if not tenants:
        return
    spaces = _Spaces(tenants)
    plain = [each for each in configuration.listeners if not each.multi_tenant and _has_clients(each)]
    open_to = [(each.name, _vhosts_of(configuration, each.policy_vhost)) for each in plain]
    closed = any(group.entry_for_longer_names() for vhost in configuration.vhosts for group in vhost.groups.values())
    for vhost in configuration.vhosts:
        listeners = ", ".join(name for name, vhosts in open_to if vhost.hostname in vhosts)
        if not listeners:
            continue
        for name, group in vhost.groups.items():
            users = _users_of(vhost, name)
            if users == ():
                continue
            finding = partial(finding_of, entity=vhost, attribute=f"groups.{name}", group=name, listeners=listeners)
            if vhost.hostname in tenants and (what := _for_all(group)):
                yield finding("tenant-without-tenancy", what=what)
            entry, tenant = spaces.find_reached(group, users, separated=group.substitute_separated or not closed)
            if entry:
                yield finding("user-as-tenant", entry=entry, tenant=tenant)


def _has_clients(listener: ListenerEntity) -> bool:
    return listener.host != WORKERS_HOST and listener.role not in ROUTER_ROLES and speaks_amqp(listener)


def _vhosts_of(configuration: Configuration, policy_vhost: str | None) -> frozenset[str]:
    """Return the host names of the vhosts that clients of a listener with this policyVhost may belong to."""
    every = frozenset(vhost.hostname for vhost in configuration.vhosts)
    if not policy_vhost:
        return every
    named = _called(configuration, policy_vhost)
    if named or configuration.policy.enable_vhost_name_patterns:
        return named or every
    return _called(configuration, configuration.policy.default_vhost)


def _called(configuration: Configuration, name: str) -> frozenset[str]:
    """Return the host name of the vhost that has ``name`` for its host name or an alias; empty without one."""
    key = host_key(name)
    return frozenset(
        vhost.hostname for vhost in configuration.vhosts if key in map(host_key, (vhost.hostname, *vhost.aliases))
    )


def _tenants(configuration: Configuration) -> frozenset[str]:
    """Return the host names of the vhosts of tenants: those that a multiTenant listener names, or may admit.

    The default vhost, and one that a connector or a listener without tenants names, are for others unless a multiTenant
    listener names it.
    """
    named: set[str] = set()
    admitted: set[str] = set()
    others = set(_called(configuration, configuration.policy.default_vhost))
    ends: tuple[ListenerEntity | ConnectorEntity, ...] = (*configuration.listeners, *configuration.connectors)
    for end in ends:
        vhosts = _vhosts_of(configuration, end.policy_vhost)
        if isinstance(end, ListenerEntity) and end.multi_tenant:
            if _has_clients(end):
                (named if end.policy_vhost else admitted).update(vhosts)
        elif end.policy_vhost:
            others |= vhosts
    return frozenset(named | (admitted - others))


def _users_of(vhost: VhostEntity, name: str) -> tuple[str, ...] | None:
    """Return the users that the group of this name lists; None if users may have any name."""
    users = vhost.groups[name].users
    return None if _EVERY_USER in users or (name == _DEFAULT_GROUP and vhost.allow_unknown_user) else users


def _for_all(group: GroupSettings) -> str:
    """Return what a tenant's group has that means the whole router to a client without a tenant; empty for nothing."""
    if "*" in (*group.sources, *group.targets):
        return "`*`"
    for pattern in (*group.source_pattern, *group.target_pattern):
        if POLICIES.split(pattern)[0] in WILDCARDS:
            return f"`{pattern}`"
    managed = group.management != "none" and any(map(leads_to_management, (*group.targets, *group.target_pattern)))
    return f"management: {group.management}" if managed else ""


class _Spaces:
    """The first parts of the addresses of tenants."""

    def __init__(self, tenants: Iterable[str]) -> None:
        self._tenants = {space_of(name): name for name in tenants}
        self._sorted = sorted(self._tenants)
        #: By entry, user and whether names with separators count: the space that was found.
        self._found: dict[tuple[str, str | None, bool], str] = {}

    def find_reached(self, group: GroupSettings, users: tuple[str, ...] | None, *, separated: bool) -> tuple[str, str]:
        """Return an entry by which the name of a user reaches a tenant that the entry does not name, and the tenant.

        Both are empty if there is none. ``users``: None for any. ``separated``: names with separators have addresses.
        """
        for entries, find in (
            ((*group.sources, *group.targets), self._find_by_text),
            ((*group.source_pattern, *group.target_pattern), self._find_by_pattern),
        ):
            for entry in entries:
                if not USER_TOKEN.search(entry) or entry.partition("/")[0] in self._tenants:
                    continue
                for user in (None,) if users is None else users:
                    if user is not None and is_separated(user) and not separated:
                        continue
                    key = entry, user, separated
                    if key not in self._found:
                        self._found[key] = find(*key)
                    if space := self._found[key]:
                        return entry, self._tenants[space]
        return "", ""

    def _beginning_with(self, text: str) -> Iterator[str]:
        at = bisect_left(self._sorted, text)
        return takewhile(lambda space: space.startswith(text), self._sorted[at:])

    def _find_by_text(self, entry: str, user: str | None, separated: bool) -> str:
        """Return a space of which an entry of `sources` or `targets` covers an address; empty for none."""
        is_open = entry.endswith("*")
        before, after = USER_TOKEN.split(entry.removesuffix("*"))
        if user is not None:
            text = before + user + after
            head, slash, _ = text.partition("/")
            if slash:
                return head if head in self._tenants else ""
            return next(self._beginning_with(text), "") if is_open else ""
        if "/" in before:
            return ""
        for space in self._beginning_with(before):
            rest = f"{space[len(before) :]}/"
            if separated or any(_continues(rest[end:], after, is_open) for end in _ends_of_names(rest)):
                return space
        return ""

    def _find_by_pattern(self, entry: str, user: str | None, separated: bool) -> str:
        """Return a space of which an entry of `sourcePattern` or `targetPattern` covers an address; empty for none."""
        name = user if user is not None else _LONG_NAME if separated else _PLAIN_NAME
        tree: PatternTree[bool] = PatternTree(POLICIES)
        tree.insert(USER_TOKEN.sub(lambda _: name, entry), True)
        for space in self._sorted:
            reached = tree.start()
            for token in POLICIES.split(space):
                reached = follow(reached, token)
            if any(node.is_many or node.exact or node.one is not None for node in reached):
                return space
        return ""


def _ends_of_names(text: str) -> Iterator[int]:
    """Yield the positions at which a user's name without separators may end that begins a text."""
    return takewhile(lambda end: not is_separated(text[:end]), range(1, len(text)))


def _continues(rest: str, after: str, is_open: bool) -> bool:
    """Return whether a text that begins with ``rest`` can be ``after``, or begin with it if ``is_open``."""
    return after.startswith(rest) or (is_open and rest.startswith(after))
