"""What hooks are told and what they may answer: frozen values, so that a plugin decides only by what it returns.

Field meanings follow the configuration attributes of the same name. Text that a stranger chose is marked so: plugins
and logs must not trust it. Changing a field here changes the contract with plugins written by others: add with a
default, never rename.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

#: Mechanisms which hand the router the secret itself: an eavesdropper on the wire reads the password.
CLEARTEXT_MECHANISMS: Final = frozenset({"PLAIN", "LOGIN", "XOAUTH2", "OAUTHBEARER"})

#: More than this no plugin may grant one user: they are kept for as long as the connection is.
MAX_PERMISSIONS: Final = 10_000

INSECURE_PLAIN_CHOICES: Final = ("no", "loopback", "yes")
STRIP_ANNOTATIONS_CHOICES: Final = ("in", "out", "both", "no")
UID_MISSING_CHOICES: Final = ("skip", "empty", "reject")
#: What a consumer's decision may order.
DECISION_ACTIONS: Final = ("lock-user", "unlock-user", "block-host", "unblock-host", "slow-tenant", "restore-tenant")


@dataclass(frozen=True, slots=True)
class ListenerFacts:
    """One configured listener; ValueError for a choice outside its list."""

    name: str
    host: str
    port: str
    role: str = "normal"
    #: As configured; empty means "whatever the plugins serve".
    sasl_mechanisms: tuple[str, ...] = ()
    authenticate_peer: bool = False
    #: Which peers may send a password unencrypted: "no" (none), "loopback" (peers on this machine), or "yes" (all).
    allow_insecure_plain: str = "no"
    #: Router annotations removed from messages: "in", "out", "both" or "no".
    strip_annotations: str = "both"
    #: The authentication service that is asked instead of the plugins' own mechanisms, by its name; empty for none.
    auth_service: str = ""

    def __post_init__(self) -> None:
        for name, choices in (
            ("allow_insecure_plain", INSECURE_PLAIN_CHOICES),
            ("strip_annotations", STRIP_ANNOTATIONS_CHOICES),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}")


@dataclass(frozen=True, slots=True)
class TlsFacts:
    """What TLS agreed on, and whose certificate the peer showed. No part of a certificate that was not verified."""

    #: As OpenSSL names them: TLSv1.3, TLS_AES_256_GCM_SHA384; and the strength of the cipher in bits.
    version: str
    cipher: str
    bits: int = 0
    #: The subject as in RFC 2253 (the last part first), chosen by the certificate's holder; "" without certificate.
    subject: str = ""
    #: The certificate in DER; b"" without one.
    certificate: bytes = field(default=b"", repr=False)
    #: The user that ``map_uid`` made of it; "" without certificate.
    user: str = ""


@dataclass(frozen=True, slots=True)
class PeerFacts:
    """The peer on the socket, as known before the first SASL byte."""

    connection_id: int
    listener: ListenerFacts
    remote_host: str
    remote_port: int
    encrypted: bool
    loopback: bool
    #: What the channel can be told from others by (RFC 5929): pairs of a type, such as tls-server-end-point, and data.
    channel_bindings: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    #: None without TLS.
    tls: TlsFacts | None = None

    @property
    def may_send_password(self) -> bool:
        """Whether a password may cross this connection: it is encrypted, or the listener says so."""
        allowed = self.listener.allow_insecure_plain
        return self.encrypted or allowed == "yes" or (allowed == "loopback" and self.loopback)


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """A client's certificate, which an authority that the listener trusts vouches for."""

    #: As in RFC 2253, the last part first, chosen by the certificate's holder.
    subject: str
    #: The certificate itself, in DER.
    der: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SslProfileFacts:
    """What an sslProfile says of users; ValueError for a choice outside its list."""

    name: str
    #: Letters for the parts of a certificate that make a user, in their order; "" for the whole subject.
    uid_format: str = ""
    #: What becomes of a part that a certificate lacks: "skip", "empty", or "reject" the certificate.
    uid_missing: str = "skip"
    #: Whether a separator within a part is escaped.
    uid_escape: bool = False
    #: Other names for such users.
    names: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        if self.uid_missing not in UID_MISSING_CHOICES:
            raise ValueError(f"uid_missing must be one of {', '.join(UID_MISSING_CHOICES)}")


