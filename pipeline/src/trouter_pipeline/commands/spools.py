"""The options of commands that consume spools: folders, or the addresses of a server."""

from __future__ import annotations

import argparse

from trouter_pipeline.commands.cursors import add_cursor
from trouter_pipeline.commands.roots import local_folder
from trouter_pipeline.flight.access import address_of, is_served
from trouter_pipeline.spool.cursors import DEFAULT


def add_spools(
    parser: argparse.ArgumentParser,
    choice: argparse._ActionsContainer | None = None,
    *,
    required: bool = False,
    also: str = "",
) -> None:
    """Add the options for the spools, the cursor of the consumer, and the way to a server.

    ``choice`` is the group in which the spools are one of several sources, and ``also`` ends their help.
    """
    (choice or parser).add_argument(
        "--spool",
        action="append",
        required=required,
        type=_spool,
        metavar="DIR",
        help="a spool, or a folder of its shards, or the address of one that `trouter pipeline serve` serves, "
        f"grpc+tls://HOST:PORT/NAME; may be given again{also}",
    )
    add_cursor(parser)
    parser.add_argument(
        "--spool-token-file", default="", metavar="FILE", help="holds the token for a served spool, on this machine"
    )
    parser.add_argument(
        "--spool-trust-file",
        default="",
        metavar="FILE",
        help="the certificates that sign that of its server; by default those of the system",
    )
    parser.add_argument(
        "--spool-certificate",
        default="",
        metavar="FILE",
        help="the client's certificate (PEM) for a server that asks for one; every machine of Spark reads its own",
    )
    parser.add_argument("--spool-key", default="", metavar="FILE", help="its key; by default in the certificate's file")


def source_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the options of the source for servers of spools, those that are given."""
    given = {
        "tokenFile": arguments.spool_token_file,
        "tlsTrustFile": arguments.spool_trust_file,
        "tlsCertificateFile": arguments.spool_certificate,
        "tlsKeyFile": arguments.spool_key,
    }
    return {name: value for name, value in given.items() if value}


def names_consumer(arguments: argparse.Namespace) -> bool:
    """Return whether the command line says how to consume spools, by a cursor or at a server."""
    return arguments.cursor != DEFAULT or bool(source_of(arguments))


def _spool(text: str) -> str:
    if not is_served(text):
        return str(local_folder(text))
    try:
        address_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
