"""Make certificates for tests: authorities, servers, clients, and revocation lists."""

from __future__ import annotations

import itertools
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
from cryptography.x509.oid import AuthorityInformationAccessOID, NameOID

OIDS = {
    "C": NameOID.COUNTRY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "L": NameOID.LOCALITY_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "CN": NameOID.COMMON_NAME,
}
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
    """A certificate authority; ``file`` has its own certificate."""

    def __init__(self, folder: Path, name: str = "Test Authority", signed_by: Authority | None = None) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = name_of(f"CN={name}")
        self.issuer = signed_by or self
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            self.issuer.subject, self.subject, self.key.public_key(), next(_numbers), now - DAY, now + 400 * DAY
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = builder.sign(self.issuer.key, hashes.SHA256())
        self.file = folder / f"{name.replace(' ', '-')}-{next(_numbers)}.pem"
        self.file.write_bytes(self.certificate.public_bytes(Encoding.PEM))

    def issue(
        self,
        subject: str,
        *sans: str,
        days: float = 30,
        begins: float = -1,
        password: str = "",
        ocsp: str = "",
        key: ec.EllipticCurvePrivateKey | None = None,
    ) -> Pair:
        """Issue a certificate for names and addresses; it begins and ends after ``begins`` and ``days`` days."""
        return self.issue_for(name_of(subject), *sans, days=days, begins=begins, password=password, ocsp=ocsp, key=key)

    def issue_for(
        self,
        subject: x509.Name,
        *sans: str,
        days: float = 30,
        begins: float = -1,
        password: str = "",
        ocsp: str = "",
        key: ec.EllipticCurvePrivateKey | None = None,
    ) -> Pair:
        """Issue a certificate as ``issue`` does, for any subject."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            self.subject, subject, key.public_key(), next(_numbers), now + begins * DAY, now + days * DAY
        )
        if sans:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general(san) for san in sans]), False)
        if ocsp:
            access = x509.AccessDescription(AuthorityInformationAccessOID.OCSP, x509.UniformResourceIdentifier(ocsp))
            builder = builder.add_extension(x509.AuthorityInformationAccess([access]), False)
        certificate = builder.sign(self.key, hashes.SHA256())
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
        path.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM))
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