@dataclass(frozen=True, slots=True)
class RouterFacts:
    """The configuration that plugins are started or reloaded with."""

    id: str
    mode: str = "standalone"
    #: File of users and salted password hashes; None when not configured.
    sasl_users_file: str | None = None
    #: The PAM service that checks passwords, None when not configured.
    pam_service: str | None = None
    #: Tokens: who issues them, for whom, the keys (a file or a URL), the claim that names the user, and whether a token
    #: may be the password of PLAIN.
    oauth_issuer: str | None = None
    oauth_audience: str | None = None
    oauth_jwks: str | None = None
    oauth_user_claim: str = "sub"
    oauth_plain: bool = False
    #: The claims that list what the user may do and that name the tenant, and how scopes for this router begin.
    oauth_scopes_claim: str | None = None
    oauth_scope_prefix: str = ""
    oauth_tenant_claim: str | None = None
    #: Where Cyrus SASL is configured, None when it is not used, and under which name.
    sasl_config_dir: str | None = None
    sasl_config_name: str = "qdrouterd"
    #: Whether what is doubtful is refused, not told of.
    secure_defaults: bool = False
    #: The listeners configured now; others may come later.
    listeners: tuple[ListenerFacts, ...] = ()
    #: The ``pluginSettings`` of the plugin that is asked, and of no other plugin.
    settings: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}), hash=False)


@dataclass(frozen=True, slots=True)
class Challenge:
    """The exchange goes on: send ``data`` to the peer. Never shown in a repr, it may belong to a secret.

    ``user`` is who the peer has proved to be when ``data`` tells it so and only its assent is due: ``data`` is not sent
    to a peer that is refused for other reasons.
    """

    data: bytes
    user: str = ""

    def __repr__(self) -> str:
        return f"Challenge({len(self.data)} bytes)"


@dataclass(frozen=True, slots=True)
class Permissions:
    """The addresses that a user may receive from and send to, whatever a vhost says of sources and targets.

    An entry is one address, commas included; ``*`` stands for all, at the end of others for whatever follows, and
    ``${user}`` for the user's name. Nothing that no entry covers is allowed, so without entries nothing is.
    """

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, entries in (("sources", self.sources), ("targets", self.targets)):
            if not _are_addresses(entries):
                raise ValueError(f"{name} must be a tuple of addresses, none of them empty")
        if len(self.sources) + len(self.targets) > MAX_PERMISSIONS:
            raise ValueError(f"there can be {MAX_PERMISSIONS} permissions")


