"""TLS over memory buffers, between a socket and a connection (security.md 2).

Threads compute the handshakes, so that established connections are not delayed. Afterwards nothing waits: ``decrypt``
takes what was read, ``send`` encrypts and writes.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from trouter.hooks.certificates import UNREADABLE
from trouter.net.waits import SocketWaits

from .hostnames import is_for
from .loaded import Loaded
from .problems import TlsFailed
from .sni import ServerObject

READ_BYTES: Final = 131072
#: Largest content of a TLS record (RFC 8446, 5.1).
RECORD_BYTES: Final = 16384
#: Bytes encrypted at a time; this bounds what is encrypted and not sent.
PIECE_BYTES: Final = 131072
#: Bytes that a peer may send before the handshake is over: many certificates fit.
MAX_HANDSHAKE_BYTES: Final = 262144
#: Records without data, such as key updates and new hellos, that are allowed in a minute (R-2.2g).
MAX_EMPTY_RECORDS: Final = 16
EMPTY_RECORDS_SPAN_S: Final = 60.0
#: Older versions put an empty record before data.
COUNTED_VERSIONS: Final = frozenset({"TLSv1.2", "TLSv1.3"})

_RECORD_HEADER_BYTES: Final = 5
#: Runs a step of a handshake in a thread, and returns whether it was the last one.
RunStep = Callable[[Callable[[], bool]], Awaitable[bool]]


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
    ) -> None:
        """``hostname`` is the dialled server, ``compares_names`` if OpenSSL does not; ``session`` is one to resume."""
        self._server = server
        #: Held for OpenSSL, which calls its callback again for a second hello, also if another is in its place.
        self._made_with = context
        self._arrived = ssl.MemoryBIO()
        self._leaving = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._arrived, self._leaving, server_side=server, server_hostname=hostname, session=session
        )
        self._named = hostname if compares_names else None
        #: Encrypted bytes that the socket has not taken yet.
        self._unsent = bytearray()
        #: The peer has closed its direction.
        self.ended = False
        self._records = RecordCounter()
        self._counts_empty = False
        #: The end of the interval in which empty records are counted, and their number.
        self._span_ends_s = 0.0
        self._empty = 0

    # --- the handshake

    async def handshake(self, sock: socket.socket, waits: SocketWaits, run_step: RunStep, early: bytes = b"") -> None:
        """Complete the handshake and verify the peer as configured; ``early`` was read before. TlsFailed, OSError."""
        received = len(early)
        self._arrived.write(early)
        self._records.count(early)
        try:
            while not await run_step(self._step):
                await self._send_all(sock, waits)
                data = await _receive(sock, waits)
                received += len(data)
                if not data:
                    raise TlsFailed("the peer closed the socket in the TLS handshake")
                if received > MAX_HANDSHAKE_BYTES:
                    raise TlsFailed(f"a TLS handshake of more than {MAX_HANDSHAKE_BYTES} bytes")
                self._arrived.write(data)
                self._records.count(data)
        except ssl.SSLError as error:
            self._take_leaving()
            try:
                sock.send(self._unsent)  # the alert that tells the peer why
            except OSError:
                pass
            raise TlsFailed(self._explain(error), alert_of(error)) from None
        await self._send_all(sock, waits)
        self._counts_empty = self._tls.version() in COUNTED_VERSIONS

    def _step(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        if self._named is not None and not is_for(self._tls.getpeercert(binary_form=True), self._named):
            raise TlsFailed(f"TLS: the peer's certificate is not for {self._named}")
        return True

    async def _send_all(self, sock: socket.socket, waits: SocketWaits) -> None:
        self._take_leaving()
        while self._unsent:
            try:
                sent = sock.send(self._unsent)
            except BlockingIOError:
                await waits.wait_writable(sock)
            else:
                del self._unsent[:sent]

    def _take_leaving(self) -> None:
        if self._leaving.pending:
            self._unsent += self._leaving.read()

    def _explain(self, error: ssl.SSLError) -> str:
        """Return the fault of a handshake; of a name that the router refused, the name."""
        if isinstance(self._tls, ServerObject) and error.reason == "CALLBACK_FAILED":
            return f"TLS: {self._tls.refusal or 'the client asked for a server name that is no text'}"
        return explain(error)

    # --- what was agreed on

    @property
    def server_name(self) -> str:
        """The name that the client asked for, in lower case; empty for none, or if the listener uses no names."""
        return self._tls.server_name if isinstance(self._tls, ServerObject) else ""

    @property
    def chosen(self) -> Loaded | None:
        """The profile whose certificate was chosen by the name; None for the listener's own."""
        return self._tls.chosen if isinstance(self._tls, ServerObject) else None

    @property
    def version(self) -> str:
        return self._tls.version() or ""

    @property
    def cipher(self) -> tuple[str, int]:
        """Name and strength in bits."""
        name, _, bits = self._tls.cipher() or ("", "", 0)
        return name, bits

    @property
    def session(self) -> ssl.SSLSession | None:
        """The session to resume later, or None."""
        return self._tls.session

    @property
    def resumed(self) -> bool:
        return bool(self._tls.session_reused)

    def chain(self) -> tuple[bytes, ...]:
        """Return the peer's verified certificates in DER, the leaf first; () if it has none.

        For a resumed session only the leaf is known.
        """
        leaf = self._tls.getpeercert(binary_form=True)
        if leaf is None:
            return ()
        return _verified_chain(self._tls) or (leaf,)

    def bindings(self, own: x509.Certificate | None) -> tuple[tuple[str, bytes], ...]:
        """Return the channel bindings (RFC 5929) as pairs of type and bytes; ``own`` is the certificate of a server.

        ``tls-unique`` is undefined in TLS 1.3, and not unique for resumed sessions. Python's ssl has no
        ``tls-exporter``.
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
        """Return the plaintext of ``data`` from the socket, b"" without a whole record; TlsFailed.

        Set ``ended`` when the peer has closed its direction.
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
                # Nothing is left: one more read would cost as much as the decryption of a small record.
                if not self._arrived.pending and not self._tls.pending():
                    break
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
        now_s = trio.current_time()
        if now_s >= self._span_ends_s:
            self._span_ends_s = now_s + EMPTY_RECORDS_SPAN_S
            self._empty = 0
        self._empty += count
        if self._empty > MAX_EMPTY_RECORDS:
            raise TlsFailed(f"more than {MAX_EMPTY_RECORDS} changes of keys or empty records in a minute")

    @property
    def unsent(self) -> bool:
        """Whether encrypted bytes wait for the socket."""
        return bool(self._unsent)

    def send(self, sock: socket.socket, out: bytearray) -> int:
        """Encrypt and send the beginning of ``out``, as much as the socket takes; return how many bytes of it are done.

        BlockingIOError if the socket takes nothing; TlsFailed, OSError. Encrypted bytes may remain ``unsent``.
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
        """Return ``data`` encrypted, for a caller that sends all of it; TlsFailed."""
        done = 0
        try:
            while done < len(data):
                done += self._tls.write(data[done:])
        except ssl.SSLError as error:
            raise TlsFailed(explain(error), alert_of(error)) from None
        return self._leaving.read()

    def last_words(self) -> bytes:
        """Return the encrypted close_notify for the peer."""
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass
        return self._leaving.read()

    def say_end(self, sock: socket.socket) -> None:
        """Send close_notify as far as the socket takes it; OSError."""
        self._unsent += self.last_words()
        if self._unsent:
            del self._unsent[: sock.send(self._unsent)]


class RecordCounter:
    """A counter of whole TLS records in a stream of bytes."""

    __slots__ = ("_header", "_left")

    def __init__(self) -> None:
        #: Bytes of the present record that are still to come, and the beginning of a cut header.
        self._left = 0
        self._header = b""

    def count(self, data: bytes) -> int:
        """Return the number of records that end in ``data``."""
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
    """Return ``tls-server-end-point`` for a server's certificate (RFC 5929, 4.1); b"" if it is undefined."""
    try:
        digest = certificate.signature_hash_algorithm
    except UNREADABLE:
        return b""
    if digest is None:
        return b""  # such as Ed25519, for which the RFC has no rule
    if isinstance(digest, hashes.MD5 | hashes.SHA1):
        digest = hashes.SHA256()
    return hashlib.new(digest.name, certificate.public_bytes(Encoding.DER)).digest()


def alert_of(error: ssl.SSLError) -> str:
    """Return the alert that the peer sent, named as in RFC 8446; "" if it sent none."""
    _, found, alert = (error.reason or "").partition("_ALERT_")
    return alert.lower() if found else ""


def explain(error: ssl.SSLError) -> str:
    """Return the fault in OpenSSL's fixed words, which contain nothing of the peer's."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: the certificate cannot be verified: {error.verify_message}"[:200]
    return f"TLS: {(error.reason or 'failed').replace('_', ' ').lower()}"[:200]


def _verified_chain(tls: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the verified chain in DER; the method is public only from Python 3.13 on."""
    if hasattr(tls, "get_verified_chain"):
        return tuple(tls.get_verified_chain())
    below: Any = tls._sslobj  # type: ignore[attr-defined]
    return tuple(ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in below.get_verified_chain() or ())


async def _receive(sock: socket.socket, waits: SocketWaits) -> bytes:
    while True:
        try:
            return sock.recv(READ_BYTES)
        except BlockingIOError:
            await waits.wait_readable(sock)
