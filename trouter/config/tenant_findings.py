"""Findings about vhosts by which clients without a tenant reach the addresses of tenants (docs/multi-tenancy.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from heapq import merge
from itertools import islice
from typing import Final

from trouter.config.configuration import Configuration
from trouter.config.entities import GroupSettings, ListenerEntity, VhostEntity
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of
from trouter.config.tenant_spaces import TenantSpaces, has_clients, reach_of_all, tenants_in, vhosts_of

#: The group of users that no group names, and the word for every user with a name.
_DEFAULT_GROUP: Final = "$default"
_EVERY_USER: Final = "*"
#: Listeners that a finding names.
_NAMED: Final = 10


def tenant_findings(configuration: Configuration) -> Iterator[Problem]:
    """Yield findings about vhosts that tenants share with others, and users who can be named as a tenant."""
    tenants = tenants_in(configuration)
    if not tenants:
        return
    reached = _Reached(TenantSpaces(tenants))
    plain = [each for each in configuration.listeners if not each.multi_tenant and has_clients(each)]
    open_to = _OpenTo(configuration, plain)
    closed = any(group.entry_for_longer_names() for vhost in configuration.vhosts for group in vhost.groups.values())
    for vhost in configuration.vhosts:
        listeners = open_to.named(vhost.hostname)
        if not listeners:
            continue
        for name, group in vhost.groups.items():
            users = _users_of(vhost, name)
            if users == () or not group.tenant_addresses:
                continue
            finding = partial(finding_of, entity=vhost, attribute=f"groups.{name}", group=name, listeners=listeners)
            if vhost.hostname in tenants and (what := reach_of_all(group)):
                yield finding("tenant-without-tenancy", what=what)
            entry, tenant = reached.find(group, users, separated=group.substitute_separated or not closed)
            if entry:
                yield finding("user-as-tenant", entry=entry, tenant=tenant)


def _users_of(vhost: VhostEntity, name: str) -> tuple[str, ...] | None:
    """Return the users that the group of this name lists; None if users may have any name."""
    users = vhost.groups[name].users
    return None if _EVERY_USER in users or (name == _DEFAULT_GROUP and vhost.allow_unknown_user) else users


class _OpenTo:
    """The listeners by which clients may come to a vhost."""

    def __init__(self, configuration: Configuration, listeners: Iterable[ListenerEntity]) -> None:
        #: Number and name of each listener to every vhost, and of the others by vhost.
        self._of_all: list[tuple[int, str]] = []
        self._of_one: dict[str, list[tuple[int, str]]] = {}
        for number, each in enumerate(listeners):
            vhosts = vhosts_of(configuration, each.policy_vhost)
            if vhosts is configuration.vhost_names:
                self._of_all.append((number, each.name))
            else:
                for name in vhosts:
                    self._of_one.setdefault(name, []).append((number, each.name))

    def named(self, vhost: str) -> str:
        """Return the names of the listeners to a vhost, of many only the first."""
        others = self._of_one.get(vhost, [])
        first = [name for _, name in islice(merge(self._of_all, others), _NAMED)]
        more = len(self._of_all) + len(others) - len(first)
        return ", ".join(first) + (f" and {more} more" if more else "")


class _Reached:
    """What entries with the name of a user reach, each found once."""

    def __init__(self, spaces: TenantSpaces) -> None:
        self._find_reached = cache(spaces.find_reached)

    def find(self, group: GroupSettings, users: tuple[str, ...] | None, *, separated: bool) -> tuple[str, str]:
        """Return an entry by which the name of a user reaches a tenant that the entry does not name, and the tenant.

        Both are empty if there is none. ``users``: None for any. ``separated``: names with separators have addresses.
        """
        for pattern, entries in (
            (False, (*group.sources, *group.targets)),
            (True, (*group.source_pattern, *group.target_pattern)),
        ):
            for entry in entries:
                for user in (None,) if users is None else users:
                    if tenant := self._find_reached(entry, user, pattern=pattern, separated=separated):
                        return entry, tenant
        return "", ""
