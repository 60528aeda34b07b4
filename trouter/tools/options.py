"""The options with which a tool connects and logs in, shared by all tools, and their environment variables.

Secrets reach neither a message, nor a repr, nor the process's title. A password is best given in a file.
"""

from __future__ import annotations

import argparse
import getpass
import math
import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, Self
from urllib.parse import unquote

import trouter
from trouter.mechanisms import ANONYMOUS, CLIENT, EXTERNAL, PASSWORDS

from .contexts import saved_names, with_context
from .failures import SSLException, WrongOption

if TYPE_CHECKING:
    import ssl

    from trouter.client import SaslMechanism

DEFAULT_BUS: Final = "0.0.0.0"  # noqa: S104 - to connect to, which means this machine
DEFAULT_TIMEOUT_S: Final = 5.0
#: Variables that replace options that are not given. The password counts only with a user.
BUS_VARIABLE: Final = "TROUTER_BUS"
USER_VARIABLE: Final = "TROUTER_SASL_USERNAME"
PASSWORD_VARIABLE: Final = "TROUTER_SASL_PASSWORD"  # noqa: S105 - the name of a variable
KEY_PASSWORD_VARIABLE: Final = "TROUTER_SSL_PASSWORD"  # noqa: S105 - the name of a variable
MANAGEMENT: Final = "$management"
#: The longest password that a file may hold, in bytes.
MAX_SECRET_BYTES: Final = 4096

_PORTS: Final = {"amqp": 5672, "amqps": 5671}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhSMH]?)")
_AGO: Final = re.compile(r"(\d{1,9})([smhd])")
_UNITS_S: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_URL: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://)?"
    r"(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.%A-Za-z]+\]|[^:@/\s\[\]?#]*)"
    r"(?::(?P<port>[A-Za-z0-9]*))?"
    r"(?:/(?P<path>(?!/).*))?"  # else what is wrong behind a scheme, a password for one, would be a path behind a host
)


class PrintToolVersion(argparse.Action):
    """Print the version on stdout."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        sys.stdout.write(f"{trouter.__version__}\n")
        parser.exit(0)


def add_connection_options(
    parser: argparse.ArgumentParser, *, contexts: bool = True
) -> argparse._MutuallyExclusiveGroup:
    """Add the options that every tool has; return the group of -r and -d, for what else excludes these."""
    parser.add_argument("--version", action=PrintToolVersion, nargs=0, help="print the version")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="show more; may be repeated")
    return add_router_options(parser, contexts=contexts)


def add_router_options(parser: argparse.ArgumentParser, *, contexts: bool = True) -> argparse._MutuallyExclusiveGroup:
    """Add the options for connection, login and router of the network; return the group of the last."""
    group = add_server_options(parser, contexts=contexts)
    target = group.add_mutually_exclusive_group()
    target.add_argument("-r", "--router", metavar="ID", help="ask this router of the network")
    target.add_argument("-d", "--edge-router", metavar="ID", help="ask this edge router")
    return target


def add_server_options(
    parser: argparse.ArgumentParser,
    patience: str = f"each answer; default {DEFAULT_TIMEOUT_S:g}",
    *,
    contexts: bool = True,
) -> argparse._ArgumentGroup:
    """Add the options for connection and login; return the first group.

    patience: the waits that --timeout limits besides connecting. contexts: saved settings may name the router.
    """
    parser.set_defaults(router=None, edge_router=None)
    group = parser.add_argument_group("connection")
    where = group.add_mutually_exclusive_group()
    where.add_argument(
        "-b",
        "--bus",
        metavar="URL",
        help=f"[amqp[s]://][USER[:PASSWORD]@]HOST[:PORT][/ADDRESS]; default ${BUS_VARIABLE}, else {DEFAULT_BUS}",
    )
    if contexts:
        saved = where.add_argument(
            "--context", metavar="NAME", help="settings of `trouter contexts`; default those in use"
        )
        saved.completer = saved_names  # type: ignore[attr-defined]
    group.add_argument(
        "-t", "--timeout", type=seconds, metavar="SECS", help=f"how long to wait for the connection and for {patience}"
    )
    _add_tls_options(parser.add_argument_group("TLS, used for amqps, a certificate or a trust file"))
    _add_sasl_options(parser.add_argument_group("SASL, used with TLS or one of these"))
    return group


def _add_tls_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--ssl-certificate", metavar="FILE", help="our certificate (PEM)")
    group.add_argument("--ssl-key", metavar="FILE", help="its private key (PEM); default the certificate's file")
    group.add_argument(
        "--ssl-password",
        metavar="PASSWORD",
        help=f"the key's password; default ${KEY_PASSWORD_VARIABLE}, else a terminal is asked",
    )
    group.add_argument("--ssl-password-file", metavar="FILE", help="a file that holds the key's password")
    group.add_argument("--ssl-trustfile", metavar="FILE", help="authorities to trust (PEM); default the system's")
    group.add_argument(
        "--ssl-disable-peer-name-verify",
        action="store_true",
        help="accept a certificate for another host name: unsafe, for tests",
    )


def _add_sasl_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--sasl-mechanisms", metavar="NAMES", help=f"those allowed, of {', '.join(CLIENT)}; default what fits"
    )
    group.add_argument("--sasl-username", metavar="USER", help=f"default the URL's, else ${USER_VARIABLE}")
    group.add_argument("--sasl-password", metavar="PASSWORD", help=f"default the URL's, else ${PASSWORD_VARIABLE}")
    group.add_argument("--sasl-password-file", metavar="FILE", help="a file that holds the password")


def positive(text: str) -> int:
    """Return a whole number from 1 on; ArgumentTypeError."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError("this must be a number, 1 or more")
    return int(text)


