"""Certificates and authentication services, which other entities refer to by name."""

from __future__ import annotations

from dataclasses import dataclass

from trouter.config import files, passwords, texts
from trouter.config.entities import ends
from trouter.config.entities.base import Entity, entity
from trouter.config.passwords import Secret
from trouter.config.point import Point, with_points
from trouter.config.problems import Severity
from trouter.config.schema import NEXT, Kind, boolean, choice, integer, path, reported, string


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

    ciphers: str | None = string(
        "The ciphers allowed up to TLS 1.2, as OpenSSL writes them.", default_doc="those of OpenSSL", reload=NEXT
    )
    protocols: str | None = with_points(
        string(
            "The versions of TLS allowed, a list of: TLSv1 TLSv1.1 TLSv1.2 TLSv1.3.",
            default_doc="`TLSv1.2 TLSv1.3`",
            parse=texts.tls_protocols,
            reload=NEXT,
        ),
        Point(
            name="unknown-tls-version",
            compatible="the profile cannot be used: its listeners open, its connectors do not dial",
            strict="the file is refused",
            warning="listeners with this profile will refuse TLS, connectors will not dial",
            cure="a list of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3",
            page="tls.md",
            severity=Severity.PROBLEM,
        ),
        Point(
            name="old-tls",
            compatible="TLSv1 and TLSv1.1 are allowed where they are named, as far as the machine's OpenSSL "
            "configuration allows them",
            warning="will allow {versions}, which can be broken",
            cure="write TLSv1.2 TLSv1.3",
            page="tls.md",
        ),
    )
    below_system_minimum: bool = with_points(
        boolean(
            "Allow the versions in protocols, and keys and digests as weak as they need, though this machine's OpenSSL "
            "configuration forbids them.",
            False,
            reload=NEXT,
            extra=True,
        ),
        Point(
            name="below-system-minimum",
            compatible="`yes` allows versions and keys that this machine's OpenSSL configuration forbids",
            strict="`yes` is an error in the file",
            warning="will allow what the OpenSSL configuration of this machine forbids",
            cure="leave it out",
            page="tls.md",
        ),
    )
    ca_cert_file: str | None = path(
        "Certificates of the authorities trusted: a file, or a directory of them.",
        old_names=("certDb",),
        parse=files.readable,
        reload=NEXT,
    )
    cert_file: str | None = with_points(
        path(
            "The certificate of the router, followed by those of its issuers.", parse=files.readable_file, reload=NEXT
        ),
        Point(
            name="half-a-pair",
            compatible="with a certFile and no privateKeyFile the profile cannot be used: its listeners "
            "open, its connectors do not dial",
            strict="the file is refused",
            warning="listeners with this profile will refuse their clients, connectors will not dial",
            cure="add privateKeyFile: PATH",
            page="tls.md",
            severity=Severity.PROBLEM,
        ),
        Point(
            name="unreadable-file",
            compatible="a certificate, key, authority, mapping or password file, or saslConfigDir, that "
            "cannot be read: the parts that need it fail, a listener at each TLS handshake, and "
            "the rest serves",
            strict="the file is refused",
            warning="the parts that need it will not be served",
            cure="name one that can be read",
            page="tls.md",
            severity=Severity.PROBLEM,
        ),
    )
    server_names: tuple[str, ...] = string(
        "The names for which listeners with this profile in sniProfiles use its certificate, separated by blanks or "
        "commas; `*.` stands for one label.",
        (),
        default_doc="the names in subjectAltName of the certificate",
        parse=texts.server_names,
        reload=NEXT,
        extra=True,
    )
    private_key_file: str | None = with_points(
        path("The key of that certificate.", old_names=("keyFile",), parse=files.readable_file, reload=NEXT),
        Point(
            name="key-alone",
            compatible="a privateKeyFile without a certFile is not used",
            strict="the file is refused",
            warning="it will not be used",
            cure="add certFile: PATH",
            page="tls.md",
            severity=Severity.NOTE,
        ),
        Point(
            name="readable-by-others",
            compatible="a private file that all users of the machine can read or change is used",
            warning="all users of this machine can read {path}",
            cure="chmod o= {path}",
            page="hardening.md",
        ),
    )
    password_file: str | None = path(
        "A file with the password of the key; `password: file:PATH` does the same.",
        parse=files.readable_file,
        deprecated=True,
        reload=NEXT,
    )
    password: Secret | None = string(  # noqa: RUF009  # a field, like all the others
        "The password of the key: `env:NAME` takes it from the environment, `file:PATH` from the first line of a "
        "file, `pass:TEXT`, `literal:TEXT` and any other text are the password itself, with a warning. Never shown.",
        parse=passwords.password_of,
        secret=True,
        reload=NEXT,
    )
    uid_format: str | None = with_points(
        string(
            "The parts of a client's certificate that make up the name of the user, one letter for each part: c "
            "country, s state, l locality, o "
            "organization, u organizational unit, n common name, 1 2 5 the SHA-1, SHA-256 or SHA-512 of the "
            "certificate.",
            default_doc="the whole subject",
            parse=texts.uid_format,
            reload=NEXT,
        ),
        Point(
            name="unknown-uid-letter",
            compatible="the whole subject of the certificate is the user's name",
            strict="the file is refused",
            warning="the whole subject of the certificate will be the user's name",
            cure="letters of csloun125, one digest at most",
            page="tls.md",
        ),
        Point(
            name="ambiguous-user",
            compatible="parts of certificates that hold a separator, and parts that are missing, let different "
            "certificates stand for one user",
            strict="with several parts in uidFormat `uidMissing` is `reject` and `uidEscape` is `yes`, unless they are "
            "given",
            warning="different certificates will stand for one user: a part may hold the separator, or be missing",
            cure="write uidMissing: reject and uidEscape: yes",
            page="tls.md",
        ),
    )
    uid_name_mapping_file: str | None = string(
        "A file with a JSON object that maps these names to the names of users.",
        old_names=("displayNameFile",),
        parse=files.name_map,
        reload=NEXT,
    )

    use_system_ca: bool = boolean(
        "Also trust the authorities of the system. Without `caCertFile` a connector trusts them anyway, and a "
        "listener trusts none.",
        False,
        name="useSystemCA",
        reload=NEXT,
        extra=True,
    )
    uid_missing: str = choice(
        "What the router does about a part in uidFormat that a certificate lacks: it leaves the part out with "
        "its separator, it leaves the part empty, or it refuses the connection.",
        "skip",
        default_doc="`skip`; with secureDefaults and several parts `reject`",
        values=("skip", "empty", "reject"),
        reload=NEXT,
        extra=True,
    )
    uid_escape: bool = boolean(
        "Write `\\;` for a separator within a part of uidFormat.",
        False,
        default_doc="`no`; with secureDefaults and several parts `yes`",
        reload=NEXT,
        extra=True,
    )
    crl_file: str | None = path(
        "The revocation lists of the authorities in caCertFile: a file, or a directory of them.",
        parse=files.readable,
        reload=NEXT,
        extra=True,
    )
    crl_required: bool = boolean(
        "Refuse a certificate if no current revocation list of its authority is in crlFile.",
        False,
        reload=NEXT,
        extra=True,
    )
    ordinal: int = integer(
        "The generation of the profile. A connection keeps the generation under which it was made.",
        0,
        reload=NEXT,
        extra=True,
    )
    oldest_valid_ordinal: int = integer("Close connections made under an older generation.", 0, extra=True)
    certificate_ends: None = reported(
        Kind.INTEGER, "When the certificate in use expires, in seconds since 1970.", extra=True
    )

    def key_password(self) -> Secret | None:
        """Return the password of the private key from either attribute, None without one; Doubt or BadValue."""
        if self.password is None and self.password_file is not None:
            return passwords.from_file(self.password_file)
        return self.password


