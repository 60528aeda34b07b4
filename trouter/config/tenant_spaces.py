"""The tenants of a configuration, and what reaches their addresses (docs/multi-tenancy.md).

A tenant's address `q` is the router's address `TENANT/q`. At a listener without multiTenant the entries of a group are
compared with addresses in that form, and `management` is about the whole router.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final

from trouter.config.access import USER_TOKEN, WILDCARDS, is_separated, leads_to_management
from trouter.config.configuration import ROUTER_ROLES, Configuration
from trouter.config.entities import ConnectorEntity, GroupSettings, ListenerEntity
from trouter.config.logins import speaks_amqp
from trouter.config.workers import WORKERS_HOST
from trouter.core.patterns import POLICIES, PatternTree, follow
from trouter.core.tenants import space_of

#: The name of any user, as tokens of a pattern: without a separator, and with any number of them.
_PLAIN_NAME: Final = "*"
_LONG_NAME: Final = "*/#"


def has_clients(listener: ListenerEntity) -> bool:
    """Return whether clients of AMQP connect to a listener."""
    return listener.host != WORKERS_HOST and listener.role not in ROUTER_ROLES and speaks_amqp(listener)


def vhosts_of(configuration: Configuration, policy_vhost: str | None) -> frozenset[str]:
    """Return the host names of the vhosts that clients of a listener with this policyVhost may belong to."""
    if not policy_vhost:
        return configuration.vhost_names
    named = configuration.vhosts_called(policy_vhost)
    if named or configuration.policy.enable_vhost_name_patterns:
        return named or configuration.vhost_names
    return configuration.vhosts_called(configuration.policy.default_vhost)


def tenants_in(configuration: Configuration) -> frozenset[str]:
    """Return the host names of the vhosts of tenants, none without vhost policy.

    They are those that a multiTenant listener names, or may admit. The default vhost, and one that a connector or a
    listener without tenants names, are for others unless a multiTenant listener names it.
    """
    if not configuration.policy.enable_vhost_policy:
        return frozenset()
    named: set[str] = set()
    admitted: set[str] = set()
    others = set(configuration.vhosts_called(configuration.policy.default_vhost))
    ends: tuple[ListenerEntity | ConnectorEntity, ...] = (*configuration.listeners, *configuration.connectors)
    for end in ends:
        vhosts = vhosts_of(configuration, end.policy_vhost)
        if isinstance(end, ListenerEntity) and end.multi_tenant:
            if has_clients(end):
                (named if end.policy_vhost else admitted).update(vhosts)
        elif end.policy_vhost:
            others |= vhosts
    return frozenset(named | (admitted - others))


def reach_of_all(group: GroupSettings) -> str:
    """Return what a tenant's group has that means the whole router to a client without a tenant; empty for nothing."""
    if "*" in (*group.sources, *group.targets):
        return "`*`"
    for pattern in (*group.source_pattern, *group.target_pattern):
        if POLICIES.split(pattern)[0] in WILDCARDS:
            return f"`{pattern}`"
    managed = group.management != "none" and any(map(leads_to_management, (*group.targets, *group.target_pattern)))
    return f"management: {group.management}" if managed else ""


class TenantSpaces:
    """The first parts of the addresses of tenants."""

    def __init__(self, tenants: Iterable[str] = ()) -> None:
        #: The host names of the vhosts of tenants.
        self.names = frozenset(tenants)
        self._tenants = {space_of(name): name for name in self.names}
        self._sorted = sorted(self._tenants)

    def __len__(self) -> int:
        """Return the number of tenants."""
        return len(self.names)

    def find_reached(self, entry: str, user: str | None, *, pattern: bool, separated: bool) -> str:
        """Return a tenant that ``entry`` reaches by the name of ``user`` and does not name, empty for none.

        ``user``: None for any. ``pattern``: it is one of `sourcePattern` or `targetPattern`. ``separated``: names with
        separators have addresses.
        """
        if not USER_TOKEN.search(entry) or entry.partition("/")[0] in self._tenants:
            return ""
        if user is not None and is_separated(user) and not separated:
            return ""
        find = self._find_by_pattern if pattern else self._find_by_text
        return self._tenants.get(find(entry, user, separated), "")

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
        begins = user is not None and USER_TOKEN.match(entry) is not None
        for space in self._beginning_with(POLICIES.split(user)[0]) if user and begins else self._sorted:
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
