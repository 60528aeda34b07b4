"""A management client on python-qpid-proton, as an independent check of requests and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from proton import Message, int32
from proton.utils import BlockingConnection

DEADLINE_S = 120.0
PREFIX = "org.apache.qpid.dispatch."
NODE = {"type": "org.amqp.management", "name": "self"}


class Answer(NamedTuple):
    """The status, description and body of an answer."""

    status: int
    description: str
    body: Any
    message: Message


class Node:
    """A connection to one management node, with a receiver for the answers."""

    def __init__(
        self, port: int, address: str | None = "$management", *, anonymous: bool = False, **options: Any
    ) -> None:
        """Connect; ``options`` are those of proton's connection."""
        self.connection: Any = BlockingConnection(f"127.0.0.1:{port}", timeout=DEADLINE_S, **options)
        self.receiver: Any = self.connection.create_receiver(None, dynamic=True, credit=100)
        self.sender: Any = self.connection.create_sender(None if anonymous else address)
        self.address = address
        self.reply_to = str(self.receiver.link.remote_source.address)
        self._asked = 0

    def close(self) -> None:
        self.connection.close()

    def send(self, properties: Mapping[str, Any], body: Any = None, **fields: Any) -> str:
        """Send a request; return its correlation id."""
        self._asked += 1
        fields.setdefault("correlation_id", str(self._asked))
        fields.setdefault("reply_to", self.reply_to)
        message = Message(properties=dict(properties), body=body, inferred=True, address=self.address, **fields)
        self.sender.send(message, timeout=DEADLINE_S)
        return str(fields["correlation_id"])

    def receive(self) -> Answer:
        """Return the next answer."""
        message: Message = self.receiver.receive(timeout=DEADLINE_S)
        properties: Any = message.properties
        return Answer(int(properties["statusCode"]), str(properties["statusDescription"]), message.body, message)

    def ask(self, operation: str | None, body: Any = None, **properties: Any) -> Answer:
        """Send a request and return the answer; ``message`` has properties of the message itself."""
        fields = properties.pop("message", {})
        named = {} if operation is None else {"operation": operation}
        asked = self.send({**named, **properties}, body, **fields)
        answer = self.receive()
        assert answer.message.correlation_id == fields.get("correlation_id", asked)
        return answer

    def get(self, operation: str, body: Any = None, **properties: Any) -> Any:
        """Return the body of the answer, which must be a success."""
        answer = self.ask(operation, body, **properties)
        assert 200 <= answer.status < 300, (answer.status, answer.description)
        return answer.body

    def node(self, operation: str, body: Any = None, **properties: Any) -> Any:
        """Return the body of an answer of the management node itself, which must be a success."""
        return self.get(operation, body, **{**NODE, **properties})

    def query(self, kind: str | None = None, names: Sequence[str] = (), **properties: Any) -> list[dict[str, Any]]:
        """Return the rows of a type as maps."""
        if kind is not None:
            properties["entityType"] = kind
        body = self.node("QUERY", {"attributeNames": list(names)}, **properties)
        assert set(body) == {"attributeNames", "results"}
        return [dict(zip(body["attributeNames"], row, strict=True)) for row in body["results"]]

    def create(self, kind: str, attributes: Mapping[str, Any], **properties: Any) -> dict[str, Any]:
        """Create an entity; return its attributes."""
        answer = self.ask("CREATE", dict(attributes), type=kind, **properties)
        assert answer.status == 201, (answer.status, answer.description)
        created: dict[str, Any] = answer.body
        return created

    def round_trip(self) -> None:
        """Return when everything that the router sent on this connection before has arrived."""
        elsewhere = self.connection.create_sender("$management")
        elsewhere.send(Message(properties={"operation": "READ", **NODE}, reply_to=self.reply_to), timeout=DEADLINE_S)
        assert self.receive().status == 200

    def refused(self, operation: str | None, body: Any = None, **properties: Any) -> tuple[int, str]:
        """Send a request that must be refused; return the status and description."""
        answer = self.ask(operation, body, **properties)
        assert answer.status >= 400, answer
        return answer.status, answer.description


@contextmanager
def node_of(
    port: int, address: str | None = "$management", *, anonymous: bool = False, **options: Any
) -> Iterator[Node]:
    """Connect a client for the length of the block."""
    node = Node(port, address, anonymous=anonymous, **options)
    try:
        yield node
    finally:
        node.close()


def small(value: int) -> int32:
    """Return an AMQP int."""
    return int32(value)
