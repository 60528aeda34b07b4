"""The table of everything that can be configured; the only place to extend.

Each entity is a frozen dataclass whose fields are its attributes (schema.py tells how to read a declaration). Names,
types and defaults are those of the older router; where trouter differs on purpose the text of the attribute says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from trouter.config import texts
from trouter.config.problems import Place
from trouter.config.schema import EntityType, Kind, attribute

NOWHERE: Final = Place("(no file)")
DISTRIBUTIONS: Final = ("multicast", "closest", "balanced", "unavailable")
LOG_MODULES: Final = (
    "ROUTER", "ROUTER_CORE", "ROUTER_HELLO", "ROUTER_LS", "ROUTER_MA", "MESSAGE", "SERVER", "AGENT", "AUTHSERVICE",
    "CONTAINER", "ERROR", "POLICY", "HTTP", "CONN_MGR", "PYTHON", "PROTOCOL", "DEFAULT",
)  # fmt: skip
DEFAULT_LINK_CAPACITY: Final = 250
MAX_SESSIONS: Final = 32768

NO_NETWORK: Final = "this version does not connect routers to each other"
NO_TLS: Final = "this version has no TLS"
NO_CYRUS: Final = "trouter does not use Cyrus SASL; put the users into the file named by usersFile"
NO_HTTP: Final = "this version serves no HTTP and no WebSockets"
NO_POLICY: Final = "this version has no vhost policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """What every entity has."""

    name: str = attribute(Kind.STRING, "A name for management and logs, unique among sections of this kind.", "")
    #: The section it was read from, for messages; no attribute.
    place: Place = field(default=NOWHERE, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterEntity(Entity):
    """The router as a whole."""

    id: str = attribute(
        Kind.STRING,
        "The router's name, its container id in AMQP: at most 127 characters, no blanks.",
        factory=texts.random_router_id,
        default_doc="`Standalone_` and 15 random characters",
        parse=texts.router_id,
    )
    mode: str = attribute(
        Kind.ENUM,
        "Whether the router stands alone or belongs to a network of routers.",
        "standalone",
        values=("standalone", "interior", "edge"),
        refused_values={"interior": NO_NETWORK, "edge": NO_NETWORK},
    )
    default_distribution: str = attribute(
        Kind.ENUM,
        "How messages to an address without an `address` section are distributed.",
        "balanced",
        values=DISTRIBUTIONS,
    )
    users_file: str | None = attribute(
        Kind.PATH, "Users and salted password hashes for PLAIN, one `user:$scrypt$...` a line.", extra=True
    )
    drain_timeout_seconds: int = attribute(
        Kind.INTEGER,
        "After TERM: how long unsettled deliveries may take before connections are closed.",
        10,
        high=86400,
        extra=True,
    )
    timestamps_in_utc: bool = attribute(
        Kind.BOOLEAN, "Log times in UTC, not in local time.", False, name="timestampsInUTC"
    )
    timestamp_format: str | None = attribute(
        Kind.STRING,
        "A strftime format for log times; `%%06lu` stands for the microseconds.",
        default_doc="`%Y-%m-%d %H:%M:%S.%%06lu %z`",
    )
    area: str = attribute(Kind.STRING, "The only area is 0.", "0", inert="there is one area")
    worker_threads: int = attribute(
        Kind.INTEGER, "Threads of the older router.", 4, low=1, inert="trouter runs in one thread"
    )
    hello_interval_seconds: int = attribute(
        Kind.INTEGER,
        "Between two hellos to a neighbour.",
        1,
        low=1,
        old=("helloInterval",),
        inert=NO_NETWORK,
    )
    hello_max_age_seconds: int = attribute(
        Kind.INTEGER,
        "Without a hello, until a neighbour is lost.",
        3,
        low=1,
        old=("helloMaxAge",),
        inert=NO_NETWORK,
    )
    ra_interval_seconds: int = attribute(
        Kind.INTEGER, "Between two router advertisements.", 30, low=1, old=("raInterval",), inert=NO_NETWORK
    )
    ra_interval_flux_seconds: int = attribute(
        Kind.INTEGER,
        "Between two router advertisements while the network changes.",
        4,
        low=1,
        old=("raIntervalFlux",),
        inert=NO_NETWORK,
    )
    remote_ls_max_age_seconds: int = attribute(
        Kind.INTEGER,
        "Without news, until a remote router's link state expires.",
        60,
        low=1,
        old=("remoteLsMaxAge",),
        inert=NO_NETWORK,
    )
    debug_dump_file: str | None = attribute(
        Kind.PATH, "A dump of the older router's memory.", old=("debugDump",), inert="there is nothing to dump"
    )
    sasl_config_dir: str | None = attribute(
        Kind.PATH,
        "Where the older router finds the configuration of Cyrus SASL.",
        old=("saslConfigPath",),
        refused=NO_CYRUS,
    )
    sasl_config_name: str = attribute(Kind.STRING, "The name of that configuration.", "qdrouterd", refused=NO_CYRUS)
    allow_resumable_link_route: bool = attribute(
        Kind.BOOLEAN, "Whether routed links may be resumable.", True, inert="this version has no link routes"
    )
    allow_unsettled_multicast: bool = attribute(
        Kind.BOOLEAN, "Kept from the older router.", False, inert="unsettled multicast is always allowed, end to end"
    )
    metadata: str | None = attribute(
        Kind.STRING, "A text that management shows.", inert="this version has no management"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerEntity(Entity):
    """Where clients connect."""

    host: str = attribute(
        Kind.STRING, "A host name or an IPv4 or IPv6 address; empty means every interface.", "", parse=texts.host
    )
    port: str = attribute(
        Kind.STRING, "A port number, 0 for any free port, or a service name.", "amqp", parse=texts.port
    )
    role: str = attribute(
        Kind.ENUM,
        "What connects here: clients, brokers (`route-container`), or other routers.",
        "normal",
        values=("normal", "inter-router", "route-container", "edge"),
    )
    socket_address_family: str | None = attribute(
        Kind.ENUM,
        "Use only this kind of the host's addresses.",
        default_doc="whatever the host has",
        values=("IPv4", "IPv6"),
        old=("protocolFamily",),
    )
    sasl_mechanisms: tuple[str, ...] = attribute(
        Kind.STRING,
        "The SASL mechanisms offered, by name, separated by blanks.",
        (),
        default_doc="all that the plugins serve",
        parse=texts.mechanisms,
    )
    authenticate_peer: bool = attribute(Kind.BOOLEAN, "Refuse peers that do not authenticate.", False)
    allow_insecure_plain: str = attribute(
        Kind.ENUM,
        "Who may send a password without encryption: nobody, peers on this machine, or everybody.",
        "no",
        values=("no", "loopback", "yes"),
        also={"false": "no", "off": "no", "true": "yes", "on": "yes"},
        extra=True,
    )
    max_frame_size: int = attribute(Kind.INTEGER, "The largest frame accepted, in octets.", 16384, low=512)
    max_sessions: int = attribute(
        Kind.INTEGER,
        "Sessions on one connection; 0 means the maximum.",
        MAX_SESSIONS,
        high=MAX_SESSIONS,
        parse=lambda count: count or MAX_SESSIONS,
    )
    max_session_frames: int | None = attribute(
        Kind.INTEGER,
        "The incoming window of a session, in transfer frames; 0 means no limit. Without it the window is bounded, "
        "unlike the older router's.",
        default_doc="a bounded window",
    )
    idle_timeout_seconds: int = attribute(
        Kind.INTEGER, "Close a connection that was silent for so long; 0 means never.", 16, high=4_000_000
    )
    initial_handshake_timeout_seconds: int = attribute(
        Kind.INTEGER,
        "How long a peer may take from connecting to its Open; 0 means for ever. The older router's default is 0.",
        10,
        high=4_000_000,
    )
    link_capacity: int = attribute(
        Kind.INTEGER,
        "Credit granted to a sender; 0 means 250.",
        DEFAULT_LINK_CAPACITY,
        parse=lambda credit: credit or DEFAULT_LINK_CAPACITY,
    )
    strip_annotations: str = attribute(
        Kind.ENUM, "Which router annotations to remove from messages.", "both", values=("in", "out", "both", "no")
    )
    max_connections: int | None = attribute(
        Kind.INTEGER,
        "Connections open at once through this listener.",
        default_doc="no limit",
        low=1,
        extra=True,
    )
    accept_rate: int | None = attribute(
        Kind.INTEGER, "New connections accepted per second.", default_doc="no limit", low=1, extra=True
    )
    open_properties: Mapping[str, object] = attribute(
        Kind.PROPERTIES,
        "Properties added to the Open frame sent to the peer.",
        factory=lambda: MappingProxyType({}),
        default_doc="none",
        parse=texts.open_properties,
    )
    failover_urls: tuple[texts.FailoverUrl, ...] = attribute(
        Kind.STRING,
        "Where else clients may go, told to them at Open: `[scheme://]host[:port]`, separated by commas.",
        (),
        default_doc="none",
        old=("failoverList",),
        parse=texts.failover_urls,
    )
    message_logging_components: tuple[str, ...] = attribute(
        Kind.STRING,
        "Parts of each message to log (module MESSAGE, level trace): `none`, `all`, or a list separated by commas.",
        (),
        default_doc="none",
        old=("logMessage",),
        parse=texts.message_components,
    )
    cost: int = attribute(Kind.INTEGER, "What a hop through this listener costs.", 1, low=1, inert=NO_NETWORK)
    ssl_profile: str | None = attribute(Kind.STRING, "The certificates for TLS.", refused=NO_TLS)
    require_ssl: bool = attribute(Kind.BOOLEAN, "Refuse peers without TLS.", False, refused=NO_TLS)
    require_encryption: bool = attribute(Kind.BOOLEAN, "Refuse peers without encryption.", False, refused=NO_TLS)
    trusted_certs_file: str | None = attribute(
        Kind.PATH, "Certificates of the authorities trusted.", old=("trustedCerts",), refused=NO_TLS
    )
    sasl_plugin: str | None = attribute(
        Kind.STRING, "The authentication service to ask.", refused="this version asks no authentication services"
    )
    multi_tenant: bool = attribute(Kind.BOOLEAN, "Give each vhost addresses of its own.", False, refused=NO_POLICY)
    policy_vhost: str | None = attribute(Kind.STRING, "The vhost whose policy applies.", refused=NO_POLICY)
    http: bool = attribute(Kind.BOOLEAN, "Serve HTTP and WebSockets instead of AMQP.", False, refused=NO_HTTP)
    http_root_dir: str | None = attribute(Kind.PATH, "Files to serve over HTTP.", old=("httpRoot",), refused=NO_HTTP)
    websockets: bool = attribute(Kind.BOOLEAN, "Serve AMQP over WebSockets.", True, inert=NO_HTTP)
    web_socket_origins: tuple[str, ...] = attribute(
        Kind.STRING,
        "Origins of pages that may open WebSockets besides the listener's own: `http[s]://host[:port]`, separated by "
        "commas; `*` for every page.",
        (),
        default_doc="none",
        parse=texts.web_socket_origins,
        extra=True,
    )
    healthz: bool = attribute(Kind.BOOLEAN, "Serve the path /healthz.", True, inert=NO_HTTP)
    metrics: bool = attribute(Kind.BOOLEAN, "Serve the path /metrics.", True, inert=NO_HTTP)

    @property
    def port_or_service(self) -> int | str:
        """The port's number; a service name only where the system must be asked for its number."""
        return texts.port_or_service(self.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressEntity(Entity):
    """How messages to matching addresses are distributed. Exactly one of prefix and pattern is given."""

    prefix: str | None = attribute(Kind.STRING, "Matches this address and everything below it.", text_only=True)
    pattern: str | None = attribute(
        Kind.STRING, "Matches by tokens between `.` or `/`: `*` is one token, `#` any number of them.", text_only=True
    )
    distribution: str = attribute(Kind.ENUM, "To which consumers a message goes.", "balanced", values=DISTRIBUTIONS)
    waypoint: bool = attribute(Kind.BOOLEAN, "Messages pass through a broker on their way.", False)
    ingress_phase: int = attribute(
        Kind.INTEGER,
        "The phase of the address that senders use; to be given together with egressPhase.",
        0,
        high=9,
    )
    egress_phase: int = attribute(
        Kind.INTEGER,
        "The phase of the address that receivers use; to be given together with ingressPhase.",
        0,
        default_doc="1 for a waypoint, else 0",
        high=9,
    )
    priority: int | None = attribute(
        Kind.INTEGER, "Overrides the priority in the messages.", default_doc="the message's own", high=9
    )
    enable_fallback: bool = attribute(
        Kind.BOOLEAN, "Messages that find no consumer go to consumers with the capability `qd.fallback`.", False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntity(Entity):
    """What one module logs, and where to. What is not given follows the module DEFAULT."""

    module: str = attribute(Kind.ENUM, "The module.", values=LOG_MODULES, required=True)
    enable: frozenset[str] | None = attribute(
        Kind.STRING,
        "The levels logged, a list of: trace debug info notice warning error critical, each with `+` for those above "
        "it too; none; default.",
        default_doc="as DEFAULT, which starts with `info+`",
        parse=texts.levels,
    )
    include_timestamp: bool | None = attribute(
        Kind.BOOLEAN,
        "Begin each line with the time.",
        default_doc="as DEFAULT, which starts with yes",
        old=("timestamp",),
    )
    include_source: bool | None = attribute(
        Kind.BOOLEAN,
        "End each line with source file and line.",
        default_doc="as DEFAULT, which starts with no",
        old=("source",),
    )
    output_file: str | None = attribute(
        Kind.STRING,
        "stderr, stdout, syslog, or a file to append to.",
        default_doc="as DEFAULT, which starts with stderr",
        old=("output",),
    )


ENTITY_TYPES: Final = (
    EntityType(
        "router",
        RouterEntity,
        "The router as a whole. At most one; without it every attribute has its default.",
        singleton=True,
        reported=(
            "version", "hostName", "addrCount", "linkCount", "blockedLinkCount", "nodeCount", "linkRouteCount",
            "autoLinkCount", "connectionCount", "presettledDeliveries", "droppedPresettledDeliveries",
            "acceptedDeliveries", "rejectedDeliveries", "releasedDeliveries", "modifiedDeliveries",
            "deliveriesDelayed1Sec", "deliveriesDelayed10Sec", "deliveriesStuck", "deliveriesIngress",
            "deliveriesEgress", "deliveriesTransit", "deliveriesIngressRouteContainer",
            "deliveriesEgressRouteContainer", "deliveriesRedirectedToFallback", "uptimeSeconds", "memoryUsage",
        ),
    ),
    EntityType("listener", ListenerEntity, "Where clients connect. Any number."),
    EntityType("address", AddressEntity, "How messages to some addresses are distributed. Any number."),
    EntityType("log", LogEntity, "What one module logs, and where to. At most one for each module.", key="module"),
)  # fmt: skip

#: Sections that the language knows and this version does not do anything for.
LATER_SECTIONS: Final = (
    "policy", "connector", "sslProfile", "authServicePlugin", "vhost", "linkRoute", "autoLink", "exchange", "binding",
    "console", "dummy",
)  # fmt: skip
