"""`trouter bench`: put load on a router, or on anything that speaks AMQP 1.0."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from trouter import _twin
from trouter.load.plan import Load, LoadError
from trouter.load.report import LoadReport
from trouter.tools.failures import UsageError, print_problem
from trouter.tools.options import DEFAULT_BUS, DEFAULT_TIMEOUT_S, ConnectionOptions, add_server_options

_EPILOG: Final = """examples:
  trouter bench pair --count 1000000           one sender, one receiver, 100 bytes, 1000 in flight
  trouter bench pair --window 1 --latency --seconds 5      how long a message takes
  trouter bench pair --context prod --count 100000         with TLS and a login, as the other tools
  trouter bench pair --connections 100 --addresses 100 --count 1000000      a hundred pairs
  trouter bench sink --port 5999               a server that accepts everything, to find out what a sender can do
  trouter bench hold --connections 5000        connections that do nothing

Without --host and --port the router is that of -b, of $TROUTER_BUS or of the context in use, as for the other tools.
Messages are sent from `send`, from the first transfer to the last outcome; `own CPU` is that of the generator.
"""


@dataclass(frozen=True, slots=True)
class Role:
    """The purpose of a role, and its groups of options."""

    text: str
    sends: bool = False
    receives: bool = False
    dials: bool = True
    #: Needs --count or --seconds.
    ends: bool = False


ROLES: Final = {
    "pair": Role("run a sender and a receiver, each in a process of its own", sends=True, receives=True, ends=True),
    "send": Role("send messages and wait for every outcome", sends=True, ends=True),
    "receive": Role("receive messages and accept them, until interrupted or up to --count", receives=True),
    "sink": Role("run a server that gives credit and accepts every message", receives=True, dials=False),
    "hold": Role("open connections and keep them"),
    "handshakes": Role("open and close connections, one message standing for one connection", ends=True),
}


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Shows a default only if it is one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return super()._get_help_string(action) if action.default else action.help


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="send and receive messages as fast as possible",
        description="A load generator: each role says how many messages moved, how fast, and with which outcomes.",
        epilog=_EPILOG,
    )
    roles = parser.add_subparsers(title="roles", metavar="ROLE", required=True)
    for name, role in ROLES.items():
        one = roles.add_parser(
            name,
            help=role.text,
            description=role.text.capitalize() + ".",
            formatter_class=_Help,
        )
        _add_options(one, role)
        one.set_defaults(run=run, role=name)


def _add_options(parser: argparse.ArgumentParser, role: Role) -> None:
    server = Load()
    instead, port = ", in place of -b", str(server.port)
    if role.dials:
        add_server_options(parser, f"its links; default {DEFAULT_TIMEOUT_S:g}")
    else:
        instead, port = "", "a free one, which it prints"
    parser.add_argument("--host", default=None, help=f"name or address{instead}; default {server.host}")
    parser.add_argument("--port", type=int, default=None, help=f"port{instead}; default {port}")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="stop after N messages")
    parser.add_argument("--seconds", type=float, default=0.0, metavar="S", help="stop after S seconds")
    parser.add_argument("--frame", type=int, default=16384, metavar="BYTES", help="our max-frame-size")
    parser.add_argument("--json", action="store_true", help="print the report as one line of JSON")
    if role.dials:
        _add_dialling(parser.add_argument_group("where to"))
    if role.sends:
        _add_sending(parser.add_argument_group("sending"))
    if role.receives:
        group = parser.add_argument_group("receiving")
        group.add_argument("--credit", type=int, default=1000, metavar="N", help="credit on each link")
        group.add_argument("--stalled", action="store_true", help="settle nothing, renew no credit")


def _add_dialling(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--address", default="bench", help="the address")
    group.add_argument("--addresses", type=int, default=1, metavar="N", help="use ADDRESS.0 to ADDRESS.N-1 in turn")
    group.add_argument("--connections", type=int, default=1, metavar="N", help="connections, which share the addresses")
    group.add_argument("--bare", action="store_true", help="hold: connections without session and link")
    group.add_argument("--user", default="", help="log in with PLAIN; --sasl-username takes the best mechanism")
    group.add_argument("--password", default="", help="the password of --user; safer in --sasl-password-file")


def _add_sending(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--size", type=int, default=100, metavar="BYTES", help="body of a message")
    group.add_argument("--window", type=int, default=1000, metavar="N", help="unsettled at a time on each connection")
    group.add_argument("--rate", type=int, default=0, metavar="N", help="messages a second, 0 for as many as possible")
    group.add_argument("--presettled", action="store_true", help="send settled: no outcomes come back")
    group.add_argument("--anonymous", action="store_true", help="one link, and each message has its address in `to`")
    group.add_argument("--latency", action="store_true", help="measure the time from each message to its outcome")


def run(arguments: argparse.Namespace) -> int:
    """Apply the load and print the result; return the exit status, 1 if the load failed."""
    try:
        load = load_of(arguments)
        reports = run_pair(load) if arguments.role == "pair" else [run_one(arguments.role, load)]
    except UsageError:
        raise
    except (LoadError, OSError, ValueError) as error:
        print_problem(arguments, error)
        return 1
    print(as_json(reports) if arguments.json else as_table(reports))
    return 0


def load_of(arguments: argparse.Namespace) -> Load:
    """Return the load that the options describe; UsageError for invalid ones."""
    given = vars(arguments)
    role = ROLES[arguments.role]
    if role.ends and not (arguments.count > 0 or arguments.seconds > 0):
        raise UsageError("give --count or --seconds")
    for name in ("addresses", "connections", "size", "window", "credit"):
        if given.get(name, 1) < 1:
            raise UsageError(f"--{name} is at least 1")
    same = {field.name for field in fields(Load)} - {"host", "port"}
    load = Load(frame_bytes=arguments.frame, **{name: value for name, value in given.items() if name in same})
    if role.dials:
        return _dialled(load, arguments)
    return replace(load, session_frames=0, host=arguments.host or load.host, port=arguments.port or 0)


def _dialled(load: Load, arguments: argparse.Namespace) -> Load:
    """Return the load with the server and the login that the options name; UsageError, ValueError, OSError."""
    if arguments.host is not None or arguments.port is not None:
        if arguments.bus is not None or arguments.context is not None:
            raise UsageError("give --host and --port, or else -b or --context")
        host = arguments.host or load.host
        port = load.port if arguments.port is None else arguments.port
        arguments.bus = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if arguments.user:
        if arguments.sasl_username or arguments.sasl_password_file:
            raise UsageError("give --user and --password, or else the options of SASL")
        arguments.sasl_username = arguments.user
        arguments.sasl_password = arguments.password or arguments.sasl_password
        arguments.sasl_mechanisms = arguments.sasl_mechanisms or "PLAIN"
    login = ConnectionOptions.of(arguments).with_password()
    host = load.host if login.host == DEFAULT_BUS else login.host
    return replace(
        load, host=host, port=login.port, timeout_s=login.timeout_s, login=login if login.tls or login.sasl else None
    )


def run_one(role: str, load: Load) -> LoadReport:
    """Run one fleet in this process and return its report; LoadError."""
    from trouter.load.roles import FLEETS, SinkFleet  # noqa: PLC0415  # the engine, which other commands do without

    fleet = FLEETS[role](load)
    if isinstance(fleet, SinkFleet):
        print(f"trouter bench: listening on {load.host}:{fleet.port}", file=sys.stderr)
    return fleet.run()


def run_pair(load: Load) -> list[LoadReport]:
    """Run a receiver and a sender as processes, and return both reports; LoadError."""
    from trouter.load.led import Led  # noqa: PLC0415

    with Led("receive", replace(load, count=0, seconds=0.0)) as receiver, Led("send", load) as sender:
        receiver.ready()
        receiver.send_go()
        sender.ready()
        sender.send_go()
        sent = sender.report()
        receiver.send_go()
        return [sent, receiver.report()]


def as_json(reports: Sequence[LoadReport]) -> str:
    """Return one object for one report, an object by role for several."""
    if len(reports) == 1:
        return reports[0].to_json()
    return json.dumps({report.role: json.loads(report.to_json()) for report in reports})


def as_table(reports: Sequence[LoadReport]) -> str:
    """Return the reports as a table."""
    lines = [f"trouter bench ({_twin.running()})"]
    for report in reports:
        if report.role == "hold":
            lines.append(f"hold      {report.connections:>12,} connections")
            continue
        outcomes = ", ".join(f"{count:,} {kind}" for kind, count in report.outcomes.items()) or "no outcomes"
        own_us = report.cpu_seconds / max(report.messages, 1) * 1e6
        lines.append(
            f"{report.role:10}{report.messages:>12,} messages  {report.seconds:9.3f} s"
            f"  {report.messages_per_second:>11,.0f}/s  own CPU {own_us:.2f} us each  {outcomes}"
        )
        if report.latency_us:
            times = "  ".join(f"{name} {value:,.1f}" for name, value in report.latency_us.items())
            lines.append(f"{'':10}latency in us: {times}")
    return "\n".join(lines)
