"""The key under which the events of a user are told, over all connections of this user."""

from __future__ import annotations

from typing import Final

from trouter.config.hosts import place_of

#: What clients without a login are called.
_ANYBODY: Final = frozenset(("", "anonymous"))

#: A vhost, a user of it, and the host of a client without a login, else empty.
UserKey = tuple[str, str, str]


def user_key(vhost: str, user: str, host: str) -> UserKey:
    """Return the key of a user of a vhost, or of those without a login on one host."""
    return vhost, user, place_of(host) if user in _ANYBODY else ""