@entity(
    "authServicePlugin",
    "An authentication service. Listeners refer to it by its name.",
    "authServicePlugin",
    operations=("CREATE", "DELETE"),
    extra_operations=("UPDATE",),
    referenced=True,
    points=(
        Point(
            name="service-identity",
            compatible="a service may say who a user is as a plain string, or not at all: the user is `anonymous`",
            strict="such a user is refused",
            page="auth-service.md",
        ),
    ),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AuthServicePluginEntity(Entity):
    """An authentication service."""

    auth_service: str | None = string(
        "The host and the port of the service in one value; write host and port instead.",
        parse=texts.host_and_port,
        deprecated=True,
        reload=NEXT,
    )
    host: str = with_points(
        string("The host of the service.", "", parse=texts.host, reload=NEXT),
        Point(
            name="service-without-host",
            compatible="a service without a host is never used, and the rest serves",
            strict="the file is refused",
            warning="it will not be used",
            cure="add host: HOST",
            page="auth-service.md",
            severity=Severity.PROBLEM,
        ),
    )
    port: str = string("Its port, a number or a service name.", "amqp", parse=texts.remote_port, reload=NEXT)
    realm: str | None = string(
        "The host name sent to the service in SASL.", old_names=("saslInitHostname",), reload=NEXT
    )
    ssl_profile: str | None = with_points(
        string("The section with the certificates for TLS to the service.", old_names=("authSslProfile",), reload=NEXT),
        Point(
            name="service-without-tls",
            compatible="a service on another machine is asked without TLS",
            warning="whoever is on the way to {host} will say who a user is, and what the user may do",
            cure="write an sslProfile",
            page="auth-service.md",
        ),
    )
    verify_hostname: bool = boolean(
        "Whether the service's certificate must be for its host.", True, reload=NEXT, extra=True
    )
    timeout_seconds: int = integer(
        "How long the service may take for each of its answers; the first time runs from connecting to the "
        "offer of mechanisms.",
        5,
        low=1,
        high=60,
        reload=NEXT,
        extra=True,
    )
    authz_optional: bool = with_points(
        boolean(
            "If the service sends no rights for a user, only the policy limits the user. With `no`, such a user may "
            "use no address.",
            True,
            default_doc="`yes`; with secureDefaults `no`",
            reload=NEXT,
            extra=True,
        ),
        Point(
            name="service-rights",
            compatible="yes, unless it is given: if a service sends no rights for a user, only the policy "
            "applies to the user",
            strict="no, unless it is given: such a user may use no address",
            page="auth-service.md",
        ),
    )
    allow_insecure_plain: str = with_points(
        ends.allow_insecure_plain(
            "Which services may be sent a password without encryption: none, those on this machine, or all. With "
            "secureDefaults it is `loopback` unless it is given.",
            "yes",
        ),
        Point(
            name="service-in-clear",
            compatible="yes, unless it is given: passwords are passed on to the service without TLS",
            strict="loopback, unless it is given: without TLS only to a service on this machine",
            warning="will pass passwords on to {host} unencrypted",
            cure="write an sslProfile, or allowInsecurePlain: loopback",
            page="auth-service.md",
        ),
    )
    cache_seconds: int = integer(
        "How long the router remembers that the service accepted a password or a token, and does not ask again; "
        "0 means never.",
        0,
        high=60,
        reload=NEXT,
        extra=True,
    )

    @property
    def address(self) -> tuple[str, str]:
        """The host and the port to dial, from either attribute."""
        if not self.host and self.auth_service:
            return texts.split_host_and_port(self.auth_service)
        return self.host, self.port
