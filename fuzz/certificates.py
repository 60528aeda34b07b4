"""Any certificate or revocation list that an authority signed is judged and named, or refused with a reason.

The input is the part that is signed; the target signs it, so that nothing stops at the signature. The first byte
chooses certificate or list, and what makes the user. A judged certificate is a user, or refused with the reason.

Allowed: TlsProblem for a list that cannot be used, AuthorityError of the command that lists certificates.
"""

from __future__ import annotations

import ssl
import tempfile
import warnings
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from fuzz.parts import der
from trouter.config import SslProfileEntity
from trouter.hooks import CertificateFacts, Refused, SslProfileFacts
from trouter.hooks.certificates import UNREADABLE
from trouter.testing.fuzz import behind
from trouter.tls.channel import end_point_binding
from trouter.tls.hostnames import host_names_in, is_for
from trouter.tls.loaded import Loaded
from trouter.tls.material import Material
from trouter.tls.names import distinguished_name
from trouter.tls.problems import TlsProblem
from trouter.tls.profiles import Profile, TlsProfiles
from trouter.tls.revocation import revocations_of
from trouter.tools.authority import Authority, AuthorityError
from trouter_plugins.uid_format import map_uid

MUTATOR = behind(1, der.change)
COVERS = (
    "trouter.tls.hostnames",
    "trouter.tls.names",
    "trouter.tls.revocation",
    "trouter.tools.authority",
    "trouter_plugins.uid_format",
)
KEY: Final = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
ED25519: Final = der.encode(0x30, b"\x06\x03\x2b\x65\x70")
#: What the first byte chooses.
LIST, SHOWN = 0x80, 0x40
FORMATS: Final = ("", "n", "cslounn", "1o", "2", "u5")
MISSING: Final = ("skip", "empty", "reject")
NOW_S: Final = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def authority() -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    begins, ends = datetime(2020, 1, 1, tzinfo=UTC), datetime(2060, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 1, begins, ends)
    return builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(KEY, None)


AUTHORITY: Final = authority()
AUTHORITY_OCTETS: Final = AUTHORITY.public_bytes(Encoding.DER)


def signed(content: bytes) -> bytes:
    """Return a certificate or a list in DER, of its signed part."""
    return der.encode(0x30, content + ED25519 + der.encode(0x03, b"\0" + KEY.sign(content)))


def profiles() -> TlsProfiles:
    """Return profiles of which "p" trusts the authority, and has a list of it that revokes number 666."""
    ends = datetime(2060, 1, 1, tzinfo=UTC)
    builder = x509.CertificateRevocationListBuilder(AUTHORITY.subject, datetime(2020, 1, 1, tzinfo=UTC), ends)
    builder = builder.add_revoked_certificate(
        x509.RevokedCertificateBuilder(666, datetime(2020, 1, 1, tzinfo=UTC)).build()
    )
    revoked = revocations_of([builder.sign(KEY, None).public_bytes(Encoding.DER)], (AUTHORITY,))
    entity = SslProfileEntity(name="p", ca_cert_file="authority.pem")
    material = Material((), (AUTHORITY,), (), MappingProxyType({}), revoked)
    loaded = Loaded(entity, material, {}, {"": (AUTHORITY,)}, SslProfileFacts("p"), ())
    made = TlsProfiles(lambda: NOW_S)
    made.replace_profiles({"p": Profile(loaded, frozenset(), ())}, {})
    return made


PROFILES: Final = profiles()
FOLDER: Final = tempfile.TemporaryDirectory()


def check(data: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns of what the standard does not permit, and reads it
        check_one(data)


def check_one(data: bytes) -> None:
    how, octets = (data[0], signed(data[1:])) if data else (0, b"")
    if how & LIST:
        check_list(octets)
        return
    objection = PROFILES.objection((octets, AUTHORITY_OCTETS), "p")
    assert objection.isprintable()
    is_for(octets, "a.example")
    is_for(octets, "::1")
    if how & SHOWN:
        check_shown(octets)
    try:
        certificate = x509.load_der_x509_certificate(octets)
    except UNREADABLE:
        assert objection
        return
    host_names_in(certificate)
    end_point_binding(certificate)
    if not objection:
        revoked = certificate.serial_number == 666 and certificate.issuer == AUTHORITY.subject
        assert not revoked or certificate.issuer == certificate.subject  # a root
        check_user(how, certificate, octets)


def check_user(how: int, certificate: x509.Certificate, octets: bytes) -> None:
    """Check that a judged certificate has a subject in ASCII, and a user without control characters or none."""
    subject = distinguished_name(certificate.subject)
    assert subject.isascii()
    assert subject.isprintable()
    facts = SslProfileFacts("p", FORMATS[how % len(FORMATS)], MISSING[how % len(MISSING)], uid_escape=bool(how & 0x20))
    answer = map_uid(CertificateFacts(subject, octets), facts)
    if isinstance(answer, str):
        assert answer
        assert not any(each < " " or "\x7f" <= each < "\xa0" for each in answer)
    else:
        assert isinstance(answer, Refused)


def check_list(octets: bytes) -> None:
    try:
        revoked = revocations_of([octets], (AUTHORITY,))
    except TlsProblem:
        return
    revoked.problem([AUTHORITY], NOW_S, required=True)
    revoked.ended(NOW_S)


def check_shown(octets: bytes) -> None:
    """Check that the command that lists certificates prints this one, or says that it cannot read it."""
    folder = Path(FOLDER.name)
    text = ssl.DER_cert_to_PEM_cert(octets)
    (folder / "x.crt").write_text(text)
    try:
        (shown,) = Authority(folder).issued()
    except AuthorityError:
        return
    assert shown.name == "x"
