"""The router as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from trouter.columns.column import Head, Merge
from trouter.columns.router import ROUTER
from trouter.config import files, texts
from trouter.config.entities.base import DISTRIBUTIONS, Entity, entity
from trouter.config.point import Point, with_points
from trouter.config.problems import Severity
from trouter.config.schema import RESTART, Kind, boolean, choice, integer, path, properties, reported, shown, string


@entity(
    "router",
    "The router as a whole. At most one; without it every attribute has its default.",
    "router",
    instead="the router stands alone",
    singleton=True,
    core=True,
    columns=shown(ROUTER),
    parted=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class RouterEntity(Entity):
    """The router as a whole."""

    id: str = with_points(
        string(
            "The router's name, its container id in AMQP: at most 127 characters, no blanks.",
            factory=texts.random_router_id,
            default_doc="the mode and 15 random characters",
            parse=texts.router_id,
            reload=RESTART,
            head=Head("Router Id", needs=False),
        ),
        Point(
            name="not-expanded",
            compatible="variables of the environment count as text, except in the addresses of vhosts",
            warning="nothing expands {variable}: it will count as text",
            cure="write the value; passwords may be env:NAME",
            severity=Severity.NOTE,
        ),
    )
    mode: str = with_points(
        choice(
            "Whether the router stands alone or belongs to a network of routers.",
            "standalone",
            values=("standalone", "interior", "edge"),
            reload=RESTART,
            head=Head("Mode", needs=False),
        ),
        Point(
            name="no-neighbours",
            compatible="an interior router serves without other routers",
            warning="the router is interior, but no listener and no connector is for other routers",
            cure="add a listener or connector with role: inter-router, or write mode: standalone",
            page="networks.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="no-connections",
            compatible="a router without listeners and connectors runs",
            warning="no peer can connect to the router, and it dials none: there is no listener and no connector",
            cure="add a listener",
            severity=Severity.NOTE,
        ),
    )
    ready_without_uplink: bool = boolean(
        "Whether an edge router without a usable uplink counts as ready, to serve its own clients alone.",
        False,
        extra=True,
    )
    area: str = string(
        "The only area is 0.", "0", unset=None, inert="there is one area", head=Head("Area", needs=False)
    )
    version: None = reported(Kind.STRING, "The version of trouter.", head=Head("Version", needs=False))
    host_name: None = reported(Kind.STRING, "The host name of the machine.")
    hello_interval_seconds: int = integer(
        "The time between two hellos to a neighbour.", 1, low=1, old_names=("helloInterval",)
    )
    hello_max_age_seconds: int = integer(
        "The router gives up a neighbour that sends no hello for this time.", 3, low=1, old_names=("helloMaxAge",)
    )
    ra_interval_seconds: int = integer(
        "The time between two router advertisements.", 30, low=1, old_names=("raInterval",)
    )
    ra_interval_flux_seconds: int = integer(
        "The time between two router advertisements while the network changes.", 4, low=1, old_names=("raIntervalFlux",)
    )
    remote_ls_max_age_seconds: int = integer(
        "The router forgets another router from which no routing message arrives for this time.",
        60,
        low=1,
        old_names=("remoteLsMaxAge",),
    )
    worker_threads: int = integer(
        "The number of threads of Qpid Dispatch; management shows 1.",
        4,
        low=1,
        inert="trouter runs in one thread",
        head=Head("Worker Threads"),
        merge=Merge.SUM,
    )
    workers: str = with_points(
        string(
            "The number of processes that serve the listeners together, each on a core of its own; `auto` for one for "
            "each core that the router may use. Not with the plugin `feedback`.",
            "1",
            parse=texts.workers,
            reload=RESTART,
            extra=True,
        ),
        Point(
            name="not-with-workers",
            compatible="a router of one process serves it; one of several workers does not start",
            warning="{what} cannot be used with workers: the router will not start",
            cure="write workers: 1",
            page="workers.md",
            severity=Severity.PROBLEM,
        ),
        Point(
            name="workers-interpreted",
            compatible="only the compiled router has workers: what they count together takes atomic operations of C",
            warning="this router runs interpreted, and an interpreted router has no workers: the router will not start",
            cure="install a package or a wheel with compiled modules (in a checkout: make build) and unset "
            "TROUTER_PURE, or write workers: 1",
            page="workers.md",
            severity=Severity.PROBLEM,
        ),
        Point(
            name="more-workers-than-cores",
            compatible="more workers than cores are started",
            warning="{count} workers will share {cores} cores, which costs more than it brings",
            cure="write workers: auto",
            page="workers.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="limits-by-worker",
            compatible="messages that wait at another worker than their sender's do not count in maxBufferedBytes",
            warning="the maxBufferedBytes of {what} will not count messages that wait at another worker than their "
            "sender's",
            cure="rely on maxMemoryBytes for these, or write workers: 1",
            page="workers.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="workers-apart",
            compatible="clients of different workers of an edge router reach each other through the uplink only",
            warning="without an uplink, clients of different workers will not reach each other",
            cure="write workers: 1 if this router is to serve its clients while it has no uplink",
            page="workers.md",
            severity=Severity.NOTE,
        ),
    )
    debug_dump_file: str | None = path(
        "The file into which the router writes its state on the signal USR1.",
        default_doc="a file of its own in the working directory, for each signal",
        old_names=("debugDump",),
    )
    sasl_config_dir: str | None = with_points(
        path(
            "The folder with the configuration of Cyrus SASL, or several, separated by colons. Cyrus SASL serves the "
            "mechanisms that this configuration allows.",
            default_doc="where Cyrus SASL looks itself; not used with usersFile, pamService, oauthIssuer, plugins or "
            "secureDefaults",
            old_names=("saslConfigPath",),
            reload=RESTART,
        ),
        Point(
            name="users-elsewhere",
            compatible="without saslConfigDir, and without usersFile, pamService, oauthIssuer and plugins, the "
            "configuration of Cyrus SASL counts that its library finds: in a folder of `PN_SASL_CONFIG_PATH` or "
            "`SASL_CONF_PATH`, else in `/etc/sasl2` and the like",
            strict="only a saslConfigDir counts",
            warning="logins will be those of {path}, where Cyrus SASL looks itself",
            cure="write saslConfigDir: {folder}",
            page="authentication.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="no-sasl-users",
            compatible="a listener opens although the database of its users cannot be read",
            warning="no user of Cyrus SASL will be able to log in with a password: its database {sasldb} {why}",
            cure="make it with saslpasswd2, readable by the router's user, or mend sasldb_path",
            page="authentication.md",
            severity=Severity.PROBLEM,
        ),
    )
    sasl_config_name: str = string(
        "The name of the configuration file of Cyrus SASL, without its ending `.conf`.", "qdrouterd", reload=RESTART
    )
    allow_resumable_link_route: bool = boolean(
        "Whether the source or target of a routed link may outlive the link (a durable subscription, for example).",
        True,
    )
    timestamps_in_utc: bool = boolean("Log times in UTC, not in local time.", False, name="timestampsInUTC")
    timestamp_format: str | None = string(
        "A strftime format for log times; `%%06lu` stands for the microseconds.",
        default_doc="`%Y-%m-%d %H:%M:%S.%%06lu %z`",
    )
    allow_unsettled_multicast: bool = boolean(
        "Kept from Qpid Dispatch.", False, inert="unsettled multicast is always allowed, end to end"
    )
    default_distribution: str = choice(
        "How messages to an address without an `address` section are distributed.",
        "balanced",
        values=DISTRIBUTIONS,
        reload=RESTART,
    )
    metadata: str | None = string("A text that management shows.")
    users_file: str | None = with_points(
        path(
            "Users and salted password hashes for PLAIN and SCRAM, as `trouter passwd` writes them; of mode 0600, or "
            "readable by all in a container.",
            extra=True,
        ),
        Point(
            name="writable-by-group",
            compatible="a private file that its group can change is used",
            warning="all of its group can change {path}",
            cure="chmod g-w {path}",
            page="hardening.md",
        ),
    )
    pam_service: str | None = string(
        "The PAM service that checks the passwords of PLAIN: a file in `/etc/pam.d`, in lower case.",
        parse=texts.file_name,
        extra=True,
    )
    oauth_issuer: str | None = string(
        "The issuer of the tokens of OAUTHBEARER and XOAUTH2, as in their claim `iss`.", extra=True
    )
    oauth_audience: str | None = string("The audience of the tokens, as in their claim `aud`.", extra=True)
    oauth_jwks: str | None = string(
        "The issuer's public keys, a JSON Web Key Set: the path of a file or an `https` URL.", extra=True
    )
    oauth_user_claim: str = string("The claim of a token that names the user.", "sub", extra=True)
    oauth_plain: bool = boolean("Whether PLAIN also accepts a token in place of a password.", False, extra=True)
    oauth_scopes_claim: str | None = string(
        "The claim of a token that lists the rights of its user, as `read:ADDRESS` and `write:ADDRESS`: a text "
        "with blanks between them, or a list. For a claim within other claims, join their names with dots.",
        default_doc="only the policy limits users",
        extra=True,
    )
    oauth_scope_prefix: str = string(
        "The prefix of the rights that are meant for this router. The router ignores all others.", "", extra=True
    )
    oauth_tenant_claim: str | None = string("The claim of a token that names the tenant of the user.", extra=True)
    secure_defaults: bool = boolean(
        "Whether attributes that the file does not give have secure defaults instead of those of "
        "Qpid Dispatch. Then listeners authenticate their peers; listeners on other than loopback addresses require "
        "TLS and do not serve healthz; and the rules of a vhost apply to every client.",
        False,
        reload=RESTART,
        extra=True,
    )
    log_file_mode: str | None = with_points(
        choice(
            "The mode of new log files, as the umask allows it; one that exists keeps its own.",
            default_doc="`0644`; `0640` with secureDefaults",
            values=("0600", "0640", "0644"),
            reload=RESTART,
            extra=True,
        ),
        Point(
            name="logs-for-others",
            compatible="new log files may be read by every user of the machine: they have the mode 0644",
            strict="0640, unless logFileMode is given",
            page="logging.md",
        ),
    )
    log_dir: str | None = with_points(
        path(
            "All log files must be in this folder or below it, as must the folders of a recordLog that management "
            "creates. Without it, management may choose only files and folders that the router writes to already.",
            default_doc="log files may be in any folder",
            reload=RESTART,
            parse=files.directory,
            extra=True,
        ),
        Point(
            name="log-elsewhere",
            compatible="without it, management may choose log files wherever the router's user may write, "
            "no device or special file",
            strict="without it, only files that are logged to already",
            page="hardening.md",
        ),
    )
    secret_dir: str | None = with_points(
        path(
            "Management may name files of passwords and tokens in this folder or below it; with secureDefaults the "
            "same holds for certificates and keys. Without it, management may name only files that the "
            "configuration names already. Management may use `env:NAME` only if the configuration uses that "
            "variable already.",
            reload=RESTART,
            parse=files.directory,
            extra=True,
        ),
        Point(
            name="files-by-management",
            compatible="a CREATE or UPDATE may name any file as certificate, key, authority or mapping",
            strict="only files below secretDir, and those that the configuration names already",
            page="hardening.md",
        ),
    )
    allowed_bind_addresses: tuple[str, ...] | None = with_points(
        string(
            "The addresses on which management may create or move listeners: addresses, networks and host names, "
            "separated by blanks; `*` for everywhere.",
            default_doc="loopback addresses, and the hosts of the configured listeners",
            parse=texts.bind_addresses,
            reload=RESTART,
            extra=True,
        ),
        Point(
            name="listener-elsewhere",
            compatible="without it, management may open listeners on every interface",
            strict="without it, only on loopback addresses and the hosts of the listeners in the file",
            page="hardening.md",
        ),
    )
    allow_network_changes: bool = boolean(
        "With secureDefaults: whether a change of the configuration over the network (`trouter network apply`) may "
        "come to this router without TLS from other machines.",
        False,
        reload=RESTART,
        extra=True,
    )
    plugins: tuple[texts.ListedPlugin, ...] = string(
        "The plugins that the router loads besides those of trouter, separated by blanks: `NAME`, or "
        "`NAME@sha256:HASH` to load it only while its code has the hash that `trouter plugins` shows.",
        (),
        parse=texts.plugin_list,
        reload=RESTART,
        extra=True,
    )
    plugin_settings: Mapping[str, Mapping[str, object]] = properties(
        "The settings of plugins: a map of settings for each plugin, by its name. Management shows them: write "
        "the path of a secret, not the secret.",
        factory=lambda: MappingProxyType({}),
        parse=texts.plugin_settings,
        extra=True,
    )
    auth_lockout: str = with_points(
        choice(
            "What the router does after failed logins: delay further logins from that host, and lock users out there "
            "(`enforce`); `delay` only the answers to wrong passwords of the same user from the same host; only write "
            "an `alarm` to the log; or nothing.",
            "delay",
            default_doc="`delay`; `enforce` with secureDefaults, or if an attribute of lockouts is given",
            values=("enforce", "delay", "alarm", "off"),
            also={"no": "off", "false": "off", "yes": "enforce", "true": "enforce", "on": "enforce"},
            extra=True,
        ),
        Point(
            name="one-address-many-logins",
            compatible="failed logins are counted by user and host: the answers to wrong passwords of that user come "
            "later and later there, and a right password is accepted at once",
            strict="they are counted by host besides: further logins from there have to wait or are refused, and "
            "after many failures even the user's right password",
            warning="will let other machines guess passwords for as long as they like",
            cure="write authLockout: enforce, and the addresses of proxies in handshakeExempt",
            page="authentication.md",
        ),
    )
    auth_delay_after: int = integer(
        "After so many failed logins from a host, or of a user from a host, further logins have to wait.",
        5,
        low=1,
        high=1000,
        extra=True,
    )
    auth_delay_window_seconds: int = integer(
        "The time within which these failures count.", 60, low=1, high=86400, extra=True
    )
    auth_longest_delay_seconds: int = integer(
        "The longest wait. The first wait is a second, and each failure doubles it.", 30, low=1, high=3600, extra=True
    )
    auth_lockout_after: int = integer(
        "After so many failed logins of a user from a host, the router locks that user out at that host.",
        20,
        low=1,
        high=1000,
        extra=True,
    )
    auth_lockout_window_seconds: int = integer(
        "The time within which these failures count.", 600, low=1, high=86400, extra=True
    )
    auth_lockout_seconds: int = integer(
        "The time for which the user is locked out.", 900, low=1, high=86400, extra=True
    )
    auth_lockout_exempt: tuple[texts.Network, ...] = string(
        "Addresses and networks, separated by commas, for which the router does not count failed logins.",
        (),
        parse=texts.networks,
        extra=True,
    )
    max_handshakes: int = integer(
        "Connections at once that have not sent their open yet; 0 for no limit. Connections of routers are "
        "counted separately.",
        0,
        default_doc="no limit; 1000 with secureDefaults",
        extra=True,
    )
    max_handshakes_per_host: int = with_points(
        integer(
            "The same from one host; an IPv6 network of 64 bits counts as one host; 0 for no limit.",
            0,
            default_doc="no limit; 20 with secureDefaults",
            extra=True,
        ),
        Point(
            name="one-address-many-clients",
            compatible="any number of clients may connect from one address at once; they are served in the order of "
            "their arrival, as far as memory and descriptors reach",
            strict="1000 connections may be before their open, of which 20 from one host, and one host may open 50 a "
            "second; the router closes further ones",
            warning="will accept any number of connections from one address before their users are known",
            cure="write maxHandshakesPerHost and acceptRatePerHost, and the addresses of proxies in handshakeExempt",
            page="authentication.md",
            severity=Severity.NOTE,
        ),
    )
    min_handshake_rate: int = integer(
        "Bytes a second that a peer must send until its open, once it has begun to send and 2 seconds have "
        "passed; 0 for no limit.",
        0,
        default_doc="no limit; 64 with secureDefaults",
        extra=True,
    )
    accept_rate_per_host: int = integer(
        "New connections a second from one host; 0 for no limit.",
        0,
        default_doc="no limit; 50 with secureDefaults, or if acceptBurstPerHost is given",
        extra=True,
    )
    accept_burst_per_host: int = integer("New connections that one host may make at once.", 100, low=1, extra=True)
    handshake_exempt: tuple[texts.Network, ...] = string(
        "Addresses and networks, separated by commas, that are exempt from the five limits above, and for which "
        "failed logins are counted by user, not by host: a proxy, or this machine; `none` for no exemption.",
        tuple(texts.networks("127.0.0.0/8, ::1")),
        default_doc="`127.0.0.0/8, ::1`",
        shown="127.0.0.0/8, ::1",
        parse=texts.networks,
        extra=True,
    )
    max_memory_bytes: int | None = with_points(
        integer(
            "The memory that the process may use, in bytes. Messages under way may use a quarter of it. Above 80 "
            "percent the connections whose messages use the most get no credit; above 85 percent clients get no "
            "third link; above 90 percent the router closes connections of the user who uses the most, or refuses "
            "new ones.",
            default_doc="what the machine or the container has",
            low=1_000_000,
            high=2**63 - 1,
            extra=True,
        ),
        Point(
            name="no-memory-left",
            compatible="a limit below what the router itself uses is accepted",
            warning="no client could connect: the router uses {needed} bytes before the first client connects",
            cure="{least} or more",
            page="limits.md",
            severity=Severity.PROBLEM,
        ),
    )
    drain_timeout_seconds: int = integer(
        "After TERM, the router waits so long for unsettled deliveries before it closes connections.",
        10,
        high=86400,
        extra=True,
    )

    def _default_name(self) -> str:
        return f"router/{self.id}"

    @property
    def identity(self) -> str:
        return f"router/{self.id}"
