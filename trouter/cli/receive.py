"""`trouter receive`: receive messages from an address, and write them as text, as JSON or as files."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from itertools import count as counting
from pathlib import Path
from typing import Final

import trio

from trouter._text import escape_controls
from trouter.cli.send import add_quiet, server_of
from trouter.client import Delivery, Message, SenderSettleMode
from trouter.tools.dialling import dialled
from trouter.tools.failures import Timeout, run_tool
from trouter.tools.interrupts import until_interrupted
from trouter.tools.messages import as_map, body_bytes
from trouter.tools.options import add_server_options, positive
from trouter.tools.progress import Advance, progress
from trouter.tools.receiving import Receiving, save, whole
from trouter.tools.tally import Tally

DEFAULT_CREDIT: Final = 100

_EPILOG: Final = """examples:
  trouter receive orders                        each body as a line, until Ctrl-C
  trouter receive orders --count 10 --json      ten whole messages, one JSON object a line: `send --json` reads them
  trouter receive films --save films/           each body in a file of its own, of any size
  trouter receive orders --timeout 5            until no message has come for five seconds

A message is accepted once it is written. The exit status is 0; it is 1 if fewer messages came than --count asks for, or
if one could not be decoded, which is rejected.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "receive",
        help="receive messages from an address",
        description="Receive messages and write them out.",
        epilog=_EPILOG,
    )
    parser.add_argument("address", metavar="ADDRESS", help="where from")
    group = parser.add_argument_group("how")
    group.add_argument("--count", type=positive, metavar="N", help="stop after N messages; default Ctrl-C")
    group.add_argument(
        "--credit", type=positive, default=DEFAULT_CREDIT, metavar="N", help="messages under way; default %(default)s"
    )
    group.add_argument("--presettled", action="store_true", help="ask for messages that are settled already")
    group.add_argument("--json", action="store_true", help="write whole messages, one JSON object a line")
    group.add_argument(
        "--save", type=Path, metavar="DIR", help="write each body to a new file there, and its path here"
    )
    add_quiet(group)
    add_server_options(parser, "each message; default 5 for the connection, for ever for a message")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Receive messages as the command line says; return the exit status."""
    tally = Tally("received")
    status = run_tool(lambda: _receive(arguments, tally), arguments)
    return status or (0 if tally.good else 1)


async def _receive(arguments: argparse.Namespace, tally: Tally) -> None:
    options = server_of(arguments)
    mode = SenderSettleMode.SETTLED if arguments.presettled else SenderSettleMode.MIXED
    began_s = trio.current_time()
    try:
        async with (
            dialled(options) as connection,
            connection.open_receiver(arguments.address, credit=0, stream=True, sender_settle_mode=mode) as receiver,
        ):
            receiving = Receiving(receiver, tally, arguments.credit, arguments.count)
            with progress(f"from {arguments.address}", arguments.count, quiet=arguments.quiet) as advance:
                await _take_all(receiving, arguments, store_of(arguments, advance))
    finally:
        if not (arguments.quiet and tally.good):
            print(tally.text(trio.current_time() - began_s), file=sys.stderr)


async def _take_all(receiving: Receiving, arguments: argparse.Namespace, store: Callable[..., Awaitable[None]]) -> None:
    """Take messages until there are enough, none comes in time, or Ctrl-C is pressed."""
    patience = trio.CancelScope()
    with until_interrupted(signal.SIGTERM) as interrupted:
        while not receiving.complete and not patience.cancelled_caught:
            with trio.move_on_after(arguments.timeout or float("inf")) as patience:
                await receiving.take_message(store)
    if arguments.count is not None and not receiving.complete:
        if interrupted.cancelled_caught:
            raise KeyboardInterrupt
        raise Timeout(f"no message for {arguments.timeout:g} s")


def store_of(arguments: argparse.Namespace, advance: Advance) -> Callable[[Delivery], Awaitable[None]]:
    """Return the function that writes a message where the command line says."""
    numbers = counting(1)

    async def store(delivery: Delivery) -> None:
        if arguments.save is None:
            await write(as_line(await whole(delivery), json_lines=arguments.json))
        else:
            path = free_path(arguments.save, numbers)
            message = await save(delivery, path)
            line = json_line(message, file=str(path)) if arguments.json else f"{path}\n".encode()
            await write(line)
        advance(1)

    return store


def free_path(folder: Path, numbers: counting[int]) -> Path:
    """Make the folder, and return the path of a file that does not exist in it; OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    return next(path for number in numbers if not (path := folder / f"{number:06}").exists())


def as_line(message: Message, *, json_lines: bool) -> bytes:
    """Return a message as a line: the whole as JSON, or its body, on a terminal without control characters."""
    if json_lines:
        return json_line(message)
    body = body_bytes(message)
    return (escape_controls(body.decode(errors="backslashreplace")).encode() if sys.stdout.isatty() else body) + b"\n"


def json_line(message: Message, **more: str) -> bytes:
    """Return a message as one line of JSON."""
    return json.dumps(as_map(message) | more, allow_nan=False).encode() + b"\n"


async def write(octets: bytes) -> None:
    """Write to standard output without blocking the tasks of the connection; OSError."""

    def written() -> None:
        sys.stdout.buffer.write(octets)
        sys.stdout.buffer.flush()

    await trio.to_thread.run_sync(written)
