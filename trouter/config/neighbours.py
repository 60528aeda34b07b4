"""Finds listeners for routers and brokers to which the login of a client is enough to pass for one of these.

A listener of role inter-router is the gravest: no vhost's policy applies there.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    clients = _Clients(configuration)
    for listener in configuration.listeners:
        what = _PASSES_FOR.get(listener.role)
        if what is None or listener.host == WORKERS_HOST or _names_some(listener) or not requires_login(listener):
            continue
        if why := clients.why_they_pass(listener):
            yield finding_of("any-user-is-a-router", listener, what=what, why=why)


def _names_some(listener: ListenerEntity) -> bool:
    """Return whether allowedUsers leaves anyone out."""
    return listener.allowed_users is not None and "*" not in listener.allowed_users


class _Clients:
    """The logins of a configuration's clients, by what they log in with."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        #: The number of the first listener and its name, by authority, and by what has the users.
        self._by_authority: dict[bytes, tuple[int, str]] = {}
        self._by_users: dict[str | None, tuple[int, str]] = {}
        for number, each in enumerate(configuration.listeners):
            if each.role == "normal" and speaks_amqp(each):
                for authority in _authorities(configuration, each) or ():
                    self._by_authority.setdefault(authority, (number, each.name))
                if _takes_secrets(each):
                    self._by_users.setdefault(each.sasl_plugin, (number, each.name))

    def why_they_pass(self, listener: ListenerEntity) -> str:
        """Return why clients of another listener can log in at ``listener``; empty if none appears to."""
        trusted = _authorities(self._configuration, listener)
        if trusted is None:
            return "it trusts the authorities of the system"
        shown = min((self._by_authority[each] for each in trusted if each in self._by_authority), default=None)
        users = self._by_users.get(listener.sasl_plugin) if _takes_secrets(listener) else None
        if shown is not None and (users is None or shown <= users):
            return f"it trusts an authority whose certificates clients of the listener {shown[1]} show"
        return "" if users is None else f"clients of the listener {users[1]} log in with passwords of the same users"


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
    profile = configuration.ssl_profile(listener.ssl_profile)
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
