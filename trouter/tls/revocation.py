"""Certificate revocation lists (RFC 5280, 5), and the check of a chain against them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from trouter.hooks.certificates import UNREADABLE

from .problems import TlsProblem

_PEM: Final = b"-----BEGIN X509 CRL-----"
_PEM_END: Final = b"-----END X509 CRL-----"


@dataclass(frozen=True, slots=True)
class RevocationList:
    """The certificates that one authority has revoked, and the end of the list's validity, in seconds since 1970."""

    serials: frozenset[int]
    good_until_s: float


class Revocations:
    """The lists of all authorities, by issuer."""

    def __init__(self, lists: Iterable[tuple[x509.Name, RevocationList]]) -> None:
        self._lists: dict[bytes, list[RevocationList]] = {}
        for issuer, each in lists:
            self._lists.setdefault(issuer.public_bytes(), []).append(each)

    def problem(self, chain: Sequence[x509.Certificate], now_s: float, *, required: bool) -> str:
        """Return why ``chain``, the leaf first, is not valid; "" if it is.

        If ``required``, each certificate's issuer must have a list in force.
        """
        for certificate in chain:
            if certificate.issuer == certificate.subject:
                continue  # a root, which the operator trusts directly
            lists = self._lists.get(certificate.issuer.public_bytes(), ())
            if any(certificate.serial_number in each.serials for each in lists):
                return "the certificate, or one of its issuers, is revoked"
            if required and not any(now_s < each.good_until_s for each in lists):
                return "no current revocation list covers the certificate"
        return ""

    def ended(self, now_s: float) -> int:
        """Return the number of lists that have expired."""
        return sum(each.good_until_s <= now_s for lists in self._lists.values() for each in lists)


def revocations_of(files: Iterable[bytes], authorities: Sequence[x509.Certificate]) -> Revocations:
    """Return the lists in these files, PEM or DER; TlsProblem, also for a list that none of the authorities signed."""
    found = [each for content in files for each in _lists_in(content)]
    if not found:
        raise TlsProblem("crlFile", "the file has no revocation list")
    try:
        return Revocations((each.issuer, _judged(each, authorities)) for each in found)
    except UNREADABLE as error:
        raise TlsProblem("crlFile", f"a revocation list cannot be read: {error}"[:300]) from None


def _lists_in(content: bytes) -> list[x509.CertificateRevocationList]:
    try:
        if _PEM not in content:
            return [x509.load_der_x509_crl(content)]
        pieces = content.split(_PEM)[1:]
        return [x509.load_pem_x509_crl(_PEM + piece.partition(_PEM_END)[0] + _PEM_END) for piece in pieces]
    except UNREADABLE as error:
        raise TlsProblem("crlFile", f"a revocation list cannot be read: {error}"[:300]) from None


def _judged(revoked: x509.CertificateRevocationList, authorities: Sequence[x509.Certificate]) -> RevocationList:
    """Return the list's contents; TlsProblem if no trusted authority signed it, or an extension is unsupported.

    UNREADABLE for a part that cannot be read.
    """
    who = revoked.issuer.rfc4514_string()[:200]
    if not any(_signed_by(revoked, authority) for authority in authorities):
        raise TlsProblem("crlFile", f"no authority in caCertFile signed the revocation list of {who}")
    for extension in revoked.extensions:
        if extension.critical:  # delta and indirect lists, and lists of some reasons only
            raise TlsProblem(
                "crlFile",
                f"the revocation list of {who} is a delta, indirect or partial list, which the router cannot use",
            )
    until = revoked.next_update_utc
    return RevocationList(
        frozenset(each.serial_number for each in revoked), float("inf") if until is None else until.timestamp()
    )


def _signed_by(revoked: x509.CertificateRevocationList, authority: x509.Certificate) -> bool:
    try:
        named = authority.subject == revoked.issuer
        return named and revoked.is_signature_valid(authority.public_key())  # type: ignore[arg-type]  # TypeError
    except (InvalidSignature, *UNREADABLE):
        return False
