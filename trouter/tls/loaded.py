"""An sslProfile ready for use: the contents of its files, and a context for each of its uses."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cryptography import x509

from trouter.config import SslProfileEntity
from trouter.hooks import SslProfileFacts

from .contexts import ClientUse, ServerUse, Use, client_context, server_context
from .material import Material, Stamp, authorities_in, read_material, stamp_of, stamp_of_paths
from .problems import TlsProblem
from .tickets import DeriveKey, derived_key, set_ticket_key

log = logging.getLogger("trouter.SERVER")


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


def load(entity: SslProfileEntity, uses: Collection[Use], now_s: float, derive_key: DeriveKey | None = None) -> Loaded:
    """Read the files of ``entity`` and make a context for each use; TlsProblem. Blocks.

    ``derive_key`` is that of the workers, whose clients may resume their sessions at each.
    """
    stamp = stamp_for(entity, uses)
    material = read_material(entity, now_s)
    authorities = {"": material.authorities}
    for use in uses:
        if isinstance(use, ServerUse) and use.trusted_file not in authorities:
            authorities[use.trusted_file] = authorities_in(use.trusted_file, "trustedCertsFile")
    contexts = {use: _context(entity, use, authorities) for use in uses}
    if derive_key is not None:
        _share_tickets(entity, contexts, stamp, derive_key)
    if not contexts:  # no entity uses it yet; its faults are reported now all the same
        client_context(entity, ClientUse(), material.authorities)
    return Loaded(entity, material, contexts, authorities, _facts(entity, material), stamp)


def stamp_for(entity: SslProfileEntity, uses: Collection[Use]) -> Stamp:
    """Return the state of every file that the profile with these uses depends on. Blocks."""
    trusted = sorted({use.trusted_file for use in uses if isinstance(use, ServerUse) and use.trusted_file})
    return (*stamp_of(entity), *stamp_of_paths(trusted))


def _context(
    entity: SslProfileEntity, use: Use, authorities: Mapping[str, tuple[x509.Certificate, ...]]
) -> ssl.SSLContext:
    if isinstance(use, ServerUse):
        return server_context(entity, use, authorities[use.trusted_file])
    return client_context(entity, use, authorities[""])


def _share_tickets(
    entity: SslProfileEntity, contexts: Mapping[Use, ssl.SSLContext], stamp: Stamp, derive: DeriveKey
) -> None:
    """Have the clients of a listener resume their sessions at each worker.

    A resumed session is not verified again. So a key is good for one use of one state of a profile, as a key made at
    random would be: no session of another listener, and none from before a change, gets in with it.
    """
    state = entity.name, entity.protocols, entity.ciphers, entity.below_system_minimum, entity.use_system_ca, stamp
    for use, context in contexts.items():
        if isinstance(use, ServerUse) and not set_ticket_key(context, derived_key(derive, repr((state, use)))):
            log.info("sslProfile %s: this Python cannot share sessions of TLS among workers", entity.name)


def _facts(entity: SslProfileEntity, material: Material) -> SslProfileFacts:
    return SslProfileFacts(entity.name, entity.uid_format or "", entity.uid_missing, entity.uid_escape, material.names)


__all__ = ["Loaded", "TlsProblem", "load", "stamp_for"]
