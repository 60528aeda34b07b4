"""Servers from options: where to connect, as which user, and which authorities to trust.

Impossible options are refused before anything is dialled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trouter.client.address import ServerAddress, parse_url
from trouter.client.servers import Servers, Setting, label_of, reason_of, setting_of
from trouter_pipeline.flight.access import Access
from trouter_pipeline.options import BadOption, Options

#: The options to look at, by the likely cause of a failure.
_CURES: Final = {
    Setting.TRUST: "name the authority that signed it with tlsTrustFile",
    Setting.NAME: "write url as the certificate does, or tlsVerifyName=false if any host of that authority will do",
    Setting.TLS: "does the server expect TLS? amqps://, tlsTrustFile or tlsCertificateFile turns it on",
    Setting.CREDENTIALS: "see user and passwordFile",
    Setting.MECHANISMS: "see saslMechanisms and user",
}


@dataclass(frozen=True, slots=True)
class Peer:
    """One of the servers to try: its URL without a password, and the other arguments of ``connect``."""

    url: str
    arguments: dict[str, Any]

    def __repr__(self) -> str:
        return f"Peer({self.url!r})"


def servers(options: Options) -> Servers:
    """Return the servers of `url`, in order; BadOption, which never contains a secret."""
    for url in options.url:
        _parse(url)
    if options.user and not (options.secret("password") or options.sasl_mechanisms):
        raise BadOption("user: there is no password; give passwordFile")
    try:
        made = Servers(
            urls=options.url,
            user=options.user or None,
            password=options.secret("password") or None,
            mechanisms=tuple(name.upper() for name in options.sasl_mechanisms),
            trust_file=_path(options.tls_trust_file),
            certificate=_path(options.tls_certificate_file),
            key=_path(options.tls_key_file),
            key_password=options.secret("tls_key_password") or None,
            verify_name=options.tls_verify_name,
            virtual_host=options.virtual_host or None,
        )
    except ValueError as error:
        raise BadOption(f"saslMechanisms, user, password: {error}") from None
    try:
        if any(made.is_secure(parse_url(url)) for url in made.urls):
            made.ssl_context()
    except OSError as error:
        raise BadOption(_why(error, options)) from None
    return made


def access_of(options: Options) -> Access:
    """Return what the options bring along to a server of spools; BadOption."""
    authorities, certificate = None, None
    try:
        if options.tls_trust_file:
            authorities = Path(options.tls_trust_file).read_bytes()
        if options.tls_certificate_file:
            certificate = (
                Path(options.tls_certificate_file),
                Path(options.tls_key_file or options.tls_certificate_file),
            )
            for path in certificate:
                path.read_bytes()
    except OSError as error:
        raise BadOption(_why(error, options)) from None
    return Access(authorities, options.connect_timeout_s, options.secret("token").encode(), certificate)


def peers(options: Options) -> tuple[Peer, ...]:
    """Return the servers one by one, for callers that connect themselves; BadOption."""
    return peers_of(servers(options), options.connect_timeout_s, options.heartbeat_s)


def peers_of(made: Servers, connect_timeout_s: float, heartbeat_s: float) -> tuple[Peer, ...]:
    """Return the servers one by one, for callers that connect themselves; OSError for a file of TLS."""
    found = []
    for url in made.urls:
        address = parse_url(url)
        arguments = {
            "timeout": connect_timeout_s,
            "idle_timeout": heartbeat_s,
            "hostname": made.virtual_host,
            "sasl": made.mechanisms_for(address),
            "ssl_context": made.ssl_context() if made.is_secure(address) else None,
        }
        found.append(Peer(label_of(url), arguments))
    return tuple(found)


def why(failure: BaseException) -> str:
    """Return why a connection failed, and which options to look at."""
    setting = setting_of(failure)
    return reason_of(failure) if setting is None else f"{reason_of(failure)}: {_CURES[setting]}"


def _parse(url: str) -> ServerAddress:
    try:
        return parse_url(url)
    except ValueError as error:
        raise BadOption(f"url: {error}") from None


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _why(error: OSError, options: Options) -> str:
    """Return what is wrong with the files for TLS, with the option that names the unreadable file."""
    named = {
        options.tls_trust_file: "tlsTrustFile",
        options.tls_certificate_file: "tlsCertificateFile",
        options.tls_key_file: "tlsKeyFile",
    }
    option = named.get(str(error.filename)) if error.filename else None
    return f"TLS: {reason_of(error)}" if option is None else f"{option}: {error.filename}: {error.strerror}"
