"""Maps a client certificate to a user by the ``uidFormat`` and ``uidNameMappingFile`` of the sslProfile.

Each letter of the format is a part of the certificate; parts are joined by ``;`` in the order of the letters. Of a part
that occurs several times the first one counts. Without a format, or if the certificate has none of the parts, the user
is the whole subject. The mapping may give the result another name.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from trouter.hooks import CertificateFacts, Refused, SslProfileFacts, hookimpl

SEPARATOR: Final = ";"
#: Letter -> the attribute of a subject (RFC 4519).
FIELDS: Final = {"c": "2.5.4.6", "s": "2.5.4.8", "l": "2.5.4.7", "o": "2.5.4.10", "u": "2.5.4.11", "n": "2.5.4.3"}
DIGESTS: Final = {"1": "sha1", "2": "sha256", "5": "sha512"}
#: Characters that no name may have: a log's reader, or a comparison that ends at a NUL, would see another name.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@hookimpl
def map_uid(certificate: CertificateFacts, profile: SslProfileFacts) -> str | Refused | None:
    try:
        uid = uid_of(certificate, profile)
    except Unfit as unfit:
        return Refused(str(unfit))
    return profile.names.get(uid) or uid


class Unfit(Exception):
    """The certificate stands for no user; the text says why, without quoting it."""


def uid_of(certificate: CertificateFacts, profile: SslProfileFacts) -> str:
    """Return the user before any mapping; Unfit if there is none."""
    parts = [part for part in _parts(certificate, profile) if part is not None]
    if _CONTROL.search("".join(parts)):
        raise Unfit("a part of the certificate that makes the user has control characters")
    if profile.uid_escape:
        parts = [part.replace("\\", "\\\\").replace(SEPARATOR, f"\\{SEPARATOR}") for part in parts]
    if any(parts):
        return SEPARATOR.join(parts)
    if not certificate.subject:
        raise Unfit("the certificate has no subject")
    return certificate.subject


def _parts(certificate: CertificateFacts, profile: SslProfileFacts) -> list[str | None]:
    """Return the parts for the letters of the format, None for one to leave out; Unfit."""
    if not profile.uid_format:
        return []
    # Where there is TLS these are loaded already, elsewhere never.
    from cryptography import x509  # noqa: PLC0415

    from trouter.hooks.certificates import UNREADABLE  # noqa: PLC0415

    try:
        subject = x509.load_der_x509_certificate(certificate.der).subject
    except UNREADABLE:
        raise Unfit("the certificate cannot be read") from None
    parts: list[str | None] = []
    for letter in profile.uid_format:
        if letter in DIGESTS:
            parts.append(hashlib.new(DIGESTS[letter], certificate.der).hexdigest())
            continue
        values = subject.get_attributes_for_oid(x509.ObjectIdentifier(FIELDS[letter]))
        if values:
            value = values[0].value
            parts.append(value if isinstance(value, str) else value.hex())
        elif profile.uid_missing == "reject":
            raise Unfit(f"the certificate has no part for the letter {letter} of uidFormat")
        else:
            parts.append("" if profile.uid_missing == "empty" else None)
    return parts
