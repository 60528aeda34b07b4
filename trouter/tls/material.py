"""Reads and verifies the files of an sslProfile before any connection needs them (security.md R-2.1a, R-2.1c).

Reading blocks, so callers do it in a thread. ``stamp`` shows whether a file has changed since.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from trouter.config import SslProfileEntity
from trouter.config.files import opened, read_name_map, reason
from trouter.config.schema import BadValue
from trouter.hooks.certificates import UNREADABLE

from .hostnames import host_names_in
from .problems import TlsProblem
from .revocation import Revocations, revocations_of

#: Limits of one file of certificates or revocations, and of such files in a directory.
MAX_FILE_BYTES: Final = 64 << 20
MAX_FILES: Final = 10_000

#: The state of files: path, and size, times and inode, or None for a missing file.
Stamp = tuple[tuple[str, tuple[int, int, int, int] | None], ...]


@dataclass(frozen=True, slots=True)
class Material:
    """The contents of one profile's files."""

    stamp: Stamp
    #: The issuers in ``caCertFile`` that are trusted for peers.
    authorities: tuple[x509.Certificate, ...]
    #: The profile's own certificate, and those after it in the file.
    chain: tuple[x509.Certificate, ...]
    #: Other names for users.
    names: Mapping[str, str]
    #: Revocation lists; None without ``crlFile``.
    revocations: Revocations | None

    @property
    def server_names(self) -> tuple[str, ...]:
        """The names of hosts in the profile's own certificate: in subjectAltName, else its common names."""
        return host_names_in(self.chain[0]) if self.chain else ()

    @property
    def ends_at_s(self) -> float | None:
        """When the profile's own certificate expires, in seconds since 1970; None without one."""
        return self.chain[0].not_valid_after_utc.timestamp() if self.chain else None


def read_material(profile: SslProfileEntity, now_s: float) -> Material:
    """Read all files that ``profile`` names; TlsProblem for the first that is unusable."""
    stamp = stamp_of(profile)
    authorities = authorities_in(profile.ca_cert_file, "caCertFile") if profile.ca_cert_file else ()
    return Material(
        stamp,
        authorities,
        _own_chain(profile.cert_file, now_s) if profile.cert_file else (),
        _names(profile.uid_name_mapping_file) if profile.uid_name_mapping_file else MappingProxyType({}),
        revocations_of(contents_of(profile.crl_file, "crlFile"), authorities) if profile.crl_file else None,
    )


def stamp_of(profile: SslProfileEntity) -> Stamp:
    """Return the state of the files that ``profile`` names; never raises for missing ones."""
    named = (
        profile.ca_cert_file,
        profile.cert_file,
        profile.private_key_file,
        profile.password_file,
        profile.uid_name_mapping_file,
        profile.crl_file,
    )
    return stamp_of_paths(path for path in named if path)


def stamp_of_paths(paths: Iterable[str]) -> Stamp:
    """Return the state of files, and of directories with their files."""
    stamp: list[tuple[str, tuple[int, int, int, int] | None]] = []
    for path in paths:
        stamp.append((path, _state(path)))
        if Path(path).is_dir():
            stamp += [(each, _state(each)) for each in _files_in(path)]
    return tuple(stamp)


def authorities_in(path: str, attribute: str) -> tuple[x509.Certificate, ...]:
    """Return the certificates in a file, or in all files of a directory; TlsProblem if there are none."""
    found: dict[bytes, x509.Certificate] = {}
    for content in contents_of(path, attribute):
        if b"-----BEGIN CERTIFICATE-----" in content:
            for certificate in _certificates(content, attribute):
                found.setdefault(certificate.public_bytes(Encoding.DER), certificate)
    if not found:
        raise TlsProblem(attribute, f"there is no certificate in {path}")
    return tuple(found.values())


def contents_of(path: str, attribute: str) -> list[bytes]:
    """Return the contents of a file, or of all files in a directory; TlsProblem."""
    if not Path(path).is_dir():
        return [_read(path, attribute)]
    files = _files_in(path)
    if len(files) > MAX_FILES:
        raise TlsProblem(attribute, f"there are more than {MAX_FILES} files in {path}")
    return [_read(each, attribute) for each in files]


def _own_chain(path: str, now_s: float) -> tuple[x509.Certificate, ...]:
    chain = _certificates(_read(path, "certFile"), "certFile")
    if not chain:
        raise TlsProblem("certFile", f"there is no certificate in {path}")
    now = datetime.fromtimestamp(now_s, UTC)
    try:
        begins, ends = chain[0].not_valid_before_utc, chain[0].not_valid_after_utc
    except UNREADABLE as error:
        raise TlsProblem("certFile", f"the certificate cannot be read: {error}"[:300]) from None
    if ends < now:
        raise TlsProblem("certFile", f"the certificate ended on {ends:%Y-%m-%d %H:%M} UTC")
    if begins > now:
        raise TlsProblem("certFile", f"the certificate begins on {begins:%Y-%m-%d %H:%M} UTC")
    return tuple(chain)


def _certificates(content: bytes, attribute: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except UNREADABLE as error:
        raise TlsProblem(attribute, f"a certificate cannot be read: {error}"[:300]) from None


def _names(path: str) -> Mapping[str, str]:
    try:
        return read_name_map(path)
    except BadValue as bad:
        raise TlsProblem("uidNameMappingFile", bad.message) from None


def _read(path: str, attribute: str) -> bytes:
    try:
        with opened(path) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as failure:
        raise TlsProblem(attribute, f"{path} cannot be read: {reason(failure)}") from None
    if len(content) > MAX_FILE_BYTES:
        raise TlsProblem(attribute, f"{path} is larger than {MAX_FILE_BYTES} bytes")
    return content


def _files_in(folder: str) -> list[str]:
    """Return the regular files of a directory by name, at most MAX_FILES + 1; [] if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(islice((entry.path for entry in entries if entry.is_file()), MAX_FILES + 1))
    except OSError:
        return []


def _state(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
