"""What the plays of TLS share: a TLS client over a connection that is played, and a listener with a profile."""

from __future__ import annotations

import ssl
from typing import Final

from tests.tls.pki import Authority, Pair
from trouter.testing.player import HANG_UP, Closed, Input, Output, PlayedPeer, octets_of, taken_from
from trouter.wire.performatives import Performative

SERVER: Final = "router.test"
#: Much more than the octets of one read.
_ALL: Final = 1 << 20


def profile(authority: Authority, server: Pair, more: str = "") -> str:
    """Return an sslProfile with a server's certificate that trusts the authority's clients."""
    return (
        f"sslProfile {{\n name: p\n certFile: {server.cert}\n privateKeyFile: {server.key}\n"
        f" caCertFile: {authority.file}\n{more}}}\n"
    )


def listener(more: str) -> str:
    """Return a listener with that profile."""
    return (
        "listener { name: in, host: 127.0.0.1, port: 0, idleTimeoutSeconds: 0, sslProfile: p, requireSsl: yes, "
        f"{more} }}\n"
    )


def client_context(authority: Authority, own: Pair | None = None) -> ssl.SSLContext:
    """Return the settings of a client that trusts the authority's servers, with its ``own`` certificate if any."""
    context = ssl.create_default_context(cafile=str(authority.file))
    if own is not None:
        context.load_cert_chain(own.cert, own.key)
    return context


class PlayedTls:
    """A TLS client over a connection that is played: its octets are encrypted, the router's are decrypted."""

    def __init__(self, peer: PlayedPeer, context: ssl.SSLContext) -> None:
        self.peer = peer
        self._arrived = ssl.MemoryBIO()
        self._leaving = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._arrived, self._leaving, server_hostname=SERVER)
        self._plain = bytearray()
        #: The alert or the close_notify of the router, empty for none.
        self.farewell = ""

    def leaving(self) -> bytes:
        """Return the octets that the client has encrypted and not sent."""
        return self._leaving.read()

    async def say_hello(self) -> None:
        """Begin the client's handshake, and wait for the first answer of the router, which is not read."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            await self._send()
        await self.peer.sock.wait_for_router()

    async def shake_hands(self) -> None:
        """Complete the client's handshake; ssl.SSLError. The threads of the router take their time."""
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._send()
                await self._receive()
            else:
                await self._send()
                return

    async def wait_for_end(self) -> list[Output]:
        """Wait until the router has closed the socket; return what it did."""
        outputs = await self.play_encrypted()
        while not self.peer.sock.closed:
            await self.peer.sock.wait_for_router()
            outputs += await self.play_encrypted()
        return outputs

    async def _send(self) -> None:
        self.peer.put(self._leaving.read())
        await self.peer.rest()

    async def _receive(self) -> None:
        sock = self.peer.sock
        await sock.wait_for_router()
        self._arrived.write(bytes(sock.sent))
        sock.sent.clear()
        if sock.closed:
            self._arrived.write_eof()

    async def play(self, *inputs: bytes | Performative | tuple[int, Performative]) -> list[Output]:
        """Give the router the inputs, encrypted; return what it did until it came to rest."""
        for each in inputs:
            self.tls.write(octets_of(each))
        return await self.play_encrypted(self._leaving.read())

    async def play_first(self, *inputs: bytes | Performative | tuple[int, Performative]) -> list[Output]:
        """Do as ``play``, for the first input: the router's threads may be at work on the handshake still."""
        outputs = await self.play(*inputs)
        while not outputs:  # it may have sent tickets for resumption, and no AMQP yet
            await self.peer.sock.wait_for_router()
            outputs = await self.play_encrypted()
        return outputs

    async def play_encrypted(self, *inputs: Input) -> list[Output]:
        """Give the router inputs as they are; return what it did until it came to rest."""
        sock = self.peer.sock
        self.peer.put(*inputs)
        await self.peer.rest()
        self._arrived.write(bytes(sock.sent))
        sock.sent.clear()
        try:
            while True:
                piece = self.tls.read(_ALL)
                if not piece:
                    self.farewell = "close_notify"
                    break
                self._plain += piece
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.farewell = "close_notify"
        except ssl.SSLError as error:
            self.farewell = error.reason or ""
        outputs = taken_from(self._plain)
        return [*outputs, Closed()] if sock.closed else outputs

    async def close_notify(self) -> list[Output]:
        """End TLS, then the socket; return what the router did."""
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        return await self.play_encrypted(self._leaving.read(), HANG_UP)
