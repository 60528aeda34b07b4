"""`trouter pipeline serve`: let readers on other machines read spools of this one, over Arrow Flight."""

from __future__ import annotations

import argparse
import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.roots import local_folder
from trouter_pipeline.commands.scraped import place_of

if TYPE_CHECKING:
    from trouter_pipeline.flight.server import Settings

_MAX_SECRET_BYTES: Final = 4096
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_WITHOUT_CERTIFICATES: Final = (
    "warning: whoever reaches the port can fill this process's memory, also without a token: give --client-ca, or let "
    "only the machines of readers reach it"
)


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "serve",
        help="let readers on other machines read spools, over Arrow Flight",
        description="Serve the messages of spools to readers that do not see their folders: Spark reads "
        "spool=grpc+tls://HOST:PORT/NAME with a token, and acknowledges with its cursor as for a folder. The command "
        "runs beside `trouter pipeline spool`, holds nothing, and can be started again at any time.",
    )
    parser.add_argument(
        "--dir",
        action="append",
        required=True,
        type=_named,
        metavar="[NAME=]FOLDER",
        help="a spool, or a folder of its shards, under a name, by default that of the folder; may be given again",
    )
    parser.add_argument("--listen", required=True, metavar="HOST:PORT", help="port 0 takes a free port and prints it")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="holds the tokens of readers, one a line; needed unless HOST is this machine only",
    )
    parser.add_argument(
        "--tls-certificate", type=Path, metavar="FILE", help="the certificate (PEM); needed as --token-file is"
    )
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key; by default in the certificate's file")
    parser.add_argument(
        "--client-ca",
        type=Path,
        metavar="FILE",
        help="the authorities (PEM) of readers' certificates: who has no certificate of theirs sends no question",
    )
    parser.add_argument(
        "--readers",
        type=int,
        default=32,
        metavar="N",
        help="how many readers get messages at a time, each of which costs up to 2 MB, or the length of its largest "
        "message; others wait, and take the place of one that took nothing for a minute (%(default)s)",
    )
    parser.set_defaults(run=run)


def _named(text: str) -> tuple[str, Path]:
    name, equals, folder = text.rpartition("=")
    path = local_folder(folder).absolute()
    name = name if equals else path.name
    if not name or "/" in name or not name.isprintable():
        raise argparse.ArgumentTypeError(f"{name[:80]!r} is no name: write NAME=FOLDER")
    return name, path


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit status."""
    try:
        settings = _settings(arguments)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except OSError as error:
        print_problem(arguments, error)
        return 1
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # else strangers write a line for each handshake that fails
    from trouter_pipeline.flight.server import serve  # noqa: PLC0415  # Flight, only when it runs

    scheme = "grpc" if settings.certificate is None else "grpc+tls"

    def report(line: str) -> None:
        print(f"{arguments.command_parser.prog}: {line}", file=sys.stderr, flush=True)

    def ready(port: int) -> None:
        for name in settings.folders:
            report(f"{scheme}://{arguments.listen.rpartition(':')[0]}:{port}/{name}")
        if settings.host not in _LOOPBACK and settings.client_authorities is None:
            report(_WITHOUT_CERTIFICATES)

    # a stranger who connects and says nothing has a descriptor for two minutes
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        serve(settings, ready, report)
    except OSError as error:
        print_problem(arguments, error)
        return 1
    return 0


def _settings(arguments: argparse.Namespace) -> Settings:
    """Return the settings of the server; ValueError, OSError."""
    from trouter_pipeline.flight.server import Settings  # noqa: PLC0415
    from trouter_pipeline.spool import spools_in  # noqa: PLC0415

    host, port = place_of(arguments.listen, "--listen")
    folders = dict(arguments.dir)
    if len(folders) < len(arguments.dir):
        raise ValueError("--dir: two folders have one name: write NAME=FOLDER")
    if missing := [folder for folder in folders.values() if not spools_in(folder)]:
        raise FileNotFoundError(f"{missing[0]}: there is no spool")
    if arguments.readers < 1:
        raise ValueError("--readers is greater than 0")
    if arguments.tls_key and not arguments.tls_certificate:
        raise ValueError("--tls-key is for --tls-certificate")
    if arguments.client_ca and not arguments.tls_certificate:
        raise ValueError("--client-ca is for --tls-certificate")
    if host not in _LOOPBACK and not (arguments.token_file and arguments.tls_certificate):
        raise ValueError(f"--listen {arguments.listen}: others can reach it: give --token-file and --tls-certificate")
    certificate = None
    if arguments.tls_certificate:
        key = arguments.tls_key or arguments.tls_certificate
        certificate = (arguments.tls_certificate.read_bytes(), key.read_bytes())
    return Settings(
        host=host,
        port=port,
        folders=folders,
        tokens=_tokens(arguments.token_file),
        certificate=certificate,
        client_authorities=_authorities(arguments.client_ca),
        readers=arguments.readers,
    )


def _authorities(path: Path | None) -> bytes | None:
    """Return the certificates in a file, None without one; ValueError if there is none in it, OSError."""
    if path is None:
        return None
    octets = path.read_bytes()
    if b"-----BEGIN CERTIFICATE-----" not in octets:
        raise ValueError(f"--client-ca {path} has no certificate (PEM)")
    return octets


def _tokens(path: Path | None) -> list[bytes]:
    """Return the tokens in a file; ValueError, which never contains one, OSError."""
    if path is None:
        return []
    with path.open("rb") as file:
        octets = file.read(_MAX_SECRET_BYTES + 1)
    tokens = octets.split()
    if len(octets) > _MAX_SECRET_BYTES or not tokens:
        raise ValueError(f"--token-file {path} has no token, or more than {_MAX_SECRET_BYTES} bytes")
    return tokens
