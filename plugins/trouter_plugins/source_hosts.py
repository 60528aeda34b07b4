"""Limits the addresses that clients may attach to by their network, in addition to the policy.

``pluginSettings: {"source_hosts": {"10.1.0.0/16": "payroll*, audit", "0.0.0.0/0": "public*"}}``. Only the
smallest network that has the client counts; a client outside of all of them can attach nothing. Addresses are compared
as written, and an asterisk at the end stands for any text. A client with ``*`` may also send without an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from trouter.hooks import AttachRequest, ConfigurationRefused, RouterFacts, Vote, hookimpl

Network = IPv4Network | IPv6Network


class Plugin:
    def __init__(self) -> None:
        #: The smallest first; none: everything may be attached from everywhere.
        self.networks: tuple[tuple[Network, tuple[str, ...]], ...] = ()

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        self.networks = _networks(router.settings)

    @hookimpl
    def judge_attach(self, request: AttachRequest) -> Vote | None:
        if not self.networks:
            return None
        entries = self._entries(request.remote_host)
        if request.dynamic and not request.sends:
            allowed = bool(entries)
        elif not request.address:
            allowed = "*" in entries
        else:
            allowed = any(_covers(entry, request.address) for entry in entries)
        return Vote.ALLOW if allowed else Vote.DENY

    def _entries(self, host: str) -> tuple[str, ...]:
        """Return the entries of the addresses that a host may attach to."""
        try:
            address = ip_address(host)
        except ValueError:
            return ()
        if isinstance(address, IPv6Address):
            address = address.ipv4_mapped or address
        return next((entries for network, entries in self.networks if address in network), ())


def _covers(entry: str, address: str) -> bool:
    return address.startswith(entry[:-1]) if entry.endswith("*") else address == entry


def _networks(settings: Mapping[str, object]) -> tuple[tuple[Network, tuple[str, ...]], ...]:
    """Return the table in the settings, smallest network first; ConfigurationRefused with all its problems."""
    found: list[tuple[Network, tuple[str, ...]]] = []
    problems: list[str] = []
    for text, addresses in settings.items():
        try:
            network = ip_network(text)
        except ValueError as error:
            problems.append(f"{text!r} is no network: {error}")
            continue
        if not isinstance(addresses, str):
            problems.append(f"{text}: the addresses must be a text, separated by commas")
            continue
        found.append((network, tuple(entry for each in addresses.split(",") if (entry := each.strip()))))
    if problems:
        raise ConfigurationRefused(*problems)
    return tuple(sorted(found, key=lambda row: -row[0].prefixlen))
