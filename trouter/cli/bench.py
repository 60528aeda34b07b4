"""`trouter bench`: put load on a router, or on anything that speaks AMQP 1.0."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace

from trouter import _twin
from trouter.load.plan import Control, Load, LoadError
from trouter.load.report import Report

_EPILOG = """examples:
  trouter bench pair --count 1000000            one sender, one receiver, 100 octets, 1000 in flight
  trouter bench pair --window 1 --seconds 5     latency, one message at a time
  trouter bench send --anonymous --addresses 1000 --count 500000
  trouter bench sink --port 5999                a server that accepts everything, for measuring senders
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="send and receive messages as fast as possible",
        description="A load generator: one process sends, one receives, and each says what it saw.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    roles = parser.add_subparsers(title="roles", metavar="ROLE", required=True)
    for role, text in _ROLES.items():
        one = roles.add_parser(role, help=text, description=text[0].upper() + text[1:] + ".")
        add_options(one, role)
        one.set_defaults(run=run, role=role)


_ROLES = {
    "send": "send messages and wait for every outcome",
    "receive": "receive messages and accept them",
    "pair": "run a sender and a receiver, each in its own process",
    "sink": "listen as a server that gives credit and accepts every message",
}


def add_options(parser: argparse.ArgumentParser, role: str) -> None:
    """The options that make sense for ``role``."""
    sends = role in {"send", "pair"}
    receives = role in {"receive", "pair", "sink"}
    parser.add_argument("--host", default="127.0.0.1", help="name or address (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0 if role == "sink" else 5672, help="(default: %(default)s)")
    end = parser.add_argument_group("until when")
    end.add_argument("--count", type=int, default=0, metavar="N", help="stop after N messages")
    end.add_argument("--seconds", type=float, default=0.0, metavar="S", help="stop after S seconds")
    if role != "sink":
        what = parser.add_argument_group("where to")
        what.add_argument("--address", default="bench", help="the address (default: %(default)s)")
        what.add_argument(
            "--addresses", type=int, default=1, metavar="N", help="use N addresses, ADDRESS.0 to ADDRESS.N-1, in turn"
        )
        what.add_argument("--connections", type=int, default=1, metavar="N", help="connections per process")
        what.add_argument("--user", default="", help="authenticate as USER with PLAIN; otherwise ANONYMOUS")
        what.add_argument("--password", default="")
    if sends:
        parser.add_argument(
            "--anonymous", action="store_true", help="one link without an address; each message names its own in `to`"
        )
        parser.add_argument("--size", type=int, default=100, metavar="BYTES", help="body of a message (default: %(default)s)")
        parser.add_argument(
            "--window", type=int, default=1000, metavar="N", help="unsettled messages in flight per connection (default: %(default)s)"
        )
        parser.add_argument("--presettled", action="store_true", help="send settled messages: no outcomes come back")
        parser.add_argument("--latency", action="store_true", help="take the time of every message until its outcome")
    if receives:
        parser.add_argument("--credit", type=int, default=1000, metavar="N", help="credit per link (default: %(default)s)")
        parser.add_argument("--stalled", action="store_true", help=argparse.SUPPRESS if role == "pair" else "settle nothing, renew no credit")
    parser.add_argument("--frame", type=int, default=16384, metavar="BYTES", help="our max-frame-size (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the report as one line of JSON")
    if role != "pair":
        parser.add_argument(
            "--led",
            action="store_true",
            help="be led by a harness: say when ready, begin on a line from standard input, report in JSON, end on the next line",
        )


def run(arguments: argparse.Namespace) -> int:
    """Apply the load and print what came of it; 1 when it failed."""
    try:
        load = load_of(arguments)
        if arguments.role == "pair":
            reports = run_pair(load)
        else:
            reports = [run_one(arguments.role, load, arguments.led)]
    except LoadError as error:
        print(f"trouter bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if not getattr(arguments, "led", False):
        print(as_json(reports) if arguments.json else as_table(reports))
    return 0


def load_of(arguments: argparse.Namespace) -> Load:
    """The options as a load; LoadError when they contradict each other."""
    given = vars(arguments)
    if arguments.role in {"send", "pair"} and not (arguments.count or arguments.seconds):
        raise LoadError("say how much: --count or --seconds")
    for name in ("addresses", "connections", "size", "window", "credit"):
        if given.get(name, 1) < 1:
            raise LoadError(f"--{name} is at least 1")
    load = Load(host=arguments.host, port=arguments.port, count=arguments.count, seconds=arguments.seconds, frame_bytes=arguments.frame)
    if "addresses" in given:
        load = replace(
            load,
            addresses=address_names(arguments.address, arguments.addresses),
            connections=arguments.connections,
            user=arguments.user,
            password=arguments.password,
        )
    if "size" in given:
        load = replace(
            load,
            size=arguments.size,
            window=arguments.window,
            anonymous=arguments.anonymous,
            presettled=arguments.presettled,
            latency=arguments.latency,
        )
    if "credit" in given:
        load = replace(load, credit=arguments.credit, stalled=arguments.stalled)
    if arguments.role == "sink":
        load = replace(load, session_frames=0)
    return load


def address_names(base: str, count: int) -> tuple[str, ...]:
    """``base``, or ``base.0`` to ``base.N-1``."""
    return (base,) if count == 1 else tuple(f"{base}.{number}" for number in range(count))


def run_one(role: str, load: Load, led: bool) -> Report:
    """One fleet in this process; LoadError."""
    from trouter.load.roles import FLEETS  # noqa: PLC0415  # the engine, which other commands do without

    return FLEETS[role](load, Control(led)).run()


def run_pair(load: Load) -> list[Report]:
    """A receiver, then a sender, in processes of their own; LoadError."""
    from trouter.load.led import Led  # noqa: PLC0415

    with Led("receive", load) as receiver:
        receiver.ready()
        with Led("send", load) as sender:
            sender.ready()
            receiver.go()
            sender.go()
            sent = sender.report()
            receiver.go()
            return [sent, receiver.report()]


def as_json(reports: list[Report]) -> str:
    """One object for one report, an object by role for several."""
    if len(reports) == 1:
        return reports[0].to_json()
    return json.dumps({report.role: json.loads(report.to_json()) for report in reports})


def as_table(reports: list[Report]) -> str:
    """For people."""
    lines = [f"trouter bench ({_twin.running()})"]
    for report in reports:
        outcomes = ", ".join(f"{count} {kind}" for kind, count in report.outcomes.items()) or "no outcomes"
        lines.append(
            f"{report.role:8} {report.messages:>10} messages in {report.seconds:.3f} s = {report.messages_per_second:>10,.0f}/s"
            f"   own CPU {report.cpu_seconds / max(report.messages, 1) * 1e6:.2f} us each   {outcomes}"
        )
        if report.latency_us:
            lines.append("         latency us: " + "  ".join(f"{name} {value:.1f}" for name, value in report.latency_us.items()))
    return "\n".join(lines)
