"""From options to what ``trouter.client.connect`` is told: where to, as whom, and whom to trust."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trouter.client import Anonymous, External, SaslMechanism
from trouter.client.address import ServerAddress, parse_url
from trouter.client.sasl import with_password
from trouter.pipeline.options import BadOption, Options

PASSWORDS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN")
MECHANISMS: Final = ("EXTERNAL", *PASSWORDS, "ANONYMOUS")


@dataclass(frozen=True, slots=True)
class Peer:
    """One of the servers to try: its URL, without a password, and the other arguments of ``connect``."""

    url: str
    arguments: dict[str, Any]

    def __repr__(self) -> str:
        return f"Peer({self.url!r})"


def peers(options: Options) -> tuple[Peer, ...]:
    """Those of `url`, in its order; BadOption for what cannot work, before anything is dialled."""
    addresses = [_parse(url) for url in options.url]
    tls = options.tls or bool(options.tls_trust_file or options.tls_certificate_file)
    context = _context(options) if tls or any(address.secure for address in addresses) else None
    common: dict[str, Any] = {"timeout": options.connect_timeout_s, "idle_timeout": options.heartbeat_s}
    if options.virtual_host:
        common["hostname"] = options.virtual_host
    return tuple(
        Peer(
            _shown(address),
            {
                **common,
                "sasl": _mechanisms(options, address),
                "ssl_context": context if tls or address.secure else None,
            },
        )
        for address in addresses
    )


def _parse(url: str) -> ServerAddress:
    try:
        return parse_url(url)
    except ValueError as error:
        raise BadOption(f"url: {error}") from None


def _shown(address: ServerAddress) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'amqps' if address.secure else 'amqp'}://{host}:{address.port}"


def _mechanisms(options: Options, address: ServerAddress) -> tuple[SaslMechanism, ...]:
    """The preferred one first. Whoever names a user is not let in as nobody instead, unless ANONYMOUS is allowed."""
    allowed = _allowed(options.sasl_mechanisms)
    user = options.user or address.user or ""
    if not allowed:
        allowed = [*(["EXTERNAL"] if options.tls_certificate_file else []), *(PASSWORDS if user else ["ANONYMOUS"])]
    found: list[SaslMechanism] = []
    if "EXTERNAL" in allowed:
        found.append(External())
    if user and any(name in PASSWORDS for name in allowed):
        password = options.secret("password") or address.password
        if not password:
            if not found:
                raise BadOption("user: there is no password; give passwordFile")
        else:
            found += [mechanism for mechanism in with_password(user, password) if mechanism.name in allowed]
    if "ANONYMOUS" in allowed:
        found.append(Anonymous())
    if not found:
        raise BadOption(f"saslMechanisms: {allowed[0]} needs a user")
    return tuple(found)


def _allowed(names: Iterable[str]) -> list[str]:
    asked = [name.upper() for name in names]
    for name in asked:
        if name not in MECHANISMS:
            raise BadOption(f"saslMechanisms: {name!r} is none of {', '.join(MECHANISMS)}")
    return asked


def _context(options: Options) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = options.tls_verify_name
    if options.tls_trust_file:
        _check_readable("tlsTrustFile", options.tls_trust_file)
        try:
            context.load_verify_locations(options.tls_trust_file)
        except ssl.SSLError:
            raise BadOption(f"tlsTrustFile: no certificates in {options.tls_trust_file}") from None
    else:
        context.load_default_certs()
    if certificate := options.tls_certificate_file:
        key = options.tls_key_file or certificate
        _check_readable("tlsCertificateFile", certificate)
        _check_readable("tlsKeyFile", key)
        password = options.secret("tls_key_password")
        try:
            context.load_cert_chain(certificate, key, lambda: password)
        except ssl.SSLError:
            why = "perhaps the key has another password" if password else "perhaps the key has a password"
            raise BadOption(f"tlsCertificateFile: {certificate} and {key} are no certificate and key; {why}") from None
    return context


def _check_readable(option: str, path: str) -> None:
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise BadOption(f"{option}: {path}: {error.strerror}") from None
