"""Contexts of Python's ssl from an sslProfile and its files (security.md 2.1, 2.2).

Defaults are careful: TLS 1.2 or later; no suites without authentication or encryption, no weak ones; no renegotiation,
no compression. The limits of this machine's OpenSSL configuration hold as well. If ``caCertFile`` is set, nothing else
is trusted.
"""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from trouter.config import ListenerEntity, SslProfileEntity
from trouter.config.logins import client_certificates
from trouter.config.schema import BadValue

from .limits import machine_limits
from .problems import TlsProblem

#: Suites excluded whatever ``ciphers`` says (R-2.2c).
NEVER: Final = "!aNULL:!eNULL:!EXPORT:!LOW:!RC4:!DES:!3DES:!IDEA:!SEED:!MD5"
#: OpenSSL's level for versions before TLS 1.2, which higher levels rule out.
OLD_LEVEL: Final = "@SECLEVEL=0"
VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
DEFAULT_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
VERIFY_MODES: Final = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class ServerUse:
    """A listener's use of a profile: its demand for client certificates, and who may have issued them."""

    client_certificates: str
    #: The file of the authorities; empty for those of the profile.
    trusted_file: str = ""
    #: Those of the system count as well.
    trusts_system: bool = False
    #: The profiles with the certificates of names, and whether other names are refused.
    by_name: tuple[str, ...] = ()
    strict: bool = False

    @property
    def asks_for_certificates(self) -> bool:
        return self.client_certificates != "none"


@dataclass(frozen=True, slots=True)
class ClientUse:
    """How a connector or a service's client uses a profile.

    ``common_name``: the common name counts for a certificate without subjectAltName. OpenSSL cannot be configured so,
    so the user of such a context compares names itself (``hostnames.is_for``).
    """

    verify_hostname: bool = True
    common_name: bool = False

    @property
    def compares_names(self) -> bool:
        """Whether the caller compares the name after the handshake."""
        return self.verify_hostname and self.common_name


Use = ServerUse | ClientUse


def use_of(listener: ListenerEntity, profile: SslProfileEntity) -> ServerUse:
    """Return the use that ``listener`` makes of ``profile`` (security.md 2.4)."""
    trusted = listener.trusted_certs_file or ""
    shown = client_certificates(listener, profile)
    system = profile.use_system_ca and not trusted
    return ServerUse(shown, trusted, system, listener.sni_profiles, listener.strict_sni)


def use_by_name(listener: ListenerEntity, profile: SslProfileEntity) -> ServerUse:
    """Return the use that ``listener``, whose sslProfile is ``profile``, makes of those in its sniProfiles.

    Only their certificates count: those of clients are verified as they are by ``profile``.
    """
    use = use_of(listener, profile)
    trusted = use.trusted_file or profile.ca_cert_file or ""
    return replace(use, trusted_file=trusted if use.asks_for_certificates else "", by_name=(), strict=False)


