"""A certificate authority in a folder, for development and for small sites: its key lies beside what it signs.

`ca.crt` and `ca.key` are the authority; each other name has a `.crt` and a `.key`. Keys are EC P-256, readable by their
owner only. Nothing is overwritten unless told to, and a certificate is always replaced in one step.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trouter.hooks.certificates import UNREADABLE
from trouter.tools.files import create, replace

#: The authority's own name among the files.
CA: Final = "ca"
CA_DAYS: Final = 3650
#: The longest validity that common software accepts for a server's certificate.
LEAF_DAYS: Final = 397
KEY_MODE: Final = 0o600
CERTIFICATE_MODE: Final = 0o644
#: Certificates are valid from this much earlier on, as clocks differ.
EARLIER: Final = dt.timedelta(minutes=5)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
_HOST: Final = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
#: Purpose -> extended key usage; a router is a server to peers that dial it, and a client to those that it dials.
_USAGES: Final = {
    "server": (ExtendedKeyUsageOID.SERVER_AUTH,),
    "client": (ExtendedKeyUsageOID.CLIENT_AUTH,),
    "router": (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH),
}


class AuthorityError(Exception):
    """The authority cannot do what was requested; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Issued:
    """One certificate in the folder."""

    name: str
    #: "ca", "server", "client" or "router".
    purpose: str
    hosts: tuple[str, ...]
    expires: dt.datetime


class Authority:
    """The authority in ``folder``; every method may raise AuthorityError or OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def found(self, common_name: str, days: int = CA_DAYS, *, force: bool = False) -> Path:
        """Make the authority; return the path of its certificate."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not force:
            self._must_be_new(CA)
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(common_name)
        certificate = (
            _builder(subject, subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        self._write_key(CA, key, force)
        return self._write_certificate(CA, certificate)

    def issue(
        self, name: str, purpose: str, hosts: Iterable[str] = (), days: int = LEAF_DAYS, *, force: bool = False
    ) -> Path:
        """Make a key and a certificate for ``purpose`` "server", "client" or "router"; return its path."""
        check_name(name)
        names = [_host(host) for host in hosts]
        issuer, signer = self._authority()
        if not force:
            self._must_be_new(name)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_subject(name), issuer.subject, key.public_key(), days).add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(_USAGES[purpose]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = _signed_by(builder, issuer, signer)
        self._write_key(name, key, force)
        return self._write_certificate(name, certificate)

    def renew(self, name: str, days: int | None = None) -> Path:
        """Issue a certificate for the same key, like the present one but valid from now on; return its path.

        ``days`` default to the validity of the present one. One file is replaced in one step, so a reader never sees a
        certificate that does not fit the key.
        """
        check_name(name)
        issuer, signer = self._authority()
        old = self._certificate(name)
        try:
            old.verify_directly_issued_by(issuer)
            extensions, span = old.extensions, old.not_valid_after_utc - old.not_valid_before_utc
        except (InvalidSignature, *UNREADABLE):
            raise AuthorityError(f"{self.folder / name}.crt was not issued by this authority") from None
        builder = _builder(old.subject, issuer.subject, self._key(name).public_key(), days or span.days)
        for extension in extensions:
            if not isinstance(extension.value, x509.SubjectKeyIdentifier | x509.AuthorityKeyIdentifier):
                builder = builder.add_extension(extension.value, extension.critical)
        return self._write_certificate(name, _signed_by(builder, issuer, signer))

    def issued(self) -> Iterator[Issued]:
        """Yield every certificate in the folder, the authority's first; AuthorityError if there is no folder."""
        if not self.folder.is_dir():
            raise AuthorityError(f"there is no folder {self.folder}: make an authority with `trouter certs ca`")
        paths = sorted(self.folder.glob("*.crt"), key=lambda path: (path.stem != CA, path.stem))
        for path in paths:
            certificate = self._certificate(path.stem)
            try:
                hosts = tuple(_hosts_of(certificate))
                issued = Issued(path.stem, _purpose_of(certificate), hosts, certificate.not_valid_after_utc)
            except UNREADABLE as error:
                raise AuthorityError(f"{path} holds a certificate that cannot be read: {error}"[:300]) from None
            yield issued

    def names(self) -> list[str]:
        """Return the names of all certificates but the authority's own."""
        return [issued.name for issued in self.issued() if issued.purpose in _USAGES]

    # --- files

    def _authority(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        if not (self.folder / f"{CA}.key").exists():
            raise AuthorityError(f"there is no authority in {self.folder}: make one with `trouter certs ca`")
        return self._certificate(CA), self._key(CA)

    def _certificate(self, name: str) -> x509.Certificate:
        path = self.folder / f"{name}.crt"
        try:
            return x509.load_pem_x509_certificate(path.read_bytes())
        except UNREADABLE:
            raise AuthorityError(f"{path} holds no certificate") from None

    def _key(self, name: str) -> ec.EllipticCurvePrivateKey:
        path = self.folder / f"{name}.key"
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), None)
        except (ValueError, TypeError):
            raise AuthorityError(f"{path} holds no private key that can be read without a password") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise AuthorityError(f"{path} holds a key of another type than this authority uses")
        return key

    def _must_be_new(self, name: str) -> None:
        for path in (self.folder / f"{name}.key", self.folder / f"{name}.crt"):
            if path.exists():
                raise AuthorityError(f"{path} exists already: --force replaces it, `trouter certs renew` keeps the key")

    def _write_key(self, name: str, key: ec.EllipticCurvePrivateKey, force: bool) -> None:
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path = self.folder / f"{name}.key"
        if force:
            replace(path, pem, KEY_MODE)
        else:
            create(path, pem, KEY_MODE)

    def _write_certificate(self, name: str, certificate: x509.Certificate) -> Path:
        path = self.folder / f"{name}.crt"
        replace(path, certificate.public_bytes(serialization.Encoding.PEM), CERTIFICATE_MODE)
        return path


def check_name(name: str) -> None:
    """Raise AuthorityError if ``name`` cannot be the name of files and a subject."""
    if not _NAME.fullmatch(name) or name.lower() == CA:
        raise AuthorityError(f"{name!r} cannot be a name: letters, digits and . _ @ -, at most 64, and not `{CA}`")


def _subject(common_name: str) -> x509.Name:
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    except ValueError:
        raise AuthorityError("a name has 1 to 64 characters") from None


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _signed_by(
    builder: x509.CertificateBuilder, issuer: x509.Certificate, signer: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    if issuer.public_key() != signer.public_key():
        raise AuthorityError("the authority's key and its certificate do not belong together")
    return builder.add_extension(identifier, critical=False).sign(signer, hashes.SHA256())


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        if not _HOST.fullmatch(text):
            raise AuthorityError(f"{text!r} is neither a host name nor an address") from None
        return x509.DNSName(text)


def _hosts_of(certificate: x509.Certificate) -> Iterator[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    yield from (str(name.value) for name in names)


def _purpose_of(certificate: x509.Certificate) -> str:
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return CA
    return next((purpose for purpose, usages in _USAGES.items() if set(usages) == set(usage)), "?")
