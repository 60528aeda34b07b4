"""The names that routed links have at the next router or the container (routing.md 1.7)."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

#: The longest link name that other routers accept for certain, in bytes; a longer one becomes its digest.
_MAX_NAME_BYTES: Final = 8192


def with_id(name: str, container_id: str) -> str:
    """Return a link's name with the id of its peer appended, so that the names of several peers differ."""
    unique = f"{name}@{container_id}"
    return unique if len(unique.encode()) <= _MAX_NAME_BYTES else sha256(unique.encode()).hexdigest()


def with_space(text: str, space: str) -> str:
    """Return the name of a link, or the id of its peer, with its tenant's space at the end, where no other can be."""
    return with_id(text, space.replace("@", "%40"))


class LinkNames:
    """The names of the routed links at a container, or above an edge router, and the clients that have them.

    A container may take a link from one session for another that names the same. Clients choose their container ids,
    and an edge router passes a client's name up as it is, because the interior router appends the edge router's id. So
    two clients must not have one name at once. One client may: it has returned, and its former connection is not known
    to be lost yet.
    """

    def __init__(self) -> None:
        self._clients: dict[tuple[bool, str], list[object]] = {}

    def take(self, incoming: bool, first: str, client: object, name: str, peer_id: str) -> str:
        """Return the name for a link of ``client``: ``first``, or if a link of another client has that, ``name`` and
        the id of the peer, if necessary with a number.
        """
        chosen, count = first, 1
        while client not in self._clients.get((incoming, chosen), (client,)):
            chosen = with_id(name, peer_id if count == 1 else f"{peer_id}@{count}")
            count += 1
        self._clients.setdefault((incoming, chosen), []).append(client)
        return chosen

    def give_back(self, incoming: bool, name: str, client: object) -> None:
        """Free the name of a link that has ended."""
        holders = self._clients[incoming, name]
        holders.remove(client)
        if not holders:
            del self._clients[incoming, name]
