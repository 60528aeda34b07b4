"""The entities listener and connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trouter.config import files, passwords, texts
from trouter.config.entities import ends
from trouter.config.entities.base import Entity, entity
from trouter.config.hosts import HostRange, is_loopback, remote_addresses
from trouter.config.passwords import Secret
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
    port: str = string("A port number, 0 for any free port, or a service name.", "amqp", parse=texts.listed_port)
    socket_address_family: str | None = choice(
        "Use only this kind of the host's addresses.",
        default_doc="whatever the host has",
        values=("IPv4", "IPv6"),
        old_names=("protocolFamily",),
    )
    role: str = ends.role("What connects here: clients, brokers (`route-container`), or other routers.")
    cost: int = ends.cost()
    ssl_profile: str | None = ends.ssl_profile("The section with the certificates for TLS.")
    sasl_mechanisms: tuple[str, ...] = string(
        "The SASL mechanisms offered, by name, separated by blanks.",
        (),
        default_doc="all that the plugins serve",
        parse=texts.mechanisms,
        reload=NEXT,
    )
    authenticate_peer: bool = boolean("Refuse peers that do not authenticate.", False, reload=NEXT)
    sasl_plugin: str | None = string(
        "The authServicePlugin section of the authentication service that this listener asks. The listener "
        "offers the mechanisms of the service, and no client can log in while the service is away.",
        reload=NEXT,
    )
    require_encryption: bool = boolean("Refuse peers without encryption.", False, reload=NEXT)
    require_ssl: bool = boolean("Refuse peers without TLS.", False, reload=NEXT)
    trusted_certs_file: str | None = path(
        "The authorities whose client certificates this listener accepts, and no others: a file, or a directory "
        "of them.",
        default_doc="those of the sslProfile",
        old_names=("trustedCerts",),
        parse=files.readable,
        reload=NEXT,
    )
    max_frame_size: int = ends.max_frame_size()
    max_sessions: int = ends.max_sessions()
    max_session_frames: int | None = ends.max_session_frames()
    max_links: int | None = ends.max_links()
    max_unsettled: int | None = ends.max_unsettled()
    max_buffered_bytes: int | None = ends.max_buffered_bytes()
    idle_timeout_seconds: int = ends.idle_timeout_seconds()
    initial_handshake_timeout_seconds: int = integer(
        "How long a peer may take from connecting to its Open; 0 means for ever. The schema names 0, the default of "
        "Qpid Dispatch; the limit in force, 10 seconds if none is given, is the one that is shown.",
        10,
        older_default=0,
        high=ends.MAX_SECONDS,
        reload=NEXT,
    )
    strip_annotations: str = ends.strip_annotations()
    link_capacity: int = ends.link_capacity()
    multi_tenant: bool = boolean("Give each tenant addresses of its own.", False, reload=NEXT)
    failover_urls: tuple[texts.FailoverUrl, ...] = string(
        "Other routers that clients may connect to, sent to them in the open: `[scheme://]host[:port]`, "
        "separated by commas.",
        (),
        old_names=("failoverList",),
        parse=texts.failover_urls,
        reload=NEXT,
    )
    healthz: bool = boolean("With http: serve /healthz, /livez and /readyz.", True)
    metrics: bool = boolean("With http: serve /metrics.", True)
    websockets: bool = boolean("With http: serve AMQP over WebSockets.", True)
    http: bool = boolean("Serve HTTP and WebSockets instead of AMQP.", False)
    http_root_dir: str | None = path(
        "A directory of files to serve over HTTP; it implies http. If it is not given, or names the folder of "
        "Qpid Dispatch's console and that folder is not on this machine, a listener with http and websockets "
        "serves the web console.",
        old_names=("httpRoot",),
        parse=files.served_folder,
    )
    message_logging_components: tuple[str, ...] = ends.message_logging_components()
    policy_vhost: str | None = ends.policy_vhost()
    open_properties: Mapping[str, object] = ends.open_properties()
    allow_insecure_plain: str = ends.allow_insecure_plain(
        "Which peers may send a password without encryption: none, those on this machine, or all. With secureDefaults "
        "it is `loopback` unless it is given; a client on another machine may send the metricsToken unencrypted "
        "only if this attribute is given and allows it.",
        "yes",
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
    allow_insecure_role: bool = boolean(
        "With secureDefaults: admit other routers (role `inter-router` or `edge`) that do not authenticate, or "
        "that connect from other machines without TLS.",
        False,
        extra=True,
    )
    max_connections: int | None = integer(
        "Connections open at once through this listener.", default_doc="no limit", low=1, extra=True
    )
    accept_rate: int | None = integer("New connections accepted per second.", default_doc="no limit", low=1, extra=True)
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
    web_socket_origins: tuple[str, ...] = string(
        "Origins of pages that may open WebSockets besides the listener's own: `http[s]://host[:port]`, separated by "
        "commas; `*` for every page.",
        (),
        parse=texts.web_socket_origins,
        extra=True,
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
    ssl_profile: str | None = ends.ssl_profile("The section with the certificates for TLS.")
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
    verify_hostname: bool = boolean(
        "Whether the certificate of the peer must name its host.", True, old_names=("verifyHostName",)
    )
    sasl_username: str | None = string("The user as which the router logs in.", reload=NEXT)
    sasl_password: Secret | None = string(  # noqa: RUF009  # a field, like all the others
        "The password: `env:NAME` takes it from the environment, `file:PATH` from the first line of a file, "
        "`pass:TEXT` and any other text are the password itself, with a warning; `literal:` is part of it. Never "
        "shown.",
        parse=passwords.sasl_password_of,
        secret=True,
        reload=NEXT,
    )
    message_logging_components: tuple[str, ...] = ends.message_logging_components()
    failover_urls: None = reported(
        Kind.STRING, "The endpoints that the connector may dial, the next one first.", old_names=("failoverList",)
    )
    connection_status: None = reported(
        Kind.STRING,
        "The state of the connector: INITIALIZING, CONNECTING (also between two attempts), SUCCESS or CLOSING.",
    )
    connection_msg: None = reported(Kind.STRING, "The latest log line about its connection.")
    policy_vhost: str | None = ends.policy_vhost()
    open_properties: Mapping[str, object] = ends.open_properties()
    allow_insecure_plain: str = ends.allow_insecure_plain(
        "Whether the password may be sent without encryption: never, on this machine, or anywhere. With secureDefaults "
        "it is `no` unless it is given.",
        "yes",
    )
    redirect_hosts: tuple[str, ...] = string(
        "The only hosts to which allowRedirect applies, separated by blanks or commas.",
        (),
        default_doc="all hosts for a connector with neither password nor certificate, else none",
        parse=texts.hosts,
        reload=NEXT,
        extra=True,
    )
