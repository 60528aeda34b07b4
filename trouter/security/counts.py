"""The connections of one vhost, counted: all of them, those of each user and of each host (security.md 4.10).

Users and hosts without a connection are forgotten, so the memory is bounded by the number of connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trouter.security.policy import Limits, Reason

Names = dict[str, None]


class ConnectionCounts:
    """The open connections of a vhost, by name, in the order of opening."""

    def __init__(self) -> None:
        self._connections: Final[dict[str, tuple[str, str]]] = {}
        self._of_user: Final[dict[str, Names]] = {}
        self._of_host: Final[dict[str, Names]] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def __contains__(self, name: object) -> bool:
        return name in self._connections

    def over(self, limits: Limits, user: str, host: str) -> tuple[Reason, ...]:
        """Return every limit that one more connection of this user and host would exceed; if none, it may open.

        All groups of the vhost count together, also groups with their own limits.
        """
        counted = (
            (len(self._connections), limits.connections, Reason.MAX_CONNECTIONS),
            (len(self._of_user.get(user, ())), limits.per_user, Reason.MAX_CONNECTIONS_PER_USER),
            (len(self._of_host.get(host, ())), limits.per_host, Reason.MAX_CONNECTIONS_PER_HOST),
        )
        return tuple(reason for count, limit, reason in counted if count >= limit)

    def enter(self, name: str, user: str, host: str) -> None:
        """Count a connection; ValueError if one of this name is counted already."""
        if name in self._connections:
            raise ValueError("a connection of this name is counted already")
        self._connections[name] = user, host
        self._of_user.setdefault(user, {})[name] = None
        self._of_host.setdefault(host, {})[name] = None

    def leave(self, name: str) -> None:
        """Remove a connection from the counts; KeyError if it is not counted."""
        user, host = self._connections.pop(name)
        for of_key, key in ((self._of_user, user), (self._of_host, host)):
            names = of_key[key]
            del names[name]
            if not names:
                del of_key[key]

    def by_user(self) -> Mapping[str, list[str]]:
        """Return the names of the connections of each user that has any."""
        return {user: list(names) for user, names in self._of_user.items()}

    def by_host(self) -> Mapping[str, list[str]]:
        """Return the names of the connections from each host that has any."""
        return {host: list(names) for host, names in self._of_host.items()}
