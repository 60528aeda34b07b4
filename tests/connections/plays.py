"""What the plays of this folder share: a listener, the frames of a client, and the answers of a login's plugin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import trio

from trouter.hooks import Authenticated, Challenge, Refused, hookimpl
from trouter.testing.player import Output, PlayedPeer, PlayedRouter, kinds
from trouter.wire.framing import AMQP_HEADER, FRAME_SASL, SASL_HEADER, frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Open,
    Performative,
    SaslInit,
    SaslResponse,
    Source,
    Target,
    Transfer,
    encode_performative,
)

ROUTER: Final = "router { id: R }\n"
LISTENER: Final = "listener { name: in, host: 127.0.0.1, port: 0, idleTimeoutSeconds: 0, saslMechanisms: ANONYMOUS }\n"
OPEN: Final = Open("client", hostname="vhost")
BEGIN: Final = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)
#: A route of b.* to the container B.
ROUTED: Final = "".join(f"linkRoute {{ prefix: b, direction: {way}, containerId: B }}\n" for way in ("in", "out"))
OPENING: Final[tuple[bytes | Performative, ...]] = (AMQP_HEADER, OPEN, BEGIN)


def receiver(name: str = "r", handle: int = 0, address: str = "queue") -> Attach:
    return Attach(name, handle, True, source=Source(address), target=Target())


def sender(name: str = "s", handle: int = 1, address: str = "queue") -> Attach:
    return Attach(name, handle, False, source=Source(), target=Target(address), initial_delivery_count=0)


def message(transfer: Transfer, body: bytes) -> bytes:
    """Return the frame of a message of one data section on channel 0."""
    return frame(0, encode_performative(transfer) + b"\0\x53\x75\xb0" + len(body).to_bytes(4) + body)


def sasl(performative: Performative) -> bytes:
    """Return a frame of the SASL layer."""
    return frame(0, encode_performative(performative), FRAME_SASL)


#: The start of a login by the mechanism of ``Scripted``.
LOGIN: Final = SASL_HEADER + sasl(SaslInit("X-MINE", b"hello"))
RESPONSE: Final = sasl(SaslResponse(b"more"))


class Scripted:
    """A plugin with one mechanism, whose answers come when the test gives them; the first ones may be given at once."""

    def __init__(self, *answers: Authenticated | Challenge | Refused) -> None:
        self.give, self._answers = trio.open_memory_channel[Authenticated | Challenge | Refused](9)
        for answer in answers:
            self.give.send_nowait(answer)
        self.responses: list[bytes] = []

    @hookimpl
    def sasl_mechanisms(self) -> Sequence[str]:
        return ["X-MINE"]

    @hookimpl
    def open_sasl(self) -> object:
        return self

    async def respond(self, response: bytes) -> Authenticated | Challenge | Refused:
        self.responses.append(response)
        return await self._answers.receive()


def only(outputs: list[Output], kind: type[Any]) -> Any:
    """Return the only output of a kind."""
    (found,) = [each for each in outputs if isinstance(each, kind)]
    return found


def condition_of(outputs: list[Output], kind: type[Close | Detach] = Close) -> str:
    """Return the condition of the only close (or detach) in what the router did."""
    error = only(outputs, kind).error
    return "" if error is None else str(error.condition)


async def opened(router: PlayedRouter, *more: Performative, host: str = "192.0.2.7") -> PlayedPeer:
    """Return a peer whose connection is open and has a session; it has sent ``more``, and read the answers."""
    peer = router.accept(host)
    await peer.play(*OPENING, *more)
    return peer


async def join(
    client: Callable[..., Awaitable[list[Output]]], container: Callable[..., Awaitable[list[Output]]]
) -> None:
    """Let a client and the container B, which have opened, attach both ends of a routed link."""
    assert kinds(await client(BEGIN, receiver(address="b.news"))) == [Begin]
    assert kinds(await container()) == [Begin]
    name = only(await container(replace(BEGIN, remote_channel=0)), Attach).name
    await container(Attach(name, 0, False, source=Source("b.news"), initial_delivery_count=0))
    assert kinds(await client()) == [Attach]
