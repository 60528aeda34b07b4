"""What is asked of a connection at its open: whose it is, what the policy says to it, and by which numbers it goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trouter.admission.policing import OpenRequest
from trouter.admission.tenancy import NoTenant, Tenancy
from trouter.auth.login import Login
from trouter.core.tenants import Tenant, Tenants
from trouter.engine.connection import Connection
from trouter.hooks import PeerFacts, Plugins
from trouter.security.settings import Settings
from trouter.wire.performatives import Open

#: Who did not authenticate.
ANONYMOUS: Final = "anonymous"


class Entrance:
    """The admission of one connection: its tenant and its facts for the policy."""

    __slots__ = ("_facts", "_login", "_plugins", "_remote", "_tenancy", "_user")

    def __init__(
        self, remote: Open, facts: PeerFacts, user: str, login: Login | None, tenancy: Tenancy | None, plugins: Plugins
    ) -> None:
        """``remote`` is the peer's open; ``tenancy`` is None where connections belong to no tenant."""
        self._remote = remote
        self._facts = facts
        self._user = user
        self._login = login
        self._tenancy = tenancy
        self._plugins = plugins

    def check(self) -> None:
        """Raise NoTenant if the peer asks for a tenant that no client may have; to be called before the policy."""
        if self._tenancy is not None:
            self._tenancy.check(self._remote.hostname)

    def tenant(self, tenants: Tenants, vhost: str) -> Tenant | None:
        """Whose the connection is, now that the policy has it in ``vhost``; None for no tenant's; NoTenant."""
        name = "" if self._tenancy is None else self._tenant_name(self._tenancy, vhost)
        return tenants.enter(name, self._facts.connection_id) if name else None

    def stays(self, tenant: Tenant | None, vhost: str) -> bool:
        """Whether it is still ``tenant``'s, now that the policy has it in another ``vhost``."""
        if self._tenancy is None:
            return True
        try:
            return self._tenant_name(self._tenancy, vhost) == ("" if tenant is None else tenant.name)
        except NoTenant:
            return False

    def _tenant_name(self, tenancy: Tenancy, vhost: str) -> str:
        claimed = "" if self._login is None else self._login.tenant
        own = tenancy.tenants_of(self._user, claimed, self._facts, self._plugins)
        return tenancy.name_for(self._remote.hostname, vhost, own)

    def request(self, *, mechanism: str, listener: str, role: str, policy_vhost: str, outgoing: bool) -> OpenRequest:
        """Return the request for the policy; a client without a user is "anonymous"."""
        facts, login = self._facts, self._login
        return OpenRequest(
            number=facts.connection_id,
            name=f"{facts.remote_host}:{facts.remote_port}",
            hostname=self._remote.hostname or "",
            user=self._user or ANONYMOUS,
            host=facts.remote_host.partition("%")[0],
            authenticated=bool(self._user) and mechanism not in ("", ANONYMOUS.upper()),
            listener=listener,
            role=role,
            policy_vhost=policy_vhost,
            outgoing=outgoing,
            permissions=None if login is None else login.permissions,
        )


def go_by(settings: Settings, connection: Connection) -> None:
    """Let the numbers of the peer's group hold where it has any, whatever the listener says (security.md 4.12)."""
    own = connection.limits
    limits = replace(
        own,
        max_frame_bytes=settings.max_frame_size or own.max_frame_bytes,
        channel_max=own.channel_max if settings.max_sessions is None else settings.max_sessions - 1,
    )
    if settings.max_session_window is not None:
        frames = max(1, settings.max_session_window // limits.max_frame_bytes)
        limits = replace(limits, session_window_frames=frames)
    if limits != own:
        told = replace(connection.local_open, max_frame_size=limits.max_frame_bytes, channel_max=limits.channel_max)
        connection.adopt(limits, told)
