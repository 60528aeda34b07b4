"""A connection as the policy sees it: its request to be admitted, and its state once admitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from trouter.hooks import ConnectionRequest, Permissions
from trouter.security.policy import Admission
from trouter.security.quotas import Share
from trouter.wire.performatives import Error

from .lockout import place_of
from .sanctions import BLOCK_HOST, SLOW_TENANT, Target


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """The facts of a connection's open for the policy. ``host`` is an address; ``outgoing`` if the router dialled."""

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
    """What the policy calls on a connection."""

    def follow(self, admission: Admission) -> None:
        """Apply other terms from now on, also to existing links."""

    def turn_out(self, error: Error) -> None:
        """Close the connection with ``error``."""

    def received_bytes(self) -> int:
        """Return the bytes received on it so far."""


class _Gone:
    """A stand-in for a connection that has ended."""

    def follow(self, admission: Admission) -> None: ...

    def turn_out(self, error: Error) -> None: ...

    def received_bytes(self) -> int:
        return 0


GONE: Final = _Gone()


@dataclass(slots=True)
class AdmittedConnection:
    """An admitted connection and its current terms. ``name`` is the one under which it is counted."""

    request: OpenRequest
    admission: Admission
    connection: PolicedConnection
    name: str
    #: Its tenant, empty for none.
    tenant: str = ""
    #: Its quotas, None for none.
    share: Share | None = None

    @property
    def scopes(self) -> tuple[str, ...]:
        """Its vhost and its tenant, as far as it has them."""
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
    """Return whether a decision applies to a connection."""
    if target.action == BLOCK_HOST:
        return place_of(held.request.host) == target.subject
    if target.action == SLOW_TENANT:
        return target.subject in held.scopes
    return held.request.user == target.subject
