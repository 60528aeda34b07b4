"""`trouter reply`: answer the requests that come to an address."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from contextlib import AsyncExitStack
from typing import Final

import trio

from trouter.cli.receive import as_line, write
from trouter.cli.send import add_quiet, server_of
from trouter.client import (
    ACCEPTED,
    Connection,
    DecodeError,
    Delivery,
    Error,
    LinkDetached,
    Message,
    Properties,
    Rejected,
    Sender,
)
from trouter.tools.answering import Answering, Command, NoAnswer, Template, check_template, echo
from trouter.tools.dialling import dialled
from trouter.tools.failures import run_tool
from trouter.tools.interrupts import until_interrupted
from trouter.tools.options import add_server_options, positive, seconds
from trouter.tools.receiving import whole
from trouter.tools.tally import Tally

#: Requests that wait here while one is answered.
CREDIT: Final = 10
DEFAULT_LIMIT_S: Final = 60.0
#: What a router offers that sends a message without an address of the link to that in the message.
RELAY: Final = "ANONYMOUS-RELAY"

_EPILOG: Final = """examples:
  trouter reply echo                                   each request gets its own body back
  trouter reply clock --template '{subject}: no clock here'
  trouter reply upper --exec 'tr a-z A-Z'              the body on standard input, the answer on standard output
  trouter request upper 'what time is it?'             the other side

Places of a template: {body}, {subject}, {message-id}, {number}, {property.NAME}; {{ is a brace. A command runs without
a shell, once for each request; with another status than 0 the request is rejected. It finds the subject, the
message-id and the number of the request in TROUTER_SUBJECT, TROUTER_MESSAGE_ID and TROUTER_NUMBER. The body of each
request is printed. The exit status is 1 if a request had no answer.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "reply",
        help="answer the requests that come to an address",
        description="Receive requests, one after the other, and send the answer of each to its reply-to.",
        epilog=_EPILOG,
    )
    parser.add_argument("address", metavar="ADDRESS", help="the address of the service")
    group = parser.add_argument_group("answers; default the body of the request")
    form = group.add_mutually_exclusive_group()
    form.add_argument("--template", type=_template, metavar="TEXT", help="this text, its places filled in")
    form.add_argument("--exec", type=_words, metavar="COMMAND", help="what this command prints")
    group.add_argument(
        "--exec-timeout",
        type=seconds,
        default=DEFAULT_LIMIT_S,
        metavar="SECS",
        help="how long the command may take; default %(default)g",
    )
    group = parser.add_argument_group("how")
    group.add_argument("--count", type=positive, metavar="N", help="stop after N requests; default Ctrl-C")
    group.add_argument("--json", action="store_true", help="print whole requests, one JSON object a line")
    add_quiet(group)
    add_server_options(parser, "the outcome of each answer; default 5")
    parser.set_defaults(run=run)


def _template(text: str) -> str:
    try:
        return check_template(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"this is no command: {wrong}") from None
    if not words:
        raise argparse.ArgumentTypeError("a command is needed")
    return words


def run(arguments: argparse.Namespace) -> int:
    """Answer requests until there are enough, or Ctrl-C; return the exit status."""
    tally = Tally("answered")
    status = run_tool(lambda: _reply(arguments, tally), arguments)
    return status or (0 if tally.good else 1)


def answering_of(arguments: argparse.Namespace) -> Answering:
    """Return what makes the answers."""
    if arguments.exec is not None:
        return Command(arguments.exec, arguments.exec_timeout)
    return echo if arguments.template is None else Template(arguments.template)


async def _reply(arguments: argparse.Namespace, tally: Tally) -> None:
    options = server_of(arguments)
    answering = answering_of(arguments)
    began_s = trio.current_time()
    try:
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(dialled(options))
            opening = connection.open_receiver(arguments.address, credit=0, stream=True)
            receiver = await stack.enter_async_context(opening)
            relay = None
            if RELAY in map(str, connection.remote.offered_capabilities or ()):
                relay = await stack.enter_async_context(connection.open_sender())
            responder = Responder(connection, relay, options.timeout_s, answering, tally)
            with until_interrupted(signal.SIGTERM):
                number = granted = 0
                while arguments.count is None or number < arguments.count:
                    # No more than are wanted: what is not answered stays for other responders.
                    more = min(CREDIT, (arguments.count or sys.maxsize) - number) - (granted - number)
                    if more > 0:
                        receiver.add_credit(more)
                        granted += more
                    number += 1
                    request = await responder.serve(await receiver.receive(), number)
                    if request is not None and not arguments.quiet:
                        await write(as_line(request, json_lines=arguments.json))
    finally:
        if not (arguments.quiet and tally.good):
            print(tally.text(trio.current_time() - began_s), file=sys.stderr)


class Responder:
    """Answers requests, each to its reply-to: over one link where the server relays, else over a link for each."""

    def __init__(
        self, connection: Connection, relay: Sender | None, timeout_s: float, answering: Answering, tally: Tally
    ) -> None:
        self._connection = connection
        self._relay = relay
        self._timeout_s = timeout_s
        self._answering = answering
        self._tally = tally

    async def serve(self, delivery: Delivery, number: int) -> Message | None:
        """Answer a request, and settle it; return it, None if it cannot be decoded."""
        try:
            request = await whole(delivery)
        except DecodeError as bad:
            self._reject(delivery, "amqp:decode-error", str(bad))
            return None
        reply_to = request.properties.reply_to
        if not reply_to:
            self._reject(delivery, "amqp:invalid-field", "the request has no reply-to")
            return request
        try:
            answer = await self._answering(request, number)
        except NoAnswer as none:
            self._reject(delivery, "amqp:internal-error", str(none))
            return request
        await self._send(answer, request, str(reply_to))
        delivery.settle_nowait(ACCEPTED)
        return request

    def _reject(self, delivery: Delivery, condition: str, why: str) -> None:
        delivery.settle_nowait(Rejected(Error(condition, why[:200])))
        self._tally.add(f"rejected ({why})"[:200])

    async def _send(self, answer: Message, request: Message, reply_to: str) -> None:
        """Send an answer and count its outcome; who asked may have gone, which ends nothing."""
        asked = request.properties
        correlation_id = asked.message_id if asked.message_id is not None else asked.correlation_id
        message = Message(
            answer.body, Properties(to=reply_to, correlation_id=correlation_id, subject=asked.subject), kind=answer.kind
        )
        with trio.move_on_after(self._timeout_s) as scope:
            try:
                if self._relay is not None:
                    self._tally.add_outcome(await self._relay.send(message))
                    return
                async with self._connection.open_sender(reply_to) as sender:
                    self._tally.add_outcome(await sender.send(message))
            except LinkDetached as gone:
                self._tally.add(f"refused ({gone})"[:200])
        if scope.cancelled_caught:
            self._tally.add("without an outcome")
