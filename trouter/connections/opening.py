"""The admission of a connection at its open: its tenant, its policy, and its limits."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from trouter.admission.memory import SHORT_OF_MEMORY
from trouter.config.access import covers_user, host_key
from trouter.config.entities.group import OPERATORS
from trouter.core.identities import Identities
from trouter.core.tenants import Tenant
from trouter.core.terms import ROUTER_ROLES
from trouter.engine.connection import Connection
from trouter.hooks import PeerFacts
from trouter.logs.peer_text import quoted
from trouter.net.view import ConnectionView
from trouter.policy.connection_policy import ConnectionPolicy
from trouter.policy.judge import Admission
from trouter.policy.kinds import CONNECTION_DENIED
from trouter.policy.requests import OpenRequest
from trouter.policy.settings import Settings
from trouter.policy.tenancy import NoTenant, Tenancy
from trouter.wire.performatives import Error, Open

from .peer_login import PeerLogin
from .shared import PeerSettings, Services

#: The user of a client that did not authenticate.
ANONYMOUS: Final = "anonymous"
#: The address of the router's management.
MANAGEMENT: Final = "$management"

server_log = logging.getLogger("trouter.SERVER")


class OpenRefused(Exception):
    """The connection may not open; ``error`` is for its peer."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.condition)
        self.error = error


class OpenAdmission:
    """The judgement of one open, with what the peer's login says."""

    def __init__(
        self, facts: PeerFacts, settings: PeerSettings, services: Services, login: PeerLogin, hostname: str | None
    ) -> None:
        self._facts = facts
        self._settings = settings
        self._services = services
        self._login = login
        tls = facts.tls
        self._server_name = tls.server_name if settings.hostname_from_sni and tls is not None else ""
        self._opened = hostname
        self._hostname = self._server_name or hostname

    def admit_connection(self, connection: ConnectionView) -> tuple[Tenant | None, ConnectionPolicy]:
        """Return the tenant and the policy of a connection that may open; OpenRefused.

        An invalid tenant is refused before the policy decides.
        """
        try:
            return self._admit(connection)
        finally:
            self._services.policy.release_place()

    def _admit(self, connection: ConnectionView) -> tuple[Tenant | None, ConnectionPolicy]:
        policy, tenancy, request = self._services.policy, self._settings.tenancy, self._make_request()
        if self._server_name and self._opened and host_key(self._opened) != self._server_name:
            why = "the hostname of the open is not the name that TLS asked for"
            server_log.info("[C%d] Connection from %s refused: %s", request.connection_id, request.name, why)
            raise OpenRefused(Error("amqp:invalid-field", why))
        self._check_user(request)
        try:
            if tenancy is not None:
                tenancy.check_hostname(self._hostname)
            verdict = policy.judge_open(request)
            admission = verdict.admission
            if admission is None:
                raise OpenRefused(verdict.error or CONNECTION_DENIED)
            name = "" if tenancy is None else self._tenant_name(tenancy, admission.vhost)
        except NoTenant as refusal:
            policy.deny_tenant(request, str(refusal), refusal.error)
            server_log.info("[C%d] Connection from %s refused: %s", request.connection_id, request.name, refusal)
            raise OpenRefused(refusal.error) from refusal
        blocked = policy.judge_decisions(request, admission, name)
        if not blocked.allowed:
            raise OpenRefused(blocked.error or CONNECTION_DENIED)
        if not request.outgoing and not self._services.guard.memory.may_stay(
            request.connection_id, operator=is_operator(admission, self._facts, request.role)
        ):
            raise OpenRefused(SHORT_OF_MEMORY)
        tenant = self._services.hub.router.table.tenants.enter_connection(name, request.connection_id) if name else None
        return tenant, policy.admit_connection(
            request, admission, connection, name, stamps=self._settings.stamp_user_id
        )

    def _check_user(self, request: OpenRequest) -> None:
        """Raise OpenRefused for a user that the listener does not allow; nobody is one without a login."""
        allowed = self._settings.allowed_users
        if allowed is None or covers_user(allowed, request.user if request.authenticated else ""):
            return
        server_log.info(
            "[C%d] Connection from %s refused: the user %s is not in allowedUsers of listener %s (role %s); add the "
            "name there if this peer may connect",
            request.connection_id,
            request.name,
            quoted(request.user),
            request.listener,
            request.role,
        )
        raise OpenRefused(self._services.policy.deny_user(request))

    def keeps_tenant(self, tenant: str, vhost: str) -> bool:
        """Return whether a connection of ``tenant``, if any, stays its own if the policy puts it into ``vhost``."""
        tenancy = self._settings.tenancy
        if tenancy is None:
            return True
        try:
            return self._tenant_name(tenancy, vhost) == tenant
        except NoTenant:
            return False

    def _tenant_name(self, tenancy: Tenancy, vhost: str) -> str:
        login = self._login
        own = tenancy.tenants_of(login.user, login.tenant, self._facts, self._services.plugins)
        return tenancy.tenant_name(self._hostname, vhost, own)

    def _make_request(self) -> OpenRequest:
        """Return the request for the policy; a client without a user is "anonymous"."""
        facts, login, settings = self._facts, self._login, self._settings
        return OpenRequest(
            connection_id=facts.connection_id,
            name=f"{facts.remote_host}:{facts.remote_port}",
            hostname=self._hostname or "",
            user=login.user or ANONYMOUS,
            remote_host=facts.remote_host.partition("%")[0],
            authenticated=bool(login.user) and login.mechanism not in ("", ANONYMOUS.upper()),
            listener=settings.name,
            role=settings.role,
            policy_vhost=settings.policy_vhost,
            outgoing=login.outgoing,
            has_tenancy=settings.tenancy is not None,
            permissions=login.permissions,
        )


def first_open(settings: PeerSettings, number: int, identities: Identities) -> Open:
    """Return the router's open for connection ``number`` while the peer has not logged in.

    On a listener for tenants it has the number that tenants see.
    """
    whole = settings.open(number if settings.tenancy is None else identities.connections.show(number))
    if not settings.withholds_version:
        return whole
    return replace(
        whole, properties={name: each for name, each in (whole.properties or {}).items() if name != "version"}
    )


def later_open(
    settings: PeerSettings, login: PeerLogin, number: int, tenant: Tenant | None, identities: Identities
) -> Open | None:
    """Return the router's open for a peer that has logged in and is admitted; None if it is the first one."""
    shows_version = settings.withholds_version and (login.mechanism or login.user)
    if not shows_version and (settings.tenancy is None or tenant is not None):
        return None
    return settings.open(number if tenant is None else identities.connections.show(number))


def is_operator(admission: Admission, facts: PeerFacts, role: str) -> bool:
    """Return whether the peer is another router, or may operate this one; without policy a local client."""
    if role in ROUTER_ROLES:
        return True
    if admission.unrestricted:
        return facts.loopback
    return admission.settings.management in OPERATORS and admission.may_send(MANAGEMENT).allowed


def limit_by_group(settings: Settings, connection: Connection) -> None:
    """Apply the limits of the peer's group, where it has any, before the listener's (security.md 4.12)."""
    if not settings.max_frame_size and settings.max_sessions is None and settings.max_session_window is None:
        return
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
        opening = replace(connection.local_open, max_frame_size=limits.max_frame_bytes, channel_max=limits.channel_max)
        connection.replace_limits(limits, opening)
