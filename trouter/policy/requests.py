"""A connection's request to open, as the policy and plugins see it."""

from __future__ import annotations

from dataclasses import dataclass

from trouter.hooks import ConnectionRequest, Permissions


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """The facts of a connection's open for the policy. ``host`` is an address; ``outgoing`` if the router dialled."""

    number: int = 0
    name: str = ""
    hostname: str = ""
    #: Empty without a user; proven if ``authenticated``.
    user: str = ""
    host: str = ""
    authenticated: bool = False
    listener: str = ""
    role: str = "normal"
    #: The `policyVhost` of the listener or connector, empty without one.
    policy_vhost: str = ""
    outgoing: bool = False
    #: The grant of an authentication service.
    permissions: Permissions | None = None

    @property
    def is_exempt(self) -> bool:
        """True for a connection to another router, to which no vhost applies."""
        return self.role == "inter-router" or (self.outgoing and self.role == "edge")


def for_plugins(request: OpenRequest) -> ConnectionRequest:
    """Return the request as plugins get it."""
    return ConnectionRequest(
        connection_id=request.number,
        user=request.user,
        authenticated=request.authenticated,
        remote_host=request.host,
        listener=request.listener,
        role=request.role,
        hostname=request.hostname,
        outgoing=request.outgoing,
    )
