"""One of several servers, and the credentials for them: the configuration of programs that run for years.

Secrets are given as text and never shown: no ``repr`` or error text contains one.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import trio

from trouter.engine.sasl import SASL_AUTH, SASL_SYS_TEMP
from trouter.mechanisms import ANONYMOUS, CLIENT, EXTERNAL

from .address import ServerAddress, parse_url
from .connection import Connection, connect, default_mechanisms
from .errors import AuthenticationFailed, ClientError
from .sasl import Anonymous, External, SaslMechanism, with_password

#: Conditions of refusals that will not change by themselves.
_LASTING: Final = frozenset(
    {"amqp:unauthorized-access", "amqp:not-allowed", "amqp:not-found", "amqp:not-implemented", "amqp:invalid-field"}
)
#: OpenSSL's codes for a certificate of another host or address.
_OTHER_HOST: Final = frozenset({62, 64})


@dataclass(frozen=True, kw_only=True)
class Servers:
    """Equivalent servers, of which the first that answers is used, with credentials for them.

    ``urls`` are as `connect` takes them. ``mechanisms`` are the allowed SASL mechanisms; () for those that fit:
    EXTERNAL with a certificate, SCRAM or PLAIN with a user, else ANONYMOUS. Files are PEM. ``trust_file`` turns TLS on,
    as does ``certificate``; without a ``trust_file`` the system's authorities are trusted. ValueError for
    contradictions.
    """

    urls: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    mechanisms: tuple[str, ...] = ()
    trust_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_name: bool = True
    #: The hostname of our open, by default the URL's host.
    virtual_host: str | None = None

    def __post_init__(self) -> None:
        if not self.urls:
            raise ValueError("no server to connect to")
        if unknown := [name for name in self.mechanisms if name not in CLIENT]:
            raise ValueError(f"SASL {unknown[0]} is none of {', '.join(CLIENT)}")
        for url in self.urls:
            self.mechanisms_for(parse_url(url))
        if self.key is not None and self.certificate is None:
            raise ValueError("a private key without its certificate")

    def __repr__(self) -> str:
        return f"Servers({', '.join(self.labels)})"

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """URLs of the servers without secrets."""
        return tuple(label_of(url) for url in self.urls)

    @asynccontextmanager
    async def connect(self, url: str, **options: Any) -> AsyncIterator[Connection]:
        """Connect to one of them; raises as `connect`, whose ``options`` these are, and as ``ssl_context``."""
        address = parse_url(url)
        context = self.ssl_context() if self.is_secure(address) else None
        options = {"hostname": self.virtual_host, **options}
        async with connect(url, sasl=self.mechanisms_for(address), ssl_context=context, **options) as connection:
            yield connection

    def ssl_context(self) -> ssl.SSLContext:
        """Return the TLS context for verification and login; OSError (ssl.SSLError) names the faulty file."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify_name
        if self.trust_file is None:
            context.load_default_certs()
        else:
            _read(self.trust_file)
            try:
                context.load_verify_locations(self.trust_file)
            except ssl.SSLError:
                raise BadCertificate(f"no certificates in the trust file {self.trust_file}") from None
        if self.certificate is not None:
            key = self.key or self.certificate
            for path in (self.certificate, key):
                _read(path)
            try:
                context.load_cert_chain(self.certificate, key, self.key_password or "")
            except (ssl.SSLError, ValueError):
                pair = f"{self.certificate} and {key}"
                why = f"{pair} are not a certificate and its key, or the password of the key is wrong"
                raise BadCertificate(why) from None
        return context

    def is_secure(self, address: ServerAddress) -> bool:
        """Return whether the connection to ``address`` uses TLS."""
        return address.secure or self.trust_file is not None or self.certificate is not None

    def mechanisms_for(self, address: ServerAddress) -> tuple[SaslMechanism, ...]:
        """Return the mechanisms to try, the preferred first; ValueError if none fits."""
        user = address.user if self.user is None else self.user
        password = address.password if self.password is None else self.password
        if not self.mechanisms:
            if user is None and self.certificate is not None:
                return (External(), Anonymous())
            return default_mechanisms(address, user, password)
        found = tuple(self._allowed_mechanisms(user, password))
        if not found:
            raise ValueError(f"SASL {self.mechanisms[0]} needs a user and a password")
        return found

    def _allowed_mechanisms(self, user: str | None, password: str | None) -> Iterator[SaslMechanism]:
        if EXTERNAL in self.mechanisms:
            yield External()
        if user and password:
            yield from (each for each in with_password(user, password) if each.name in self.mechanisms)
        if ANONYMOUS in self.mechanisms:
            yield Anonymous()


