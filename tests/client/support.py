"""A router in the test's own event loop on a real socket, and a server that a test controls."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio

from trouter.app.process import RouterProcess
from trouter.client import Connection, connect
from trouter.engine.connection import Connection as Engine
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SaslInitReceived,
    SaslResponseReceived,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.limits import EngineLimits
from trouter.engine.ports import Delivery, LinkSink
from trouter.engine.sasl import SaslServer
from trouter.wire.performatives import Error, Open, State, encode_state

#: Delivery ids begin three before the 32-bit wrap, so every test crosses it.
NEAR_THE_WRAP = EngineLimits(first_outgoing_id=0xFFFFFFFD)


class Router:
    """A running router and its URL."""

    def __init__(self, process: RouterProcess) -> None:
        self.process = process

    @property
    def url(self) -> str:
        return f"amqp://127.0.0.1:{self.process.listeners[0].sockets[0].getsockname()[1]}"

    def connect(self, **options: Any) -> AbstractAsyncContextManager[Connection]:
        return connect(self.url, **{"limits": NEAR_THE_WRAP, **options})

    def cut(self) -> None:
        """Shut down the socket of every connection, without a close."""
        listener: Any = self.process.listeners[0]
        for peer in list(listener.peers.values()):
            peer.stream.sock.shutdown(socket.SHUT_RDWR)


class Server(LinkSink):
    """The server of one connection. By default it accepts every login and answers every attach."""

    def __init__(self, limits: EngineLimits | None = None, *, mechanisms: tuple[str, ...] = ("ANONYMOUS",)) -> None:
        self.limits = limits or EngineLimits(first_outgoing_id=0xFFFFFFFE, idle_timeout_s=0.0)
        self.open = Open("server", max_frame_size=self.limits.max_frame_bytes, channel_max=self.limits.channel_max)
        self.sasl = SaslServer(mechanisms, required=True)
        self.sasl_answers: list[int | bytes] = [0]
        self.responses: list[bytes] = []
        self.credit = 10
        self.refusal: Error | None = None
        self.answers_attaches = True
        #: Fields of its attaches to senders.
        self.attach_fields: dict[str, Any] = {}
        self.answers_detaches = True
        self.answers_close = True
        #: Outcome of each delivery that arrives; None leaves it unsettled.
        self.outcome: State | None = None
        self.settles = True
        self.events: list[Event] = []
        self.links: list[Any] = []
        self.deliveries: list[Delivery] = []
        self.payloads: list[bytes] = []
        self.aborted: list[Delivery] = []
        self.port = 0
        self._changed = trio.lowlevel.ParkingLot()
        self._writing = trio.Lock()
        self._stream: trio.abc.Stream | None = None
        self.engine: Any = None

    @property
    def url(self) -> str:
        return f"amqp://127.0.0.1:{self.port}"

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Accept one connection, and serve it to its end."""
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with listener:
            self.port = listener.socket.getsockname()[1]
            task_status.started()
            self._stream = await self.welcome(await listener.accept())
        self.engine = Engine(self.limits, self.open, [], self.sasl, server=True)
        async with self._stream:
            while not self.engine.finished:
                try:
                    content = await self._stream.receive_some(65536)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    return
                if not content:
                    return
                self.engine.receive_data(content)
                while self.engine.events:
                    event = self.engine.events.pop(0)
                    self.events.append(event)
                    self._answer(event)
                await self.flush()
                self._changed.unpark_all()

    async def welcome(self, stream: trio.SocketStream) -> trio.abc.Stream:
        """Return the stream to a client that connected."""
        return stream

    async def flush(self) -> None:
        """Send the output of the engine."""
        async with self._writing:
            self.engine.flush()
            content = bytes(self.engine.out)
            self.engine.out.clear()
            if content and self._stream is not None:
                try:
                    await self._stream.send_all(content)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    return  # the reading side notices the error too

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds, and check it after each read."""
        while not condition():
            await self._changed.park()

    async def cut(self) -> None:
        """End the connection without a close."""
        assert self._stream is not None
        await trio.aclose_forcefully(self._stream)

    def _answer(self, event: Event) -> None:
        engine = self.engine
        if isinstance(event, SaslInitReceived | SaslResponseReceived):
            self.responses.append(event.response or b"")
            answer = self.sasl_answers.pop(0)
            if isinstance(answer, bytes):
                self.sasl.send_challenge(answer)
            else:
                self.sasl.send_outcome(answer)
            engine.receive_data(b"")
        elif isinstance(event, ConnectionOpened):
            engine.open()
        elif isinstance(event, SessionBegun):
            event.session.begin()
        elif isinstance(event, LinkAttached):
            self._attach(event)
        elif isinstance(event, LinkDetached):
            if self.answers_detaches:
                event.link.detach(event.closed)
        elif isinstance(event, SessionEnded):
            event.session.end()
            engine.drop_session(event.session)
        elif isinstance(event, ConnectionClosed) and self.answers_close:
            engine.close()

    def _attach(self, event: LinkAttached) -> None:
        link: Any = event.link
        link.sink = self
        self.links.append(link)
        if self.refusal is not None:
            link.refuse(self.refusal)
        elif self.answers_attaches:
            if not link.incoming:
                link.attach(event.attach.source, event.attach.target, initial_delivery_count=link.delivery_count)
            else:
                link.attach(event.attach.source, event.attach.target, **self.attach_fields)
                if self.credit:
                    link.grant(self.credit)

    # --- events of links

    def on_transfer(self, link: Any, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        if not self.deliveries or self.deliveries[-1] is not delivery:
            self.deliveries.append(delivery)
            self.payloads.append(b"")
        self.payloads[-1] += data[start:end]
        if delivery.complete and self.outcome is not None:
            self.settle(delivery, self.outcome)

    def on_aborted(self, link: Any, delivery: Delivery) -> None:
        self.aborted.append(delivery)

    def settle(self, delivery: Delivery, state: State) -> None:
        delivery.link.session.settle_incoming(delivery, state.descriptor, encode_state(state), self.settles)

    # --- output

    def send(self, link: Any, data: bytes, *, more: bool = False, settled: bool = False) -> Delivery:
        """Begin a delivery on a link that has credit."""
        delivery = Delivery(link)
        delivery.number = len(self.deliveries)
        if settled:
            delivery.mark_settled()
        self.deliveries.append(delivery)
        link.send(delivery, data, 0, len(data), more)
        return delivery


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Server]:
    """Run the server."""
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve)
        yield server
        nursery.cancel_scope.cancel()