def server_context(
    profile: SslProfileEntity, use: ServerUse, authorities: Sequence[x509.Certificate]
) -> ssl.SSLContext:
    """Return the context for a listener, whose clients' certificates ``authorities`` must have issued; TlsProblem."""
    if not profile.cert_file:
        raise TlsProblem("certFile", "a listener needs a certificate")
    context = _context(ssl.PROTOCOL_TLS_SERVER, profile)
    context.verify_mode = VERIFY_MODES[use.client_certificates]
    if use.asks_for_certificates:
        if not (authorities or use.trusts_system):
            raise TlsProblem(
                "caCertFile", "client certificates are requested, but caCertFile names no authority to verify them with"
            )
        _trust(context, authorities, system=use.trusts_system)
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def context_of_one(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return a context to make one connection with; ``context`` takes its place when the client's hello is read.

    So no client resumes a session. Without tickets, OpenSSL stores the sessions of TLS 1.2 by number, in the context
    that a connection was made with, and Python's ssl has no call to prevent it; this store ends with the connection.

    The certificate, the ciphers of TLS 1.2 and the authorities are those of ``context``. The rest is copied: OpenSSL
    takes it when the connection is made, or needs it to read the hello (its SSL_new and SSL_set_SSL_CTX).
    """
    one = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if one.security_level != context.security_level:  # it limits versions and groups
        one.set_ciphers(f"DEFAULT:@SECLEVEL={context.security_level}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # as in _limit_versions
        one.options = context.options
        one.minimum_version, one.maximum_version = context.minimum_version, context.maximum_version
    one.verify_mode, one.verify_flags = context.verify_mode, context.verify_flags
    one.num_tickets = context.num_tickets
    one.sslobject_class = context.sslobject_class
    choose = context.sni_callback

    def change(tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        tls.context = context
        return None if choose is None else choose(tls, name, context)  # type: ignore[arg-type]  # None without a name

    one.sni_callback = change
    return one


def client_context(
    profile: SslProfileEntity, use: ClientUse, authorities: Sequence[x509.Certificate]
) -> ssl.SSLContext:
    """Return the context for clients: it always verifies the certificate, and by default its name. TlsProblem."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, profile)
    context.check_hostname = use.verify_hostname and not use.compares_names
    context.verify_mode = ssl.CERT_REQUIRED
    context.hostname_checks_common_name = False
    _trust(context, authorities, system=profile.use_system_ca or not profile.ca_cert_file)
    return context


def _context(protocol: int, profile: SslProfileEntity) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    _limit_versions(context, profile)
    if profile.cert_file and not profile.private_key_file:
        raise TlsProblem("privateKeyFile", "the certificate in certFile needs its key")
    if profile.cert_file:
        _load_pair(context, profile)
    return context


def _limit_versions(context: ssl.SSLContext, profile: SslProfileEntity) -> None:
    """Allow the versions in ``protocols`` that this machine's OpenSSL configuration allows; TlsProblem if none."""
    named = tuple((profile.protocols or "").split()) or DEFAULT_VERSIONS
    if unknown := [name for name in named if name not in VERSIONS]:
        raise TlsProblem("protocols", f"{unknown[0]!r} is not a version of TLS")
    below = profile.below_system_minimum
    machine = machine_limits()
    least = 0 if below else machine.minimum
    wanted = [position for position, version in enumerate(VERSIONS.values()) if version >= least]
    positions = [list(VERSIONS).index(name) for name in named if list(VERSIONS).index(name) in wanted]
    if not positions:
        raise TlsProblem("protocols", "this machine's OpenSSL configuration forbids these versions of TLS")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the operator named the old version knowingly
        context.minimum_version = list(VERSIONS.values())[min(positions)]
        context.maximum_version = list(VERSIONS.values())[max(positions)]
        for position, option in enumerate((0, ssl.OP_NO_TLSv1_1, ssl.OP_NO_TLSv1_2)):
            if min(positions) < position < max(positions) and position not in positions:
                context.options |= option
    old = min(positions) < list(VERSIONS).index("TLSv1.2")
    _choose_ciphers(context, profile, OLD_LEVEL if old and below else "")
    if context.security_level < machine.level and not below:
        _choose_ciphers(context, profile, f"@SECLEVEL={machine.level}")


def _choose_ciphers(context: ssl.SSLContext, profile: SslProfileEntity, level: str) -> None:
    ciphers = f"{profile.ciphers or 'DEFAULT'}:{NEVER}" + (f":{level}" if level else "")
    try:
        context.set_ciphers(ciphers)
    except ssl.SSLError:
        raise TlsProblem("ciphers", "no cipher can be chosen from these") from None


def _load_pair(context: ssl.SSLContext, profile: SslProfileEntity) -> None:
    assert profile.cert_file is not None  # noqa: S101 - the two go together
    try:
        secret = profile.key_password()
    except BadValue as bad:
        raise TlsProblem("passwordFile", bad.message) from None
    if secret is not None and secret.fault:
        raise TlsProblem("password", secret.fault)
    password = "" if secret is None else secret.reveal()
    try:
        # A function, because without a password OpenSSL would prompt for one at the terminal.
        context.load_cert_chain(profile.cert_file, profile.private_key_file, lambda: password)
    except ssl.SSLError as error:
        if error.reason in {"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"}:
            raise TlsProblem("privateKeyFile", "this is not the key of the certificate in certFile") from None
        if error.reason in {"CA_MD_TOO_WEAK", "EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL"}:
            raise TlsProblem("certFile", "a key or a digest in it is too weak") from None
        why = "this key cannot be read" if secret is None else "this key cannot be read, or not with this password"
        raise TlsProblem("privateKeyFile", why) from None
    except (OSError, ValueError) as error:
        raise TlsProblem("privateKeyFile", f"the certificate or the key cannot be read: {error}") from None


def _trust(context: ssl.SSLContext, authorities: Sequence[x509.Certificate], *, system: bool) -> None:
    if authorities:
        context.load_verify_locations(cadata=b"".join(each.public_bytes(Encoding.DER) for each in authorities))
    if system:
        context.set_default_verify_paths()