class BadCertificate(ssl.SSLError):
    """A file has no certificate or key; the text names it."""

    def __str__(self) -> str:
        return str(self.args[0])


def label_of(url: str) -> str:
    """Return a server's URL without secrets; ValueError."""
    address = parse_url(url)
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'amqps' if address.secure else 'amqp'}://{host}:{address.port}"


def is_lasting(failure: Exception) -> bool:
    """Return whether another attempt is useless until the operator fixes credentials, trust or an address."""
    if isinstance(failure, AuthenticationFailed):
        return (failure.info or {}).get("sasl-code") != SASL_SYS_TEMP
    if isinstance(failure, ClientError):
        return failure.condition in _LASTING
    return isinstance(failure, ssl.SSLCertVerificationError | BadCertificate | FileNotFoundError | PermissionError)


def kind_of(failure: ClientError | OSError | trio.TooSlowError) -> str:
    """Return the kind of failure, for counters: authentication, tls, timeout, refused, peer or connection."""
    if isinstance(failure, AuthenticationFailed):
        return "authentication"
    if isinstance(failure, ClientError) and failure.condition:
        return "refused" if failure.condition in _LASTING else "peer"
    if isinstance(failure.__cause__ or failure, ssl.SSLError):
        return "tls"
    return "timeout" if isinstance(failure, trio.TooSlowError) else "connection"


class Setting(Enum):
    """A group of settings that the operator may have to check."""

    TRUST = "the authorities that are trusted"
    NAME = "the host's name, or whether it is verified"
    TLS = "whether TLS is spoken"
    CREDENTIALS = "the user and the password, or the certificate"
    MECHANISMS = "the mechanisms that are allowed"


def setting_of(failure: BaseException) -> Setting | None:
    """Return the settings that may have caused a failure to connect; None if they are unknown."""
    cause = _cause_of(failure)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Setting.NAME if cause.verify_code in _OTHER_HOST else Setting.TRUST
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, BadCertificate):
        return Setting.TLS
    if isinstance(cause, AuthenticationFailed):
        if (cause.info or {}).get("sasl-code") == SASL_AUTH:
            return Setting.CREDENTIALS
        return None if cause.info else Setting.MECHANISMS
    return None


def reason_of(failure: BaseException) -> str:
    """Return the failure as text: the first one, of several attempts to connect."""
    cause = _cause_of(failure)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the server's certificate cannot be trusted: {cause.verify_message}"
    if isinstance(cause, BadCertificate):
        return str(cause)
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed: {tls_reason(cause)}"
    if isinstance(cause, AuthenticationFailed):
        return f"the login failed: {cause.description or cause.condition}"
    if isinstance(cause, ClientError):
        return cause.sentence
    if isinstance(cause, OSError) and cause.strerror:
        text = os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror
        return f"{text}: {cause.filename}" if cause.filename else text
    return "no answer in time" if isinstance(cause, trio.TooSlowError) else str(cause) or "the connection ended"


def tls_reason(failure: ssl.SSLError) -> str:
    """Return OpenSSL's reason for a failure of TLS in words; its number is none of the system's errors."""
    _, is_alert, alert = (failure.reason or "").partition("_ALERT_")
    if alert == "CERTIFICATE_REQUIRED":
        return "the server wants a certificate of the client (--ssl-certificate and --ssl-key)"
    words = (alert or failure.reason or "failed").replace("_", " ").lower()
    return f"the server says: {words}" if is_alert else words


def unreachable(url: str, failure: BaseException, timeout_s: float) -> str:
    """Return the one text of all commands for a connection that did not come about; ``url`` has no secrets."""
    cause = _cause_of(failure)
    late = isinstance(cause, trio.TooSlowError) or (isinstance(cause, TimeoutError) and not cause.errno)
    return f"cannot connect to {url}: {f'no answer within {timeout_s:g} s' if late else reason_of(failure)}"


def _cause_of(failure: BaseException) -> BaseException:
    reason = failure.__cause__
    cause = reason if reason is not None and isinstance(failure, OSError) and not failure.errno else failure
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return cause


def _read(path: Path) -> None:
    """Raise OSError, with the name, if the file cannot be read."""
    with path.open("rb"):
        pass
