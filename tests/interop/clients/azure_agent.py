"""One peer in an interoperability test, on azure-servicebus's own AMQP client; ../agents.py describes its roles."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from azure.servicebus._pyamqp import ReceiveClient, SendClient
from azure.servicebus._pyamqp.constants import ReceiverSettleMode, SenderSettleMode
from azure.servicebus._pyamqp.endpoints import Source, Target
from azure.servicebus._pyamqp.error import AMQPError
from azure.servicebus._pyamqp.message import Message, Properties
from azure.servicebus._pyamqp.outcomes import Accepted, Modified, Rejected, Released
from azure.servicebus._pyamqp.sasl import SASLAnonymousCredential

ROLE = sys.argv[1]
OPTIONS = json.loads(sys.argv[2])


class Anonymous:
    auth_type = "anonymous"

    def __init__(self) -> None:
        self.sasl = SASLAnonymousCredential()


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


def text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


ANSWERS: dict[str, Callable[[], Any]] = {
    "accepted": Accepted,
    "rejected": lambda: Rejected(error=AMQPError(condition=b"test:unwanted", description="not this one")),
    "released": Released,
    "modified": lambda: Modified(True, True, None),
}


def outcome(state: Any) -> list[object]:
    if not state:
        return ["none", None, None]
    ((name, fields),) = state.items()
    if name == "rejected" and fields and fields[0]:
        return [name, text(fields[0][0]), text(fields[0][1])]
    if name == "modified":
        return [name, bool(fields[0]), bool(fields[1])]
    return [name, None, None]


def opened(client: Any) -> Any:
    """Connect ``client`` and attach its link; return it."""
    client.open()
    while not client.client_ready():
        pass
    return client


def connected(kind: Any, address: Any, **how: Any) -> Any:
    return kind(
        f"127.0.0.1:{OPTIONS['port']}",
        address,
        auth=Anonymous(),
        use_tls=False,
        client_name="azure",
        socket_timeout=0.05,
        **how,
    )


def send() -> None:
    mode = {
        "settled": SenderSettleMode.Settled,
        "unsettled": SenderSettleMode.Unsettled,
        "mixed": SenderSettleMode.Mixed,
    }
    client = opened(
        connected(SendClient, OPTIONS["address"], send_settle_mode=mode[OPTIONS["settle"]], link_credit=250)
    )
    report("ready")
    link = client._link
    count = OPTIONS["count"]
    outcomes: list[list[object] | None] = []
    open_count = 0

    def settled(number: int, reason: Any, state: Any) -> None:
        nonlocal open_count
        open_count -= 1
        outcomes[number] = outcome(state)

    while len(outcomes) < count or open_count:
        # The client ignores its credit, so this loop bounds the unsettled messages: the router grants a credit of 250.
        while len(outcomes) < count and open_count < 100:
            number = len(outcomes)
            now = OPTIONS["settle"] == "settled" or (OPTIONS["settle"] == "mixed" and number % 2 == 1)
            outcomes.append(["settled", None, None] if now else None)
            open_count += not now
            while client._link.current_link_credit <= 0:
                client._connection.listen(wait=client._socket_timeout)
            link.send_transfer(
                Message(data=[body(number)]),
                settled=now,
                on_send_complete=None if now else partial(settled, number),
                timeout=0,
            )
        if open_count:
            client._connection.listen(wait=client._socket_timeout)
    report("done", outcomes=outcomes)
    client.close()


def receiver(address: Any, **how: Any) -> Any:
    """Return a receiving client that grants no credit by itself."""
    client = connected(ReceiveClient, address, link_credit=1, **how)
    return opened(client)


def messages_of(client: Any) -> Any:
    """Yield pairs of first frame and message as they arrive."""
    while True:
        client._connection.listen(wait=client._socket_timeout, batch=100)
        while not client._received_messages.empty():
            yield client._received_messages.get_nowait()


def grant(client: Any, count: int) -> None:
    client._link.flow(link_credit=client._link.current_link_credit + count)


def accept(client: Any, frame: Any) -> None:
    client._link.send_disposition(
        first_delivery_id=frame[1], delivery_tag=frame[2], settled=True, delivery_state=Accepted()
    )


def receive() -> None:
    settle = OPTIONS["settle"]
    client = receiver(
        OPTIONS["address"],
        receive_settle_mode=ReceiverSettleMode.Second if settle == "second" else ReceiverSettleMode.First,
        send_settle_mode=SenderSettleMode.Settled if settle == "settled" else SenderSettleMode.Mixed,
    )
    settled: list[tuple[int, int]] = []

    def note(frame: Any) -> None:
        if frame[3]:
            settled.append((frame[1], frame[1] if frame[2] is None else frame[2]))

    # The client can wait for this itself, but only if the sender repeats the outcome, as brokers do.
    client._link._incoming_disposition = note
    grant(client, OPTIONS["credit"])
    report("ready")
    messages: list[list[object]] = []
    for frame, message in messages_of(client):
        number = len(messages)
        already = bool(frame[4])
        messages.append(describe(b"".join(message.data), already))
        if len(messages) == OPTIONS["hold"]:
            report("held")
            wait_until_told()
        if not already:
            state = ANSWERS[OPTIONS["answers"][number % len(OPTIONS["answers"])]]()
            second = settle == "second"
            client._link.send_disposition(
                first_delivery_id=frame[1],
                last_delivery_id=frame[1],
                delivery_tag=frame[2],
                settled=not second,
                delivery_state=state,
            )
            while second and not any(first <= frame[1] <= last for first, last in settled):
                client._connection.listen(wait=client._socket_timeout)
        if len(messages) == OPTIONS["count"]:
            break
        grant(client, 1)
    report("done", messages=messages)
    client.close()


def drain() -> None:
    client = receiver(OPTIONS["address"], receive_settle_mode=ReceiverSettleMode.First)
    flows: list[Any] = []
    client._link._incoming_flow = flows.append  # the client itself ignores the answer
    report("ready")
    wait_until_told()
    client._link.flow(link_credit=OPTIONS["credit"], drain=True)
    received = 0

    while not any(frame[8] and frame[6] == 0 for frame in flows):
        client._connection.listen(wait=client._socket_timeout)
    while not client._received_messages.empty():
        accept(client, client._received_messages.get_nowait()[0])
        received += 1
    report("drained", received=received)
    wait_until_told()
    client._link.delivery_count = flows[-1][5]
    client._link.flow(link_credit=OPTIONS["credit"], drain=False)
    for frame, _ in messages_of(client):
        accept(client, frame)
        received += 1
        if received == OPTIONS["count"]:
            break
    report("done", received=received)
    client.close()


def request() -> None:
    addresses: list[str] = []
    dynamic: Any = partial(Source, dynamic=True)  # the client's types have no defaults
    replies_to = receiver(dynamic(), on_attach=lambda attach: addresses.append(text(attach.source.address)))
    report("ready", address=addresses[0])
    grant(replies_to, OPTIONS["count"])
    sender = opened(connected(SendClient, OPTIONS["address"]))
    replies: list[list[object]] = []

    def ask() -> None:
        number = len(replies)
        properties = Properties(reply_to=addresses[0], correlation_id=f"id-{number}")
        sender.send_message(Message(properties=properties, value=f"ping {number}"))

    ask()
    for frame, message in messages_of(replies_to):
        accept(replies_to, frame)
        replies.append([text(message.properties.correlation_id), text(message.value)])
        if len(replies) == OPTIONS["count"]:
            break
        ask()
    report("done", replies=replies)
    sender.close()
    replies_to.close()


def respond() -> None:
    requests = receiver(OPTIONS["address"], receive_settle_mode=ReceiverSettleMode.First)
    nowhere: Any = Target
    sender = opened(connected(SendClient, nowhere()))
    grant(requests, OPTIONS["count"])
    report("ready")
    answered = 0
    for frame, message in messages_of(requests):
        # The disposition goes first, because the requester may wait for it before the reply.
        accept(requests, frame)
        asked = message.properties
        properties = Properties(to=text(asked.reply_to), correlation_id=text(asked.correlation_id))
        sender.send_message(Message(properties=properties, value=text(message.value).upper()))
        answered += 1
        if answered == OPTIONS["count"]:
            break
    report("done", answered=answered)
    sender.close()
    requests.close()


{"send": send, "receive": receive, "drain": drain, "request": request, "respond": respond}[ROLE]()
