"""`trouter request`: send requests to a service, and print the answers."""

from __future__ import annotations

import argparse
import uuid
from contextlib import aclosing
from dataclasses import replace
from typing import Final

import trio

from trouter.cli.receive import as_line, write
from trouter.cli.send import server_of
from trouter.client import Message, Receiver
from trouter.tools.bodies import Bodies, Outgoing, add_body_options
from trouter.tools.dialling import dialled, in_time
from trouter.tools.failures import RequestRefused, run_tool
from trouter.tools.options import add_server_options
from trouter.tools.sending import Sending
from trouter.tools.tally import Tally

_EPILOG: Final = """examples:
  trouter request clock 'what time is it?'           the body of the answer
  trouter request prices --json < questions.jsonl    whole messages, one after the other, each with its answer
  trouter request resize --file photo.jpg --property width=200 > small.jpg

Each request has a message-id and a reply-to of its own; its answer is the message that comes there with that
correlation-id. The exit status is 1 if a request is not accepted, or not answered in time.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "request",
        help="send a request to a service and print its answer",
        description="Send requests one after the other, and print the answer of each.",
        epilog=_EPILOG,
        intermixed=True,
    )
    parser.add_argument("address", metavar="ADDRESS", help="the service's address")
    add_body_options(parser)
    add_server_options(parser, "each answer; default 5")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Send the requests of the command line; return the exit status."""
    bodies = Bodies(arguments)
    return run_tool(lambda: _request(arguments, bodies), arguments)


async def _request(arguments: argparse.Namespace, bodies: Bodies) -> None:
    options = server_of(arguments)
    tally = Tally("sent")
    async with (
        dialled(options) as connection,
        connection.open_receiver(dynamic=True) as answers,
        connection.open_sender(arguments.address) as sender,
        aclosing(bodies.messages()) as messages,
    ):
        sending = Sending(sender, tally, 1, settled=False, timeout_s=options.timeout_s)
        async for message in messages:
            request = addressed(message, answers.address)
            answer = RequestAnswer(request, answers)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer.wait)  # before sending: a service may answer before it accepts
                await sending.put(request)
                await sending.finish()
                if not tally.good:
                    raise RequestRefused(tally.text(0.0))
                with in_time(options, f"no answer from {arguments.address}"):
                    await answer.arrived.wait()
            await write(as_line(answer.message, json_lines=arguments.json))


def addressed(message: Outgoing, reply_to: str) -> Outgoing:
    """Return a request with an address for its answer, and a message-id if it has none."""
    head = message if isinstance(message, Message) else message.head
    message_id = head.properties.message_id or str(uuid.uuid4())
    head = replace(head, properties=replace(head.properties, reply_to=reply_to, message_id=message_id))
    return head if isinstance(message, Message) else replace(message, head=head)


class RequestAnswer:
    """The answer to one request: `message`, once it has arrived."""

    def __init__(self, request: Outgoing, answers: Receiver) -> None:
        sent = request.properties if isinstance(request, Message) else request.head.properties
        self._correlation_ids = (sent.message_id, sent.correlation_id or sent.message_id)
        self._answers = answers
        self.message = Message()
        self.arrived = trio.Event()

    async def wait(self) -> None:
        """Accept messages until the answer arrives; drop answers to other requests."""
        while not self.arrived.is_set():
            delivery = await self._answers.receive()
            await delivery.accept()
            if delivery.message.properties.correlation_id in self._correlation_ids:
                self.message = delivery.message
                self.arrived.set()
