"""`trouter send`: send messages to an address, and count their outcomes."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import trio

from trouter.tools.bodies import Bodies, Outgoing, add_body_options
from trouter.tools.dialling import dialled
from trouter.tools.failures import UsageError, run_tool
from trouter.tools.interrupts import until_interrupted
from trouter.tools.options import ConnectionOptions, add_server_options, positive, rate
from trouter.tools.progress import progress
from trouter.tools.sending import Sending, paced
from trouter.tools.tally import Tally

DEFAULT_WINDOW: Final = 100
#: How long outcomes may take after Ctrl-C, in seconds.
LAST_OUTCOMES_S: Final = 2.0

_EPILOG: Final = """examples:
  trouter send orders 'a hundred apples'             one message
  trouter send orders apples pears --count 1000 --rate 50
  trouter send logs --lines < access.log             a message for each line
  trouter send films --file film.mkv                 a file of any size, never whole in memory
  echo '{"properties": {"subject": "new"}, "application-properties": {"n": 1}, "body": [1, 2]}' |
    trouter send orders --json

The exit status is 0 if every message was accepted (or sent with --presettled), else 1. Ctrl-C stops it: what is sent by
then is counted.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "send",
        help="send messages to an address",
        description="Send messages, and count what became of them.",
        epilog=_EPILOG,
        intermixed=True,
    )
    parser.add_argument("address", metavar="ADDRESS", help="where to")
    add_body_options(parser)
    group = parser.add_argument_group("how")
    group.add_argument("--count", type=positive, metavar="N", help="send N messages: the bodies in turn, or N lines")
    group.add_argument("--rate", type=rate, metavar="N", help="send N messages a second at most")
    group.add_argument("--presettled", action="store_true", help="send settled: nothing comes back")
    group.add_argument(
        "--window",
        type=positive,
        default=DEFAULT_WINDOW,
        metavar="N",
        help="messages awaiting an outcome; default %(default)s",
    )
    add_quiet(group)
    add_server_options(parser, "credit and each outcome; default 5")
    parser.set_defaults(run=run)


def add_quiet(group: argparse._ArgumentGroup) -> None:
    """Add the option that leaves out progress, and the counts at the end if all went well."""
    group.add_argument("-q", "--quiet", action="store_true", help="no progress, and no counts if all went well")


def run(arguments: argparse.Namespace) -> int:
    """Send the messages of the command line; return the exit status."""
    tally = Tally("sent")
    bodies = Bodies(arguments, arguments.count)
    status = run_tool(lambda: _send(arguments, bodies, tally), arguments)
    return status or (0 if tally.good else 1)


def server_of(arguments: argparse.Namespace) -> ConnectionOptions:
    """Return the options of the connection; UsageError for an address in the URL, ValueError, OSError."""
    options = ConnectionOptions.of(arguments)
    if options.path:
        raise UsageError("the URL ends with the port: ADDRESS is a word of its own")
    return options


async def _send(arguments: argparse.Namespace, bodies: Bodies, tally: Tally) -> None:
    options = server_of(arguments)
    total, unit = bodies.total
    began_s = trio.current_time()
    try:
        async with dialled(options) as connection, connection.open_sender(arguments.address) as sender:
            began_s = trio.current_time()
            with progress(f"to {arguments.address}", total, unit, quiet=arguments.quiet) as advance:
                sending = Sending(
                    sender, tally, arguments.window, arguments.presettled, options.timeout_s, advance, unit == "B"
                )
                await _send_all(sending, paced(bodies.messages(), arguments.rate))
    finally:
        if not (arguments.quiet and tally.good):
            print(tally.text(trio.current_time() - began_s), file=sys.stderr)


async def _send_all(sending: Sending, messages: AsyncGenerator[Outgoing, None]) -> None:
    """Send all messages, or those before Ctrl-C, and wait for the outcomes."""
    try:
        with until_interrupted(signal.SIGTERM) as interrupted:
            async with aclosing(messages):
                async for message in messages:
                    await sending.put(message)
            await sending.finish()
        if interrupted.cancelled_caught:
            with trio.move_on_after(LAST_OUTCOMES_S):
                await sending.finish()
            raise KeyboardInterrupt
    finally:
        sending.give_up()
