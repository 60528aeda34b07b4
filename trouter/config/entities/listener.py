"""The entities listener and connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trouter.columns.column import Form, Head
from trouter.config import access, files, passwords, texts
from trouter.config.entities import ends
from trouter.config.entities.base import Entity, entity
from trouter.config.hosts import HostRange, is_loopback, proxy_addresses, remote_addresses
from trouter.config.passwords import Secret
from trouter.config.point import Point, with_points
from trouter.config.problems import Severity
from trouter.config.schema import NEXT, Kind, boolean, choice, integer, path, reported, string
from trouter.config.tenants import TenantSource, tenant_source


@dataclass(frozen=True, slots=True, kw_only=True)
class Socketed(Entity):
    """An entity with a host and a port."""

    host: str = ""
    port: str = ""

    @property
    def identity(self) -> str:
        return f"{self._place()}:{self.name}" if self.named else self._place()

    @property
    def port_or_service(self) -> int | str:
        """The number of the port; a service name if only the system knows its number."""
        return texts.port_or_service(self.port)

    def _default_name(self) -> str:
        return self._place()

    @property
    def numbered_by(self) -> str:
        return "" if self.named else f"{self.type.section}/{self.host}:{self.port}"

    def _place(self) -> str:
        """Return `listener/HOST:PORT`, with a number from the second of the same host and port on."""
        again = f" ({self.number + 1})" if self.number else ""
        return f"{self.type.section}/{self.host}:{self.port}{again}"


@entity(
    "listener",
    "A port on which clients or routers connect. Any number.",
    "listener",
    instead="it is not opened",
    operations=("CREATE", "DELETE"),
    extra_operations=("UPDATE",),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerEntity(Socketed):
    """A host and port where the router accepts connections."""

    host: str = string("A host name or an IPv4 or IPv6 address; empty means every interface.", "", parse=texts.host)
    port: str = with_points(
        string("A port number, 0 for any free port, or a service name.", "amqp", parse=texts.listed_port),
        Point(
            name="closed-listener",
            compatible="a listener whose address cannot be bound is tried again, and the rest serves; only the first "
            "one of the file ends the router",
            strict="the router does not start",
            warning="is not open, and is tried again: {why}",
            cure="free the address, write another one, or readyWithout: no if the router is not to be ready without it",
            page="running.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="same-address",
            compatible="of two listeners with one address the second stays closed, and the rest serves",
            strict="the router does not start",
            warning="will not be opened: {other} has its address, {address}",
            cure="remove one of the two, or give it another port",
            page="running.md",
            severity=Severity.PROBLEM,
        ),
        Point(
            name="unknown-service",
            compatible="a listener or connector whose port is an unknown service name is tried again, and the rest "
            "serves; only the first listener of the file ends the router",
            warning="this machine knows no service {service}, so no port can be opened or dialled",
            cure="write the number of the port, or add the service to /etc/services",
            severity=Severity.PROBLEM,
        ),
        Point(
            name="port-too-high",
            compatible="for a port above 65535 the router uses the lowest 16 bits",
            strict="the file is refused",
            warning="the remainder by 65536 will be the port",
            cure="a number from 0 to 65535",
            severity=Severity.PROBLEM,
        ),
    )
    socket_address_family: str | None = choice(
        "Use only this kind of the host's addresses.",
        default_doc="whatever the host has",
        values=("IPv4", "IPv6"),
        old_names=("protocolFamily",),
    )
    role: str = with_points(
        ends.role("What connects here: clients, brokers (`route-container`), or other routers."),
        Point(
            name="unproven-router",
            compatible="a listener of role inter-router or edge opens without authenticatePeer, and without TLS",
            strict="it is not opened, unless it authenticates, and uses TLS where it is not on a "
            "loopback address; allowInsecureRole: yes opens it",
            warning="will let in every host that reaches {where} as a router of the network",
            cure="write authenticatePeer: yes and an sslProfile",
            page="networks.md",
        ),
    )
    cost: int = ends.cost()
    ssl_profile: str | None = with_points(
        ends.ssl_profile("The section with the certificates for TLS."),
        Point(
            name="unknown-profile",
            compatible="a listener or connector fails alone if its sslProfile does not exist",
            strict="the file is refused",
            warning="it will not be served",
            cure="add an sslProfile with this name",
            page="tls.md",
            severity=Severity.PROBLEM,
        ),
        Point(
            name="unusable-profile",
            compatible="a listener opens although its sslProfile cannot be used: its TLS handshakes fail; "
            "clients without TLS are served if requireSsl is no and only protocols is at fault",
            strict="the router does not start",
            page="tls.md",
            severity=Severity.PROBLEM,
        ),
        Point(
            name="encryption-without-profile",
            compatible="a listener that requires TLS, or EXTERNAL, without an sslProfile opens, but no "
            "client can log in",
            strict="the file is refused",
            warning="no client will be able to log in",
            cure="add sslProfile: NAME",
            page="tls.md",
            severity=Severity.PROBLEM,
        ),
    )
    sni_profiles: tuple[str, ...] = string(
        "Further sslProfile sections, separated by blanks or commas: a client that asks in TLS for a name that fits "
        "one of them (`serverNames`) gets its certificate. Everything else of TLS is as in sslProfile.",
        (),
        parse=texts.listed,
        reload=NEXT,
        extra=True,
    )
    strict_sni: bool = boolean(
        "Refuse the TLS handshake of a client that asks for no name, or for one that fits neither sniProfiles nor "
        "sslProfile, with the alert unrecognized_name. Without it such a client gets the certificate of sslProfile.",
        False,
        reload=NEXT,
        extra=True,
    )
    hostname_from_sni: bool = boolean(
        "The name that a client asks for in TLS counts as the hostname of its open: for the vhost, and for the tenant "
        "with multiTenant. An open with another hostname is refused. Without TLS, or without a name in it, the "
        "hostname of the open counts.",
        False,
        reload=NEXT,
        extra=True,
    )
    sasl_mechanisms: tuple[str, ...] = with_points(
        string(
            "The SASL mechanisms offered, by name, separated by blanks.",
            (),
            default_doc="all that the plugins serve",
            parse=texts.mechanisms,
            reload=NEXT,
        ),
        Point(
            name="unserved-mechanism",
            compatible="the listener opens without the mechanisms that no plugin serves",
            strict="an unknown mechanism stops the start",
            warning="no plugin serves {mechanisms}: will open without them",
            cure="leave it out, or configure a plugin that serves it",
            page="authentication.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="no-such-mechanism",
            compatible="a word that cannot be the name of a mechanism is ignored",
            strict="the file is refused",
            warning="it will be ignored",
            cure="e.g. PLAIN",
            page="authentication.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="no-mechanism",
            compatible="a listener opens although no client can log in by any of its mechanisms",
            warning="no client will be able to log in: {why}",
            cure="write saslMechanisms that are served: by a usersFile, a saslConfigDir or a plugin",
            page="authentication.md",
            severity=Severity.PROBLEM,
        ),
        Point(
            name="weak-mechanisms",
            compatible="a listener without saslMechanisms offers all that the configuration of Cyrus SASL allows, "
            "also CRAM-MD5, DIGEST-MD5, LOGIN, NTLM and SCRAM-SHA-1",
            strict="it offers these only if saslMechanisms names them",
            warning="will offer weak mechanisms: {mechanisms}",
            cure="name stronger ones in saslMechanisms, such as SCRAM-SHA-256, or in mech_list",
            page="authentication.md",
        ),
        Point(
            name="missing-sasl-module",
            compatible="a listener opens without the mechanisms of mech_list that Cyrus SASL has no module for",
            warning="will not offer {mechanisms}: {path} allows it, but Cyrus SASL has no module for it here",
            cure="install the module (Debian: libsasl2-modules and packages whose names begin so), or leave it out",
            page="authentication.md",
            severity=Severity.NOTE,
        ),
    )
    authenticate_peer: bool = with_points(
        boolean("Refuse peers that do not authenticate.", False, reload=NEXT),
        Point(
            name="authenticate-peer",
            compatible="no, unless it is given: clients need not authenticate",
            strict="yes, unless it is given",
            warning="will let in every client from {where}, without {what}",
            cure="write authenticatePeer: yes",
            page="authentication.md",
        ),
    )
    sasl_plugin: str | None = string(
        "The authServicePlugin section of the authentication service that this listener asks. The listener "
        "offers the mechanisms of the service, and no client can log in while the service is away.",
        reload=NEXT,
    )
    require_encryption: bool = boolean("Refuse peers without encryption.", False, reload=NEXT)
    require_ssl: bool = with_points(
        boolean("Refuse peers without TLS.", False, reload=NEXT),
        Point(
            name="require-tls",
            compatible="no, unless it is given: clients may connect without TLS",
            strict="yes on listeners for other machines, unless it is given",
            warning="will accept clients without TLS from other machines",
            cure="write requireSsl: yes and an sslProfile",
            page="tls.md",
        ),
        Point(
            name="tls-if-they-like",
            compatible="an sslProfile alone leaves TLS to the client",
            warning="will accept clients without TLS too",
            cure="write requireSsl: yes",
            page="tls.md",
        ),
    )
    trusted_certs_file: str | None = path(
        "The authorities whose client certificates this listener accepts, and no others: a file, or a directory "
        "of them.",
        default_doc="those of the sslProfile",
        old_names=("trustedCerts",),
        parse=files.readable,
        reload=NEXT,
    )
    max_frame_size: int = with_points(
        ends.max_frame_size(),
        Point(
            name="size-clamped",
            compatible="maxFrameSize, maxSessions and every other number of its attributes, those of "
            "policies apart, counts as the nearest within its bounds",
            strict="the file is refused",
            warning="it will count as the nearest number within",
            cure="an integer within the bounds",
            severity=Severity.NOTE,
        ),
    )
    max_sessions: int = with_points(
        ends.max_sessions(),
        Point(
            name="sessions",
            compatible="1024 on listeners of role normal, unless it is given (Qpid Dispatch: 32768)",
            strict="256 there, unless it is given",
            page="limits.md",
        ),
    )
    max_session_frames: int | None = ends.max_session_frames()
    max_links: int | None = with_points(
        ends.max_links(),
        Point(
            name="many-links",
            compatible="32,768 links on a connection, unless it is given; budgets of memory hold besides",
            strict="1,000, unless it is given",
            page="limits.md",
        ),
    )
    max_unsettled: int | None = ends.max_unsettled()
    max_buffered_bytes: int | None = ends.max_buffered_bytes()
    idle_timeout_seconds: int = ends.idle_timeout_seconds()
    initial_handshake_timeout_seconds: int = with_points(
        integer(
            "How long a peer may take from connecting to its Open; 0 means for ever. The schema names 0, the default "
            "of Qpid Dispatch; the limit in force, 10 seconds if none is given, is the one that is shown.",
            10,
            older_default=0,
            high=ends.MAX_SECONDS,
            reload=NEXT,
        ),
        Point(
            name="never-opens",
            compatible="0 is obeyed",
            warning="will keep connections that never open for ever",
            cure="write a number of seconds",
        ),
    )
    strip_annotations: str = with_points(
        ends.strip_annotations(),
        Point(
            name="traces-kept",
            compatible="router annotations may pass",
            warning="will show peers the path of messages, and believe what they say about it",
            cure="write stripAnnotations: both",
        ),
    )
    link_capacity: int = ends.link_capacity()
    multi_tenant: bool = with_points(
        boolean("Give each tenant addresses of its own.", False, reload=NEXT),
        Point(
            name="unheld-tenants",
            compatible="without vhost policy and tenantFrom, the hostname of the open is the tenant; "
            "without a hostname addresses have no prefix",
            strict="the listener is not opened without vhost policy, or authenticatePeer and "
            "tenantFrom; an open without a hostname is refused",
            warning="will let clients choose their tenant: no policy says who may",
            cure="write policy { enableVhostPolicy: yes }, or authenticatePeer: yes and tenantFrom",
            page="multi-tenancy.md",
        ),
        Point(
            name="tenants-outside",
            compatible="tenants may use `_local/...` and `_topo/...`, which are the same for all tenants; "
            "there `$management` shows them the whole router",
            strict="addresses that begin with an underscore are refused to tenants, but for their own dynamic ones",
            page="multi-tenancy.md",
        ),
        Point(
            name="tenants-at-brokers",
            compatible="of two tenants that share a broker by link routes, each may name a link as one that the other "
            "had, and get the durable subscription that the broker keeps under this name",
            strict="the names of their links at brokers end with `@TENANT`",
            page="multi-tenancy.md",
        ),
    )
    failover_urls: tuple[texts.FailoverUrl, ...] = string(
        "Other routers that clients may connect to, sent to them in the open: `[scheme://]host[:port]`, "
        "separated by commas.",
        (),
        old_names=("failoverList",),
        parse=texts.failover_urls,
        reload=NEXT,
    )
    healthz: bool = with_points(
        boolean("With http: serve /healthz, /livez and /readyz.", True),
        Point(
            name="health-for-others",
            compatible="yes, unless it is given",
            strict="no on listeners for other machines, unless it is given",
            warning="will show other machines the health of the router",
            cure="write healthz: no",
            page="metrics.md",
        ),
    )
    metrics: bool = with_points(
        boolean("With http: serve /metrics.", True),
        Point(
            name="metrics-for-others",
            compatible="without metricsHosts and metricsToken every client may read /metrics",
            warning="will show other machines the metrics, with the names of vhosts and listeners",
            cure="write metricsHosts or metricsToken, ask for client certificates, or write metrics: no",
            page="metrics.md",
        ),
    )
    websockets: bool = boolean("With http: serve AMQP over WebSockets.", True)
    http: bool = with_points(
        boolean("Serve HTTP and WebSockets instead of AMQP.", False),
        Point(
            name="http-on-loopback",
            there="a listener with `http: yes` and a loopback host listens on every address of the machine",
            compatible="it listens on the host that is given",
            direction="narrower",
            warning="will be reached from this machine alone, at {host}; in Qpid Dispatch from every machine",
            cure="write host: 0.0.0.0, with authentication, if probes or browsers come from other machines",
            page="metrics.md",
            severity=Severity.NOTE,
        ),
    )
    http_root_dir: str | None = with_points(
        path(
            "A directory of files to serve over HTTP; it implies http. If it is not given, or names the folder of "
            "Qpid Dispatch's console and that folder is not on this machine, a listener with http and websockets "
            "serves the web console.",
            old_names=("httpRoot",),
            parse=files.served_folder,
        ),
        Point(
            name="unreadable-folder",
            compatible="requests for files of a folder that cannot be read are answered with 404",
            strict="the file is refused",
            warning="requests for its files will be answered with 404",
            cure="name one that can be read",
            severity=Severity.NOTE,
        ),
        Point(
            name="files-served",
            compatible="files are served over HTTP",
            warning="will serve files over HTTP",
            cure="leave it out",
        ),
        Point(
            name="older-console",
            compatible="where the folder of Qpid Dispatch's console is not on this machine, the router's "
            "own console is served",
            warning="this folder of Qpid Dispatch's console is not on this machine: will serve the "
            "router's own console",
            cure="leave it out",
            page="console.md",
            severity=Severity.NOTE,
        ),
    )
    message_logging_components: tuple[str, ...] = with_points(
        ends.message_logging_components(),
        Point(
            name="unknown-component",
            compatible="a word that names no part of a message is ignored",
            strict="the file is refused",
            warning="it will be ignored",
            cure="all, none, or a list of parts",
            severity=Severity.NOTE,
        ),
    )
    policy_vhost: str | None = with_points(
        ends.policy_vhost(),
        Point(
            name="unknown-vhost",
            compatible="for a policyVhost that does not exist the default vhost counts; without that one "
            "too, connections are refused",
            warning="there is no vhost '{name}': connections will have the rights of the default vhost, "
            "or be refused without one",
            cure="add a vhost with this hostname",
            page="policy.md",
            severity=Severity.PROBLEM,
        ),
    )
    open_properties: Mapping[str, object] = with_points(
        ends.open_properties(),
        Point(
            name="version-to-strangers",
            compatible="the router's open tells every peer its version",
            strict="it tells it to peers that have logged in",
            page="hardening.md",
        ),
        Point(
            name="other-product",
            compatible="`product` and `version` in openProperties replace the router's; Qpid Dispatch refuses them",
            warning="will make the router pass for {product}",
            cure="leave product and version out, unless clients serve that product alone",
            page="hardening.md",
            severity=Severity.NOTE,
        ),
    )
    allow_insecure_plain: str = with_points(
        ends.allow_insecure_plain(
            "Which peers may send a password without encryption: none, those on this machine, or all. With "
            "secureDefaults it is `loopback` unless it is given; a client on another machine may send the metricsToken "
            "unencrypted only if this attribute is given and allows it.",
            "yes",
        ),
        Point(
            name="passwords-in-clear",
            compatible="yes, unless it is given: passwords are accepted without TLS from every machine",
            strict="loopback, unless it is given: without TLS they are accepted from this machine only",
            warning="will accept unencrypted passwords from other machines",
            cure="write allowInsecurePlain: loopback, or require TLS",
            page="authentication.md",
        ),
    )
    client_cert: str | None = choice(
        "Whether TLS clients show a certificate: the router asks for none (`none`); a client may show one; "
        "every client must show one.",
        default_doc="`required` with EXTERNAL in saslMechanisms, and with http and authenticatePeer where the "
        "sslProfile has authorities; else `none`",
        values=("none", "optional", "required"),
        reload=NEXT,
        extra=True,
    )
    stamp_user_id: bool = boolean(
        "If a message has no user-id, set it to the name of the user who sent it, if that user authenticated.",
        False,
        reload=NEXT,
        extra=True,
    )
    allowed_users: tuple[str, ...] | None = with_points(
        string(
            "The users that may connect, as the login proves them, separated by commas, or by semicolons where a name "
            "has commas: whole names, or beginnings that end in `*`; `*` alone is every user with a name. With "
            "EXTERNAL the name is made from the certificate, such as `CN=east`. Others are refused at their open.",
            default_doc="all that may log in",
            parse=access.peers,
            entries=True,
            reload=NEXT,
            extra=True,
        ),
        Point(
            name="any-user-is-a-router",
            compatible="every user who can log in may connect, to listeners of role inter-router, edge and "
            "route-container, too",
            strict="a listener of role inter-router, and without vhost policy one of role edge, is not opened without "
            "it, unless allowInsecureRole is yes",
            warning="will take every client that can log in for {what}: {why}",
            cure="write allowedUsers: the names by which {what} logs in, or give it an authority of its own",
            page="networks.md",
        ),
    )
    allow_insecure_role: bool = boolean(
        "With secureDefaults: admit other routers (role `inter-router` or `edge`) that do not authenticate, "
        "that connect from other machines without TLS, or that allowedUsers would have to name.",
        False,
        extra=True,
    )
    max_connections: int | None = integer(
        "Connections open at once through this listener.", default_doc="no limit", low=1, extra=True
    )
    accept_rate: int | None = integer("New connections accepted per second.", default_doc="no limit", low=1, extra=True)
    ready_without: bool = boolean(
        "Whether the router counts as ready while this listener cannot be opened. With secureDefaults it does not "
        "start without one of its listeners.",
        True,
        reload=NEXT,
        extra=True,
    )
    drains: bool = boolean(
        "Whether `trouter drain` closes the listener and the connections that came through it. `no` for the operator's "
        "own listener: it stays, also for `trouter drain --cancel`. Listeners of role inter-router stay in any case, "
        "and so do the pages of one with http.",
        True,
        reload=NEXT,
        extra=True,
    )
    proxy_protocol_hosts: tuple[HostRange, ...] = with_points(
        string(
            "The load balancers in front of the listener, which begin each connection with a PROXY header (version 1 "
            "or 2) that names the client: addresses, ranges `A-B`, networks `A/N`, separated by commas. Connections "
            "from other hosts, or without a header, are refused.",
            (),
            default_doc="clients connect without a PROXY header",
            parse=proxy_addresses,
            reload=NEXT,
            extra=True,
        ),
        Point(
            name="any-proxy",
            compatible="every host may be a load balancer",
            warning="{hosts} are nearly all hosts: a client can say that it comes from any address",
            cure="name the load balancers",
            page="load-balancer.md",
        ),
    )
    tenant_from: TenantSource | None = string(  # noqa: RUF009  # a field, like all the others
        "With multiTenant and without vhost policy: where the router finds the tenants of a user. `claim`: in "
        "the credentials of the login, such as a token. `uid:LETTER`: in this part of the client's certificate, "
        "a letter of uidFormat. `file:PATH`: in a file with a JSON object that maps a user to a tenant or a "
        "list of tenants.",
        default_doc="nowhere",
        parse=tenant_source,
        reload=NEXT,
        extra=True,
    )
    web_socket_origins: tuple[str, ...] = with_points(
        string(
            "With http: the origins of pages that may open WebSockets besides the listener's own: "
            "`http[s]://host[:port]`, separated by commas; `*` for every page, `none` for no others. With "
            "secureDefaults it is `none` unless it is given.",
            ("*",),
            parse=texts.web_socket_origins,
            extra=True,
        ),
        Point(
            name="pages-of-every-site",
            compatible="`*`, unless it is given: the pages of every site may open WebSockets",
            strict="the listener's own pages only, unless it is given",
            warning="will let the pages of every site open WebSockets",
            cure="write webSocketOrigins: none, or name the sites",
            page="metrics.md",
        ),
    )
    allowed_hosts: tuple[str, ...] = with_points(
        string(
            "With http, for requests without TLS: the names that their Host header may have besides addresses, "
            "`localhost`, the listener's host, the machine's names and the hosts in webSocketOrigins. "
            "Separated by blanks or commas; `*.` stands for one label, `*` alone for every name, `none` for no others. "
            "With secureDefaults it is `none` unless it is given. Health pages answer under every name.",
            ("*",),
            parse=texts.allowed_hosts,
            extra=True,
        ),
        Point(
            name="names-of-strangers",
            compatible="`*`, unless it is given: requests may name any host",
            strict="requests without TLS that name another host are answered with 421, unless it is given",
            warning="will answer under every name: a page whose name leads here can read what the listener shows",
            cure="write allowedHosts: none, or the names under which the listener is reached",
            page="metrics.md",
        ),
    )
    metrics_hosts: tuple[HostRange, ...] = string(
        "The hosts that may read /metrics: addresses, ranges `A-B`, networks `A/N`, separated by commas; or `*`.",
        (),
        default_doc="anywhere",
        parse=remote_addresses,
        extra=True,
    )
    metrics_token: Secret | None = string(  # noqa: RUF009  # a field, like all the others
        "The token that a request for /metrics must carry, as `Authorization: Bearer TOKEN`, over TLS or where "
        "allowInsecurePlain allows a password: `env:NAME` or `file:PATH`, as for passwords. Never shown.",
        parse=passwords.password_of,
        secret=True,
        extra=True,
    )

    @property
    def proves_routers(self) -> bool:
        """True if peers must authenticate, and with TLS if they may come from another machine."""
        return self.authenticate_peer and (self.ssl_profile is not None or is_loopback(self.host))

    @property
    def clients_leave(self) -> bool:
        """True if the connections that came through the listener are closed when the router drains."""
        return self.drains and self.role != "inter-router"

    @property
    def serves_http(self) -> bool:
        """True if the listener serves HTTP, and AMQP only within WebSockets."""
        return self.http or bool(self.http_root_dir)


@entity(
    "connector",
    "A peer that the router dials: a broker or another router. Any number.",
    "connector",
    instead="it is not dialled",
    operations=("CREATE", "DELETE"),
    extra_operations=("UPDATE",),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorEntity(Socketed):
    """A server that the router dials."""

    host: str = string("The name or the address of the host to dial.", "127.0.0.1", parse=texts.remote_host)
    port: str = string("A port number or a service name.", "amqp", parse=texts.remote_port)
    protocol_family: str | None = choice(
        "Use only this kind of the host's addresses.", default_doc="whatever the host has", values=("IPv4", "IPv6")
    )
    role: str = ends.role("What the peer is: an ordinary peer, a broker (`route-container`), or another router.")
    cost: int = ends.cost()
    ssl_profile: str | None = with_points(
        ends.ssl_profile("The section with the certificates for TLS."),
        Point(
            name="external-without-profile",
            compatible="a connector with EXTERNAL and no sslProfile dials, but cannot log in",
            strict="the file is refused",
            warning="it will not be able to log in",
            cure="add an sslProfile with a certFile",
            page="tls.md",
            severity=Severity.PROBLEM,
        ),
    )
    sasl_mechanisms: tuple[str, ...] = string(
        "The SASL mechanisms that may be used, by name, separated by blanks.",
        (),
        default_doc="what the credentials allow",
        parse=texts.mechanisms,
        reload=NEXT,
    )
    allow_redirect: bool = boolean(
        "Whether the router, once the connection is lost, also dials the hosts that the peer named in its open.",
        True,
        reload=NEXT,
    )
    max_frame_size: int = ends.max_frame_size()
    max_sessions: int = ends.max_sessions()
    max_session_frames: int | None = ends.max_session_frames()
    max_links: int | None = ends.max_links()
    max_unsettled: int | None = ends.max_unsettled()
    max_buffered_bytes: int | None = ends.max_buffered_bytes()
    idle_timeout_seconds: int = ends.idle_timeout_seconds()
    strip_annotations: str = ends.strip_annotations()
    link_capacity: int = ends.link_capacity()
    verify_hostname: bool = with_points(
        boolean("Whether the certificate of the peer must name its host.", True, old_names=("verifyHostName",)),
        Point(
            name="common-names",
            compatible="the common name of a peer's or a service's certificate counts where it has no subjectAltName",
            strict="a common name never counts",
            page="tls.md",
        ),
        Point(
            name="any-host-name",
            compatible="`no` is obeyed",
            warning="will accept any host with a trusted certificate in place of the one that it dials",
            cure="write verifyHostname: yes",
            page="tls.md",
        ),
    )
    sasl_username: str | None = string("The user as which the router logs in.", reload=NEXT)
    sasl_password: Secret | None = with_points(  # noqa: RUF009 - a field, like all the others
        string(
            "The password: `env:NAME` takes it from the environment, `file:PATH` from the first line of a file, "
            "`pass:TEXT` and any other text are the password itself, with a warning; `literal:` is part of it. Never "
            "shown.",
            parse=passwords.sasl_password_of,
            secret=True,
            reload=NEXT,
        ),
        Point(
            name="password-without-user",
            compatible="a saslPassword without a saslUsername is not used",
            strict="the file is refused",
            warning="it will not be used",
            cure="add saslUsername: NAME",
            page="authentication.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="secret-in-file",
            compatible="a password may stand in the configuration itself",
            warning="the password stands in the configuration itself",
            cure="write env:NAME or file:PATH",
            page="hardening.md",
        ),
    )
    message_logging_components: tuple[str, ...] = ends.message_logging_components()
    failover_urls: None = reported(
        Kind.STRING, "The endpoints that the connector may dial, the next one first.", old_names=("failoverList",)
    )
    connection_status: None = reported(
        Kind.STRING,
        "The state of the connector: INITIALIZING, CONNECTING (also between two attempts), SUCCESS or CLOSING.",
        head=Head("status", needs=False),
    )
    connection_msg: None = reported(
        Kind.STRING, "The latest log line about its connection.", head=Head("last message", needs=False)
    )
    connection_attempts: None = reported(
        Kind.INTEGER,
        "Attempts to connect since the connector exists.",
        extra=True,
        graph=True,
        head=Head("attempts", Form.COMMAS, needs=False),
    )
    down_since: None = reported(
        Kind.INTEGER,
        "Since when it has no open connection, in milliseconds since 1970; absent while it has one.",
        extra=True,
        unit="milliseconds since 1970",
        head=Head("down since", Form.DATE_OF_MS, needs=False, alarm=True),
    )
    policy_vhost: str | None = with_points(
        ends.policy_vhost(),
        Point(
            name="reach-of-a-broker",
            compatible="under a vhost policy the other side of a connector of role normal or route-container without "
            "policyVhost may attach links of its own to every address",
            strict="it may attach none; the links that the router attaches there for auto links and link routes serve",
            page="policy.md",
        ),
    )
    open_properties: Mapping[str, object] = ends.open_properties()
    allow_insecure_plain: str = with_points(
        ends.allow_insecure_plain(
            "Whether the password may be sent without encryption: never, on this machine, or anywhere. With "
            "secureDefaults it is `no` unless it is given.",
            "yes",
        ),
        Point(
            name="password-sent-in-clear",
            compatible="yes, unless it is given: a connector logs in with PLAIN without TLS",
            strict="no, unless it is given",
            warning="will send the password unencrypted",
            cure="write an sslProfile, or allowInsecurePlain: loopback",
            page="authentication.md",
        ),
    )
    redirect_hosts: tuple[str, ...] = string(
        "The only hosts to which allowRedirect applies, separated by blanks or commas.",
        (),
        default_doc="all hosts for a connector with neither password nor certificate, else none",
        parse=texts.hosts,
        reload=NEXT,
        extra=True,
    )
