"""A connection as the policy sees it: when it asks to be admitted, and once it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from trouter.hooks import ConnectionRequest, Permissions
from trouter.security.policy import Admission
from trouter.security.quotas import Share
from trouter.wire.performatives import Error

from .lockout import place_of
from .sanctions import BLOCK_HOST, SLOW_TENANT, Target


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """Who opens a connection, as the policy sees it. ``host`` is an address; ``outgoing``: we called."""

    number: int
    name: str
    hostname: str
    user: str
    host: str
    authenticated: bool
    listener: str = ""
    role: str = "normal"
    policy_vhost: str = ""
    outgoing: bool = False
    permissions: Permissions | None = None


class PolicedConnection(Protocol):
    """The connection itself."""

    def follow(self, admission: Admission) -> None:
        """Go by other terms from now on, what stands included."""

    def turn_out(self, error: Error) -> None:
        """Close the connection, saying why."""

    def received_bytes(self) -> int:
        """Return octets that came in on it so far."""


class _Gone:
    """Stands for a connection that has gone."""

    def follow(self, admission: Admission) -> None: ...

    def turn_out(self, error: Error) -> None: ...

    def received_bytes(self) -> int:
        return 0


GONE: Final = _Gone()


@dataclass(slots=True)
class AdmittedConnection:
    """A connection that was let in, and under which terms it is open now. ``name`` is what it is counted under."""

    request: OpenRequest
    admission: Admission
    connection: PolicedConnection
    name: str
    #: The tenant that it belongs to, empty for none.
    tenant: str = ""
    #: The quotas that it is held to, None for none.
    share: Share | None = None
    #: What it was denied, by the name of the vhost's counter.
    denials: dict[str, int] = field(default_factory=dict)

    @property
    def scopes(self) -> tuple[str, ...]:
        """Return what it is a part of: its vhost, its tenant."""
        return tuple(dict.fromkeys(filter(None, (self.admission.vhost, self.tenant))))


def for_plugins(request: OpenRequest) -> ConnectionRequest:
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


def concerns(target: Target, held: AdmittedConnection) -> bool:
    """Return whether a decision may be about a connection."""
    if target.action == BLOCK_HOST:
        return place_of(held.request.host) == target.subject
    if target.action == SLOW_TENANT:
        return target.subject in held.scopes
    return held.request.user == target.subject
