"""The settings of peers, derived from configured entities for engine, core and plugins."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import trouter
from trouter.config import ConnectorEntity, ListenerEntity
from trouter.config.entities import ends
from trouter.config.logins import requires_login
from trouter.core.streams import STREAMING_LINKS
from trouter.core.terms import ROUTER_ROLES
from trouter.engine.limits import UNLIMITED, EngineLimits
from trouter.policy.tenancy import tenancy_of
from trouter.wire.constants import MAX_ATTACH_NODES, MAX_CLIENT_ATTACH_NODES
from trouter.wire.performatives import Open
from trouter.wire.transfers import Undecodable
from trouter.wire.types import Int

from .shared import PeerSettings

#: The capabilities offered to every peer: programs look for both, not only routers.
CAPABILITIES: Final = ("ANONYMOUS-RELAY", STREAMING_LINKS)
#: The version of the annotations that routers write, sent to other routers only.
ANNOTATIONS_VERSION: Final = 1
_MAX_INT: Final = 0x7FFFFFFF
#: Seconds in which a dialled server must open.
HANDSHAKE_TIMEOUT_S: Final = 20.0
#: Begins, attaches and the like of one peer that are handled before other peers get their turn.
EVENTS_AT_ONCE: Final = 32
#: Work of one peer's flows and dispositions that is done before other peers get their turn.
WORK_AT_ONCE: Final = 1024
#: The window of each session between routers, which carries the messages of many clients.
ROUTER_WINDOW_BYTES: Final = 64 * 1024 * 1024


def listener_settings(router_id: str, entity: ListenerEntity, *, secure: bool = False) -> PeerSettings:
    """Return the settings of a listener's peers; ``secure`` is the router's secureDefaults."""
    own: dict[str, object] = {}
    if entity.failover_urls:
        own["failover-server-list"] = [
            {"network-host": url.host, "port": url.port, **({"scheme": url.scheme} if url.scheme else {})}
            for url in entity.failover_urls
        ]
    return replace(
        _settings(router_id, entity, own),
        require_sasl=requires_login(entity),
        require_tls=entity.require_ssl or entity.require_encryption,
        stamp_user_id=entity.stamp_user_id,
        handshake_timeout_s=float(entity.initial_handshake_timeout_seconds or "inf"),
        tenancy=tenancy_of(entity, secure=secure),
        one_handshake=secure,
        withholds_version=secure,
        hostname_from_sni=entity.hostname_from_sni,
        leaves_in_drain=entity.clients_leave,
        allowed_users=entity.allowed_users,
    )


def connector_settings(router_id: str, entity: ConnectorEntity) -> PeerSettings:
    """Return the settings of a connector's connection."""
    return _settings(router_id, entity, {})


def _cap(entity: ListenerEntity | ConnectorEntity, given: int | None, default: int) -> int:
    """Return the limit of one connection; routers, which carry other clients' messages, have only a configured one."""
    return given or (UNLIMITED if entity.role in ROUTER_ROLES else default)


def _settings(router_id: str, entity: ListenerEntity | ConnectorEntity, own: dict[str, object]) -> PeerSettings:
    max_links = _cap(entity, entity.max_links, ends.MAX_LINKS)
    limits = EngineLimits(
        max_frame_bytes=entity.max_frame_size,
        channel_max=entity.max_sessions - 1,
        session_window_frames=0 if entity.max_session_frames is None else entity.max_session_frames or 0x7FFFFFFF,
        idle_timeout_s=float(entity.idle_timeout_seconds),
        max_events=EVENTS_AT_ONCE,
        max_work=WORK_AT_ONCE,
        max_links=min(ends.MAX_LINKS_GIVEN, 2 * max_links),  # with links that are refused and not detached yet
        max_buffered_bytes=_cap(entity, entity.max_buffered_bytes, ends.MAX_BUFFERED_BYTES),
        max_attach_nodes=MAX_ATTACH_NODES if entity.role in ROUTER_ROLES else MAX_CLIENT_ATTACH_NODES,
        whole_attaches=False,
    )
    if entity.role in ROUTER_ROLES:
        # A neighbour passes on what a client sent: that must not end the link to it.
        limits = replace(
            limits,
            session_window_bytes=ROUTER_WINDOW_BYTES,
            undecodable_states=Undecodable.CUT,
            requires_container_id=True,
        )
        own = {**own, "qd.annotations-version": Int(ANNOTATIONS_VERSION)}
        if entity.cost > 1:
            own["qd.inter-router-cost"] = Int(entity.cost)
    first = {"product": "trouter", "version": trouter.__version__, "qd.conn-id": Int(0)}
    properties = {**first, **own, **entity.open_properties, **own}

    def introduce(number: int) -> Open:
        return Open(
            container_id=router_id,
            max_frame_size=entity.max_frame_size,
            channel_max=limits.channel_max,
            idle_time_out=entity.idle_timeout_seconds * 500 or None,
            offered_capabilities=CAPABILITIES,
            desired_capabilities=CAPABILITIES,
            properties={**properties, "qd.conn-id": Int(number & _MAX_INT)},
        )

    return PeerSettings(
        limits=limits,
        open=introduce,
        link_capacity=entity.link_capacity,
        max_links=max_links,
        max_unsettled=_cap(entity, entity.max_unsettled, ends.MAX_UNSETTLED),
        require_sasl=False,
        require_tls=False,
        logged_components=entity.message_logging_components,
        handshake_timeout_s=HANDSHAKE_TIMEOUT_S,
        name=entity.name,
        given_name=entity.given_name,
        role=entity.role,
        policy_vhost=entity.policy_vhost or "",
        cost=entity.cost,
    )
