"""What plugins may say about a connection, a link and the annotations of messages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

#: More than this no plugin may grant one user: they are kept for as long as the connection is.
MAX_PERMISSIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Permissions:
    """The addresses that a user may receive from and send to, whatever a vhost says of sources and targets.

    An entry is one address, commas included; ``*`` stands for all, at the end of others for whatever follows, and
    ``${user}`` for the user's name. Nothing that no entry covers is allowed, so without entries nothing is.
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
    """Which way router annotations are removed: from messages arriving (``strip_in``) and leaving (``strip_out``)."""

    strip_in: bool
    strip_out: bool


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """Who opens a connection. ``hostname`` is the peer's word; ``user`` is proven if ``authenticated`` says so."""

    connection_id: int
    user: str
    authenticated: bool
    #: The address that it comes from, or the host that the router called.
    remote_host: str
    #: Of the listener or the connector.
    listener: str
    role: str
    #: What the Open names; "" for nothing.
    hostname: str
    #: The router called.
    outgoing: bool = False


@dataclass(frozen=True, slots=True)
class VhostPolicy:
    """What a connection is held to: the rules of a vhost of the configuration, and addresses in the place of theirs.

    An empty ``vhost`` leaves the choice to the configuration. ``permissions`` replace its sources and targets. A
    ``denied`` connection is closed; the word goes to records and the log.
    """

    vhost: str = ""
    permissions: Permissions | None = None
    denied: str = ""


@dataclass(frozen=True, slots=True)
class AttachRequest:
    """A link that a peer wants, and may have as far as the configured policy goes. Names and addresses are its word."""

    connection_id: int
    user: str
    authenticated: bool
    remote_host: str
    role: str
    #: Those that the connection was let in under; "" without a policy.
    vhost: str
    group: str
    link_name: str
    #: The peer sends on it, else it receives.
    sends: bool
    #: Of the target if it sends, of the source if it receives; None for none.
    address: str | None
    #: The router is to make the address up.
    dynamic: bool
    capabilities: tuple[str, ...] = ()


class Vote(Enum):
    """A plugin's word on an attach."""

    ALLOW = "allow"
    DENY = "deny"
