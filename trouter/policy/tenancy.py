"""The tenant of a connection to a multi-tenant listener (security.md 5), chosen once, at its open."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from trouter.config import ListenerEntity
from trouter.config.tenants import TenantSource
from trouter.core.tenants import fault_of
from trouter.hooks import CertificateFacts, PeerFacts, Plugins, Refused, SslProfileFacts
from trouter.wire.performatives import Error

from .kinds import TENANT_DENIED


class NoTenant(Exception):
    """The connection has no tenant: the error for its peer, and the reason for the log."""

    def __init__(self, error: Error, why: str) -> None:
        super().__init__(why)
        self.error = error


@dataclass(frozen=True, slots=True)
class Tenancy:
    """The rules of a multi-tenant listener."""

    #: policyVhost: the only tenant, whatever peers request.
    pinned: str
    source: TenantSource | None
    #: With secureDefaults no peer chooses its tenant, and none is admitted without one.
    secure: bool = False

    @property
    def free(self) -> bool:
        """True if a peer may have the tenant that it requests, and none if it requests none."""
        return self.source is None and not self.secure

    def check_hostname(self, hostname: str | None) -> None:
        """Raise NoTenant if the peer's ``hostname`` cannot name a tenant; to be called before the policy."""
        if self.pinned or (self.free and not hostname):
            return
        if fault := fault_of(hostname or ""):
            raise NoTenant(Error("amqp:invalid-field", f"{fault} in the hostname of the open"), fault)

    def tenant_name(self, hostname: str | None, vhost: str, own: Collection[str]) -> str:
        """Return the tenant of a peer that requested ``hostname``, which was checked; empty for none; NoTenant.

        ``vhost`` is the policy's vhost, empty without policy; then the tenant must be one of the user's ``own``, unless
        peers are free to choose.
        """
        wanted = self.pinned or hostname or ""
        if vhost:
            return vhost
        if self.free:
            return wanted
        if wanted in own:
            return wanted
        same = [name for name in own if _host_of(name) == _host_of(wanted)]
        if len(same) != 1:
            raise NoTenant(TENANT_DENIED, f"the user does not belong to the tenant {wanted!r}")
        return same[0]

    def tenants_of(self, user: str, claimed: str, facts: PeerFacts, plugins: Plugins) -> Collection[str]:
        """Return the tenants of an authenticated user; ``claimed`` is the tenant that the login named."""
        source = self.source
        if source is None or not user:
            return ()
        if source.users is not None:
            return source.users.get(user, ())
        name = _certified(source.part, facts, plugins) if source.part else claimed
        return () if fault_of(name) else (name,)


def tenancy_of(entity: ListenerEntity, *, secure: bool) -> Tenancy | None:
    """Return the tenancy of a listener, None if it is not multi-tenant; ``secure``: secureDefaults."""
    return Tenancy(entity.policy_vhost or "", entity.tenant_from, secure) if entity.multi_tenant else None


def _certified(part: str, facts: PeerFacts, plugins: Plugins) -> str:
    """Return this part of the client's certificate, empty if there is none."""
    tls = facts.tls
    if tls is None or not tls.certificate:
        return ""
    profile = SslProfileFacts("tenantFrom", uid_format=part, uid_missing="reject")
    answer = plugins.map_uid(CertificateFacts(tls.subject, tls.certificate), profile)
    return "" if isinstance(answer, Refused) else answer


def _host_of(name: str) -> str:
    """Return a host's name without port and final dot, in lower case."""
    host, colon, port = name.rpartition(":")
    if colon and port.isascii() and port.isdigit():
        name = host
    return name.removesuffix(".").lower() if name.isascii() else name
