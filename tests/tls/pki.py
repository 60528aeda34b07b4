"""Make certificates for tests: authorities, servers, clients, and revocation lists."""

from __future__ import annotations

import itertools
from copy import copy
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

OIDS = {
    "C": NameOID.COUNTRY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "L": NameOID.LOCALITY_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "CN": NameOID.COMMON_NAME,
}
#: An extension of a private enterprise, which nobody knows.
UNKNOWN_EXTENSION = x509.ObjectIdentifier("1.3.6.1.4.1.99999.1")
DAY = timedelta(days=1)
_numbers = itertools.count(1)


def name_of(text: str) -> x509.Name:
    """Return the name of ``C=US,CN=alice``, in the order of the encoding."""
    pairs = (part.split("=", 1) for part in text.split(","))
    return x509.Name([x509.NameAttribute(OIDS[key], value) for key, value in pairs])


class Pair(NamedTuple):
    """A certificate and its key, in files."""

    cert: Path
    key: Path
    certificate: x509.Certificate


class Authority:
    """A certificate authority; ``file`` has its own certificate, which is ``padding`` octets larger than needed.

    One with ``key_ids`` is told by its key from another one of its name, as all public ones are (RFC 5280, 4.2.1.1).
    Its keys and signatures, and the keys that it makes, have 192 bits of security if it is ``strong``, else 128.
    """

    def __init__(
        self,
        folder: Path,
        name: str = "Test Authority",
        signed_by: Authority | None = None,
        *,
        padding: int = 0,
        key_ids: bool = False,
        strong: bool = False,
    ) -> None:
        self.folder = folder
        self.curve: ec.EllipticCurve = ec.SECP384R1() if strong else ec.SECP256R1()
        self.digest: hashes.SHA256 | hashes.SHA384 = hashes.SHA384() if strong else hashes.SHA256()
        self.key = ec.generate_private_key(self.curve)
        self.subject = name_of(f"CN={name}")
        self.issuer = signed_by or self
        self._key_ids = key_ids
        self._certify(padding)

    def _certify(self, padding: int = 0) -> None:
        """Make its certificate, signed by its issuer."""
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            self.issuer.subject, self.subject, self.key.public_key(), next(_numbers), now - DAY, now + 400 * DAY
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        if self._key_ids:
            builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False)
        if padding:
            builder = builder.add_extension(x509.UnrecognizedExtension(UNKNOWN_EXTENSION, bytes(padding)), False)
        self.certificate = builder.sign(self.issuer.key, self.issuer.digest)
        self.file = self.folder / f"authority-{next(_numbers)}.pem"
        self.file.write_bytes(self.certificate.public_bytes(Encoding.PEM))

    def renewed(self) -> Authority:
        """Return this authority with a new certificate of the same name and key, in a file of its own."""
        found = copy(self)
        found.issuer = found if self.issuer is self else self.issuer
        found._certify()
        return found

    def issue(
        self,
        subject: str,
        *sans: str,
        days: float = 365,
        begins: float = -1,
        password: str = "",
        key: ec.EllipticCurvePrivateKey | None = None,
    ) -> Pair:
        """Issue a certificate for names and addresses; it begins and ends after ``begins`` and ``days`` days."""
        return self.issue_for(name_of(subject), *sans, days=days, begins=begins, password=password, key=key)

    def issue_for(
        self,
        subject: x509.Name,
        *sans: str,
        days: float = 365,
        begins: float = -1,
        password: str = "",
        key: ec.EllipticCurvePrivateKey | None = None,
    ) -> Pair:
        """Issue a certificate as ``issue`` does, for any subject."""
        key = key or ec.generate_private_key(self.curve)
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            self.subject, subject, key.public_key(), next(_numbers), now + begins * DAY, now + days * DAY
        )
        if sans:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general(san) for san in sans]), False)
        if self._key_ids:
            key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
            builder = builder.add_extension(key_id, False)
        certificate = builder.sign(self.key, self.digest)
        number = next(_numbers)
        pair = Pair(self.folder / f"{number}.pem", self.folder / f"{number}.key", certificate)
        write_pair(pair, certificate, key, password)
        if self.issuer is not self:
            with pair.cert.open("ab") as file:
                file.write(self.certificate.public_bytes(Encoding.PEM))
        return pair

    def revoke(
        self,
        *certificates: x509.Certificate,
        days: float = 1,
        into: Path | None = None,
        extension: x509.ExtensionType | None = None,
    ) -> Path:
        """Write a revocation list that is valid for ``days``; ``extension`` is critical. Return its path."""
        now = datetime.now(UTC)
        begins = min(now, now + (days - 1) * DAY)
        builder = x509.CertificateRevocationListBuilder(self.subject, begins, now + days * DAY)
        for each in certificates:
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder(each.serial_number, now - DAY).build()
            )
        if extension is not None:
            builder = builder.add_extension(extension, critical=True)
        path = into or self.folder / f"{next(_numbers)}.crl"
        path.write_bytes(builder.sign(self.key, self.digest).public_bytes(Encoding.PEM))
        return path


def write_pair(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, password: str = "") -> None:
    pair.cert.write_bytes(certificate.public_bytes(Encoding.PEM))
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    pair.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    pair.key.chmod(0o600)


def _general(san: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(san))
    except ValueError:
        return x509.DNSName(san)
