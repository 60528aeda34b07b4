"""Certificates and authentication services, which others refer to by name."""

from __future__ import annotations

from dataclasses import dataclass

from trouter.config import files, passwords, texts
from trouter.config.entities import ends
from trouter.config.entities.base import Entity, entity
from trouter.config.passwords import Secret
from trouter.config.schema import Kind, Reload, attribute, reported


@entity(
    "sslProfile",
    "Certificates and rules for TLS, to which listeners, connectors and authentication services refer by its name.",
    "sslProfile",
    operations=("CREATE", "DELETE"),
    extra_operations=("UPDATE",),
    referenced=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class SslProfileEntity(Entity):
    """Certificates and rules for TLS."""

    ciphers: str | None = attribute(
        Kind.STRING,
        "The ciphers allowed up to TLS 1.2, as OpenSSL writes them.",
        default_doc="those of OpenSSL",
        reload=Reload.NEXT,
    )
    protocols: str | None = attribute(
        Kind.STRING,
        "The versions of TLS allowed, a list of: TLSv1 TLSv1.1 TLSv1.2 TLSv1.3.",
        default_doc="`TLSv1.2 TLSv1.3`",
        parse=texts.tls_protocols,
        reload=Reload.NEXT,
    )
    below_system_minimum: bool = attribute(
        Kind.BOOLEAN,
        "Allow the versions in protocols, and keys and digests as weak as they need, though this machine's OpenSSL "
        "configuration forbids them.",
        False,
        reload=Reload.NEXT,
        extra=True,
    )
    ca_cert_file: str | None = attribute(
        Kind.PATH,
        "Certificates of the authorities trusted: a file, or a directory of them.",
        old_names=("certDb",),
        parse=files.readable,
        reload=Reload.NEXT,
    )
    cert_file: str | None = attribute(
        Kind.PATH,
        "The router's certificate, and after it those that vouch for it.",
        parse=files.readable_file,
        reload=Reload.NEXT,
    )
    private_key_file: str | None = attribute(
        Kind.PATH, "The key of that certificate.", old_names=("keyFile",), parse=files.readable_file, reload=Reload.NEXT
    )
    password_file: str | None = attribute(
        Kind.PATH,
        "A file with the password of the key; `password: file:PATH` does the same.",
        parse=files.readable_file,
        deprecated=True,
        reload=Reload.NEXT,
    )
    password: Secret | None = attribute(  # noqa: RUF009  # a field, like all the others
        Kind.STRING,
        "The password of the key: `env:NAME` takes it from the environment, `file:PATH` from the first line of a file, "
        "`pass:TEXT`, `literal:TEXT` and any other text are the password itself, with a warning. Never shown.",
        parse=passwords.password_of,
        secret=True,
        reload=Reload.NEXT,
    )
    uid_format: str | None = attribute(
        Kind.STRING,
        "What of a client's certificate makes the user's name, letter by letter: c country, s state, l locality, "
        "o organization, u organizational unit, n common name, 1 2 5 the SHA-1, SHA-256 or SHA-512 of the certificate.",
        default_doc="the whole subject",
        parse=texts.uid_format,
        reload=Reload.NEXT,
    )
    uid_name_mapping_file: str | None = attribute(
        Kind.STRING,
        "A JSON object in a file: names to use for such users.",
        old_names=("displayNameFile",),
        parse=files.name_map,
        reload=Reload.NEXT,
    )

    use_system_ca: bool = attribute(
        Kind.BOOLEAN,
        "Trust the system's authorities, too. Without `caCertFile` a connector trusts them anyway, a listener none.",
        False,
        name="useSystemCA",
        reload=Reload.NEXT,
        extra=True,
    )
    uid_missing: str = attribute(
        Kind.ENUM,
        "What becomes of a part in uidFormat that a certificate lacks: it is left out with its separator, it is empty, "
        "or the connection is refused.",
        "skip",
        values=("skip", "empty", "reject"),
        reload=Reload.NEXT,
        extra=True,
    )
    uid_escape: bool = attribute(
        Kind.BOOLEAN,
        "Write `\\;` for a separator within a part of uidFormat.",
        False,
        reload=Reload.NEXT,
        extra=True,
    )
    crl_file: str | None = attribute(
        Kind.PATH,
        "Lists of certificates that are revoked, of the authorities in caCertFile: a file, or a directory of them.",
        parse=files.readable,
        reload=Reload.NEXT,
        extra=True,
    )
    crl_required: bool = attribute(
        Kind.BOOLEAN,
        "Refuse a certificate of an authority that has no list in force.",
        False,
        reload=Reload.NEXT,
        extra=True,
    )
    ocsp: str = attribute(
        Kind.ENUM,
        "Whether to ask the authority of a peer's certificate if it is revoked: `off` never, `soft` and believe the "
        "certificate where there is no answer, `hard` and do not. `staple` is refused: Python's TLS cannot staple.",
        "off",
        values=("off", "soft", "hard", "staple"),
        reload=Reload.NEXT,
        extra=True,
    )
    ordinal: int = attribute(
        Kind.INTEGER, "The generation of the profile, which connections remember.", 0, reload=Reload.NEXT, extra=True
    )
    oldest_valid_ordinal: int = attribute(
        Kind.INTEGER, "Close connections made under an older generation.", 0, extra=True
    )
    certificate_ends: None = reported(
        Kind.INTEGER, "When the certificate in use ends, in seconds since 1970.", extra=True
    )

    def key_password(self) -> Secret | None:
        """The password of the private key, wherever it is configured; BadValue if its file is gone."""
        if self.password is None and self.password_file is not None:
            return passwords.from_file(self.password_file)
        return self.password


@entity(
    "authServicePlugin",
    "An authentication service that listeners can ask, by its name.",
    "authServicePlugin",
    operations=("CREATE", "DELETE"),
    extra_operations=("UPDATE",),
    referenced=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AuthServicePluginEntity(Entity):
    """An authentication service."""

    auth_service: str | None = attribute(
        Kind.STRING,
        "The host and the port of the service in one; host and port say the same.",
        parse=texts.host_and_port,
        deprecated=True,
        reload=Reload.NEXT,
    )
    host: str = attribute(Kind.STRING, "The host of the service.", "", parse=texts.host, reload=Reload.NEXT)
    port: str = attribute(
        Kind.STRING, "Its port, a number or a service name.", "amqp", parse=texts.remote_port, reload=Reload.NEXT
    )
    realm: str | None = attribute(
        Kind.STRING,
        "The host name that the service is asked for in SASL.",
        old_names=("saslInitHostname",),
        reload=Reload.NEXT,
    )
    ssl_profile: str | None = attribute(
        Kind.STRING,
        "The section with the certificates for TLS to the service.",
        old_names=("authSslProfile",),
        reload=Reload.NEXT,
    )
    verify_hostname: bool = attribute(
        Kind.BOOLEAN,
        "Whether the service's certificate must be for its host.",
        True,
        reload=Reload.NEXT,
        extra=True,
    )
    timeout_seconds: int = attribute(
        Kind.INTEGER,
        "How long the service may take to each of its answers, from the call to the offer of mechanisms to begin with.",
        5,
        low=1,
        high=60,
        reload=Reload.NEXT,
        extra=True,
    )
    authz_optional: bool = attribute(
        Kind.BOOLEAN,
        "Leave to the policy what a user may do of whose rights the service says nothing; else such a user may do "
        "nothing.",
        True,
        default_doc="`yes`; with secureDefaults `no`",
        reload=Reload.NEXT,
        extra=True,
    )
    allow_insecure_plain: str = ends.allow_insecure_plain(
        "Which services may be sent a password without encryption: none, those on this machine, or all. With "
        "secureDefaults it is `loopback` unless it is given.",
        "yes",
    )
    cache_seconds: int = attribute(
        Kind.INTEGER,
        "For how long the service's yes to a password or a token is believed without asking it again; 0 means never.",
        0,
        high=60,
        reload=Reload.NEXT,
        extra=True,
    )

    @property
    def address(self) -> tuple[str, str]:
        """The host and the port to call, wherever they are configured."""
        if not self.host and self.auth_service:
            return texts.split_host_and_port(self.auth_service)
        return self.host, self.port
