"""A byte stream over TLS or a plain socket, for callers that await: HTTP and what runs over it."""

from __future__ import annotations

from typing import Final

import trio

from .channel import TlsChannel
from .problems import TlsFailed

READ_BYTES: Final = 65536
PIECE_BYTES: Final = 65536


class SecureStream(trio.abc.HalfCloseableStream):
    """A socket's stream after the bytes ``early``; over TLS if there is a ``channel``, whose handshake is done."""

    def __init__(self, below: trio.SocketStream, channel: TlsChannel | None, early: bytes = b"") -> None:
        self._below = below
        self._channel = channel
        #: Plaintext that was read already.
        self._early = early if channel is None else channel.decrypt(b"")

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive up to ``max_bytes``; BrokenResourceError also for a fault of TLS."""
        limit = max_bytes or READ_BYTES
        while not self._early:
            if self._channel is not None and self._channel.ended:
                return b""
            data = bytes(await self._below.receive_some(limit))
            if self._channel is None or not data:
                return data
            try:
                self._early = self._channel.decrypt(data)
            except TlsFailed as failed:
                raise trio.BrokenResourceError(str(failed)) from None
        data, self._early = self._early[:limit], self._early[limit:]
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self._channel is None:
            await self._below.send_all(data)
            return
        with memoryview(data) as view:
            for start in range(0, len(view), PIECE_BYTES):
                try:
                    encrypted = self._channel.encrypt(view[start : start + PIECE_BYTES])
                except TlsFailed as failed:
                    raise trio.BrokenResourceError(str(failed)) from None
                await self._below.send_all(encrypted)

    async def wait_send_all_might_not_block(self) -> None:
        await self._below.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        if self._channel is not None and (last := self._channel.last_words()):
            await self._below.send_all(last)
        await self._below.send_eof()

    async def aclose(self) -> None:
        await self._below.aclose()
