"""The router as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from trouter.config import files, texts
from trouter.config.entities.base import DISTRIBUTIONS, Entity, entity
from trouter.config.schema import RESTART, Kind, boolean, choice, counter, integer, path, properties, reported, string


@entity(
    "router",
    "The router as a whole. At most one; without it every attribute has its default.",
    "router",
    instead="the router stands alone",
    singleton=True,
    core=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class RouterEntity(Entity):
    """The router as a whole."""

    id: str = string(
        "The router's name, its container id in AMQP: at most 127 characters, no blanks.",
        factory=texts.random_router_id,
        default_doc="the mode and 15 random characters",
        parse=texts.router_id,
        reload=RESTART,
    )
    mode: str = choice(
        "Whether the router stands alone or belongs to a network of routers.",
        "standalone",
        values=("standalone", "interior", "edge"),
        reload=RESTART,
    )
    area: str = string("The only area is 0.", "0", unset=None, inert="there is one area")
    version: None = reported(Kind.STRING, "The version of the program.")
    host_name: None = reported(Kind.STRING, "The name of the machine it runs on.")
    hello_interval_seconds: int = integer("Between two hellos to a neighbour.", 1, low=1, old_names=("helloInterval",))
    hello_max_age_seconds: int = integer(
        "Without a hello, until a neighbour is lost.", 3, low=1, old_names=("helloMaxAge",)
    )
    ra_interval_seconds: int = integer("Between two router advertisements.", 30, low=1, old_names=("raInterval",))
    ra_interval_flux_seconds: int = integer(
        "Between two router advertisements while the network changes.", 4, low=1, old_names=("raIntervalFlux",)
    )
    remote_ls_max_age_seconds: int = integer(
        "Without news, until a remote router's link state expires.", 60, low=1, old_names=("remoteLsMaxAge",)
    )
    worker_threads: int = integer("Threads of the older router.", 4, low=1, inert="trouter runs in one thread")
    debug_dump_file: str | None = path(
        "Where the signal USR1 writes the state of the router.",
        default_doc="a file of its own in the working directory, for each signal",
        old_names=("debugDump",),
    )
    sasl_config_dir: str | None = path(
        "The folder with the configuration of Cyrus SASL, which then serves its mechanisms.",
        default_doc="Cyrus SASL is not used",
        old_names=("saslConfigPath",),
        reload=RESTART,
    )
    sasl_config_name: str = string(
        "The name of that configuration: the file is called so, with `.conf` at its end.", "qdrouterd", reload=RESTART
    )
    allow_resumable_link_route: bool = boolean("Whether the termini of routed links may outlive the links.", True)
    timestamps_in_utc: bool = boolean("Log times in UTC, not in local time.", False, name="timestampsInUTC")
    timestamp_format: str | None = string(
        "A strftime format for log times; `%%06lu` stands for the microseconds.",
        default_doc="`%Y-%m-%d %H:%M:%S.%%06lu %z`",
    )
    allow_unsettled_multicast: bool = boolean(
        "Kept from the older router.", False, inert="unsettled multicast is always allowed, end to end"
    )
    default_distribution: str = choice(
        "How messages to an address without an `address` section are distributed.",
        "balanced",
        values=DISTRIBUTIONS,
        reload=RESTART,
    )
    metadata: str | None = string("A text that management shows.")
    addr_count: None = counter("Addresses known now.")
    link_count: None = counter("Links attached now.")
    blocked_link_count: None = counter("Links that have had no credit for 10 seconds.")
    node_count: None = counter("Other routers known now.")
    duplicate_ids: None = reported(Kind.LIST, "Ids that two routers of the network have.", extra=True)
    mesh_faults: None = reported(
        Kind.MAP, "How often what other routers sent was not believed, by what was wrong with it.", extra=True
    )
    overdrawn_deliveries: None = counter("Deliveries that came without credit and were taken in.", extra=True)
    logins_denied: None = counter("Logins refused since the start.", extra=True)
    log_lines_lost: None = counter("Log lines that could not be written.", extra=True)
    link_route_count: None = counter("Link routes configured now.")
    auto_link_count: None = counter("Auto links configured now.")
    connection_count: None = counter("Connections open now.")
    presettled_deliveries: None = counter("Deliveries that came settled.")
    dropped_presettled_deliveries: None = counter(
        "Deliveries that came settled and were dropped for want of a receiver."
    )
    accepted_deliveries: None = counter("Deliveries accepted.")
    rejected_deliveries: None = counter("Deliveries rejected.")
    released_deliveries: None = counter("Deliveries released.")
    modified_deliveries: None = counter("Deliveries modified.")
    deliveries_delayed_1_sec: None = counter("Deliveries settled after 1 to 10 seconds.", name="deliveriesDelayed1Sec")
    deliveries_delayed_10_sec: None = counter(
        "Deliveries settled after more than 10 seconds.", name="deliveriesDelayed10Sec"
    )
    deliveries_stuck: None = counter("Deliveries that have been unsettled for more than 10 seconds.")
    deliveries_ingress: None = counter("Deliveries that clients sent to this router.")
    deliveries_egress: None = counter("Deliveries that this router sent to clients.")
    deliveries_transit: None = counter("Deliveries passed on to other routers.")
    deliveries_ingress_route_container: None = counter("Deliveries that brokers sent to this router.")
    deliveries_egress_route_container: None = counter("Deliveries that this router sent to brokers.")
    deliveries_redirected_to_fallback: None = counter("Deliveries that went to a fallback consumer.")
    uptime_seconds: None = counter("Since the start of the program.")
    memory_usage: None = counter("The program's memory in octets, where the system tells.")
    users_file: str | None = path(
        "Users and salted password hashes for PLAIN and SCRAM, as `trouter passwd` writes them; of mode 0600.",
        extra=True,
    )
    pam_service: str | None = string(
        "The PAM service that checks the passwords of PLAIN: a file in `/etc/pam.d`, in lower case.", extra=True
    )
    oauth_issuer: str | None = string(
        "Who issues the tokens of OAUTHBEARER and XOAUTH2, as their claim `iss` says.", extra=True
    )
    oauth_audience: str | None = string("For whom those tokens are issued, as their claim `aud` says.", extra=True)
    oauth_jwks: str | None = string(
        "The issuer's public keys, a JSON Web Key Set: the path of a file or an `https` URL.", extra=True
    )
    oauth_user_claim: str = string("The claim of a token that names the user.", "sub", extra=True)
    oauth_plain: bool = boolean("Whether a token may be the password of PLAIN, too.", False, extra=True)
    oauth_scopes_claim: str | None = string(
        "The claim of a token that lists what its user may do, `read:ADDRESS` and `write:ADDRESS`: a text with blanks "
        "between or a list. Within other claims it is found by their names with dots between.",
        default_doc="what users may do is left to the policy",
        extra=True,
    )
    oauth_scope_prefix: str = string(
        "How those begin that are meant for this router; others grant nothing.", "", extra=True
    )
    oauth_tenant_claim: str | None = string("The claim of a token that names the tenant whose user it is.", extra=True)
    secure_defaults: bool = boolean(
        "Whether attributes that are not given have their secure values instead of the older router's: listeners "
        "authenticate their peers, require TLS unless they are on a loopback address, where alone they serve healthz, "
        "and the policy holds every client to a vhost.",
        False,
        reload=RESTART,
        extra=True,
    )
    log_dir: str | None = path(
        "The folder that every log file lies in, below it too, and the folders of a recordLog made through "
        "management. Without it, management may name none but files and folders that are written to already.",
        default_doc="log files may lie anywhere",
        reload=RESTART,
        parse=files.directory,
        extra=True,
    )
    secret_dir: str | None = path(
        "The folder that files of passwords and tokens lie in, below it too, which management may name; with "
        "secureDefaults certificates and keys too. Without it, those files only that the configuration names already; "
        "the same holds for `env:NAME` in any case.",
        reload=RESTART,
        parse=files.directory,
        extra=True,
    )
    allowed_bind_addresses: tuple[str, ...] | None = string(
        "Where listeners made or moved through management may listen: addresses, networks and host names, separated "
        "by blanks; `*` for everywhere.",
        default_doc="loopback addresses, and the hosts of the listeners there are",
        parse=texts.bind_addresses,
        reload=RESTART,
        extra=True,
    )
    plugins: tuple[texts.ListedPlugin, ...] = string(
        "The plugins that may be loaded beside those that come with trouter, separated by blanks: `NAME`, or "
        "`NAME@sha256:HASH` for one whose code must be what `trouter plugins` showed.",
        (),
        parse=texts.plugin_list,
        reload=RESTART,
        extra=True,
    )
    plugin_settings: Mapping[str, Mapping[str, object]] = properties(
        "What plugins are told when they are configured, a map for each by its name. Management shows it: write where "
        "a secret lies, not the secret.",
        factory=lambda: MappingProxyType({}),
        parse=texts.plugin_settings,
        extra=True,
    )
    auth_lockout: str = choice(
        "What failed logins lead to: delays and a lock, only an `alarm` in the log, or nothing.",
        "enforce",
        values=("enforce", "alarm", "off"),
        also={"no": "off", "false": "off", "yes": "enforce", "true": "enforce", "on": "enforce"},
        extra=True,
    )
    auth_delay_after: int = integer(
        "Failed logins from a host, or of a user from a host, after which the next ones have to wait.",
        5,
        low=1,
        high=1000,
        extra=True,
    )
    auth_delay_window_seconds: int = integer("In which time these failures must be.", 60, low=1, high=86400, extra=True)
    auth_longest_delay_seconds: int = integer(
        "The wait is a second, doubles at each failure, and ends here.", 30, low=1, high=3600, extra=True
    )
    auth_lockout_after: int = integer(
        "Failed logins of a user from a host after which that user is locked out there.",
        20,
        low=1,
        high=1000,
        extra=True,
    )
    auth_lockout_window_seconds: int = integer(
        "In which time these failures must be.", 600, low=1, high=86400, extra=True
    )
    auth_lockout_seconds: int = integer("For how long the user is locked out.", 900, low=1, high=86400, extra=True)
    auth_lockout_exempt: tuple[texts.Network, ...] = string(
        "Addresses and networks, separated by commas, from which failed logins are not counted.",
        (),
        parse=texts.networks,
        extra=True,
    )
    max_handshakes: int = integer(
        "Connections at once that have not come as far as their Open; 0 for no limit. Routers are counted apart.",
        1000,
        extra=True,
    )
    max_handshakes_per_host: int = integer(
        "The same from one host, an IPv6 network of 64 bits being one; 0 for no limit.", 20, extra=True
    )
    min_handshake_rate: int = integer(
        "Octets a second that a peer must send until its Open, from 2 seconds on, once it has begun; 0 for no limit.",
        64,
        extra=True,
    )
    accept_rate_per_host: int = integer("New connections a second from one host; 0 for no limit.", 50, extra=True)
    accept_burst_per_host: int = integer("New connections that one host may make at once.", 100, low=1, extra=True)
    handshake_exempt: tuple[texts.Network, ...] = string(
        "Addresses and networks, separated by commas, which the five limits before do not hold for, and where failed "
        "logins are counted by user, not by host: a proxy, or this machine; `none` for none.",
        tuple(texts.networks("127.0.0.0/8, ::1")),
        default_doc="`127.0.0.0/8, ::1`",
        shown="127.0.0.0/8, ::1",
        parse=texts.networks,
        extra=True,
    )
    max_memory_bytes: int | None = integer(
        "What the process may take, in octets. Above 80 percent of it the user who has most of it gets no credit, "
        "above 90 percent no client may connect; messages under way may be a quarter of it.",
        default_doc="what the machine or the container has",
        low=1_000_000,
        high=2**63 - 1,
        extra=True,
    )
    drain_timeout_seconds: int = integer(
        "After TERM: how long unsettled deliveries may take before connections are closed.", 10, high=86400, extra=True
    )

    def _default_name(self) -> str:
        return f"router/{self.id}"

    @property
    def identity(self) -> str:
        return f"router/{self.id}"
