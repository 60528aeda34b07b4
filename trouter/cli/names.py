"""Programs that run one command of trouter: those of Qpid Dispatch, with its command lines, and `trouter-passwd`."""

from __future__ import annotations

import sys
from typing import Final

from trouter.cli import Parser, obey


def qdstat_parser() -> Parser:
    """Return the command line of qdstat."""
    from trouter.cli import stat  # noqa: PLC0415  # a process is one of the three programs

    parser = Parser(prog="qdstat", older=True, description="Show what a router holds and does.")
    stat.add_options(parser, older=True)
    return parser


def qdstat() -> int:
    """Run `trouter stat` with the options of qdstat; return the exit status."""
    return obey(qdstat_parser(), sys.argv[1:])


def qdmanage_parser() -> Parser:
    """Return the command line of qdmanage."""
    from trouter.cli import manage  # noqa: PLC0415

    parser = Parser(
        prog="qdmanage",
        older=True,
        description="Ask a router's management node.",
        epilog=manage.EPILOG.replace("trouter manage", "qdmanage"),
        intermixed=True,
    )
    manage.add_options(parser, older=True)
    return parser


def qdmanage() -> int:
    """Run `trouter manage` with the options of qdmanage; return the exit status."""
    return obey(qdmanage_parser(), sys.argv[1:])


def qdrouterd_parser() -> Parser:
    """Return the command line of qdrouterd."""
    from trouter.cli import qdrouterd as daemon  # noqa: PLC0415

    parser = Parser(prog="qdrouterd", older=True, description="An AMQP 1.0 message router.", usage_status=1)
    daemon.add_options(parser)
    return parser


def qdrouterd() -> int:
    """Run the router with the options of qdrouterd; return the exit status."""
    return obey(qdrouterd_parser(), sys.argv[1:])


def trouter_passwd() -> int:
    """Run `trouter passwd`; return the exit status."""
    from trouter.cli import passwd  # noqa: PLC0415

    parser = Parser(
        prog="trouter-passwd",
        description="Keep the file of users that `router.usersFile` names.",
        epilog=passwd.EPILOG.replace("trouter passwd", "trouter-passwd"),
    )
    passwd.add_options(parser)
    return obey(parser, sys.argv[1:])


#: Qpid Dispatch's programs, with the functions that return their command lines.
PROGRAMS: Final = {"qdstat": qdstat_parser, "qdmanage": qdmanage_parser, "qdrouterd": qdrouterd_parser}
