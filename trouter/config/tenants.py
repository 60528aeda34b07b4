"""Parses `tenantFrom`: where the router finds a user's tenant without vhost policy (security.md R-5d)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from trouter.config.files import read_json
from trouter.config.schema import BadValue
from trouter.core.tenants import fault_of

MAX_FILE_BYTES: Final = 16 << 20
#: The parts of a certificate that may name a user's tenant: letters of uidFormat.
CERTIFICATE_PARTS: Final = "cslou"
_UNKNOWN_TENANT: Final = (
    "multiTenant: with secureDefaults and without enableVhostPolicy it needs authenticatePeer: yes and tenantFrom, or "
    "clients could choose whose addresses they use"
)
_FORMS: Final = "write `claim`, `uid:LETTER` or `file:PATH`"
_CONTENT: Final = 'write: {"user": "tenant", "other": ["one tenant", "another"]}'


@dataclass(frozen=True, slots=True)
class TenantSource:
    """The source of a user's tenant: a claim of the login, the ``part`` of the certificate, or ``users`` of a file."""

    part: str = ""
    users: Mapping[str, frozenset[str]] | None = field(default=None, repr=False, hash=False)


def tenant_source(text: str) -> TenantSource:
    """Return the source for `claim`, `uid:LETTER` or `file:PATH`; BadValue."""
    kind, colon, rest = text.partition(":")
    if kind == "claim" and not colon:
        return TenantSource()
    if kind == "uid" and colon:
        if len(rest) != 1 or rest not in CERTIFICATE_PARTS:
            raise BadValue("one part of a certificate is needed", f"one of the letters {' '.join(CERTIFICATE_PARTS)}")
        return TenantSource(part=rest)
    if kind == "file" and rest:
        return TenantSource(users=read_tenants(rest))
    raise BadValue("does not say where the router finds the tenants of a user", _FORMS)


def why_no_tenants(get: Callable[[str], Any], vhost_policy: bool, secure: bool) -> str:
    """Return why a listener with the fields of ``get`` cannot hold tenants apart; empty if it can, or need not.

    Clients may choose their tenant by the hostname of their open, as with Qpid Dispatch, unless the configuration
    is ``secure`` (secureDefaults).
    """
    if not get("multi_tenant"):
        return ""
    if get("role") in ("inter-router", "edge"):
        return f"multiTenant: what comes from routers (role {get('role')}) is of all tenants"
    known = vhost_policy or (get("authenticate_peer") and get("tenant_from"))
    return "" if known or not secure else _UNKNOWN_TENANT


def read_tenants(path: str) -> Mapping[str, frozenset[str]]:
    """Return the tenants of each user in a JSON file; BadValue."""
    content = read_json(path, MAX_FILE_BYTES, _once, _CONTENT)
    if not isinstance(content, dict):
        raise BadValue("this file is not one JSON object", _CONTENT)
    return MappingProxyType({user: _names(user, value) for user, value in content.items()})


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object whose keys are all different; BadValue if a user appears twice."""
    for user, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise BadValue(f"the user {user!r} appears twice in this file", "give the user a list of tenants")
    return dict(pairs)


def _names(user: str, value: object) -> frozenset[str]:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str):
            raise BadValue(f"the tenants of {user!r} are not texts", _CONTENT)
        if fault := fault_of(name):
            raise BadValue(f"a tenant of {user!r} is not valid: {fault}", _CONTENT)
    return frozenset(names)
