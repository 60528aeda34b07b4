"""Mixed traffic: each kind has its clients, which run as long as the soak."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import trio

from trouter.client import Message, Properties

from .pace import Soak

_STREAM_BYTES: Final = 2_000_000
_CHUNK: Final = bytes(16_000)
#: Seconds after which a client takes an answer as lost and sends the next request.
_ANSWER_S: Final = 5.0
Client = Callable[[Soak], Awaitable[None]]


def _sending(kind: str, site: str, address: str, period_s: float, settled: bool = False) -> Client:
    async def send(soak: Soak) -> None:
        async with soak.world.at(site).connect() as connection, connection.open_sender(address) as sender:
            async for number in soak.every(period_s):
                body = bytes(number * 37 % 2000)
                await sender.submit(Message(body, application_properties={"number": number}), settled=settled)
                soak.sent[kind] += 1

    return send


def _receiving(kind: str, site: str, address: str) -> Client:
    async def receive(soak: Soak) -> None:
        async with soak.world.at(site).connect() as connection, connection.open_receiver(address) as receiver:
            async for delivery in receiver:
                soak.received[kind] += 1
                if not delivery.presettled:
                    await delivery.accept()

    return receive


async def _send_streams(soak: Soak) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(_STREAM_BYTES // len(_CHUNK)):
            yield _CHUNK
            await trio.lowlevel.checkpoint()

    async with soak.world.at("B").connect() as connection, connection.open_sender("large") as sender:
        async for _ in soak.every(10.0):
            await sender.send_stream(chunks(), size=_STREAM_BYTES)
            soak.sent["streamed"] += 1


async def _receive_streams(soak: Soak) -> None:
    async with soak.world.at("E").connect() as connection, connection.open_receiver("large", stream=True) as receiver:
        async for delivery in receiver:
            async for _ in delivery.stream():
                pass
            await delivery.accept()
            soak.received["streamed"] += 1


async def _serve(soak: Soak) -> None:
    async with (
        soak.world.at("B").connect() as connection,
        connection.open_receiver("service") as requests,
        connection.open_sender() as replies,
    ):
        async for request in requests:
            asked = request.message.properties
            properties = Properties(to=asked.reply_to, correlation_id=asked.message_id)
            await replies.send(Message("answer", properties), settled=True)
            await request.accept()


async def _request(soak: Soak) -> None:
    async with (
        soak.world.at("E").connect() as connection,
        connection.open_receiver(dynamic=True) as answers,
        connection.open_sender("service") as sender,
    ):
        async for number in soak.every(0.25):
            await sender.submit(Message("question", Properties(message_id=number, reply_to=answers.address)))
            soak.sent["request and reply"] += 1
            with trio.move_on_after(_ANSWER_S):  # a settled answer to an address that is not known there yet is lost
                await (await answers.receive()).accept()
                soak.received["request and reply"] += 1


#: The kinds of traffic, each with its clients; messages pass through two or three routers.
TRAFFIC: Final[dict[str, tuple[Client, ...]]] = {
    "small": (_receiving("small", "E", "plain"), _sending("small", "B", "plain", 0.1)),
    "pre-settled": (
        _receiving("pre-settled", "B", "telemetry"),
        _sending("pre-settled", "E", "telemetry", 0.1, settled=True),
    ),
    "streamed": (_receive_streams, _send_streams),
    "multicast": (
        *(_receiving("multicast", site, "many.news") for site in "ABE"),
        _sending("multicast", "A", "many.news", 0.2),
    ),
    "request and reply": (_serve, _request),
    "through a queue": (
        _receiving("through a queue", "B", "queue.soak"),
        _sending("through a queue", "E", "queue.soak", 0.2),
    ),
    "link-routed": (_receiving("link-routed", "B", "routed.soak"), _sending("link-routed", "A", "routed.soak", 0.2)),
}