def seconds(text: str) -> float:
    """Return a time to wait, in seconds; ArgumentTypeError."""
    return _above_zero(text, "a number of seconds")


def duration(text: str) -> float:
    """Return a time in seconds, from 0 on, written as a number with or without `s`, `m` or `h`; ArgumentTypeError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError("this must be a time, as in 90, 60s, 5m or 1h")
    return float(found[1]) * _UNITS_S[found[2].lower()]


def moment(text: str) -> int:
    """Return the microseconds since 1970 of a time, or of one so long ago; ArgumentTypeError."""
    if ago := _AGO.fullmatch(text):
        return int((time.time() - int(ago[1]) * _UNITS_S[ago[2]]) * 1_000_000)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("this is no time; write 2026-03-01T12:00, or 2h for two hours ago") from None
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1_000_000)


def rate(text: str) -> float:
    """Return a number of messages a second; ArgumentTypeError."""
    return _above_zero(text, "a number of messages a second")


def _above_zero(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"this must be {what}, above 0")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """The values of the options of `add_connection_options`."""

    host: str = DEFAULT_BUS
    port: int = 5672
    #: The address of the management node that the URL names; it precedes `router` and `edge_router`.
    path: str = ""
    router: str = ""
    edge_router: str = ""
    timeout_s: float = DEFAULT_TIMEOUT_S
    tls: bool = False
    certificate: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    trust_file: str = ""
    verify_name: bool = True
    user: str = ""
    password: str = field(default="", repr=False)
    #: The SASL mechanisms allowed, () for whatever fits.
    mechanisms: tuple[str, ...] = ()
    #: An option asks for SASL; TLS does too.
    sasl: bool = False

    @classmethod
    def of(cls, arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the options of a command line, and cover secrets in argv; ValueError, OSError for a password file."""
        bus_given = arguments.bus is not None or bool(environment.get(BUS_VARIABLE))
        arguments = with_context(arguments, environment, bus_given=bus_given)
        bus = arguments.bus if arguments.bus is not None else environment.get(BUS_VARIABLE, "")
        parts = _URL.fullmatch(bus or DEFAULT_BUS)
        if parts is None:
            raise WrongOption("the bus is not [amqp[s]://][USER[:PASSWORD]@]HOST[:PORT][/ADDRESS]")
        from trouter.client.cover import cover_arguments  # noqa: PLC0415  # where tools only parse, trio stays out

        cover_arguments(
            secret for secret in (arguments.ssl_password, arguments.sasl_password, parts["password"]) if secret
        )
        scheme = (parts["scheme"] or "amqp").lower()
        if scheme not in _PORTS:
            raise WrongOption(f"the bus has the scheme {scheme!r}, neither amqp nor amqps")
        given_user = arguments.sasl_username or unquote(parts["user"] or "")
        user = given_user or environment.get(USER_VARIABLE, "")
        password = (
            _secret(arguments.sasl_password_file, arguments.sasl_password)
            or unquote(parts["password"] or "")
            or (environment.get(PASSWORD_VARIABLE, "") if user else "")
        )
        mechanisms = allowed_mechanisms(arguments.sasl_mechanisms or "")
        return cls(
            host=(parts["host"] or DEFAULT_BUS).strip("[]"),
            port=_port(parts["port"] or scheme),
            path=parts["path"] or "",
            router=arguments.router or "",
            edge_router=arguments.edge_router or "",
            timeout_s=arguments.timeout or DEFAULT_TIMEOUT_S,
            tls=scheme == "amqps" or bool(arguments.ssl_certificate or arguments.ssl_trustfile),
            certificate=arguments.ssl_certificate or "",
            key=arguments.ssl_key or "",
            key_password=_secret(arguments.ssl_password_file, arguments.ssl_password)
            or environment.get(KEY_PASSWORD_VARIABLE, ""),
            trust_file=arguments.ssl_trustfile or "",
            verify_name=not arguments.ssl_disable_peer_name_verify,
            user=user,
            password=password,
            mechanisms=mechanisms,
            sasl=bool(user or password or mechanisms),
        )

    def to_router(self, router_id: str, *, edge: bool = False) -> Self:
        """Return the options for the same connection and another router of the network, perhaps an edge router."""
        return replace(self, path="", router="" if edge else router_id, edge_router=router_id if edge else "")

    def with_password(self) -> Self:
        """Return the options with the user's password, for which a terminal is asked if it is needed; ValueError."""
        if not self.user or self.password or not set(self.mechanisms or PASSWORDS) & set(PASSWORDS):
            return self
        return replace(self, password=prompted(f"password of {self.user}: "))

    @property
    def server(self) -> str:
        """`HOST:PORT`, as it is shown and dialled."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def named_server(self) -> str:
        """The server as a failure names it: for the default one what that is, and how to choose another one."""
        if self.host != DEFAULT_BUS:
            return self.server
        return f"127.0.0.1:{self.port}, this machine (-b chooses another router)"

    @property
    def address(self) -> str:
        """The address of the management node."""
        if self.path:
            return self.path
        if self.edge_router:
            return f"_edge/{self.edge_router}/{MANAGEMENT}"
        return f"_topo/0/{self.router}/{MANAGEMENT}" if self.router else MANAGEMENT

    def sasl_mechanisms(self) -> tuple[SaslMechanism, ...]:
        """Return the mechanisms to authenticate with, the preferred one first; () for no SASL; ValueError if none fits.

        A user name is never dropped for an ANONYMOUS login, unless the options allow ANONYMOUS.
        """
        if not (self.sasl or self.tls):
            return ()
        from trouter.client import Anonymous, External  # noqa: PLC0415  # where tools only parse, trio stays out
        from trouter.client.sasl import with_password  # noqa: PLC0415

        if self.mechanisms:
            allowed = self.mechanisms
        else:
            allowed = (*((EXTERNAL,) if self.certificate else ()), *(PASSWORDS if self.user else (ANONYMOUS,)))
        found: list[SaslMechanism] = []
        if EXTERNAL in allowed:
            found.append(External())
        if self.user and any(name in PASSWORDS for name in allowed):
            password = self.password or prompted(f"password of {self.user}: ")
            found += [mechanism for mechanism in with_password(self.user, password) if mechanism.name in allowed]
        if ANONYMOUS in allowed:
            found.append(Anonymous())
        if not found:
            raise WrongOption(f"SASL {allowed[0]} needs --sasl-username")
        return tuple(found)

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the context with trust and the tool's certificate; None without TLS; SSLException, OSError."""
        if not self.tls:
            return None
        import ssl  # noqa: PLC0415

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify_name
        if self.trust_file:
            _check_readable(self.trust_file)
            try:
                context.load_verify_locations(self.trust_file)
            except ssl.SSLError:
                raise SSLException(f"no certificates in the trust file {self.trust_file}") from None
        else:
            context.load_default_certs()
        if self.certificate:
            self._load_certificate(context)
        return context

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        import ssl  # noqa: PLC0415

        key = self.key or self.certificate
        for name in (self.certificate, key):
            _check_readable(name)
        was_prompted = [False]

        def password() -> str:
            was_prompted[0] = True
            return self.key_password or prompted(f"password of {key}: ")

        try:
            context.load_cert_chain(self.certificate, key, password)
        except ssl.SSLError:
            why = ", perhaps with another password" if was_prompted[0] else ""
            raise SSLException(f"{self.certificate} and {key} are no certificate and its key{why}") from None


