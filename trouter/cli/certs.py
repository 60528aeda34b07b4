"""`trouter certs`: a development authority, and the certificates that it issues to servers, clients and routers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from trouter.tools.authority import Authority

EPILOG: Final = """\
examples:
  trouter certs ca                                       once: certs/ca.crt and certs/ca.key
  trouter certs server router --host router.example.com --host 10.0.0.7
  trouter certs client alice                             for saslMechanisms: EXTERNAL
  trouter certs router east --host east.example.com      one pair for what it listens to and what it dials;
                                                         listeners for routers then have allowedUsers: CN=east
  trouter certs renew                                    everything that was issued, with the same keys
  trouter certs list
"""
FOLDER: Final = Path("certs")
HOW_TO: Final = """\
Made by `trouter certs`.

ca.crt      A host that trusts this certificate trusts everything that ca.key signs. Give it to clients, and name it as
            caCertFile where clients show certificates of their own.
ca.key      Keep it off the machines that run routers: with it any host can pass for any other. Only `trouter certs`
            needs it.
NAME.crt    The certificate of a server, a client or a router: certFile.
NAME.key    Its private key, for its owner's eyes only: privateKeyFile.

    sslProfile {
        name: server
        certFile: certs/router.crt
        privateKeyFile: certs/router.key
        caCertFile: certs/ca.crt
    }

A listener for other routers names those that may join, because ca.key signs clients, too:

    listener {
        role: inter-router
        sslProfile: server
        authenticatePeer: yes
        saslMechanisms: EXTERNAL
        allowedUsers: CN=east, CN=west
    }

`trouter certs list` tells when they expire; `trouter certs renew` issues them again for the same keys.
"""
MAX_DAYS: Final = 36500


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "certs",
        help="make a development authority and certificates",
        description="Keep a certificate authority in a folder, for development and for small sites.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    ca = _action(actions, "ca", _ca, "make the authority, and a page on how to use it")
    ca.add_argument("--name", default="trouter development CA", help="its name; default %(default)s")
    server = _action(actions, "server", _issue, "make a key and a certificate for a server")
    router = _action(actions, "router", _issue, "make a key and a certificate for a router, as server and as client")
    for action in (server, router):
        action.add_argument("name", metavar="NAME", help="what the files are called, and the subject")
        action.add_argument(
            "--host",
            action="append",
            default=[],
            metavar="HOST",
            help="a host name or address of the server; default localhost",
        )
    client = _action(actions, "client", _issue, "make a key and a certificate for a client")
    client.add_argument("name", metavar="NAME", help="the base name of the files, and the subject: the client's user")
    renew = _action(actions, "renew", _renew, "issue certificates again, for the same keys")
    renew.add_argument("names", metavar="NAME", nargs="*", help="default all but the authority's own")
    listed = _action(actions, "list", _list, "show every certificate, and when it expires")
    listed.add_argument("--json", action="store_true", help="one JSON object")
    for action in (ca, server, router, client):
        action.add_argument("--force", action="store_true", help="replace existing files")
    for action in (ca, server, router, client, renew):
        action.add_argument("--days", type=_days, metavar="N", help="how long it is valid")


def _action(actions: Any, name: str, run: Callable[..., None], text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text, description=f"{text.capitalize()}.")
    parser.add_argument("-d", "--dir", type=Path, default=FOLDER, metavar="DIR", help="the folder; default %(default)s")
    parser.set_defaults(run=_obey, act=run, purpose=name)
    return parser


def _days(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_DAYS):
        raise argparse.ArgumentTypeError(f"a number of days from 1 to {MAX_DAYS} is needed")
    return int(text)


def _obey(arguments: argparse.Namespace) -> int:
    """Run the chosen action; return the exit status."""
    from trouter.tools.authority import Authority, AuthorityError  # noqa: PLC0415  # other commands do without
    from trouter.tools.failures import print_problem  # noqa: PLC0415

    try:
        arguments.act(Authority(arguments.dir), arguments)
    except AuthorityError as error:
        print_problem(arguments, error)
        return 1
    except OSError as failure:
        print_problem(arguments, f"{failure.filename or arguments.dir}: {failure.strerror}")
        return 1
    return 0


def _ca(authority: Authority, arguments: argparse.Namespace) -> None:
    settings = {"days": arguments.days} if arguments.days else {}
    path = authority.found(arguments.name, force=arguments.force, **settings)
    (arguments.dir / "README").write_text(HOW_TO, encoding="utf-8")
    print(path)


def _issue(authority: Authority, arguments: argparse.Namespace) -> None:
    settings = {"days": arguments.days} if arguments.days else {}
    hosts = () if arguments.purpose == "client" else arguments.host or ["localhost"]
    print(authority.issue(arguments.name, arguments.purpose, hosts, force=arguments.force, **settings))


def _renew(authority: Authority, arguments: argparse.Namespace) -> None:
    for name in arguments.names or authority.names():
        print(authority.renew(name, arguments.days))


def _list(authority: Authority, arguments: argparse.Namespace) -> None:
    if arguments.json:
        rows = [
            {
                "name": issued.name,
                "purpose": issued.purpose,
                "hosts": list(issued.hosts),
                "expires": issued.expires.isoformat(),
            }
            for issued in authority.issued()
        ]
        print(json.dumps({"certificates": rows}, indent=2))
        return
    for issued in authority.issued():
        hosts = f" ({', '.join(issued.hosts)})" if issued.hosts else ""
        print(f"{issued.expires:%Y-%m-%d}  {issued.purpose:6}  {issued.name}{hosts}")
