"""What the peers of one listener or connector share: its settings, as ``settings`` derives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trouter.engine.limits import EngineLimits
from trouter.policy.tenancy import Tenancy
from trouter.wire.performatives import Open


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """The settings of a listener's or connector's peers."""

    limits: EngineLimits
    open: Callable[[int], Open]
    link_capacity: int
    require_sasl: bool
    require_tls: bool
    handshake_timeout_s: float
    #: The most links of the connection, and unsettled deliveries of a receiver on one.
    max_links: int = 1 << 62
    max_unsettled: int = 1 << 62
    #: The components of each message to log; none for no log.
    logged_components: tuple[str, ...] = ()
    sasl_timeout_s: float = 10.0
    #: The name and the role of the listener or connector.
    name: str = ""
    role: str = "normal"
    #: The configured name, empty if the name is a default.
    given_name: str = ""
    #: The rules for a connection's tenant; None if connections have no tenant.
    tenancy: Tenancy | None = None
    #: The vhost whose policy always applies, "" for none.
    policy_vhost: str = ""
    #: The time for the handshake includes TLS and login, and does not begin anew after them.
    one_handshake: bool = False
    #: A peer that has not logged in does not learn the router's version.
    withholds_version: bool = False
    #: Messages without a user-id get the user's name.
    stamp_user_id: bool = False
    #: The configured cost of a hop over the connection.
    cost: int = 1
    #: The name that the client asks for in TLS counts as the hostname of its open.
    hostname_from_sni: bool = False
    #: The connection is closed when the router drains.
    leaves_in_drain: bool = False
    #: The users that may open, as `allowedUsers` names them; None for all.
    allowed_users: tuple[str, ...] | None = None
