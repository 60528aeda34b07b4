"""The other routers and their bounded state; other routers decide what is in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .messages import RouterAdvertisement

#: The most routers, links of all of them, and bytes of the addresses of all of them.
MAX_ROUTERS: Final = 10_000
MAX_LINKS: Final = 500_000
MAX_ADDRESS_BYTES: Final = 256 << 20
#: The hint of an address that came without one.
NO_HINT: Final = -1

_NEVER: Final = float("-inf")
#: Bytes of an address besides its text, about.
_ENTRY_BYTES: Final = 150


@dataclass(slots=True)
class MeshNode:
    """The state of another router here: its links, its addresses, and when it was heard."""

    id: str
    heard_s: float
    instance: int | None = None
    link_sequence: int = 0
    peers: Mapping[str, int] = field(default_factory=dict)
    mobile_sequence: int = 0
    addresses: dict[str, int] = field(default_factory=dict)
    #: How often all addresses were deleted: an update of before is void.
    voided: int = 0
    #: The sequences that it advertised; 1 for its links from the start, because it must have some.
    advertised_links: int = 1
    advertised_addresses: int = 0
    #: It has advertised itself since its start: the sequences are its own.
    advertises: bool = False
    #: It has sent its links since its start: there is a way from it to us.
    answered: bool = False
    #: When its links and its addresses were last requested.
    requested_links_s: float = _NEVER
    requested_addresses_s: float = _NEVER
    #: When the last request for its addresses was sent, answered or not.
    asked_addresses_s: float = _NEVER
    #: When it restarted, until its addresses are requested once more after that.
    restarted_s: float = float("inf")
    #: Ticks for which no router has listed it.
    orphan_ticks: int = 0
    #: Advertisements in a row that were older than the known one, and those of another instance.
    older_in_a_row: int = 0
    strange_starts: int = 0
    #: Its last advertisement that was sent on, and when; the sequence of the last change of its addresses sent on.
    spread: RouterAdvertisement | None = None
    spread_s: float = _NEVER
    spread_change: int = 0

    def wants_links(self) -> bool:
        return self.link_sequence < self.advertised_links

    def wants_addresses(self) -> bool:
        return self.mobile_sequence < self.advertised_addresses

    def has_spread(self, heard: RouterAdvertisement) -> bool:
        """Return whether the last advertisement sent on was at least as new as ``heard``."""
        last = self.spread
        return (
            last is not None
            and last.instance == heard.instance
            and last.link_sequence >= heard.link_sequence
            and last.mobile_sequence >= heard.mobile_sequence
        )


class NodeChange(NamedTuple):
    """The changes of a router's addresses: new ones with their hints, and those removed."""

    added: Mapping[str, int]
    deleted: tuple[str, ...]
    #: False if there was no room for some.
    complete: bool


class MeshNodes(Mapping[str, MeshNode]):
    """The other routers by id, reachable or not."""

    def __init__(self) -> None:
        self._nodes: dict[str, MeshNode] = {}
        #: The number of links of all routers.
        self.links = 0
        self._address_bytes = 0

    def __getitem__(self, router: str) -> MeshNode:
        return self._nodes[router]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def obtain_node(self, router: str, now_s: float) -> MeshNode | None:
        """Return the node of ``router``, created if new; None if there are too many."""
        node = self._nodes.get(router)
        if node is None and len(self._nodes) < MAX_ROUTERS:
            node = self._nodes[router] = MeshNode(router, now_s)
        return node

    def forget_node(self, node: MeshNode) -> None:
        """Remove ``node``, whose addresses are deleted."""
        self.set_neighbours(node, {})
        del self._nodes[node.id]

    def set_neighbours(self, node: MeshNode, peers: Mapping[str, int]) -> bool:
        """Set ``peers``, with costs, as the neighbours of ``node``; return False, without a change, if too many."""
        links = self.links - len(node.peers) + len(peers)
        if links > MAX_LINKS and peers:
            return False
        self.links = links
        node.peers = peers
        return True

    def change_addresses(self, node: MeshNode, present: Mapping[str, int], gone: Iterable[str]) -> NodeChange:
        """Add what fits of the addresses ``present`` at ``node``, and remove those ``gone``; return the changes."""
        deleted = tuple(key for key in gone if node.addresses.pop(key, None) is not None)
        self._address_bytes -= sum(map(_size, deleted))
        added = {key: hint for key, hint in present.items() if key not in node.addresses}
        size = sum(map(_size, added))
        complete = self._address_bytes + size <= MAX_ADDRESS_BYTES
        if not complete:
            added, size = self._fitting_addresses(added)
        self._address_bytes += size
        node.addresses.update(added)
        return NodeChange(added, deleted, complete)

    def _fitting_addresses(self, added: Mapping[str, int]) -> tuple[dict[str, int], int]:
        """Return the first of ``added`` that fit, and their size in bytes."""
        size, fitting = 0, dict[str, int]()
        for key, hint in added.items():
            if self._address_bytes + size + _size(key) > MAX_ADDRESS_BYTES:
                break
            size += _size(key)
            fitting[key] = hint
        return fitting, size


def _size(key: str) -> int:
    """Return the approximate size of an address in bytes."""
    return (len(key) if key.isascii() else 4 * len(key)) + _ENTRY_BYTES
