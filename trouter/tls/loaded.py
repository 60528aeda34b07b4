"""An sslProfile ready for use: the contents of its files, and a context for each of its uses."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cryptography import x509

from trouter.config import SslProfileEntity
from trouter.config.trusted import danger_of
from trouter.hooks import SslProfileFacts

from .contexts import ClientUse, ServerUse, Use, client_context, server_context
from .material import Material, Stamp, authorities_in, read_material, stamp_of, stamp_of_paths
from .problems import TlsProblem


@dataclass(frozen=True, slots=True)
class Loaded:
    """One state of a profile; changed files or attributes make a new one."""

    entity: SslProfileEntity
    material: Material
    contexts: Mapping[Use, ssl.SSLContext]
    #: Issuers of peers' certificates, by the file that a listener names; "" for the profile itself.
    authorities: Mapping[str, tuple[x509.Certificate, ...]]
    facts: SslProfileFacts
    stamp: Stamp

    @property
    def certificate(self) -> x509.Certificate | None:
        """The profile's own certificate, or None."""
        return self.material.chain[0] if self.material.chain else None

    def trusts(self, root: x509.Certificate, trusted_file: str) -> bool:
        """Return whether the end of a chain that was verified before is an authority now; UNREADABLE.

        A renewed certificate of the same name and key is the same authority. The system's authorities are known to
        OpenSSL alone, so where they are trusted every root is.
        """
        authorities = self.authorities.get(trusted_file, self.material.authorities)
        if root in authorities:
            return True
        if root.issuer != root.subject:
            return False
        if not trusted_file and (self.entity.use_system_ca or not self.entity.ca_cert_file):
            return True
        same_name = (each for each in authorities if each.issuer == each.subject == root.subject)
        return any(each.public_key() == root.public_key() for each in same_name)


def load(entity: SslProfileEntity, uses: Collection[Use], now_s: float) -> Loaded:
    """Read the files of ``entity`` and make a context for each use; TlsProblem. Blocks."""
    stamp = stamp_for(entity, uses)
    material = read_material(entity, now_s)
    authorities = {"": material.authorities}
    for use in uses:
        if isinstance(use, ServerUse) and use.trusted_file not in authorities:
            authorities[use.trusted_file] = authorities_in(use.trusted_file, "trustedCertsFile")
    contexts = {use: _context(entity, use, authorities) for use in uses}
    if not contexts:  # no entity uses it yet; its faults are reported now all the same
        client_context(entity, ClientUse(), material.authorities)
    return Loaded(entity, material, contexts, authorities, _facts(entity, material), stamp)


def stamp_for(entity: SslProfileEntity, uses: Collection[Use]) -> Stamp:
    """Return the state of every file that the profile with these uses depends on. Blocks."""
    return (*stamp_of(entity), *stamp_of_paths(_trusted_files(uses)))


def danger_to(entity: SslProfileEntity, uses: Collection[Use]) -> str:
    """Return what strangers can do to the first such file of the profile with these uses; "" for nothing. Blocks."""
    return danger_of(entity, _trusted_files(uses))


def _trusted_files(uses: Collection[Use]) -> list[str]:
    """Return the files of authorities that listeners name in place of those of the profile."""
    return sorted({use.trusted_file for use in uses if isinstance(use, ServerUse) and use.trusted_file})


def _context(
    entity: SslProfileEntity, use: Use, authorities: Mapping[str, tuple[x509.Certificate, ...]]
) -> ssl.SSLContext:
    if isinstance(use, ServerUse):
        return server_context(entity, use, authorities[use.trusted_file])
    return client_context(entity, use, authorities[""])


def _facts(entity: SslProfileEntity, material: Material) -> SslProfileFacts:
    return SslProfileFacts(entity.name, entity.uid_format or "", entity.uid_missing, entity.uid_escape, material.names)


__all__ = ["Loaded", "TlsProblem", "load", "stamp_for"]
