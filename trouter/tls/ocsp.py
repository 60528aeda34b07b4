"""Queries an OCSP responder about the revocation of a certificate (RFC 6960).

The certificate names the responder, and an authority that we trust has signed the certificate. An answer counts if that
authority or a responder that it appointed signed it, and if it is in force. The query is one small request; no
redirection is followed, and nothing of the answer reaches the peer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import h11
import trio
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, ExtensionOID

from trouter._fetch import exchange
from trouter.net.sockets import look_up

MAX_ANSWER_BYTES: Final = 65536
#: Tolerated difference of clocks.
LEEWAY: Final = timedelta(minutes=5)
#: Age up to which an answer without an end of validity counts.
MAX_AGE: Final = timedelta(days=1)


class RevocationStatus(Enum):
    """The revocation status of a certificate."""

    GOOD = "good"
    REVOKED = "revoked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OcspAnswer:
    """The result of a query; ``why`` it is not GOOD."""

    standing: RevocationStatus
    why: str = ""
    #: The responder could not be reached.
    dead: bool = False


async def query(
    leaf: x509.Certificate, issuer: x509.Certificate, now_s: float, threads: trio.CapacityLimiter
) -> OcspAnswer:
    """Query the responder that ``leaf`` names; every failure gives UNKNOWN. The caller sets a deadline.

    ``threads`` limits the look-ups of its name.
    """
    url = responder_of(leaf)
    if url is None:
        return OcspAnswer(RevocationStatus.UNKNOWN, "the certificate names no OCSP responder")
    try:
        # The digest only names the issuer to the responder, and every responder supports SHA-1.
        question = ocsp.OCSPRequestBuilder().add_certificate(leaf, issuer, hashes.SHA1()).build()  # noqa: S303
        answer = ocsp.load_der_ocsp_response(await _post(url, question.public_bytes(Encoding.DER), threads))
        if answer.response_status is not ocsp.OCSPResponseStatus.SUCCESSFUL:
            return OcspAnswer(RevocationStatus.UNKNOWN, "the OCSP responder gave no answer")
        return _judged(answer, leaf, issuer, datetime.fromtimestamp(now_s, UTC))
    except (OSError, trio.BrokenResourceError, h11.ProtocolError):
        return OcspAnswer(RevocationStatus.UNKNOWN, "the OCSP responder cannot be reached", dead=True)
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature):
        return OcspAnswer(RevocationStatus.UNKNOWN, "the answer of the OCSP responder cannot be verified")


def responder_of(leaf: x509.Certificate) -> str | None:
    """Return the first ``http`` URL of a responder in the certificate, or None."""
    try:
        access = leaf.extensions.get_extension_for_oid(ExtensionOID.AUTHORITY_INFORMATION_ACCESS).value
    except (x509.ExtensionNotFound, ValueError):
        return None
    if not isinstance(access, x509.AuthorityInformationAccess):
        return None
    for description in access:
        location = description.access_location
        wanted = description.access_method == AuthorityInformationAccessOID.OCSP
        if wanted and isinstance(location, x509.UniformResourceIdentifier) and location.value.startswith("http://"):
            return location.value
    return None


async def _post(url: str, question: bytes, threads: trio.CapacityLimiter) -> bytes:
    """Return the body of the answer to ``question``; OSError, BrokenResourceError, h11.ProtocolError, ValueError."""
    parts = urlsplit(url)
    if not parts.hostname or parts.username is not None:
        raise ValueError("a URL without a host, or with a user")
    headers = [("Content-Type", "application/ocsp-request")]
    async with await _reach(parts.hostname, parts.port or 80, threads) as stream:
        return await exchange(stream, "POST", url, headers, question, max_bytes=MAX_ANSWER_BYTES)


async def _reach(host: str, port: int, threads: trio.CapacityLimiter) -> trio.SocketStream:
    """Return a connection to the first address that accepts it, without special addresses; OSError."""
    failure = OSError("no address")
    for *_, address in await look_up(host, port, None, limiter=threads):
        where = ip_address(address[0].partition("%")[0])
        where = getattr(where, "ipv4_mapped", None) or where
        if where.is_link_local or where.is_multicast or where.is_unspecified:
            continue  # clouds keep secrets of their machines at such addresses, and no responder has one
        try:
            return await trio.open_tcp_stream(address[0], port)
        except OSError as error:
            failure = error
    raise failure


def _judged(answer: ocsp.OCSPResponse, leaf: x509.Certificate, issuer: x509.Certificate, now: datetime) -> OcspAnswer:
    """Return the status in a verified answer; ValueError, TypeError, InvalidSignature if it proves nothing."""
    _check_signature(answer, issuer, now)
    for single in answer.responses:
        if single.serial_number != leaf.serial_number or single.issuer_key_hash != _key_hash(single, issuer):
            continue
        until = single.next_update_utc or single.this_update_utc + MAX_AGE
        if not single.this_update_utc - LEEWAY <= now <= until + LEEWAY:
            return OcspAnswer(RevocationStatus.UNKNOWN, "the OCSP responder's answer is out of date")
        if single.certificate_status is ocsp.OCSPCertStatus.REVOKED:
            return OcspAnswer(RevocationStatus.REVOKED, "the certificate is revoked")
        if single.certificate_status is ocsp.OCSPCertStatus.GOOD:
            return OcspAnswer(RevocationStatus.GOOD)
        return OcspAnswer(RevocationStatus.UNKNOWN, "the OCSP responder does not know the certificate")
    return OcspAnswer(RevocationStatus.UNKNOWN, "the OCSP responder's answer is about another certificate")


def _key_hash(single: ocsp.OCSPSingleResponse, issuer: x509.Certificate) -> bytes:
    """Return the hash of the issuer's key as in the question; ValueError if the answer uses another digest."""
    if not isinstance(single.hash_algorithm, hashes.SHA1):
        raise ValueError("a digest that was not asked with")
    return x509.SubjectKeyIdentifier.from_public_key(issuer.public_key()).digest


def _check_signature(answer: ocsp.OCSPResponse, issuer: x509.Certificate, now: datetime) -> None:
    for signer in (issuer, *_appointed(answer, issuer, now)):
        try:
            _verify(signer.public_key(), answer)
        except InvalidSignature:
            continue
        return
    raise InvalidSignature


def _appointed(answer: ocsp.OCSPResponse, issuer: x509.Certificate, now: datetime) -> list[x509.Certificate]:
    """Return the certificates that the issuer has appointed to sign for it (RFC 6960, 4.2.2.2)."""
    appointed = []
    for certificate in answer.certificates[:4]:
        try:
            certificate.verify_directly_issued_by(issuer)
            usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound):
            continue
        in_force = certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc
        if in_force and ExtendedKeyUsageOID.OCSP_SIGNING in usage:
            appointed.append(certificate)
    return appointed


def _verify(key: object, answer: ocsp.OCSPResponse) -> None:
    """Verify the signature of an answer; InvalidSignature, TypeError for an unsupported key."""
    signature, signed, digest = answer.signature, answer.tbs_response_bytes, answer.signature_hash_algorithm
    if isinstance(key, rsa.RSAPublicKey) and digest is not None:
        key.verify(signature, signed, padding.PKCS1v15(), digest)
    elif isinstance(key, ec.EllipticCurvePublicKey) and digest is not None:
        key.verify(signature, signed, ec.ECDSA(digest))
    elif isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
        key.verify(signature, signed)
    else:
        raise TypeError("a kind of key that signs no answers")
