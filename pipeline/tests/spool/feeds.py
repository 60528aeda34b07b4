"""A server that sends messages to the spool's receiver and records the outcome of each."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from pipeline.tests.spool.support import message
from tests.client.support import Server
from trouter.client import Servers
from trouter.engine.events import LinkDetached
from trouter.engine.limits import EngineLimits
from trouter.engine.link import OutgoingLink
from trouter.engine.ports import Delivery, LinkPort
from trouter_pipeline.spool import Spool
from trouter_pipeline.spool.receiver import Progress, ReceiverSettings, receive


class Feed(Server):
    """A server that sends as long as it has credit; the body of each message is its number."""

    def __init__(
        self,
        *,
        size: int = 100,
        sizes: Mapping[int, int] | None = None,
        begin: int = 0,
        count: int = 1 << 30,
        settled: bool = False,
        mechanisms: tuple[str, ...] = ("ANONYMOUS",),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(EngineLimits(idle_timeout_s=0.0, high_water_bytes=1 << 30), mechanisms=mechanisms)
        self.sizes = sizes or {}
        self.tls = tls
        self.size = size
        self.begin = begin
        self.count = count
        self.settled = settled
        #: Numbers of messages in the order in which they were accepted.
        self.accepted: list[int] = []
        self.outcomes: dict[int, int] = {}
        #: The unfinished message: its delivery, its bytes, and the offset to go on at.
        self._rest: tuple[Delivery, bytes, int] | None = None
        #: The highest count of messages without an outcome at one time.
        self.max_unsettled = 0

    @property
    def link_detached(self) -> bool:
        return any(isinstance(event, LinkDetached) for event in self.events)

    async def welcome(self, stream: trio.SocketStream) -> trio.abc.Stream:
        return stream if self.tls is None else trio.SSLStream(stream, self.tls, server_side=True)

    def on_credit(self, link: LinkPort) -> None:
        assert isinstance(link, OutgoingLink)
        if self._rest is not None and not self._go_on(link, *self._rest):
            return
        while link.is_ready() and len(self.deliveries) < self.count and not link.drain:
            number = self.begin + len(self.deliveries)
            delivery = Delivery(link)
            delivery.number = number
            if self.settled:
                delivery.mark_settled()
            self.deliveries.append(delivery)
            self.max_unsettled = max(self.max_unsettled, len(self.deliveries) - len(self.outcomes))
            if not self._go_on(link, delivery, message(number, self.sizes.get(number, self.size)), 0):
                return
        if link.drain:
            link.return_credit()

    def _go_on(self, link: OutgoingLink, delivery: Delivery, data: bytes, offset: int) -> bool:
        """Send the rest of a message; return False if the window closed before its end."""
        offset = link.send(delivery, data, offset, len(data), False)
        self._rest = None if delivery.complete else (delivery, data, offset)
        return delivery.complete

    def on_disposition(self, delivery: Delivery) -> None:
        assert delivery.remote_settled
        self.outcomes[delivery.number] = delivery.remote_code
        if delivery.remote_code == 0x24:
            self.accepted.append(delivery.number)


def settings_for(url: str, **changed: Any) -> ReceiverSettings:
    return ReceiverSettings(**{"servers": Servers(urls=(url,)), "address": "orders", "first_pause_s": 0.01, **changed})


@asynccontextmanager
async def receiving(spool: Spool, settings: ReceiverSettings) -> AsyncIterator[Progress]:
    """Run the receiver; at the end of the block it is cancelled, and has flushed."""
    progress = Progress()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive, spool, settings, progress)
            yield progress
            nursery.cancel_scope.cancel()


async def until(condition: Callable[[], object]) -> None:
    """Poll until the condition holds; for effects that no event reports."""
    while not condition():  # noqa: ASYNC110 - what another process or a folder does has no event
        await trio.sleep(0.005)
