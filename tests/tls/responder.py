"""An OCSP responder in the test's own event loop, whose answers a test can falsify."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self

import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.tls.pki import DAY, Authority, name_of

HOUR = timedelta(hours=1)


@dataclass
class Responder:
    """A responder that answers for ``authority`` as the test sets; ``asked`` has the serial numbers of the requests."""

    authority: Authority
    status: ocsp.OCSPCertStatus | None = ocsp.OCSPCertStatus.GOOD
    #: Hours since the answer was made, and hours that it is valid.
    age: int = 0
    holds: int = 1
    #: The certificate and key that sign; None for the authority's.
    signer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None = None
    #: Sent in place of the answer, if not empty; None sends nothing.
    data: bytes | None = b""
    #: The certificate that the answer is about, if not the requested one.
    mistaken: x509.Certificate | None = None
    #: The hash of the issuer's key in the answer, if not the requested one.
    issuer_key_hash: bytes = b""
    asked: list[int] = field(default_factory=list)
    port: int = 0
    path: str = "/ocsp"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer the request of one connection."""
        async with stream:
            received = b""
            while b"\r\n\r\n" not in received:
                received += await stream.receive_some()
            head, _, body = received.partition(b"\r\n\r\n")
            assert head.startswith(b"POST /ocsp HTTP/1.1\r\n")
            size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
            while len(body) < size:
                body += await stream.receive_some()
            question = ocsp.load_der_ocsp_request(body)
            self.asked.append(question.serial_number)
            if self.data is None:
                await trio.sleep_forever()
            try:
                await stream.send_all(self.data or self._answer(question))
            except trio.BrokenResourceError:
                pass  # the client has closed the connection

    def _answer(self, question: ocsp.OCSPRequest) -> bytes:
        data = self._signed(question).public_bytes(Encoding.DER)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\nContent-Length: {len(data)}\r\n\r\n"
        return head.encode() + data

    def _signed(self, question: ocsp.OCSPRequest) -> ocsp.OCSPResponse:
        if self.status is None:
            return ocsp.OCSPResponseBuilder.build_unsuccessful(ocsp.OCSPResponseStatus.TRY_LATER)
        certificate, key = self.signer or (self.authority.certificate, self.authority.key)
        made = datetime.now(UTC) - self.age * HOUR
        revoked = self.status is ocsp.OCSPCertStatus.REVOKED
        number = question.serial_number if self.mistaken is None else self.mistaken.serial_number
        builder = ocsp.OCSPResponseBuilder().add_response_by_hash(
            issuer_name_hash=question.issuer_name_hash,
            issuer_key_hash=self.issuer_key_hash or question.issuer_key_hash,
            serial_number=number,
            algorithm=question.hash_algorithm,
            cert_status=self.status,
            this_update=made,
            next_update=made + self.holds * HOUR,
            revocation_time=made if revoked else None,
            revocation_reason=None,
        )
        builder = builder.responder_id(ocsp.OCSPResponderEncoding.HASH, certificate)
        if self.signer is not None:
            builder = builder.certificates([certificate])
        return builder.sign(key, hashes.SHA256())

    @classmethod
    @asynccontextmanager
    async def running(cls, authority: Authority) -> AsyncIterator[Self]:
        """Run a responder on a port of its own."""
        responder = cls(authority)
        async with trio.open_nursery() as nursery:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            responder.port = listener.socket.getsockname()[1]
            nursery.start_soon(trio.serve_listeners, responder.serve, [listener])
            yield responder
            nursery.cancel_scope.cancel()


def appointed(
    authority: Authority, *, may_sign: bool = True, days: int = 1
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Return a responder's certificate by the authority and its key, valid for ``days`` (below 0: expired).

    Without ``may_sign`` it lacks the right to sign OCSP answers.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        authority.subject, name_of("CN=responder"), key.public_key(), 77, now - 3 * DAY, now + days * DAY
    )
    if may_sign:
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.OCSP_SIGNING]), False)
    return builder.sign(authority.key, hashes.SHA256()), key
