"""A client that sends one message for each flow, as some do that are written in events: it never waits for ever."""

from __future__ import annotations

from typing import Any

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

from tests.routers import DEADLINE_S, PLAIN_LISTENER, StartRouter

COUNT = 20


class OneForEachFlow(MessagingHandler):
    """Sends when it is told of credit and at no other time; receives what it has sent."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.url = f"127.0.0.1:{port}"
        self.sent = 0
        self.accepted = 0

    def on_start(self, event: Any) -> None:
        connection: Any = event.container.connect(self.url, allowed_mechs="ANONYMOUS", reconnect=False)
        event.container.create_receiver(connection, "flows")
        event.container.create_sender(connection, "flows")
        event.container.schedule(DEADLINE_S, self)

    def on_sendable(self, event: Any) -> None:
        if self.sent < COUNT:
            self.sent += 1
            event.sender.send(Message(body=self.sent))

    def on_accepted(self, event: Any) -> None:
        self.accepted += 1
        if self.accepted == COUNT:
            event.container.stop()

    def on_timer_task(self, event: Any) -> None:
        event.container.stop()


def test_a_sender_that_sends_one_message_for_each_flow_comes_to_its_end(start_router: StartRouter) -> None:
    sends = OneForEachFlow(start_router(PLAIN_LISTENER).port)
    Container(sends).run()
    assert sends.accepted == COUNT
