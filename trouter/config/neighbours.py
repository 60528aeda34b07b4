"""Finds listeners for routers and brokers to which the login of a client is enough to pass for one of these.

A listener of role inter-router is the gravest: no vhost's policy applies there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from trouter.config.configuration import Configuration
from trouter.config.entities import ListenerEntity
from trouter.config.files import opened
from trouter.config.keepers import MAX_LISTED
from trouter.config.logins import client_certificates, requires_login, speaks_amqp
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of
from trouter.config.workers import WORKERS_HOST
from trouter.mechanisms import EXTERNAL, mechanism_of

#: What a peer counts for, by the role of the listener.
_PASSES_FOR: Final = {"inter-router": "another router", "edge": "an edge router", "route-container": "a broker"}
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
_END: Final = b"-----END CERTIFICATE-----"
#: Octets of a file of certificates that are looked at.
_MAX_BYTES: Final = 16 << 20


def neighbours(configuration: Configuration) -> Iterator[Problem]:
    """Yield a finding for each listener for routers or brokers that every client of another one can use."""
    clients = [each for each in configuration.listeners if each.role == "normal" and speaks_amqp(each)]
    for listener in configuration.listeners:
        what = _PASSES_FOR.get(listener.role)
        if what is None or listener.host == WORKERS_HOST or _names_some(listener) or not requires_login(listener):
            continue
        if why := _same_logins(configuration, listener, clients):
            yield finding_of("any-user-is-a-router", listener, what=what, why=why)


def _names_some(listener: ListenerEntity) -> bool:
    """Return whether allowedUsers leaves anyone out."""
    return listener.allowed_users is not None and "*" not in listener.allowed_users


def _same_logins(configuration: Configuration, listener: ListenerEntity, clients: Iterable[ListenerEntity]) -> str:
    """Return why clients of another listener can log in at ``listener``; empty if none appears to."""
    trusted = _authorities(configuration, listener)
    if trusted is None:
        return "it trusts the authorities of the system"
    for each in clients:
        if trusted & (_authorities(configuration, each) or frozenset()):
            return f"it trusts an authority whose certificates clients of the listener {each.name} show"
        if listener.sasl_plugin == each.sasl_plugin and _takes_secrets(listener) and _takes_secrets(each):
            return f"clients of the listener {each.name} log in with passwords of the same users"
    return ""


def _takes_secrets(listener: ListenerEntity) -> bool:
    """Return whether users may log in with a password or a token."""
    if listener.sasl_plugin:
        return True
    known = [mechanism_of(each) for each in listener.sasl_mechanisms]
    return not known or any(not (each.anonymous or each.by_certificate) for each in known)


def _authorities(configuration: Configuration, listener: ListenerEntity) -> frozenset[bytes] | None:
    """Return the certificates of the authorities whose certificates log in by EXTERNAL; None for those of the system.

    A file that cannot be read stands for itself, by its path.
    """
    profile = next((each for each in configuration.ssl_profiles if each.name == listener.ssl_profile), None)
    offered = not listener.sasl_mechanisms or EXTERNAL in listener.sasl_mechanisms
    if profile is None or not offered or client_certificates(listener, profile) == "none":
        return frozenset()
    if profile.use_system_ca and not listener.trusted_certs_file:
        return None
    trusted = listener.trusted_certs_file or profile.ca_cert_file
    return frozenset() if not trusted else _certificates(trusted)


def _certificates(path: str) -> frozenset[bytes]:
    """Return the certificates in a file of PEM or in a folder of such, without blanks; if there are none, the path."""
    found: set[bytes] = set()
    try:
        folder = Path(path)
        files = islice(folder.iterdir(), MAX_LISTED) if folder.is_dir() else [folder]
        for each in files:
            if each.is_file():
                with opened(str(each)) as file:
                    blocks = file.read(_MAX_BYTES).split(_END)
                found.update(b"".join(block.rpartition(_BEGIN)[2].split()) for block in blocks[:-1])
    except (OSError, ValueError):
        return frozenset({path.encode()})
    return frozenset(found) or frozenset({path.encode()})