def _are_addresses(entries: object) -> bool:
    return isinstance(entries, tuple) and all(isinstance(entry, str) and entry for entry in entries)


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The exchange succeeded: the peer is ``user`` (never empty); ``data`` goes with the outcome."""

    user: str
    data: bytes = b""
    #: When the credentials end, in seconds since 1970; the connection is closed then.
    expires_at_s: float | None = None
    #: What the user may do; None leaves it to the policy.
    permissions: Permissions | None = None
    #: The tenant that the user belongs to; empty leaves that to the listener.
    tenant: str = ""
    #: Asked every few seconds while the connection lasts, without I/O; anything but True, or a raise, closes it.
    still_good: Callable[[], bool] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.user:
            raise ValueError("an authenticated user needs a name")

    def __repr__(self) -> str:
        return f"Authenticated({self.user!r}, {len(self.data)} bytes)"


@dataclass(frozen=True, slots=True)
class Refused:
    """The exchange failed. ``reason`` is for the log, the peer learns only whether to try later (``temporary``).

    ``user`` is the name that was tried, untrusted text for the audit log; a reason never holds anything the peer sent.
    """

    reason: str
    temporary: bool = False
    user: str = ""
    #: Whom they wanted to act for instead of themselves, untrusted too.
    authorization_id: str = ""


#: What one step of an exchange may answer.
SaslAnswer = Challenge | Authenticated | Refused


@runtime_checkable
class SaslExchange(Protocol):
    """One peer's authentication. It is awaited under a deadline, and dropped after Authenticated or Refused."""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        """Answer the peer's initial response (b"" if it sent none) or its reply to the last Challenge."""


@dataclass(frozen=True, slots=True)
class ConnectorFacts:
    """One configured connector, and what it has to authenticate with."""

    name: str
    #: Whom it has called, by the name that is configured.
    host: str
    #: Whether a password may cross the connection as it is: it is encrypted, or the connector says so.
    may_send_password: bool
    user: str = ""
    password: str = field(default="", repr=False)


@runtime_checkable
class SaslClientExchange(Protocol):
    """Our side of an authentication with a peer that we called; awaited under a deadline, used once."""

    @property
    def name(self) -> str:
        """The mechanism that was chosen, as the server spells it."""

    async def start(self) -> bytes | None:
        """The initial response; None for none. What is raised ends the connection, as it does below."""

    async def respond(self, challenge: bytes) -> bytes:
        """The answer to a challenge."""

    async def finish(self, additional: bytes | None) -> bool:
        """The server lets us in, perhaps with a last word: whether it has proven all that it has to prove."""


@dataclass(frozen=True, slots=True)
class AuthServiceFacts:
    """An authentication service that is configured."""

    name: str
    host: str
    port: str
    #: The host name that it is asked for in SASL.
    realm: str | None = None
    #: How long each of its answers may take.
    timeout_s: float = 5.0
    #: For how many seconds an answer that admits a client may be remembered; 0 for not at all.
    cache_s: float = 0.0


@runtime_checkable
class AuthSession(Protocol):
    """One peer's authentication by a service. It is awaited under a deadline, and closed when it is over."""

    @property
    def mechanisms(self) -> Sequence[str]:
        """What the service offers, in its order."""

    async def start(self, mechanism: str, response: bytes | None) -> Challenge | Authenticated | Refused:
        """Answer the peer's choice, spelt as it came, and its initial response, None if it sent none."""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        """Answer the peer's reply to the last Challenge."""

    def close(self) -> None:
        """Nothing more will be asked; may be called again."""


@runtime_checkable
class AuthService(Protocol):
    """Authenticates peers of listeners that have a ``saslPlugin``."""

    @property
    def facts(self) -> AuthServiceFacts:
        """What is configured."""

    async def begin(self, peer: PeerFacts) -> AuthSession | Refused:
        """Turn to the service for ``peer``; Refused, which is temporary, if it cannot be reached."""


@dataclass(frozen=True, slots=True)
class AnnotationFilter:
    """Which way router annotations are removed: from messages arriving (``strip_in``) and leaving (``strip_out``)."""

    strip_in: bool
    strip_out: bool


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """Who opens a connection. ``hostname`` is the peer's word; ``user`` is proven if ``authenticated`` says so."""

    connection_id: int
    user: str
    authenticated: bool
    #: The address that it comes from, or the host that the router called.
    remote_host: str
    #: Of the listener or the connector.
    listener: str
    role: str
    #: What the Open names; "" for nothing.
    hostname: str
    #: The router called.
    outgoing: bool = False


@dataclass(frozen=True, slots=True)
class VhostPolicy:
    """What a connection is held to: the rules of a vhost of the configuration, and addresses in the place of theirs.

    An empty ``vhost`` leaves the choice to the configuration. ``permissions`` replace its sources and targets. A
    ``denied`` connection is closed; the word goes to records and the log.
    """

    vhost: str = ""
    permissions: Permissions | None = None
    denied: str = ""


@dataclass(frozen=True, slots=True)
class AttachRequest:
    """A link that a peer wants, and may have as far as the configured policy goes. Names and addresses are its word."""

    connection_id: int
    user: str
    authenticated: bool
    remote_host: str
    role: str
    #: Those that the connection was let in under; "" without a policy.
    vhost: str
    group: str
    link_name: str
    #: The peer sends on it, else it receives.
    sends: bool
    #: Of the target if it sends, of the source if it receives; None for none.
    address: str | None
    #: The router is to make the address up.
    dynamic: bool
    capabilities: tuple[str, ...] = ()


