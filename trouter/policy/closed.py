"""Addresses of the management of other workers, which are closed to users without all rights in management.

A worker cannot know the rights of a user whose request comes to it from another one. So who has not all of them asks
the worker that it is connected to, which asks the others with the rights of the user.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from trouter.core.addresses import EDGE, ROUTER, TOPOLOGICAL, parse_address

#: How the names of services of a router begin, of which management is one.
_SERVICE: Final = "$"


class ClosedServices:
    """The services of ``workers``, which are the other ones of this router."""

    def __init__(self, workers: Collection[str]) -> None:
        self._workers = frozenset(workers)

    def cover(self, text: str) -> bool:
        """Return whether messages to the address ``text`` come to a service of another worker."""
        address = parse_address(text, router_id="")
        if address.letter == TOPOLOGICAL:  # of all routers
            return address.rest.startswith(_SERVICE)
        if address.letter not in {ROUTER, EDGE}:
            return False
        way = f"{address.key[1:]}/{address.rest}"  # ids may have slashes in them
        return any(way.startswith(f"{worker}/{_SERVICE}") for worker in self._workers)
