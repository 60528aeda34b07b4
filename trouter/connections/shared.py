"""What the peers of a router share: the settings of their listener, and the services of the router."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trouter.admission.guard import Guard
from trouter.auth.auth_services import AuthServices
from trouter.backbone.backbone import Backbone
from trouter.backbone.uplinks import Uplinks
from trouter.engine.limits import EngineLimits
from trouter.engine.ports import Budget
from trouter.hooks import Plugins
from trouter.net.hub import Hub
from trouter.net.poller import Poller
from trouter.net.timers import TimerQueue
from trouter.policy.router_policy import RouterPolicy
from trouter.policy.tenancy import Tenancy
from trouter.telemetry.recorder import Recorder
from trouter.tls.secure import Secure
from trouter.wire.performatives import Open

from .registry import Connections


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


@dataclass(frozen=True, slots=True)
class Services:
    """The services that all connections of a router share; ``app/wiring`` makes it."""

    hub: Hub
    poller: Poller
    timers: TimerQueue
    plugins: Plugins
    #: The octets of messages that all connections hold together.
    budget: Budget
    connections: Connections
    recorder: Recorder
    guard: Guard
    secure: Secure
    policy: RouterPolicy
    auth_services: AuthServices
    #: None on a router without neighbours.
    backbone: Backbone | None
    #: None on a router that is no edge router.
    uplinks: Uplinks | None
    #: The router's secureDefaults.
    secure_defaults: bool
