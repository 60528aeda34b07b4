"""What configured entities mean to the engine, the core and the plugins."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import trouter
from trouter.admission.tenancy import tenancy_of
from trouter.config import ConnectorEntity, ListenerEntity
from trouter.config.entities import ends
from trouter.core.streams import STREAMING_LINKS
from trouter.core.terms import ROUTER_ROLES
from trouter.engine.limits import UNLIMITED, EngineLimits
from trouter.wire.performatives import Open
from trouter.wire.transfers import Undecodable
from trouter.wire.types import Int

from .shared import PeerSettings

#: What every peer is offered: programs look for both, also on connections that are not between routers.
CAPABILITIES: Final = ("ANONYMOUS-RELAY", STREAMING_LINKS)
#: The version of the annotations that routers write, told to other routers only.
ANNOTATIONS_VERSION: Final = 1
_MAX_INT: Final = 0x7FFFFFFF
#: How many seconds a server that we dialled may take to its open.
HANDSHAKE_TIMEOUT_S: Final = 20.0
#: Begins, attaches and the like of one peer that are answered before other peers get their turn.
EVENTS_AT_ONCE: Final = 32
#: Of each session of a connection between routers, on which the messages of many clients follow each other.
ROUTER_WINDOW_BYTES: Final = 64 * 1024 * 1024


def listener_settings(router_id: str, entity: ListenerEntity, *, secure: bool = False) -> PeerSettings:
    """Return what a listener's attributes mean to the engine and to each of its peers; ``secure``: secureDefaults."""
    own: dict[str, object] = {}
    if entity.failover_urls:
        own["failover-server-list"] = [
            {"network-host": url.host, "port": url.port, **({"scheme": url.scheme} if url.scheme else {})}
            for url in entity.failover_urls
        ]
    return replace(
        _settings(router_id, entity, own),
        require_sasl=_requires_sasl(entity),
        require_tls=entity.require_ssl or entity.require_encryption,
        stamp_user_id=entity.stamp_user_id,
        handshake_timeout_s=float(entity.initial_handshake_timeout_seconds or "inf"),
        tenancy=tenancy_of(entity, secure=secure),
    )


def _requires_sasl(entity: ListenerEntity) -> bool:
    """Return whether clients must use SASL: one that is asked for a name may not stay without one (security.md 1.4)."""
    named = bool(entity.sasl_mechanisms) and "ANONYMOUS" not in entity.sasl_mechanisms
    return entity.authenticate_peer or entity.sasl_plugin is not None or named


def connector_settings(router_id: str, entity: ConnectorEntity) -> PeerSettings:
    """Return what a connector's attributes mean to the engine and to its connection."""
    return _settings(router_id, entity, {})


def _cap(entity: ListenerEntity | ConnectorEntity, given: int | None, default: int) -> int:
    """Return what one connection may cost; routers, who carry what others send, are held to what is given only."""
    return given or (UNLIMITED if entity.role in ROUTER_ROLES else default)


def _settings(router_id: str, entity: ListenerEntity | ConnectorEntity, own: dict[str, object]) -> PeerSettings:
    max_links = _cap(entity, entity.max_links, ends.MAX_LINKS)
    limits = EngineLimits(
        max_frame_bytes=entity.max_frame_size,
        channel_max=entity.max_sessions - 1,
        session_window_frames=0 if entity.max_session_frames is None else entity.max_session_frames or 0x7FFFFFFF,
        idle_timeout_s=float(entity.idle_timeout_seconds),
        max_events=EVENTS_AT_ONCE,
        max_links=min(ends.MAX_LINKS_GIVEN, 2 * max_links),  # those that are refused, and not detached yet, among them
        max_buffered_bytes=_cap(entity, entity.max_buffered_bytes, ends.MAX_BUFFERED_BYTES),
    )
    if entity.role in ROUTER_ROLES:
        # A neighbour passes on what a stranger said to it: that must not cost the link to it.
        limits = replace(limits, session_window_bytes=ROUTER_WINDOW_BYTES, undecodable_states=Undecodable.CUT)
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
