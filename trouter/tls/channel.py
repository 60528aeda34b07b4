"""TLS over memory buffers, between a socket and a connection (security.md 2).

The handshake is awaited; its arithmetic is done in a thread, so that handshakes do not hold up established connections.
Afterwards nothing waits: ``decrypt`` what a read brought, and ``send`` what is to go out.
"""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

import trio
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from .hostnames import is_for
from .problems import TlsFailed

READ_BYTES: Final = 131072
#: No TLS record holds more.
RECORD_BYTES: Final = 16384
#: Octets encrypted at a time: what is encrypted and not sent is bounded by this.
PIECE_BYTES: Final = 131072
#: What a peer may send before the handshake is over, in octets: certificates, and many of them.
MAX_HANDSHAKE_BYTES: Final = 262144
#: Records without anything for us, such as changes of keys and new hellos, in one minute (R-2.2g).
MAX_EMPTY_RECORDS: Final = 16
EMPTY_RECORDS_SPAN_S: Final = 60.0
#: Older ones begin what they say with an empty record.
COUNTED_VERSIONS: Final = frozenset({"TLSv1.2", "TLSv1.3"})
#: Handshakes whose arithmetic is done at the same time: never all processors.
HANDSHAKES_AT_ONCE: Final = max(1, (os.cpu_count() or 1) // 2)

_RECORD_HEADER_BYTES: Final = 5
_THREADS: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("TLS handshakes")


class TlsChannel:
    """One end of a TLS connection."""

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        server: bool,
        hostname: str | None = None,
        compares_names: bool = False,
        session: ssl.SSLSession | None = None,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        """``hostname`` is the server we call, ``compares_names`` if OpenSSL does not; ``session`` one to resume."""
        self._server = server
        self._arrived = ssl.MemoryBIO()
        self._leaving = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._arrived, self._leaving, server_side=server, server_hostname=hostname, session=session
        )
        self._named = hostname if compares_names else None
        #: Encrypted, and not taken by the socket yet.
        self._unsent = bytearray()
        #: The peer has said that nothing follows.
        self.ended = False
        self._records = RecordCounter()
        self._counts_empty = False
        self._clock = clock
        #: Until when records without content are counted, and how many there were.
        self._span_ends_s = 0.0
        self._empty = 0

    # --- the handshake

    async def handshake(self, sock: socket.socket, early: bytes = b"") -> None:
        """Agree on keys, and verify the peer's certificate if due; ``early`` was read before. TlsFailed, OSError."""
        received = len(early)
        self._arrived.write(early)
        self._records.count(early)
        try:
            while not await trio.to_thread.run_sync(self._step, limiter=_threads()):
                await self._send_all(sock)
                data = await _receive(sock)
                received += len(data)
                if not data:
                    raise TlsFailed("the peer closed the socket in the TLS handshake")
                if received > MAX_HANDSHAKE_BYTES:
                    raise TlsFailed(f"a TLS handshake of more than {MAX_HANDSHAKE_BYTES} octets")
                self._arrived.write(data)
                self._records.count(data)
        except ssl.SSLError as error:
            self._take_leaving()
            try:
                sock.send(self._unsent)  # the alert that says why
            except OSError:
                pass
            raise TlsFailed(explain(error), alert_of(error)) from None
        await self._send_all(sock)
        self._counts_empty = self._tls.version() in COUNTED_VERSIONS

    def _step(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        if self._named is not None and not is_for(self._tls.getpeercert(binary_form=True), self._named):
            raise TlsFailed(f"TLS: the peer's certificate is not for {self._named}")
        return True

    async def _send_all(self, sock: socket.socket) -> None:
        self._take_leaving()
        while self._unsent:
            try:
                sent = sock.send(self._unsent)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(sock)
            else:
                del self._unsent[:sent]

    def _take_leaving(self) -> None:
        if self._leaving.pending:
            self._unsent += self._leaving.read()

    # --- what was agreed on

    @property
    def version(self) -> str:
        return self._tls.version() or ""

    @property
    def cipher(self) -> tuple[str, int]:
        """Its name, and its strength in bits."""
        name, _, bits = self._tls.cipher() or ("", "", 0)
        return name, bits

    @property
    def session(self) -> ssl.SSLSession | None:
        """What can be resumed, once there is something."""
        return self._tls.session

    @property
    def resumed(self) -> bool:
        return bool(self._tls.session_reused)

    def chain(self) -> tuple[bytes, ...]:
        """Return the peer's certificates as they were verified, in DER, the leaf first; empty without one.

        Of a session that was resumed only the leaf is known.
        """
        leaf = self._tls.getpeercert(binary_form=True)
        if leaf is None:
            return ()
        return _verified_chain(self._tls) or (leaf,)

    def bindings(self, own: x509.Certificate | None) -> tuple[tuple[str, bytes], ...]:
        """Return what the channel can be told from others by (RFC 5929); ``own`` is the certificate of a server.

        ``tls-unique`` means nothing in TLS 1.3, and can be made the same on two channels by resuming. Python's ssl has
        no ``tls-exporter``.
        """
        found: list[tuple[str, bytes]] = []
        certificate = own
        if not self._server and (der := self._tls.getpeercert(binary_form=True)) is not None:
            certificate = x509.load_der_x509_certificate(der)
        if certificate is not None and (end_point := end_point_binding(certificate)):
            found.append(("tls-server-end-point", end_point))
        if self.version != "TLSv1.3" and not self.resumed:
            unique = self._tls.get_channel_binding("tls-unique")
            if unique:
                found.append(("tls-unique", unique))
        return tuple(found)

    # --- after it

    def decrypt(self, data: bytes) -> bytes:
        """Return what ``data`` from the socket says, b"" if nothing whole. TlsFailed.

        ``ended`` is set when the peer has said that nothing follows.
        """
        self._arrived.write(data)
        read = self._tls.read
        found: list[bytes] = []
        try:
            while True:
                piece = read(RECORD_BYTES)
                if not piece:
                    self.ended = True
                    break
                found.append(piece)
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self.ended = True
        except ssl.SSLError as error:
            raise TlsFailed(explain(error), alert_of(error)) from None
        if self._counts_empty:
            empty = self._records.count(data) - len(found)
            if empty > 0:
                self._count_empty(empty)
        return found[0] if len(found) == 1 else b"".join(found)

    def _count_empty(self, count: int) -> None:
        now_s = self._clock()
        if now_s >= self._span_ends_s:
            self._span_ends_s = now_s + EMPTY_RECORDS_SPAN_S
            self._empty = 0
        self._empty += count
        if self._empty > MAX_EMPTY_RECORDS:
            raise TlsFailed(f"more than {MAX_EMPTY_RECORDS} changes of keys or empty records in a minute")

    @property
    def unsent(self) -> bool:
        """Something is encrypted that the socket has not taken yet."""
        return bool(self._unsent)

    def send(self, sock: socket.socket, out: bytearray) -> int:
        """Encrypt and send what ``out`` begins with, as much as the socket takes; how much of ``out`` is done with.

        BlockingIOError when the socket takes nothing; TlsFailed, OSError. Something may be ``unsent`` afterwards.
        """
        done = 0
        while True:
            if self._unsent:
                del self._unsent[: sock.send(self._unsent)]
                if self._unsent:
                    return done
            if done == len(out):
                return done
            try:
                with memoryview(out) as view, view[done : done + PIECE_BYTES] as piece:
                    done += self._tls.write(piece)
            except ssl.SSLError as error:
                raise TlsFailed(explain(error), alert_of(error)) from None
            encrypted = self._leaving.read()
            try:
                sent = sock.send(encrypted)
            except BlockingIOError:
                sent = 0
            if sent < len(encrypted):
                self._unsent += encrypted[sent:]
                return done

    def encrypt(self, data: memoryview) -> bytes:
        """Return ``data`` as it goes on the wire, for who sends it all; TlsFailed."""
        done = 0
        try:
            while done < len(data):
                done += self._tls.write(data[done:])
        except ssl.SSLError as error:
            raise TlsFailed(explain(error), alert_of(error)) from None
        return self._leaving.read()

    def last_words(self) -> bytes:
        """Return what tells the peer that nothing follows."""
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass
        return self._leaving.read()

    def say_end(self, sock: socket.socket) -> None:
        """Tell the peer that nothing follows, if the socket takes it; OSError."""
        self._unsent += self.last_words()
        if self._unsent:
            del self._unsent[: sock.send(self._unsent)]


class RecordCounter:
    """Counts the whole TLS records in a stream of octets."""

    __slots__ = ("_header", "_left")

    def __init__(self) -> None:
        #: Octets of the present record that are still to come, and what is there of a header that was cut.
        self._left = 0
        self._header = b""

    def count(self, data: bytes) -> int:
        """Return how many records end in ``data``."""
        ended = 0
        at, size = 0, len(data)
        while at < size:
            if self._left:
                step = min(self._left, size - at)
                self._left -= step
                at += step
                ended += self._left == 0
                continue
            missing = _RECORD_HEADER_BYTES - len(self._header)
            header = self._header + data[at : at + missing]
            at += missing
            if len(header) < _RECORD_HEADER_BYTES:
                self._header = header
                break
            self._header = b""
            self._left = header[3] << 8 | header[4]
        return ended


def end_point_binding(certificate: x509.Certificate) -> bytes:
    """Return ``tls-server-end-point`` of a server with this certificate (RFC 5929, 4.1); b"" where none is defined."""
    try:
        digest = certificate.signature_hash_algorithm
    except (ValueError, UnsupportedAlgorithm):
        return b""
    if digest is None:
        return b""  # such as Ed25519, for which the RFC has no rule
    if isinstance(digest, hashes.MD5 | hashes.SHA1):
        digest = hashes.SHA256()
    return hashlib.new(digest.name, certificate.public_bytes(Encoding.DER)).digest()


def alert_of(error: ssl.SSLError) -> str:
    """Return the alert that the peer sent, as RFC 8446 calls it; "" where it is we who gave up."""
    _, found, alert = (error.reason or "").partition("_ALERT_")
    return alert.lower() if found else ""


def explain(error: ssl.SSLError) -> str:
    """Return what went wrong, in OpenSSL's fixed words: nothing in them is the peer's."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: the certificate cannot be verified: {error.verify_message}"[:200]
    return f"TLS: {(error.reason or 'failed').replace('_', ' ').lower()}"[:200]


def _verified_chain(tls: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the chain that was verified; public from Python 3.13 on, and there since 3.10."""
    if hasattr(tls, "get_verified_chain"):
        return tuple(tls.get_verified_chain())
    below: Any = tls._sslobj  # type: ignore[attr-defined]
    return tuple(ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in below.get_verified_chain() or ())


async def _receive(sock: socket.socket) -> bytes:
    while True:
        try:
            return sock.recv(READ_BYTES)
        except BlockingIOError:
            await trio.lowlevel.wait_readable(sock)


def _threads() -> trio.CapacityLimiter:
    try:
        return _THREADS.get()
    except LookupError:
        _THREADS.set(trio.CapacityLimiter(HANDSHAKES_AT_ONCE))
        return _THREADS.get()
