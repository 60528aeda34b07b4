"""One peer in an interoperability test, on python-qpid-proton; ../agents.py describes its roles."""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

from proton import Condition, Delivery, Disposition, Link, Message, Terminus
from proton.handlers import MessagingHandler
from proton.reactor import Container, LinkOption

ROLE = sys.argv[1]
OPTIONS = json.loads(sys.argv[2])
STATES = {
    "accepted": Disposition.ACCEPTED,
    "rejected": Disposition.REJECTED,
    "released": Disposition.RELEASED,
    "modified": Disposition.MODIFIED,
}
NAMES: dict[Any, str] = {code: name for name, code in STATES.items()}


def report(event: str, **details: object) -> None:
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


def wait_until_told() -> None:
    sys.stdin.readline()


def body(number: int) -> bytes:
    size: int = OPTIONS["size"]
    return (number.to_bytes(8, "big") + (bytes(range(256)) * (size // 256 + 1))[8:])[:size]


def describe(octets: bytes, settled: bool) -> list[object]:
    return [int.from_bytes(octets[:8], "big"), len(octets), hashlib.sha1(octets).hexdigest()[:12], settled]


def answer(delivery: Delivery, name: str) -> None:
    if name == "rejected":
        delivery.local.condition = Condition("test:unwanted", "not this one")
    elif name == "modified":
        delivery.local.failed = True
        delivery.local.undeliverable = True
    delivery.update(STATES[name])


def outcome(delivery: Delivery) -> list[object]:
    name = NAMES.get(delivery.remote_state, "none")
    remote = delivery.remote
    if name == "rejected" and remote.condition:
        return [name, remote.condition.name, remote.condition.description]
    if name == "modified":
        return [name, remote.failed, remote.undeliverable]
    return [name, None, None]


class Settle(LinkOption):
    def __init__(self, sender: int, receiver: int) -> None:
        self.sender = sender
        self.receiver = receiver

    def apply(self, link: Any) -> None:
        link.snd_settle_mode = self.sender
        link.rcv_settle_mode = self.receiver


class Role(MessagingHandler):
    def __init__(self, **how: Any) -> None:
        super().__init__(prefetch=0, **how)
        self.finished = False

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.connection = event.container.connect(
            f"127.0.0.1:{OPTIONS['port']}", allowed_mechs="ANONYMOUS", reconnect=False
        )
        self.open()

    def open(self) -> None:
        raise NotImplementedError

    def finish(self, **details: object) -> None:
        if not self.finished:
            self.finished = True
            report("done", **details)
            self.connection.close()

    def on_transport_error(self, event: Any) -> None:
        report("failed", condition=str(event.transport.condition))
        sys.exit(1)


class Send(Role):
    def open(self) -> None:
        self.outcomes: list[list[object] | None] = []
        self.by_tag: dict[str, int] = {}
        self.open_count = 0
        mode = {"settled": Link.SND_SETTLED, "unsettled": Link.SND_UNSETTLED, "mixed": Link.SND_MIXED}
        options = Settle(mode[OPTIONS["settle"]], Link.RCV_FIRST)
        self.sender = self.container.create_sender(self.connection, OPTIONS["address"], options=options)

    def on_link_opened(self, _: Any) -> None:
        report("ready")

    def on_sendable(self, _: Any) -> None:
        while self.sender.credit and len(self.outcomes) < OPTIONS["count"]:
            number = len(self.outcomes)
            delivery = self.sender.send(Message(body=body(number), inferred=True))
            settled = OPTIONS["settle"] == "settled" or (OPTIONS["settle"] == "mixed" and number % 2 == 1)
            if settled:
                delivery.settle()
            else:
                self.open_count += 1
                self.by_tag[delivery.tag] = number
            self.outcomes.append(["settled", None, None] if settled else None)
        self.check()

    def on_accepted(self, event: Any) -> None:
        if not event.delivery.settled:  # the receiver waits until this sender has settled
            self.note(event.delivery)
            event.delivery.settle()

    def on_settled(self, event: Any) -> None:
        self.note(event.delivery)

    def note(self, delivery: Delivery) -> None:
        self.outcomes[self.by_tag[delivery.tag]] = outcome(delivery)
        self.open_count -= 1
        self.check()

    def check(self) -> None:
        if len(self.outcomes) == OPTIONS["count"] and self.open_count == 0:
            self.finish(outcomes=self.outcomes)


class Receive(Role):
    def __init__(self) -> None:
        super().__init__(auto_accept=False)

    def open(self) -> None:
        self.messages: list[list[object]] = []
        self.unsettled = 0
        settle = OPTIONS["settle"]
        options = Settle(
            Link.SND_SETTLED if settle == "settled" else Link.SND_MIXED,
            Link.RCV_SECOND if settle == "second" else Link.RCV_FIRST,
        )
        self.receiver = self.container.create_receiver(self.connection, OPTIONS["address"], options=options)

    def on_link_opened(self, _: Any) -> None:
        self.receiver.flow(OPTIONS["credit"])
        report("ready")

    def on_message(self, event: Any) -> None:
        delivery = event.delivery
        number = len(self.messages)
        self.messages.append(describe(bytes(event.message.body), delivery.settled))
        if len(self.messages) == OPTIONS["hold"]:
            report("held")
            wait_until_told()
        if not delivery.settled:
            answer(delivery, OPTIONS["answers"][number % len(OPTIONS["answers"])])
        if OPTIONS["settle"] == "second" and not delivery.settled:
            self.unsettled += 1
        else:
            delivery.settle()
        if len(self.messages) < OPTIONS["count"]:
            self.receiver.flow(1)
        self.check()

    def on_settled(self, event: Any) -> None:
        event.delivery.settle()
        self.unsettled -= 1
        self.check()

    def on_aborted(self, _: Any) -> None:
        report("aborted")

    def check(self) -> None:
        if len(self.messages) == OPTIONS["count"] and self.unsettled == 0:
            self.finish(messages=self.messages)


class Drain(Role):
    def open(self) -> None:
        self.received = 0
        self.receiver = self.container.create_receiver(self.connection, OPTIONS["address"])

    def on_link_opened(self, _: Any) -> None:
        report("ready")
        wait_until_told()
        self.receiver.drain(OPTIONS["credit"])

    def on_link_flow(self, _: Any) -> None:
        if self.receiver.drain_mode and not self.receiver.draining():
            self.receiver.drain_mode = False
            report("drained", received=self.received)
            wait_until_told()
            self.receiver.flow(OPTIONS["credit"])

    def on_message(self, _: Any) -> None:
        self.received += 1
        if self.received == OPTIONS["count"]:
            self.finish(received=self.received)


class Request(Role):
    def open(self) -> None:
        self.replies: list[list[object]] = []
        self.asked = False
        self.receiver = self.container.create_receiver(self.connection, None, dynamic=True)

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_receiver:
            self.address = self.receiver.remote_source.address
            report("ready", address=self.address)
            self.receiver.flow(OPTIONS["count"])
            self.sender = self.container.create_sender(self.connection, OPTIONS["address"])

    def on_sendable(self, _: Any) -> None:
        if not self.asked:
            self.next()

    def next(self) -> None:
        self.asked = True
        number = len(self.replies)
        self.sender.send(Message(reply_to=self.address, correlation_id=f"id-{number}", body=f"ping {number}"))

    def on_message(self, event: Any) -> None:
        self.replies.append([event.message.correlation_id, event.message.body])
        if len(self.replies) == OPTIONS["count"]:
            self.finish(replies=self.replies)
        else:
            self.next()


class Respond(Role):
    def open(self) -> None:
        self.answered = 0
        self.receiver = self.container.create_receiver(self.connection, OPTIONS["address"])
        self.sender = self.container.create_sender(self.connection, None)

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_receiver:
            self.receiver.flow(OPTIONS["count"])
        else:
            report("ready")

    def on_message(self, event: Any) -> None:
        message = event.message
        self.sender.send(
            Message(address=message.reply_to, correlation_id=message.correlation_id, body=message.body.upper())
        )

    def on_settled(self, event: Any) -> None:
        if event.link == self.sender:
            self.answered += 1
            if self.answered == OPTIONS["count"]:
                self.finish(answered=self.answered)


class Leave(Role):
    def open(self) -> None:
        self.opened = 0
        self.receivers = [
            self.container.create_receiver(
                self.connection, OPTIONS["address"], name=f"{OPTIONS['name']}-{number}", options=Lasting()
            )
            for number in range(OPTIONS["count"])
        ]

    def on_link_opened(self, event: Any) -> None:
        self.opened += 1
        if self.opened == OPTIONS["count"]:
            for receiver in self.receivers:
                receiver.close()
            self.finish()


class Lasting(LinkOption):
    """A durable subscription."""

    def apply(self, link: Any) -> None:
        link.source.durability = Terminus.DELIVERIES
        link.source.expiry_policy = Terminus.EXPIRE_NEVER


ROLES = {"send": Send, "receive": Receive, "drain": Drain, "request": Request, "respond": Respond, "leave": Leave}
Container(ROLES[ROLE]()).run()
