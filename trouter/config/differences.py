"""Finds the parts of a configuration that Qpid Dispatch reads otherwise: what is wider or narrower here than there.

With secureDefaults nothing is reported: such a file is written for this router.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trouter.config.access import host_key
from trouter.config.configuration import Configuration
from trouter.config.entities import GROUP_SETTINGS, GroupSettings, VhostEntity
from trouter.config.hosts import is_loopback
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of
from trouter.config.schema import Kind, camel
from trouter.core.patterns import SEPARATORS

#: The attributes of a group that list addresses.
_NAMES: Final = ("sources", "targets")
_PATTERNS: Final = ("source_pattern", "target_pattern")
_LIMITS: Final = ("max_senders", "max_receivers")
_USER: Final = "${user}"
#: The group of the users that no group names, and that of connectors.
_DEFAULT: Final = "$default"
_CONNECTOR: Final = "$connector"


def differences(configuration: Configuration, *, anonymous: bool) -> Iterator[Problem]:
    """Yield a finding for each part that Qpid Dispatch reads otherwise.

    ``anonymous``: a listener admits clients that do not log in.
    """
    if configuration.router.secure_defaults:
        return
    for listener in configuration.listeners:
        if listener.serves_http and is_loopback(listener.host):
            yield finding_of("http-on-loopback", listener, host=listener.host)
    for vhost in configuration.vhosts:
        for name in (vhost.hostname, *vhost.aliases):
            if host_key(name) != name:
                yield finding_of("host-names-folded", vhost, name=name, key=host_key(name))
        for name, group in vhost.groups.items():
            yield from _group(vhost, name, group, anonymous=anonymous)


def _group(vhost: VhostEntity, name: str, group: GroupSettings, *, anonymous: bool) -> Iterator[Problem]:
    """Yield the findings about one group, each with the attribute that it is about."""

    def found(point: str, field: str) -> Problem:
        return finding_of(point, vhost, f"groups.{name}.{camel(field)}", group=name)

    unknown = name == _DEFAULT and vhost.allow_unknown_user
    for field in _LIMITS:
        if group.written.get(field) == 0:
            yield found("no-links", field)
    if not (group.users or unknown or name == _CONNECTOR):
        yield found("group-without-users", "users")
    networks = "/" in str(group.written.get("remote_hosts", ""))
    if networks or any("-" in hosts.name for hosts in group.remote_hosts):
        yield found("hosts-unknown-there", "remote_hosts")
    for field in _flags_with_capitals(vhost, name):
        yield found("flag-with-capitals", field)
    for field in (*_NAMES, *_PATTERNS):
        if any("," in entry for entry in getattr(group, field)):
            yield found("comma-in-item", field)
    for field in _PATTERNS:
        entries: tuple[str, ...] = getattr(group, field)
        if "*" in entries:
            yield found("star-pattern", field)
        if any(entry.strip(SEPARATORS) != entry for entry in entries):
            yield found("separators-at-ends", field)
    named = next((field for field in (*_NAMES, *_PATTERNS) if any(_USER in each for each in getattr(group, field))), "")
    if named and any(user.endswith("*") and user != "*" for user in group.users):
        yield found("user-with-star", named)
    if named and unknown and anonymous and group.substitute_anonymous:
        yield found("user-without-name", named)


def _flags_with_capitals(vhost: VhostEntity, name: str) -> Iterator[str]:
    """Yield the fields of a group that are yes or no, and that the file spells as `True` or `TRUE`."""
    groups = vhost.written.get("groups")
    given = groups.get(name) if isinstance(groups, dict) else None
    for key, value in (given or {}).items():
        if isinstance(value, str) and value != "true" and value.lower() == "true":
            row = GROUP_SETTINGS.field_spelled(key)
            if row is not None and row.kind is Kind.BOOLEAN:
                yield row.field
