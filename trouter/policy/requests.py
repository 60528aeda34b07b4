"""A connection's request to open, as the policy sees it."""

from __future__ import annotations

from dataclasses import dataclass

from trouter.hooks import ConnectionRequest, Permissions


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest(ConnectionRequest):
    """What plugins get of a connection that opens, with what is for the configured policy alone."""

    #: The peer's address and port, for the log.
    name: str = ""
    #: The `policyVhost` of the listener or connector, empty without one.
    policy_vhost: str = ""
    #: The listener is multi-tenant.
    has_tenancy: bool = False
    #: The grant of an authentication service.
    permissions: Permissions | None = None

    @property
    def is_exempt(self) -> bool:
        """True for a connection to another router, to which no vhost applies."""
        return self.role == "inter-router" or (self.outgoing and self.role == "edge")
