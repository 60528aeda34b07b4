"""Finds settings by which one peer can pass for another, or reach what another one's name stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from trouter.config.access import USER_TOKEN
from trouter.config.configuration import Configuration
from trouter.config.entities import ListenerEntity, SslProfileEntity, VhostEntity
from trouter.config.hosts import HostRange, is_loopback
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of
from trouter.config.texts import UID_DIGESTS
from trouter.core.patterns import SEPARATORS

#: More addresses than these are no site's own: all private networks together have fewer (RFC 1918, RFC 4193).
MOST_PROXIES: Final = {4: 1 << 25, 6: 1 << 122}


def impostors(configuration: Configuration) -> Iterator[Problem]:
    """Yield the findings about settings that do not tell peers apart."""
    for profile in configuration.ssl_profiles:
        if is_ambiguous(profile):
            yield finding_of("ambiguous-user", profile)
    for vhost in configuration.vhosts:
        yield from _open_entries(vhost)
    for listener in configuration.listeners:
        if _are_strangers(listener):
            yield finding_of("any-proxy", listener, hosts=", ".join(map(str, listener.proxy_protocol_hosts)))
    for service in configuration.auth_services:
        host = service.address[0]
        if host and not (service.ssl_profile or is_loopback(host)):
            yield finding_of("service-without-tls", service, host=host)


def is_ambiguous(profile: SslProfileEntity) -> bool:
    """Return whether two different certificates can make one user: by a separator in a part, or by a missing part."""
    letters = set(profile.uid_format or "")
    if len(profile.uid_format or "") < 2 or letters <= set(UID_DIGESTS):
        return False
    return not profile.uid_escape or profile.uid_missing == "skip"


def _open_entries(vhost: VhostEntity) -> Iterator[Problem]:
    """Yield a finding for each entry that ends in `*` and lets a user's name end in the middle of another's."""
    for name, group in vhost.groups.items():
        for attribute, entries in (("sources", group.sources), ("targets", group.targets)):
            for entry in entries:
                token = USER_TOKEN.search(entry)
                if token is not None and entry.endswith("*") and entry[token.end()] not in SEPARATORS:
                    closed = f"{entry[: token.end()]}.{entry[token.end() :]}"
                    key = f"groups.{name}.{attribute}"
                    yield finding_of("open-user-entry", vhost, key, entry=entry, closed=closed)
        if group.substitute_separated and (entry := group.entry_for_longer_names()):
            yield finding_of("longer-users", vhost, f"groups.{name}", entry=entry, group=name)


def _are_strangers(listener: ListenerEntity) -> bool:
    return any(_count(listener.proxy_protocol_hosts, version) > most for version, most in MOST_PROXIES.items())


def _count(hosts: Iterable[HostRange], version: int) -> int:
    """Return how many addresses of a version are in ranges, each once."""
    ranges = sorted(
        (int(each.first), int(each.last))
        for each in hosts
        if each.first is not None and each.last is not None and each.first.version == version
    )
    count, end = 0, -1
    for first, last in ranges:
        count += max(0, last - max(first, end + 1) + 1)
        end = max(end, last)
    return count