class Vote(Enum):
    """A plugin's word on an attach."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message that came for a consumer, from a sender that may send it one. All of it is the sender's word."""

    #: The one data section, or the one string in UTF-8; None for any other body, and for none.
    body: bytes | None = field(repr=False)
    subject: str = ""
    content_type: str = ""
    #: Who sent it, as they authenticated.
    user: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the router is to do about a user, host or tenant for a while; ValueError for what it cannot do.

    ``subject`` is a user, an address of a host or a tenant, as ``action`` (one of ``DECISION_ACTIONS``) has it. An
    ``id`` is obeyed once. The other texts are for people; ``evidence`` are numbers of records.
    """

    id: str
    action: str
    subject: str
    #: When it ends, in microseconds since 1970.
    until_us: int
    #: For a user: only under this vhost, or of this tenant; empty for everywhere.
    vhost: str = ""
    reason: str = ""
    evidence: tuple[int, ...] = ()
    #: Messages a second, for a tenant that is to be slowed down.
    rate: int | None = None

    def __post_init__(self) -> None:
        if self.action not in DECISION_ACTIONS:
            raise ValueError(f"action must be one of {', '.join(DECISION_ACTIONS)}")
        if not self.id or not self.subject:
            raise ValueError("a decision needs an id and a subject")
        if (self.rate is None) == (self.action == "slow-tenant"):
            raise ValueError("rate belongs to slow-tenant, and to nothing else")
        if self.rate is not None and self.rate < 1:
            raise ValueError("rate must be at least 1")
        if self.vhost and not self.action.endswith("-user"):
            raise ValueError(f"vhost does not belong to {self.action}")


@dataclass(frozen=True, slots=True)
class Rejected:
    """A message is not what its consumer takes; the sender hears the ``reason``, under this condition."""

    reason: str
    condition: str = "amqp:invalid-field"


@dataclass(frozen=True, slots=True)
class ConsumerTerms:
    """Where a consumer takes messages, and from whom; ValueError for what is out of bounds.

    Messages of any other sender are rejected before the consumer sees them: of a sender that is not authenticated or
    none of ``senders``, of tenants, of other routers, and of senders whose policy does not let them send there.
    """

    address: str
    senders: frozenset[str]
    #: Larger messages are rejected, and those beyond so many a second released.
    max_bytes: int = 4096
    per_second: int = 10
    #: Decisions in force at one time.
    max_standing: int = 1000

    def __post_init__(self) -> None:
        if not self.address or not self.senders:
            raise ValueError("a consumer needs an address and senders")
        if not (0 < self.max_bytes <= 65536 and 0 < self.per_second <= 1000 and 0 < self.max_standing <= 100_000):
            raise ValueError("a consumer takes up to 64 KiB, 1000 messages a second and 100000 decisions")


@runtime_checkable
class Consumer(Protocol):
    """Takes messages at an address of the router. It is asked on the event loop: no I/O, no waiting."""

    @property
    def terms(self) -> ConsumerTerms:
        """The address to consume from, and the senders to accept; the same while the consumer is in use."""

    def consume(self, message: IncomingMessage) -> Decision | Rejected:
        """What follows from a message."""


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """One plugin that could be loaded: its name, what its entry point names, and where that comes from."""

    name: str
    target: str
    distribution: str
    version: str
    #: The source file, empty if it cannot be told.
    file: str
    #: It comes with trouter.
    ours: bool


@dataclass(frozen=True, slots=True)
class PluginDescription:
    """One loaded plugin: its name, where it came from, and the hooks it implements."""

    name: str
    origin: str
    hooks: tuple[str, ...]


class PluginError(Exception):
    """A plugin cannot be loaded; the router does not start without it, for it may have been a guard."""


class ConfigurationRefused(Exception):
    """A plugin cannot work with this configuration. ``problems`` are sentences for the operator, without secrets."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
