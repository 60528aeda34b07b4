"""`trouter pipeline publish`: send routers decisions about alerts and quotas. No Spark is needed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.answers import add_version
from trouter_pipeline.commands.roots import add_root, local_folder
from trouter_pipeline.commands.servers import add_servers, names_server, servers_of

if TYPE_CHECKING:
    from trouter_pipeline.connecting import Peer
    from trouter_pipeline.decisions import Made

#: Earlier names of options.
_EARLIER: Final = ("user", "password_file", "tls_trust_file", "tls_certificate_file", "tls_key_file")
#: How long to wait for each answer of a router.
_TIMEOUT_S: Final = 30.0
#: A router that is silent for longer is lost.
_HEARTBEAT_S: Final = 60.0


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "publish",
        help="make routers lock users, block hosts and slow tenants",
        description="Make decisions of the tables and send them to routers whose plugin feedback trusts the user. The "
        "command decides only what --on and --quota ask for. Run it as often as you like: it does not send a decision "
        "again that a router has accepted, and ends a decision that the tables no longer support. The exit status is 1 "
        "if a router was out of reach or has refused.",
    )
    add_root(parser)
    parser.add_argument(
        "--book",
        type=local_folder,
        metavar="DIR",
        help="the folder of this machine where decisions.json has what routers have accepted (default: ROOT); needed "
        "if ROOT is a URI",
    )
    parser.add_argument(
        "--on",
        action="append",
        type=_checked("parse_answer"),
        default=[],
        metavar="RULE[=ACTION[:MINUTES]]",
        help="act on alerts of this rule of the audit, or of all; ACTION: lock-user or block-host. May be given again",
    )
    parser.add_argument(
        "--quota",
        action="append",
        type=_checked("parse_quota"),
        default=[],
        metavar="VHOST=MESSAGES/PERIOD:RATE",
        help="slow a tenant to RATE messages a second once it has sent more than MESSAGES in this hour, day or month",
    )
    parser.add_argument("--address", help="the routers' address for decisions (default: trouter.decisions)")
    add_version(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the decisions and send nothing")
    add_servers(parser, "a router; may be given again", f"each answer; default {_TIMEOUT_S:g}", _EARLIER)
    parser.set_defaults(run=run)


def _checked(name: str) -> Callable[[str], Any]:
    """Return a parser of `trouter_pipeline.decisions`, which is imported only if it is needed."""

    def parse(text: str) -> Any:
        from trouter_pipeline import decisions  # noqa: PLC0415

        try:
            return getattr(decisions, name)(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def run(arguments: argparse.Namespace) -> int:
    """Make decisions, send them and print the results; return the exit status."""
    try:
        from trouter_pipeline.delta import BadTable  # noqa: PLC0415  # only when it runs
        from trouter_pipeline.files import TableBusy  # noqa: PLC0415  # only when it runs
    except ImportError as error:
        return _failed(arguments, f"{error}: pip install 'trouter[spark]'")
    if not arguments.on and not arguments.quota:
        return _failed(arguments, "give --on or --quota: they say what to decide")
    if not arguments.dry_run and not names_server(arguments, os.environ):
        return _failed(arguments, "give -b URL, as amqps://host:5671, or several with --url, or --dry-run")
    if not arguments.root.is_local and arguments.book is None and not arguments.dry_run:
        return _failed(
            arguments,
            f"{arguments.root} is in an object store: give --book DIR, the folder of this machine that has what "
            "routers have accepted, the same one each time",
        )
    try:
        now = datetime.now(UTC)
        peers = [] if arguments.dry_run else _peers(arguments)
        made = _made(arguments, now)
        return _shown(made) if arguments.dry_run else _publish(arguments, peers, made, now)
    except argparse.ArgumentTypeError:
        raise
    except (BadTable, TableBusy, ValueError, OSError) as error:
        return _failed(arguments, error)


def _made(arguments: argparse.Namespace, now: datetime) -> list[Made]:
    from trouter_pipeline import decisions  # noqa: PLC0415
    from trouter_pipeline.report.stored import NoTable, Period, read  # noqa: PLC0415

    made: list[Made] = []
    try:
        if arguments.on:
            answers = {rule: answer for each in arguments.on for rule, answer in each.items()}
            # An alert is in the table under the day on which it began, which may be long before it ended.
            recent = Period(first=now.date() - timedelta(days=31))
            alerts = read(arguments.root, "audit_alerts", recent, arguments.as_of)
            made += decisions.from_alerts(alerts.to_pylist(), answers, now)
        if arguments.quota:
            due = Period(first=decisions.first_date(arguments.quota, now))
            meter = read(arguments.root, "meter", due, arguments.as_of)
            made += decisions.from_quotas(decisions.messages_of(meter), arguments.quota, now)
    except NoTable as error:
        raise ValueError(f"{arguments.root}: {error}") from None
    return made


def _shown(made: list[Made]) -> int:
    from trouter_pipeline.decisions import encode  # noqa: PLC0415

    for each in made:
        print(encode(each.decision).decode())
    return 0


def _publish(arguments: argparse.Namespace, peers: list[Peer], made: list[Made], now: datetime) -> int:
    from trouter.client.errors import LinkDetached, SessionEnded  # noqa: PLC0415
    from trouter.client.servers import reason_of, unreachable  # noqa: PLC0415
    from trouter_pipeline import decisions  # noqa: PLC0415

    causes = [f"rule:{rule}" for each in arguments.on for rule in each]
    causes += [f"quota:{quota.vhost}" for quota in arguments.quota]
    address = arguments.address or decisions.ADDRESS
    status = sent = 0
    book = arguments.book or Path(arguments.root)
    for result in decisions.publish(book, peers, address, made, causes, now):
        if not isinstance(result, decisions.Result):
            url, error = result
            refused = isinstance(error, LinkDetached | SessionEnded)
            why = f"{url}: {reason_of(error)}" if refused else unreachable(url, error, arguments.timeout or _TIMEOUT_S)
            status = _failed(arguments, why)
            continue
        decision = result.made.decision
        shown = f"{result.router}: {decision.action} {decision.subject}"
        if result.why is None:
            sent += 1
            print(f"{shown}: {decision.reason}")
        else:
            status = _failed(arguments, f"{shown} was refused: {result.why}")
    if not sent and not status:
        print("There is no new decision to send.")
    return status


def _peers(arguments: argparse.Namespace) -> list[Peer]:
    """Return the routers of the command line; ValueError for options that cannot work."""
    from trouter_pipeline.connecting import peers_of  # noqa: PLC0415

    return list(peers_of(servers_of(arguments, os.environ), arguments.timeout or _TIMEOUT_S, _HEARTBEAT_S))


def _failed(arguments: argparse.Namespace, problem: Exception | str) -> int:
    print_problem(arguments, problem)
    return 1
