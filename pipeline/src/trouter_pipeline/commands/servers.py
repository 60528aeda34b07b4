"""The options of commands that connect: those of every command of trouter, and `--url` for several servers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trouter.tools.options import BUS_VARIABLE, DEFAULT_BUS, ConnectionOptions, add_server_options

if TYPE_CHECKING:
    from trouter.client.servers import Servers

#: Earlier names of options, which stay -> the options that they mean.
EARLIER: Final = {
    "user": "sasl_username",
    "password_file": "sasl_password_file",
    "tls_trust_file": "ssl_trustfile",
    "tls_certificate": "ssl_certificate",
    "tls_certificate_file": "ssl_certificate",
    "tls_key": "ssl_key",
    "tls_key_file": "ssl_key",
    "tls_key_password_file": "ssl_password_file",
    "tls_any_name": "ssl_disable_peer_name_verify",
}


def add_servers(parser: argparse.ArgumentParser, url_help: str, patience: str, earlier: tuple[str, ...]) -> None:
    """Add the options for connection and login; ``earlier`` are the names of EARLIER that the command has had."""
    add_server_options(parser, patience)
    group = parser.add_argument_group("in place of -b, and earlier names of options")
    group.add_argument("--url", action="append", default=[], metavar="amqp[s]://HOST[:PORT]", help=url_help)
    for name in earlier:
        meant = EARLIER[name]
        settings: dict[str, Any] = {"dest": meant, "help": f"the same as --{meant.replace('_', '-')}"}
        if meant == "ssl_disable_peer_name_verify":
            settings |= {"action": "store_true", "default": False}
        else:
            settings["metavar"] = "USER" if name == "user" else "FILE"
        group.add_argument(f"--{name.replace('_', '-')}", **settings)


def names_server(arguments: argparse.Namespace, environment: Mapping[str, str]) -> bool:
    """Return whether the command line, the environment or the context in use names a server."""
    from trouter.tools.contexts import Contexts  # noqa: PLC0415  # only when it runs

    given = arguments.url or arguments.bus or arguments.context or environment.get(BUS_VARIABLE)
    return bool(given or Contexts.load(environment).current)


def servers_of(arguments: argparse.Namespace, environment: Mapping[str, str]) -> Servers:
    """Return the servers and the login of a command line; ArgumentTypeError, ValueError, OSError for a file."""
    from trouter.client.cover import cover_arguments, passwords_in  # noqa: PLC0415
    from trouter.client.servers import Servers  # noqa: PLC0415  # the client, only when it runs

    urls: tuple[str, ...] = tuple(arguments.url)
    if urls:
        if arguments.bus or arguments.context:
            raise argparse.ArgumentTypeError("give --url, or else -b or --context")
        cover_arguments(passwords_in(urls))
        # The URLs have their own users, and the login that the environment names may be for another server.
        login = ConnectionOptions.of(argparse.Namespace(**{**vars(arguments), "bus": DEFAULT_BUS}), {})
    else:
        login = ConnectionOptions.of(arguments, environment)
        if login.path:
            raise argparse.ArgumentTypeError("the URL ends with the port: the address is an option of its own")
        login = login.with_password()
        urls = (f"{'amqps' if login.tls else 'amqp'}://{login.server}",)
    for path, secret in (
        (arguments.sasl_password_file, login.password),
        (arguments.ssl_password_file, login.key_password),
    ):
        if path and not secret:
            raise ValueError(f"{path} holds no password")
    return Servers(
        urls=urls,
        user=login.user or None,
        password=login.password or None,
        mechanisms=login.mechanisms,
        trust_file=_path(login.trust_file),
        certificate=_path(login.certificate),
        key=_path(login.key),
        key_password=login.key_password or None,
        verify_name=login.verify_name,
    )


def _path(name: str) -> Path | None:
    return Path(name).absolute() if name else None
