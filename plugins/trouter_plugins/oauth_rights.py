"""Reads the permissions of a token from the scopes in one of its claims, as brokers write them.

A scope is the configured prefix, ``read:`` or ``write:``, and an address with the marks of permissions: ``*`` at its
end, ``${user}``. Scopes without the prefix, or with other text after it, are for other services and grant nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trouter.hooks import MAX_PERMISSIONS, Permissions

READ: Final = "read:"
WRITE: Final = "write:"


class BadRights(Exception):
    """A claim without valid scopes."""


def find_claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name or its dotted path; None if it is missing."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def permissions_of(claim: Any, prefix: str) -> Permissions:
    """Return the permissions in the scopes of a claim, empty without a claim; BadRights."""
    scopes = _scopes_of(claim)
    sources = tuple(_addresses(scopes, prefix + READ))
    targets = tuple(_addresses(scopes, prefix + WRITE))
    if len(sources) + len(targets) > MAX_PERMISSIONS:
        raise BadRights(f"it has more than {MAX_PERMISSIONS} rights")
    return Permissions(sources, targets)


def _scopes_of(claim: Any) -> Sequence[str]:
    """Return the scopes of a claim, a text with blanks between them (RFC 8693, 4.2) or a list; BadRights."""
    if claim is None:
        return ()
    if isinstance(claim, str):
        return claim.split(" ")
    if isinstance(claim, list) and all(isinstance(scope, str) for scope in claim):
        return claim
    raise BadRights("it is neither a text nor a list of texts")


def _addresses(scopes: Sequence[str], beginning: str) -> Sequence[str]:
    length = len(beginning)
    return [scope[length:] for scope in scopes if len(scope) > length and scope.startswith(beginning)]
