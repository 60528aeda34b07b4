"""The admission of a connection at its open: its tenant, its policy, and its limits."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from trouter.admission.memory import SHORT_OF_MEMORY, MemoryWatch
from trouter.backbone.backbone import Backbone, announced_cost
from trouter.backbone.uplinks import Uplinks
from trouter.config.access import covers_user, host_key
from trouter.config.entities.group import OPERATORS
from trouter.core.edge.peers import EdgePeer
from trouter.core.identities import Identities
from trouter.core.messagelog import MessageLog
from trouter.core.network import Trunk
from trouter.core.tenants import Tenant
from trouter.core.terms import EDGE_ROLE, ROUTER_ROLES, PeerTerms
from trouter.engine.connection import Connection
from trouter.engine.link_base import Link
from trouter.hooks import PeerFacts, Plugins
from trouter.logs import TRACE
from trouter.logs.peer_text import quoted
from trouter.net.hub import Hub
from trouter.net.shares import ProcessorShare
from trouter.net.turns import TaskTurns
from trouter.net.view import ConnectionView
from trouter.policy.connection_policy import ConnectionPolicy
from trouter.policy.judge import Admission
from trouter.policy.kinds import CONNECTION_DENIED
from trouter.policy.requests import OpenRequest
from trouter.policy.router_policy import RouterPolicy
from trouter.policy.settings import Settings
from trouter.policy.tenancy import NoTenant, Tenancy
from trouter.telemetry.recorder import Recorder
from trouter.telemetry.user_keys import user_key
from trouter.wire.performatives import Error, Open

from .lifetime import Lifetime
from .membership import Membership
from .peer_login import PeerLogin
from .sessions import Sessions
from .shared import PeerSettings

#: The user of a client that did not authenticate.
ANONYMOUS: Final = "anonymous"
#: The address of the router's management.
MANAGEMENT: Final = "$management"

message_log = logging.getLogger("trouter.MESSAGE")
server_log = logging.getLogger("trouter.SERVER")


class OpenRefused(Exception):
    """The connection may not open; ``error`` is for its peer."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.condition)
        self.error = error


