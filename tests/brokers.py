"""A small broker on python-qpid-proton for the links that routers attach to brokers: queues and transactions.

It listens for routers, or dials one; it answers attaches with the termini of the attach. It runs in a thread of its
own.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from proton import Condition, Delivery, Described, Endpoint, Message, Terminus, symbol, ulong
from proton.handlers import MessagingHandler
from proton.reactor import ApplicationEvent, Container, EventInjector

from tests.routers import DEADLINE_S

DECLARE, DISCHARGE, DECLARED, TRANSACTIONAL = 0x31, 0x32, 0x33, 0x34


class Broker(MessagingHandler):
    """A broker that records what it receives; a test waits with ``wait``. It refuses links to ``refused`` addresses."""

    def __init__(self, name: str, dials: int = 0) -> None:
        super().__init__(prefetch=100, auto_accept=False)
        self.name = name
        self.port = 0
        self.queues: dict[str, deque[Message]] = defaultdict(deque)
        self.refused: dict[str, Condition] = {}
        #: The addresses for which it ends the session, as RabbitMQ does, or closes the connection, and its reasons.
        self.ends_session: dict[str, Condition] = {}
        self.closes: dict[str, Condition] = {}
        #: Whether it forwards messages to the receivers of their address.
        self.keeps = False
        #: The links as they were attached: name, whether the broker sends, address, capabilities.
        self.attached: list[tuple[str, bool, str | None, str | list[str]]] = []
        self.detached: list[tuple[str, bool, str | None]] = []
        #: The requests to the coordinator, and the transaction ids of messages.
        self.asked: list[int] = []
        self.enlisted: list[bytes] = []
        self.received: list[Message] = []
        self.dispositions: list[str] = []
        self.links: list[Any] = []
        self.sessions: list[Any] = []
        self._connections: list[Any] = []
        self._dials = dials
        self._changed = threading.Condition()
        #: The exception that ended the broker's thread; each wait of the test fails with it.
        self._fault: Exception | None = None
        self._injector = EventInjector()
        self._container = Container(self)
        self._container.container_id = name
        self._transactions = 0
        #: Transactions that were declared and not discharged; the broker refuses all other ids.
        self._open: set[bytes] = set()
        self._acceptor: Any = None
        #: Deliveries to receivers without an outcome, by the name of the link and the tag: the sender and the message.
        self._sent: dict[tuple[str, str], tuple[Any, Message]] = {}
        self._refusing: dict[Any, Condition] = {}

    # --- called in the test's thread

    def run(self) -> None:
        """Serve until ``stop``; then close the sockets of all connections, as the end of a process does."""
        try:
            self._container.run()
        except Exception as fault:  # noqa: BLE001 (whatever it is, the test fails with it)
            self._fault = fault
            self._close_acceptor()
            self._tell()
        for connection in self._connections:
            if connection.transport is not None and connection.transport._selectable is not None:
                connection.transport._selectable._delegate.close()

    def wait(self, condition: Callable[[Broker], Any]) -> None:
        """Wait until the condition holds."""
        with self._changed:
            held = self._changed.wait_for(lambda: self._fault is not None or condition(self), DEADLINE_S)
        self.assert_no_fault()
        assert held, f"never came to be: {vars(self)}"

    def do(self, what: Callable[[Broker], Any]) -> None:
        """Run a function in the broker's thread, and wait until it returns."""
        done = False

        def run() -> None:
            nonlocal done
            what(self)
            done = True
            self._tell()

        self._injector.trigger(ApplicationEvent("order", subject=run))
        self.wait(lambda _: done)

    def assert_no_fault(self) -> None:
        """Fail with the exception that ended the broker's thread, if one did."""
        if self._fault is not None:
            raise AssertionError(f"the broker's thread ended: {self._fault!r}") from self._fault

    def stop(self) -> None:
        self._injector.trigger(ApplicationEvent("order", subject=self._end))

    def _end(self) -> None:
        self._close_acceptor()
        self._container.stop()

    def _close_acceptor(self) -> None:
        if self._acceptor is not None:
            listening = self._acceptor._selectable._delegate
            self._acceptor.close()
            listening.close()

    # --- called in the broker's thread

    def on_order(self, event: Any) -> None:
        event.subject()

    def on_start(self, event: Any) -> None:
        event.container.selectable(self._injector)
        if self._dials:
            url = f"127.0.0.1:{self._dials}"
            self._connections.append(event.container.connect(url, allowed_mechs="ANONYMOUS", reconnect=False))
        else:
            acceptor: Any = event.container.listen("127.0.0.1:0")
            self._acceptor = acceptor
            self.port = acceptor._selectable._delegate.getsockname()[1]
            self._tell()

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def on_connection_opening(self, event: Any) -> None:
        connection: Any = event.connection
        connection.container = self.name
        self._connections.append(connection)

    def on_link_opening(self, event: Any) -> None:
        link: Any = event.link
        coordinates = link.remote_target.type == Terminus.COORDINATOR
        terminus = link.remote_source if link.is_sender else link.remote_target
        address = "$coordinator" if coordinates else terminus.address
        capabilities = _symbols(terminus.capabilities)
        why = self.refused.get(address)
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        if terminus.dynamic:
            (link.source if link.is_sender else link.target).address = f"{self.name}.temporary"
        self.attached.append((link.name, link.is_sender, address, capabilities))
        self.links.append(link)
        if event.session not in self.sessions:
            self.sessions.append(event.session)
        if why is not None:
            link.source.address = link.target.address = None
            self._refusing[link] = why
        for ended, reasons in ((event.session, self.ends_session), (event.connection, self.closes)):
            if address in reasons:
                ended.condition = reasons[address]
                ended.close()
        self._tell()

    def on_link_local_open(self, event: Any) -> None:
        link: Any = event.link
        why = self._refusing.pop(link, None)
        if why is not None:
            link.condition = why
            link.close()

    def _gone(self, event: Any, closed: bool) -> None:
        link: Any = event.link
        condition = link.remote_condition
        self.detached.append((link.name, closed, None if condition is None else condition.name))
        self._tell()

    def on_link_closing(self, event: Any) -> None:
        self._gone(event, True)

    def on_link_error(self, event: Any) -> None:
        self._gone(event, True)
        event.link.close()

    def on_link_remote_detach(self, event: Any) -> None:
        self._gone(event, False)
        event.link.detach()

    def on_connection_error(self, event: Any) -> None:
        pass

    def on_transport_error(self, event: Any) -> None:
        pass

    def on_sendable(self, event: Any) -> None:
        self._serve(event.sender)

    def _serve(self, sender: Any) -> None:
        queue = self.queues[sender.source.address]
        while queue and sender.credit > 0:
            message = queue.popleft()
            self._sent[sender.name, sender.send(message).tag] = sender, message

    def put(self, address: str, message: Message) -> None:
        """Queue a message for the receivers of the address, and send it if there is credit."""
        self.queues[address].append(message)
        for link in self.links:
            if link.is_sender and link.source.address == address and link.state & Endpoint.REMOTE_ACTIVE:
                self._serve(link)

    def on_message(self, event: Any) -> None:
        delivery: Any = event.delivery
        message = event.message
        if event.link.remote_target.type == Terminus.COORDINATOR:
            self._coordinate(delivery, message)
        else:
            if delivery.remote_state == TRANSACTIONAL and bytes(delivery.remote.data[0]) not in self._open:
                self._refuse_unknown(delivery)
            elif delivery.remote_state == TRANSACTIONAL:
                self.enlisted.append(bytes(delivery.remote.data[0]))
                delivery.local.data = [delivery.remote.data[0], Described(ulong(0x24), [])]
                delivery.update(TRANSACTIONAL)
                delivery.settle()
            else:
                self.accept(delivery)
                if self.keeps:
                    self.put(event.link.target.address, message)
            self.received.append(message)
        self._tell()

    def _coordinate(self, delivery: Any, message: Any) -> None:
        what = int(message.body.descriptor)
        self.asked.append(what)
        if what == DECLARE:
            self._transactions += 1
            name = f"txn-{self._transactions}".encode()
            self._open.add(name)
            delivery.local.data = [name]
            delivery.update(DECLARED)
        elif bytes(message.body.value[0]) in self._open:
            self._open.remove(bytes(message.body.value[0]))
            delivery.update(Delivery.ACCEPTED)
        else:
            self._refuse_unknown(delivery)
            return
        delivery.settle()

    def _refuse_unknown(self, delivery: Any) -> None:
        """Reject a delivery with an unknown transaction id (part 4, 4.5.8)."""
        delivery.local.condition = Condition("amqp:transaction:unknown-id")
        delivery.update(Delivery.REJECTED)
        delivery.settle()

    def on_accepted(self, event: Any) -> None:
        self.dispositions.append("accepted")
        self._sent.pop((event.link.name, event.delivery.tag), None)
        self._tell()

    def on_rejected(self, event: Any) -> None:
        self.dispositions.append("rejected")
        self._sent.pop((event.link.name, event.delivery.tag), None)
        self._tell()

    def on_modified(self, event: Any) -> None:
        self.dispositions.append("modified")
        self._sent.pop((event.link.name, event.delivery.tag), None)
        self._tell()

    def on_released(self, event: Any) -> None:
        """Queue the message again, and send it at once unless the router drains the link."""
        self.dispositions.append("released")
        key = event.link.name, event.delivery.tag
        if key not in self._sent:  # it was queued again, because its link was over
            return
        sender, message = self._sent.pop(key)
        self.queues[sender.source.address].appendleft(message)
        if not sender.drain_mode and sender.state & Endpoint.REMOTE_ACTIVE:
            self._serve(sender)
        self._tell()


def _symbols(data: Any) -> str | list[str]:
    """Return a bare symbol as a text and an array of symbols as a list, because some peers distinguish the two."""
    data.rewind()
    if not data.next():
        return []
    found = data.get_object()
    if isinstance(found, str):
        assert isinstance(found, symbol), f"a capability that is no symbol: {found!r}"
        return str(found)
    assert all(isinstance(each, symbol) for each in found), f"capabilities that are no symbols: {found!r}"
    return [str(each) for each in found]


@contextmanager
def broker(name: str = "B", dials: int = 0, *, keeps: bool = False) -> Iterator[Broker]:
    """Run a broker; with ``dials`` it dials the router at that port, else it listens.

    With ``keeps`` it forwards messages to the receivers of their address.
    """
    made = Broker(name, dials)
    made.keeps = keeps
    with served(made, dials):
        yield made


@contextmanager
def served(made: Broker, dials: int = 0) -> Iterator[None]:
    """Run this broker."""
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        made.wait(lambda b: b.port or dials)
        yield
    finally:
        made.stop()
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
        made.assert_no_fault()