def allowed_mechanisms(text: str) -> tuple[str, ...]:
    """Return the supported mechanisms of a list with blanks or commas; ValueError if it has others only."""
    named = text.replace(",", " ").upper().split()
    known = tuple(name for name in CLIENT if name in named)
    if named and not known:
        raise WrongOption(f"none of the SASL mechanisms {' '.join(named)} is one of {' '.join(CLIENT)}")
    return known


def prompted(prompt: str) -> str:
    """Return a password typed at the terminal, without echo; ValueError without a terminal."""
    if not sys.stdin.isatty():
        raise ValueError(f"{prompt.rstrip(': ')}: not given")
    return getpass.getpass(prompt)


def _secret(path: str | None, given: str | None) -> str:
    """Return a file's text without the blanks around it, else what was given; OSError, ValueError."""
    if not path:
        return given or ""
    with Path(path).open("rb") as file:
        data = file.read(MAX_SECRET_BYTES + 1)
    if len(data) > MAX_SECRET_BYTES:
        raise ValueError(f"{path} holds more than {MAX_SECRET_BYTES} bytes: no password")
    try:
        return data.decode().strip()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None


def _check_readable(name: str) -> None:
    """Raise an OSError that names the file if it cannot be read, as the error of TLS does not."""
    with Path(name).open("rb"):
        pass


def _port(text: str) -> int:
    """Return the number of a port given as a number or as the name of a protocol; ValueError."""
    if text in _PORTS:
        return _PORTS[text]
    if text.isdecimal() and 0 < int(text) < 65536:
        return int(text)
    raise WrongOption("the bus's port is no number from 1 to 65535")
