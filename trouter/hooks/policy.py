"""The requests that plugins decide, about connections and links, and the values of their decisions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

#: Limit of the entries that a plugin may grant one user, as they are kept while the connection lasts.
MAX_PERMISSIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Permissions:
    """The addresses that a user may receive from and send to, instead of a vhost's sources and targets.

    An entry is one address, commas included; ``*`` stands for all, at the end of an entry for any rest, and ``${user}``
    for the user's name. Addresses that no entry covers are denied; without entries all are.
    """

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, entries in (("sources", self.sources), ("targets", self.targets)):
            if not _are_addresses(entries):
                raise ValueError(f"{name} must be a tuple of addresses, none of them empty")
        if len(self.sources) + len(self.targets) > MAX_PERMISSIONS:
            raise ValueError(f"there can be {MAX_PERMISSIONS} permissions")


def _are_addresses(entries: object) -> bool:
    return isinstance(entries, tuple) and all(isinstance(entry, str) and entry for entry in entries)


@dataclass(frozen=True, slots=True)
class AnnotationFilter:
    """Whether router annotations are removed from messages that arrive (``strip_in``) and leave (``strip_out``)."""

    strip_in: bool
    strip_out: bool


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """A connection that opens. ``hostname`` is untrusted; ``user`` is proven only if ``authenticated``."""

    connection_id: int = 0
    #: Empty without a user.
    user: str = ""
    authenticated: bool = False
    #: The peer's address, or the host that the router dialled.
    remote_host: str = ""
    #: The name of the listener or connector.
    listener: str = ""
    role: str = "normal"
    #: The hostname in the peer's open; "" without one.
    hostname: str = ""
    #: The router dialled.
    outgoing: bool = False


@dataclass(frozen=True, slots=True)
class VhostPolicy:
    """The policy for a connection: a vhost of the configuration, and permissions instead of its addresses.

    An empty ``vhost`` leaves the choice to the configuration. ``permissions`` replace its sources and targets. If
    ``denied`` is not empty, the connection is closed; records and the log show that word.
    """

    vhost: str = ""
    permissions: Permissions | None = None
    denied: str = ""


@dataclass(frozen=True, slots=True)
class AttachRequest:
    """A link that a peer wants and the configured policy allows. Its names and addresses are untrusted."""

    connection_id: int
    user: str
    authenticated: bool
    remote_host: str
    role: str
    #: The vhost and group that admitted the connection; "" without a policy.
    vhost: str
    group: str
    link_name: str
    #: True if the peer sends on the link, False if it receives.
    sends: bool
    #: The address of the target if the peer sends, of the source if it receives; None without one.
    address: str | None
    #: The peer wants the router to create the address.
    dynamic: bool
    capabilities: tuple[str, ...] = ()


class Vote(Enum):
    """A plugin's decision on an attach."""

    ALLOW = "allow"
    DENY = "deny"