@dataclass(frozen=True, slots=True)
class PeerOpen:
    """The open of one peer, and what else its admission is judged by; it lasts no longer than the judgement."""

    facts: PeerFacts
    settings: PeerSettings
    login: PeerLogin
    open: Open

    @property
    def server_name(self) -> str:
        """The name that TLS asked for, if it counts as the hostname; else empty."""
        tls = self.facts.tls
        return tls.server_name if self.settings.hostname_from_sni and tls is not None else ""

    @property
    def hostname(self) -> str | None:
        """The hostname that decides about vhost and tenant; None without one."""
        return self.server_name or self.open.hostname

    def request(self) -> OpenRequest:
        """Return the request for the policy; a client without a user is "anonymous"."""
        facts, login, settings = self.facts, self.login, self.settings
        return OpenRequest(
            connection_id=facts.connection_id,
            name=f"{facts.remote_host}:{facts.remote_port}",
            hostname=self.hostname or "",
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


class OpenAdmission:
    """The admission of connections at their opens, one for all connections of a router."""

    def __init__(
        self,
        hub: Hub,
        turns: TaskTurns,
        policy: RouterPolicy,
        plugins: Plugins,
        memory: MemoryWatch,
        recorder: Recorder,
        backbone: Backbone | None,
        uplinks: Uplinks | None,
    ) -> None:
        self._hub = hub
        self._turns = turns
        self._policy = policy
        self._plugins = plugins
        self._memory = memory
        self._recorder = recorder
        self._backbone = backbone
        self._uplinks = uplinks

    def admit_connection(self, opening: PeerOpen, connection: ConnectionView) -> tuple[Tenant | None, ConnectionPolicy]:
        """Return the tenant and the policy of a connection that may open; OpenRefused.

        An invalid tenant is refused before the policy decides.
        """
        try:
            return self._admit(opening, connection)
        finally:
            self._policy.release_place()

    def _admit(self, opening: PeerOpen, connection: ConnectionView) -> tuple[Tenant | None, ConnectionPolicy]:
        policy, settings, tenancy, request = self._policy, opening.settings, opening.settings.tenancy, opening.request()
        named = opening.open.hostname
        if opening.server_name and named and host_key(named) != opening.server_name:
            why = "the hostname of the open is not the name that TLS asked for"
            server_log.info("[C%d] Connection from %s refused: %s", request.connection_id, request.name, why)
            raise OpenRefused(Error("amqp:invalid-field", why))
        self._check_user(request, settings.allowed_users)
        try:
            if tenancy is not None:
                tenancy.check_hostname(opening.hostname)
            verdict = policy.judge_open(request)
            admission = verdict.admission
            if admission is None:
                raise OpenRefused(verdict.error or CONNECTION_DENIED)
            name = "" if tenancy is None else self._tenant_name(opening, tenancy, admission.vhost)
        except NoTenant as refusal:
            policy.deny_tenant(request, str(refusal), refusal.error)
            server_log.info("[C%d] Connection from %s refused: %s", request.connection_id, request.name, refusal)
            raise OpenRefused(refusal.error) from refusal
        blocked = policy.judge_decisions(request, admission, name)
        if not blocked.allowed:
            raise OpenRefused(blocked.error or CONNECTION_DENIED)
        operator = is_operator(admission, opening.facts, request.role)
        if not request.outgoing and not self._memory.may_stay(request.connection_id, operator=operator):
            raise OpenRefused(SHORT_OF_MEMORY)
        tenant = self._hub.router.table.tenants.enter_connection(name, request.connection_id) if name else None
        return tenant, policy.admit_connection(request, admission, connection, name, stamps=settings.stamp_user_id)

    def _check_user(self, request: OpenRequest, allowed: tuple[str, ...] | None) -> None:
        """Raise OpenRefused for a user that the listener does not allow; nobody is one without a login."""
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
        raise OpenRefused(self._policy.deny_user(request))

    def keeps_tenant(self, opening: PeerOpen, tenant: str, vhost: str) -> bool:
        """Return whether a connection of ``tenant``, if any, stays its own if the policy puts it into ``vhost``."""
        tenancy = opening.settings.tenancy
        if tenancy is None:
            return True
        try:
            return self._tenant_name(opening, tenancy, vhost) == tenant
        except NoTenant:
            return False

    def _tenant_name(self, opening: PeerOpen, tenancy: Tenancy, vhost: str) -> str:
        login = opening.login
        own = tenancy.tenants_of(login.user, login.tenant, opening.facts, self._plugins)
        return tenancy.tenant_name(opening.hostname, vhost, own)

    def make_membership(
        self,
        opening: PeerOpen,
        engine: Connection,
        lifetime: Lifetime,
        tenant: Tenant | None,
        policy: ConnectionPolicy,
        share: ProcessorShare,
    ) -> Membership:
        """Return the part in the router of a connection that is admitted to ``tenant`` under ``policy``."""
        facts, settings, login = opening.facts, opening.settings, opening.login
        number, role, hub, uplinks = facts.connection_id, settings.role, self._hub, self._uplinks
        sessions = Sessions(
            engine,
            lifetime,
            policy,
            self._terms_of(opening, engine, lifetime.label, tenant, login.user),
            settings.max_links,
            share,
            None if role in ROUTER_ROLES else user_key(policy.admission.vhost, login.user, facts.remote_host),
            hub,
            self._turns,
            self._memory,
            self._recorder,
            uplinks,
        )
        edge = EdgePeer(number, login.user) if role == EDGE_ROLE and not login.outgoing else None
        return Membership(
            number,
            tenant,
            policy,
            lifetime,
            sessions,
            edge,
            hub.router,
            self._policy,
            self._backbone,
            uplinks,
            is_uplink=role == EDGE_ROLE and login.outgoing,
        )

    def _terms_of(
        self, opening: PeerOpen, engine: Connection, label: str, tenant: Tenant | None, user: str
    ) -> PeerTerms:
        """Return the terms of the links of a connection, whose log lines begin with ``label``."""
        facts, settings = opening.facts, opening.settings
        strips, components = self._plugins.annotation_filter(facts.listener), settings.logged_components
        log = MessageLog(components, partial(_log_message, label)) if components else None
        trunk = None
        if settings.role == "inter-router":
            cost = max(settings.cost, announced_cost(opening.open))
            container = opening.open.container_id
            trunk = Trunk(facts.connection_id, engine, settings.link_capacity, cost, container, log)
        return PeerTerms(
            connection_number=facts.connection_id,
            link_capacity=settings.link_capacity,
            max_unsettled=settings.max_unsettled,
            strip_in=strips.strip_in,
            only_traces=settings.role not in ROUTER_ROLES,
            strip_out=strips.strip_out,
            log=log,
            tenant=tenant,
            names_tenant=settings.tenancy is not None and settings.tenancy.secure,
            user=user,
            trunk=trunk,
            role=settings.role,
        )


def _log_message(label: str, link: Link, text: str) -> None:
    message_log.log(TRACE, "%s: %s", label, text)


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
