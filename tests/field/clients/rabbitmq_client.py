"""rabbitmq-amqp-python-client as programs write it; `THING JSON` as ../programs.py describes them."""

from __future__ import annotations

import json
import sys
from typing import Any

from rabbitmq_amqp_python_client import AMQPMessagingHandler, Environment, Event, Message

thing, OPTIONS = sys.argv[1], json.loads(sys.argv[2])
#: The port of the listener that says it is RabbitMQ.
AS_RABBITMQ = 5674
COUNT, ADDRESS = OPTIONS["count"], f"/queues/{OPTIONS['address']}"


def body(number: int) -> bytes:
    """Return the body of message ``number``."""
    return f"{number:08}".ljust(OPTIONS["size"], "x").encode()


def connect(end: dict[str, Any]) -> Any:
    """Return an open connection; the router says that it is RabbitMQ."""
    connection = Environment(uri=f"amqp://anonymous:anonymous@{end['host']}:{AS_RABBITMQ}/").connection()
    connection.dial()
    return connection


class Enough(Exception):
    """All messages came."""


class Handler(AMQPMessagingHandler):  # type: ignore[misc]  # the environment of the tests does not have it
    """Accepts the messages and notes their bodies."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []

    def on_amqp_message(self, event: Event) -> None:
        self.bodies.append(bytes(event.message.body))
        self.delivery_context.accept(event)
        if len(self.bodies) == COUNT:
            raise Enough


def exchange() -> None:
    """Publish and consume."""
    publishing, consuming = connect(OPTIONS["from"]), connect(OPTIONS["to"])
    publisher = publishing.publisher(ADDRESS)
    accepted = 0
    for number in range(COUNT):
        # Its consumer expects annotations, which RabbitMQ adds.
        message = Message(body=body(number), annotations={"x-opt-number": number})
        accepted += publisher.publish(message).remote_state.name == "ACCEPTED"
    publisher.close()
    handler = Handler()
    try:
        consuming.consumer(ADDRESS, message_handler=handler, credit=OPTIONS["credit"]).run()
    except Enough:
        pass
    expected = [body(number) for number in range(COUNT)]
    whole = sorted(handler.bodies) == expected
    found = {"received": len(handler.bodies), "whole": whole, "in_order": handler.bodies == expected}
    sys.stdout.write(json.dumps({"event": "done", **found, "accepted": accepted}) + "\n")
    consuming.close()
    publishing.close()


{"exchange": exchange}[thing]()
