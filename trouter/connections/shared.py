"""What the peers of a router have in common: the settings of their listener, and the services of the router."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trouter.admission.guard import Guard
from trouter.admission.policing import Policing
from trouter.admission.tenancy import Tenancy
from trouter.auth.auth_services import AuthServices
from trouter.backbone.backbone import Backbone
from trouter.backbone.uplinks import Uplinks
from trouter.engine.limits import EngineLimits
from trouter.engine.ports import Budget
from trouter.hooks import Plugins
from trouter.net.hub import Hub
from trouter.net.poller import Poller
from trouter.net.ticker import Ticker
from trouter.telemetry.recorder import Recorder
from trouter.tls.secure import Secure
from trouter.wire.performatives import Open

from .registry import Connections


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """What a listener gives each of its peers."""

    limits: EngineLimits
    open: Callable[[int], Open]
    link_capacity: int
    require_sasl: bool
    require_tls: bool
    handshake_timeout_s: float
    #: Links on the connection, and deliveries that a receiver may have unsettled on one.
    max_links: int = 1 << 62
    max_unsettled: int = 1 << 62
    #: Parts of each message to log, none for no log at all.
    logged_components: tuple[str, ...] = ()
    sasl_timeout_s: float = 10.0
    #: The name and the role of what the connection came through.
    name: str = ""
    role: str = "normal"
    #: That name if it was given one, and has not merely got it.
    given_name: str = ""
    #: How a connection's tenant is found; None where connections have no tenant.
    tenancy: Tenancy | None = None
    #: The vhost whose policy applies whatever the peer asks for, "" for none.
    policy_vhost: str = ""
    #: Messages without a user-id are given the name of the user.
    stamp_user_id: bool = False
    #: What a hop over the connection costs, as far as it is up to us.
    cost: int = 1


@dataclass(frozen=True, slots=True)
class Services:
    """What all connections of a router share; ``app/wiring`` makes it."""

    hub: Hub
    poller: Poller
    ticker: Ticker
    plugins: Plugins
    #: The octets of messages under way, of all connections together.
    budget: Budget
    connections: Connections
    recorder: Recorder
    guard: Guard
    secure: Secure
    policing: Policing
    auth_services: AuthServices
    #: What a router of a network has.
    backbone: Backbone | None
    #: What an edge router has.
    uplinks: Uplinks | None
    #: The router's secureDefaults.
    secure_defaults: bool
