"""The configuration and the peer as hooks see them: frozen values, so that a plugin decides only by its answer.

Fields are named after the attributes of the configuration. A comment marks text that a peer chose: plugins and logs
must not trust it. These fields are a contract with plugins of other authors: add fields with a default, never rename.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from trouter.mechanisms import STANDARD

#: The standard mechanisms that send the secret itself: without encryption, an eavesdropper reads it.
CLEARTEXT_MECHANISMS: Final = frozenset(each for each in STANDARD.values() if each.in_clear)
INSECURE_PLAIN_CHOICES: Final = ("no", "loopback", "yes")
STRIP_ANNOTATIONS_CHOICES: Final = ("in", "out", "both", "no")
UID_MISSING_CHOICES: Final = ("skip", "empty", "reject")


@dataclass(frozen=True, slots=True)
class ListenerFacts:
    """One configured listener; ValueError for a choice outside its list."""

    name: str
    host: str
    port: str
    role: str = "normal"
    #: As configured; empty means all mechanisms that the plugins serve.
    sasl_mechanisms: tuple[str, ...] = ()
    authenticate_peer: bool = False
    #: The peers that may send a password unencrypted: "no" (none), "loopback" (those on this machine), or "yes" (all).
    allow_insecure_plain: str = "no"
    #: Router annotations removed from messages: "in", "out", "both" or "no".
    strip_annotations: str = "both"
    #: The name of the authentication service that replaces the plugins' own mechanisms; empty for none.
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
    """The result of a TLS handshake: the cipher, and the peer's certificate if it was verified."""

    #: OpenSSL's names, such as TLSv1.3 and TLS_AES_256_GCM_SHA384, and the strength of the cipher in bits.
    version: str
    cipher: str
    bits: int = 0
    #: The subject as in RFC 2253 (the last part first), chosen by the certificate's holder; "" without certificate.
    subject: str = ""
    #: The certificate in DER; b"" without one.
    certificate: bytes = field(default=b"", repr=False)
    #: The user that ``map_uid`` named for the certificate; "" without certificate.
    user: str = ""
    #: The name that the client asked for, in lower case; "" for none, or if no attribute of the listener needs it.
    server_name: str = ""


@dataclass(frozen=True, slots=True)
class PeerFacts:
    """The peer on the socket, as known before the first SASL byte."""

    connection_id: int
    listener: ListenerFacts
    remote_host: str
    remote_port: int
    encrypted: bool
    loopback: bool
    #: The channel bindings (RFC 5929): pairs of a type, such as tls-server-end-point, and data.
    channel_bindings: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    #: None without TLS.
    tls: TlsFacts | None = None

    @property
    def may_send_password(self) -> bool:
        """True if a password may cross this connection: it is encrypted, or the listener allows it."""
        allowed = self.listener.allow_insecure_plain
        return self.encrypted or allowed == "yes" or (allowed == "loopback" and self.loopback)


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """A client's certificate, verified by an authority that the listener trusts."""

    #: As in RFC 2253, the last part first, chosen by the certificate's holder.
    subject: str
    #: The certificate itself, in DER.
    der: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SslProfileFacts:
    """How an sslProfile makes users of certificates; ValueError for a choice outside its list."""

    name: str
    #: Letters for the parts of a certificate that make a user, in their order; "" for the whole subject.
    uid_format: str = ""
    #: Treatment of a part that a certificate lacks: "skip" it, leave it "empty", or "reject" the certificate.
    uid_missing: str = "skip"
    #: A separator within a part is escaped.
    uid_escape: bool = False
    #: User made of a certificate -> the name to use instead.
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
    #: Tokens: their issuer, their audience, the keys (a file or a URL), the claim that names the user, and whether a
    #: token may be the password of PLAIN.
    oauth_issuer: str | None = None
    oauth_audience: str | None = None
    oauth_jwks: str | None = None
    oauth_user_claim: str = "sub"
    oauth_plain: bool = False
    #: The claims that list what the user may do and that name the tenant, and how scopes for this router begin.
    oauth_scopes_claim: str | None = None
    oauth_scope_prefix: str = ""
    oauth_tenant_claim: str | None = None
    #: The folder of Cyrus SASL's configuration, None when it is not used, the name of the application in it, and
    #: whether the router's file names the folder; else it was found where the library looks.
    sasl_config_dir: str | None = None
    sasl_config_name: str = "qdrouterd"
    sasl_config_named: bool = True
    #: The mechanisms that Cyrus SASL's configuration allows, None if it does not say.
    sasl_mech_list: tuple[str, ...] | None = None
    #: Doubtful settings are refused instead of reported.
    secure_defaults: bool = False
    #: What ``danger_of_file`` asks; None without ``secure_defaults``, and if the configuration accepts every danger.
    file_judge: Callable[[str], str] | None = field(default=None, repr=False, compare=False)
    #: The rights that the mode of a file of passwords may give; in a container those that Kubernetes gives, too.
    secret_mode: int = 0o600
    #: The key from which all workers make answers about users that do not exist; empty in a router without workers.
    decoy_key: bytes = field(default=b"", repr=False)
    #: The listeners configured now; others may come later.
    listeners: tuple[ListenerFacts, ...] = ()
    #: The ``pluginSettings`` of the called plugin only.
    settings: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    def danger_of_file(self, path: str) -> str:
        """Return why the file at ``path`` may grant no trust: what strangers could do to it; "" if it may. Blocks.

        To be asked before each reading: it may be another file than that which was judged with the configuration.
        """
        return "" if self.file_judge is None else self.file_judge(path)


@dataclass(frozen=True, slots=True)
class ConnectorFacts:
    """One configured connector, and its credentials."""

    name: str
    #: The configured name of the server that it dials.
    host: str
    #: A password may cross the connection: it is encrypted, or the connector allows it.
    may_send_password: bool
    user: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class AuthServiceFacts:
    """A configured authentication service."""

    name: str
    host: str
    port: str
    #: The host name in the router's SASL frames to the service.
    realm: str | None = None
    #: Seconds that each of its answers may take.
    timeout_s: float = 5.0
    #: Seconds for which an answer that admits a client may be cached; 0 for no cache.
    cache_s: float = 0.0
