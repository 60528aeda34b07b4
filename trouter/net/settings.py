"""What configured entities mean to the engine, the core and the plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trouter
from trouter.config import AddressEntity, ListenerEntity
from trouter.core.table import AddressRule
from trouter.engine.limits import EngineLimits
from trouter.hooks import ListenerFacts
from trouter.wire.performatives import Open

from .peer import PeerSettings

CAPABILITIES: Final = ("ANONYMOUS-RELAY",)


def address_rule(entity: AddressEntity) -> AddressRule:
    """The core's form of an address section."""
    return AddressRule(
        pattern=entity.prefix or entity.pattern or "",
        is_prefix=entity.prefix is not None,
        distribution=entity.distribution,
        ingress_phase=entity.ingress_phase,
        egress_phase=entity.egress_phase,
        priority=-1 if entity.priority is None else entity.priority,
        enable_fallback=entity.enable_fallback,
        name=entity.name,
    )


def listener_facts(entity: ListenerEntity) -> ListenerFacts:
    """What plugins are told of a listener."""
    return ListenerFacts(
        name=entity.name,
        host=entity.host,
        port=entity.port,
        role=entity.role,
        sasl_mechanisms=entity.sasl_mechanisms,
        authenticate_peer=entity.authenticate_peer,
        allow_insecure_plain=entity.allow_insecure_plain,
        strip_annotations=entity.strip_annotations,
    )


def peer_settings(router_id: str, entity: ListenerEntity) -> PeerSettings:
    """What a listener's attributes mean to the engine and to each of its peers."""
    limits = EngineLimits(
        max_frame_bytes=entity.max_frame_size,
        channel_max=entity.max_sessions - 1,
        session_window_frames=0 if entity.max_session_frames is None else entity.max_session_frames or 0x7FFFFFFF,
        idle_timeout_s=float(entity.idle_timeout_seconds),
    )
    return PeerSettings(
        limits=limits,
        open=_introduction(router_id, entity, limits),
        link_capacity=entity.link_capacity,
        require_sasl=entity.authenticate_peer,
        logged_components=entity.message_logging_components,
        handshake_timeout_s=float(entity.initial_handshake_timeout_seconds or "inf"),
        name=entity.name,
        role=entity.role,
    )


def _introduction(router_id: str, entity: ListenerEntity, limits: EngineLimits) -> Callable[[int], Open]:
    properties = {"product": "trouter", "version": trouter.__version__, **own_properties(entity)}

    def introduce(number: int) -> Open:
        return Open(
            container_id=router_id,
            max_frame_size=entity.max_frame_size,
            channel_max=limits.channel_max,
            idle_time_out=entity.idle_timeout_seconds * 500 or None,
            offered_capabilities=CAPABILITIES,
            desired_capabilities=CAPABILITIES,
            properties={**properties, "qd.conn-id": number},
        )

    return introduce


def own_properties(entity: ListenerEntity) -> dict[str, object]:
    """The listener's openProperties and where else its clients may go."""
    properties: dict[str, object] = dict(entity.open_properties)
    if entity.failover_urls:
        properties["failover-server-list"] = [
            {"network-host": url.host, "port": url.port, **({"scheme": url.scheme} if url.scheme else {})}
            for url in entity.failover_urls
        ]
    return properties
