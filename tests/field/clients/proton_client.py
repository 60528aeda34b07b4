"""python-qpid-proton as programs write it; `THING JSON` as ../programs.py describes them."""

from __future__ import annotations

import json
import sys
from typing import Any

from proton import Message, SSLDomain
from proton.handlers import MessagingHandler
from proton.reactor import Container, Copy, DurableSubscription
from proton.utils import BlockingConnection

thing, OPTIONS = sys.argv[1], json.loads(sys.argv[2])
COUNT, ADDRESS = OPTIONS.get("count", 1), OPTIONS["address"]


def report(event: str, **details: object) -> None:
    """Print one event."""
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


def body(number: int) -> str:
    """Return the body of message ``number``."""
    return f"{number:08}".ljust(OPTIONS.get("size", 8), "x")


def how(end: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the URL and the options of a connection."""
    if not end["tls"]:
        return f"amqp://{end['host']}:{end['port']}", {"allowed_mechs": "ANONYMOUS"}
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(OPTIONS["ca"])
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER)  # it compares names, and no addresses
    return f"amqps://{end['host']}:{end['port']}", {"ssl_domain": domain, "allowed_mechs": "ANONYMOUS"}


class Received:
    """Messages that were sent as body(0), body(1) and so on."""

    def __init__(self) -> None:
        self.count = 0
        self.in_order = True
        self.numbers: set[int] = set()

    def add(self, content: str) -> None:
        """Note one message."""
        number = int(content[:8])
        self.in_order = self.in_order and number == self.count
        self.count += 1
        if content == body(number):
            self.numbers.add(number)

    @property
    def details(self) -> dict[str, object]:
        """What is reported."""
        return {"received": self.count, "whole": len(self.numbers) == self.count, "in_order": self.in_order}


class Work(MessagingHandler):
    """A program of one thing; every error of the router ends it."""

    def on_transport_error(self, event: Any) -> None:
        report("failed", why=str(event.transport.condition))
        sys.exit(1)

    def connect(self, event: Any, end: str, **more: Any) -> Any:
        """Begin a connection."""
        url, options = how(OPTIONS[end])
        return event.container.connect(url, **{"reconnect": False, **options, **more})


class Exchange(Work):
    """Sends from one router to another."""

    def __init__(self) -> None:
        # Of one credit the library renews none: it looks before it has counted the message.
        super().__init__(prefetch=max(2, OPTIONS["credit"]))
        self.received, self.sent, self.accepted = Received(), 0, 0

    def on_start(self, event: Any) -> None:
        self.to = self.connect(event, "to")
        event.container.create_receiver(self.to, ADDRESS)

    def on_link_opened(self, event: Any) -> None:
        if event.receiver:
            self.sending = self.connect(event, "from")
            event.container.create_sender(self.sending, ADDRESS)

    def on_sendable(self, event: Any) -> None:
        while event.sender.credit and self.sent < COUNT:
            event.sender.send(Message(body(self.sent)))
            self.sent += 1

    def on_message(self, event: Any) -> None:
        self.received.add(event.message.body)
        self._check()

    def on_accepted(self, event: Any) -> None:
        self.accepted += 1
        self._check()

    def _check(self) -> None:
        if self.received.count == COUNT and self.accepted == COUNT:
            report("done", **self.received.details, accepted=COUNT)
            self.to.close()
            self.sending.close()


class Request(Work):
    """Both sides of requests and replies."""

    def __init__(self) -> None:
        super().__init__()
        self.answered, self.begun = 0, False

    def on_start(self, event: Any) -> None:
        self.to, self.asking = self.connect(event, "to"), self.connect(event, "from")
        self.replies = event.container.create_sender(self.to, None)
        self.service = event.container.create_receiver(self.to, ADDRESS)
        self.receiver = event.container.create_receiver(self.asking, None, dynamic=True)

    def on_link_opened(self, event: Any) -> None:
        if event.receiver == self.receiver:
            self.sender = event.container.create_sender(self.asking, ADDRESS)

    def on_sendable(self, event: Any) -> None:
        if event.sender != self.replies and not self.begun:
            self.begun = True
            self._ask()

    def _ask(self) -> None:
        reply_to = self.receiver.remote_source.address
        self.sender.send(Message(f"ping {self.answered}", reply_to=reply_to, correlation_id=self.answered))

    def on_message(self, event: Any) -> None:
        message = event.message
        if event.receiver == self.service:
            reply = Message(message.body.upper(), address=message.reply_to, correlation_id=message.correlation_id)
            self.replies.send(reply)
            return
        assert (message.correlation_id, message.body) == (self.answered, f"PING {self.answered}")
        self.answered += 1
        if self.answered < COUNT:
            self._ask()
            return
        report("done", answered=COUNT)
        self.to.close()
        self.asking.close()


class Unsubscribe(Work):
    """Opens a durable subscription and gives it up; everything that leaves goes in one write."""

    def on_start(self, event: Any) -> None:
        self.connection = self.connect(event, "from")
        event.container.create_receiver(self.connection, ADDRESS, name=ADDRESS, options=DurableSubscription())

    def on_link_opened(self, event: Any) -> None:
        report("done")
        event.receiver.close()
        self.connection.close()


class Reconnect(Work):
    """Sends to itself before and after its router was killed."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = self.waits = self.over = False

    def on_start(self, event: Any) -> None:
        url, options = how(OPTIONS["from"])
        self.connection = event.container.connect(url, **options)
        event.container.create_receiver(self.connection, ADDRESS)
        event.container.create_sender(self.connection, ADDRESS)

    def on_transport_error(self, event: Any) -> None:
        pass

    def on_disconnected(self, event: Any) -> None:
        self.lost, self.waits = True, False

    def on_sendable(self, event: Any) -> None:
        if not self.waits:
            self.waits = True
            event.sender.send(Message("after" if self.lost else "before"))

    def on_message(self, event: Any) -> None:
        if event.message.body == "before" and not self.lost:
            report("ready")
        if event.message.body == "after" and not self.over:
            self.over = True
            report("done")
            self.connection.close()


def blocking() -> BlockingConnection:
    """Return a connection of the library's own loop."""
    url, options = how(OPTIONS["from"])
    return BlockingConnection(url, timeout=OPTIONS["deadline_s"], **options)


def send_all(connection: BlockingConnection) -> None:
    """Send the messages; each must be accepted."""
    sender = connection.create_sender(ADDRESS)
    for number in range(COUNT):
        sender.send(Message(body(number)))
    sender.close()


def receive_all(connection: BlockingConnection, accepting: bool = True, **how_to: Any) -> tuple[Any, Received]:
    """Return the receiver and the messages."""
    receiver, received = connection.create_receiver(ADDRESS, credit=COUNT, **how_to), Received()
    for _ in range(COUNT):
        received.add(str(receiver.receive().body))
        if accepting:
            receiver.accept()
    return receiver, received


def browse() -> None:
    """Look at messages, then receive them."""
    connection = blocking()
    send_all(connection)
    browser, browsed = receive_all(connection, options=Copy())
    browser.close()
    receiver, received = receive_all(connection)
    receiver.close()
    report("done", browsed=browsed.details, **received.details)
    connection.close()


def hold() -> None:
    """Receive without an outcome."""
    connection = blocking()
    send_all(connection)
    receive_all(connection, accepting=False)
    report("held")
    sys.stdin.read()


def receive() -> None:
    """Receive, and leave at once."""
    connection = blocking()
    _, received = receive_all(connection)
    report("done", **received.details)
    connection.close()


HANDLERS = {"exchange": Exchange, "request": Request, "unsubscribe": Unsubscribe, "reconnect": Reconnect}
if thing in HANDLERS:
    Container(HANDLERS[thing]()).run()
else:
    {"browse": browse, "hold": hold, "receive": receive}[thing]()
