"""The counters of the policy, for the router and for each vhost."""

from __future__ import annotations

from dataclasses import dataclass, field

from trouter.security.counts import ConnectionCounts


@dataclass(slots=True)
class PolicyCounts:
    """The counters of the entity ``policy``."""

    connections_processed: int = 0
    connections_denied: int = 0
    connections_current: int = 0
    links_denied: int = 0
    max_message_size_denied: int = 0
    total_denials: int = 0
    vhost_connections_denied: int = 0
    messages_denied: int = 0
    user_id_denied: int = 0
    management_denied: int = 0


@dataclass(slots=True)
class VhostCounts:
    """The counters of one entity ``vhostStats``."""

    connections_approved: int = 0
    connections_denied: int = 0
    session_denied: int = 0
    sender_denied: int = 0
    receiver_denied: int = 0
    max_message_size_denied: int = 0
    quota_alarms: int = 0
    open: ConnectionCounts = field(default_factory=ConnectionCounts)
