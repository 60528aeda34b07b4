"""A management node whose answers a test sets, with or without TLS; and certificates."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import trio

from tests.client.support import Server
from trouter.client import ACCEPTED, Message, Properties, Source
from trouter.engine.events import LinkAttached
from trouter.engine.ports import Delivery
from trouter.engine.sasl import SaslServer
from trouter.tools.node import NodeClient, open_node
from trouter.tools.options import ConnectionOptions

REPLY_ADDRESS = "amqp:/_topo/0/R/temp.abcdefghijklmno"
TLS_HANDSHAKE = 0x16

Answer = Callable[[Message], Sequence[Message]]


def reply(request: Message, body: object = None, status: object = 200, description: str = "OK") -> Message:
    """Return an answer as a router composes it."""
    return Message(
        body,
        Properties(to=request.properties.reply_to, correlation_id=request.properties.correlation_id),
        {"statusCode": status, "statusDescription": description},
    )


class ManagementServer(Server):
    """A server of one connection. ``requests`` are those received, ``peer`` is the name in the client's certificate."""

    def __init__(
        self,
        answer: Answer = lambda request: [reply(request)],
        *,
        mechanisms: tuple[str, ...] = ("ANONYMOUS",),
        sasl_required: bool = False,
        tls: ssl.SSLContext | None = None,
        tls_required: bool = True,
    ) -> None:
        super().__init__(mechanisms=mechanisms)
        self.sasl = SaslServer(mechanisms, required=sasl_required)
        self.outcome = ACCEPTED
        self.answer = answer
        self.requests: list[Message] = []
        self.secure = False
        self.peer: str | None = None
        self._tls = tls
        self._tls_required = tls_required
        #: The links to the client by their addresses; the newest comes last.
        self._outgoing: dict[str, Any] = {}

    async def welcome(self, stream: trio.SocketStream) -> trio.abc.Stream:
        try:
            return await self._secured(stream)
        except BaseException:
            stream.socket.close()
            raise

    async def _secured(self, stream: trio.SocketStream) -> trio.abc.Stream:
        first = await stream.socket.recv(1, socket.MSG_PEEK)
        self.secure = first == bytes((TLS_HANDSHAKE,))
        if self._tls is None or not (self.secure or self._tls_required):
            return stream
        wrapped = trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True)
        try:
            await wrapped.do_handshake()
        except trio.BrokenResourceError:
            return wrapped
        certificate: Any = wrapped.getpeercert()
        if certificate:
            self.peer = dict(pair for (pair,) in certificate["subject"])["commonName"]
        return wrapped

    def _attach(self, event: LinkAttached) -> None:
        if event.link.incoming:
            super()._attach(event)
            return
        source = event.attach.source
        assert isinstance(source, Source)
        address = f"{REPLY_ADDRESS}{len(self._outgoing) or ''}"
        super()._attach(replace(event, attach=replace(event.attach, source=replace(source, address=address))))
        self._outgoing[address] = event.link

    def on_transfer(self, link: Any, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        super().on_transfer(link, delivery, data, start, end)
        if delivery.complete:
            link.grant(1)  # as a router does: a client may ask any number of questions
            request = Message.decode(self.payloads[self.deliveries.index(delivery)])
            self.requests.append(request)
            for message in self.answer(request):
                self.deliver(message.encode(), str(message.properties.to))

    def deliver(self, content: bytes, address: str = "") -> None:
        """Send bytes to a dynamic address of the client, the newest unless it is given."""
        self.payloads.append(b"")
        self.send(self._outgoing.get(address) or [*self._outgoing.values()][-1], content, settled=True)


@asynccontextmanager
async def serving_node(server: ManagementServer) -> AsyncIterator[None]:
    """Run the server; an exception in the block is raised unchanged."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve)
        try:
            yield
        except Exception as raised:  # noqa: BLE001 - raised again below, not as one of a group
            failure = raised
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


@asynccontextmanager
async def asking(server: ManagementServer, **options: Any) -> AsyncIterator[NodeClient]:
    """Run the server, and connect a node to it."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serving_node(server))
        wanted = replace(ConnectionOptions(host="127.0.0.1", port=server.port), **options)
        yield await stack.enter_async_context(open_node(wanted))
