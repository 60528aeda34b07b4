"""A container of link routes, as python-qpid-proton's examples write one: queues, and what Azure's SDKs ask of a bus.

`HOST PORT` stand on its command line. It prints a JSON object a line: `ready`, and for each link that a peer leaves its
`address`, whether the container `sent` over it, whether the peer `closed` it, and the condition of the `error`.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from proton import Delivery, Endpoint, Message, Terminus
from proton.handlers import MessagingHandler
from proton.reactor import Container as Reactor

MAX_MESSAGE_BYTES = 100_000_000


def report(**event: object) -> None:
    """Print one event."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Queue:
    """Messages that wait for a consumer, and the links that want them."""

    def __init__(self) -> None:
        #: In the order in which they came, each with its number.
        self.messages: list[tuple[int, Message]] = []
        self._count = 0
        self.consumers: list[Any] = []
        #: Browsing link -> the messages that it has not seen.
        self.browsers: dict[Any, deque[Message]] = {}

    def put(self, message: Message) -> None:
        """Store a message."""
        self._count += 1
        self.messages.append((self._count, message))
        for unseen in self.browsers.values():
            unseen.append(message)

    def put_back(self, returned: Iterable[tuple[int, Message]]) -> None:
        """Store messages again, in their places."""
        self.messages = sorted((*self.messages, *returned), key=lambda each: each[0])


class Container(MessagingHandler):
    """Queues by address; a message leaves its queue when its consumer accepts it."""

    def __init__(self, where: str) -> None:
        super().__init__(auto_accept=True, auto_settle=False)
        self._where = where
        self._queues: dict[str, Queue] = {}
        #: Link -> its deliveries without an outcome, with the messages and their numbers.
        self._unsettled: dict[Any, dict[Any, tuple[int, Message]]] = {}
        #: The address that replies go to -> the link for them.
        self._repliers: dict[str, Any] = {}

    def on_start(self, event: Any) -> None:
        event.container.listen(self._where)
        report(event="ready")

    def on_link_opening(self, event: Any) -> None:
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.max_message_size = MAX_MESSAGE_BYTES
        if link.is_receiver:
            return
        queue = self._queue(link.source.address)
        self._unsettled[link] = {}
        if link.source.address.startswith("$") or link.source.address.endswith("/$management"):
            # Some give the target this name, some the link itself; routers add to the names of links.
            self._repliers[link.target.address or link.name.partition("@")[0]] = link
        elif link.source.distribution_mode == Terminus.DIST_MODE_COPY:
            queue.browsers[link] = deque(message for _, message in queue.messages)
        else:
            queue.consumers.append(link)

    def on_sendable(self, event: Any) -> None:
        self._serve(event.link.source.address)

    def on_message(self, event: Any) -> None:
        message, address = event.message, event.link.target.address
        if message.reply_to in self._repliers:
            self._repliers[message.reply_to].send(self._answer(message, address))
            return
        self._queue(address).put(message)
        self._serve(address)

    def on_settled(self, event: Any) -> None:
        self._end(event.link, event.delivery)

    def on_delivery(self, event: Any) -> None:
        delivery = event.delivery
        if event.link.is_sender and delivery.updated and delivery.remote_state and not delivery.settled:
            self._end(event.link, delivery)

    def on_link_remote_close(self, event: Any) -> None:
        self._leave(event.link, closed=True)
        event.link.close()

    def on_link_error(self, event: Any) -> None:
        event.link.close()  # the library's own answer closes the connection of all clients

    def on_link_remote_detach(self, event: Any) -> None:
        self._leave(event.link, closed=False)
        event.link.detach()

    def on_session_closing(self, event: Any) -> None:
        for link in [link for link in self._unsettled if link.session == event.session]:
            self._leave(link, closed=False)

    def on_disconnected(self, event: Any) -> None:
        for link in [link for link in self._unsettled if link.connection == event.connection]:
            self._leave(link, closed=False)

    def _queue(self, address: str) -> Queue:
        return self._queues.setdefault(address, Queue())

    def _serve(self, address: str) -> None:
        """Send the messages of a queue to the links with credit."""
        queue = self._queue(address)
        for link, unseen in queue.browsers.items():
            while unseen and link.credit:
                link.send(unseen.popleft())
        for link in queue.consumers:
            while queue.messages and link.credit:
                number, message = queue.messages.pop(0)
                # Azure's SDKs read the tag as a lock token, of 16 bytes.
                self._unsettled[link][link.send(message, tag=uuid4().hex[:16])] = (number, message)

    def _end(self, link: Any, delivery: Any) -> None:
        """Settle a delivery; put its message back unless the consumer accepted it."""
        sent = self._unsettled.get(link, {}).pop(delivery, None)
        if link.state & Endpoint.LOCAL_ACTIVE:
            delivery.settle()
        if sent is not None and delivery.remote_state != Delivery.ACCEPTED:
            self._queue(link.source.address).put_back([sent])
            self._serve(link.source.address)

    def _leave(self, link: Any, *, closed: bool) -> None:
        """Report the end of a link, and put back what it had not settled."""
        terminus = link.source if link.is_sender else link.target
        condition = link.remote_condition
        sent = bool(link.is_sender)
        report(
            event="left",
            sent=sent,
            address=terminus.address,
            closed=closed,
            error=condition.name if condition else None,
        )
        if link.is_receiver:
            return
        queue = self._queue(terminus.address)
        if link in queue.consumers:
            queue.consumers.remove(link)
        queue.browsers.pop(link, None)
        queue.put_back(self._unsettled.pop(link, {}).values())
        self._serve(terminus.address)

    def _answer(self, request: Message, address: str) -> Message:
        """Return the answer of a bus to a request: tokens are taken, and messages shown."""
        properties = {"status-code": 200, "status-description": "OK", "statusCode": 200, "statusDescription": "OK"}
        body: Any = None
        asked: Any = request.properties
        if asked and asked.get("operation") == "com.microsoft:peek-message":
            waiting = self._queue(address.removesuffix("/$management")).messages
            body = {"messages": [{"message": message.encode()} for _, message in waiting]}
        return Message(correlation_id=request.id, properties=properties, body=body)


Reactor(Container(":".join(sys.argv[1:3]))).run()
