"""The requests for what other routers advertised and this one lacks, at a limited rate."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from typing import Final

from .events import Send
from .messages import LinkStateRequest, MobileAddressRequest, mobile_address, router_address
from .nodes import MeshNode, MeshNodes

#: Seconds before an unanswered request is repeated: it or the answer may be lost.
REQUEST_AGAIN_S: Final = 2.0
#: Seconds that a message of a former start may be under way.
UNDER_WAY_S: Final = 10.0
#: Requests sent between two ticks.
REQUESTS_PER_TICK: Final = 1000


def is_due(requested_s: float, now_s: float) -> bool:
    """Return whether a request sent at ``requested_s`` is to be repeated if it has no answer."""
    return requested_s <= now_s - REQUEST_AGAIN_S


class Requests:
    """The requests of the router ``me``; those in ``reach`` of each call get them."""

    def __init__(self, me: str, nodes: MeshNodes) -> None:
        self._me = me
        self._nodes = nodes
        self._left = REQUESTS_PER_TICK
        #: The routers that got a request in return since the last tick.
        self._returned: set[str] = set()

    def renew_allowance(self) -> None:
        """Allow another tick's amount of requests."""
        self._left = REQUESTS_PER_TICK
        self._returned.clear()

    def due_repeats(self, reach: Collection[str], now_s: float) -> Iterator[Send]:
        """Yield requests that had no answer for too long, the longest wait first."""
        waiting = [
            (min(node.requested_links_s, node.requested_addresses_s), router)
            for router, node in self._nodes.items()
            if (node.wants_links() and is_due(node.requested_links_s, now_s))
            or (node.wants_addresses() and is_due(node.requested_addresses_s, now_s))
        ]
        for _, router in heapq.nsmallest(self._left, waiting):
            node = self._nodes[router]
            if is_due(node.requested_links_s, now_s):
                yield from self.about_links(node, reach, now_s)
            if is_due(node.requested_addresses_s, now_s):
                yield from self.about_addresses(node, reach, now_s)

    def due_refreshes(self, reach: Collection[str], now_s: float) -> Iterator[Send]:
        """Yield requests for all addresses of routers that restarted a while ago.

        A change of addresses does not name its router's instance, so one that was under way during the restart may have
        been applied by mistake.
        """
        for node in self._nodes.values():
            if now_s - node.restarted_s >= UNDER_WAY_S and self._may_request(node, reach):
                node.restarted_s = float("inf")
                node.asked_addresses_s = now_s
                yield Send(MobileAddressRequest(self._me, 0), mobile_address(node.id))

    def about_links(self, node: MeshNode, reach: Collection[str], now_s: float) -> Iterator[Send]:
        """Yield a request for the links that ``node`` advertised, if they are missing."""
        if node.wants_links() and self._may_request(node, reach):
            node.requested_links_s = now_s
            yield Send(LinkStateRequest(self._me), router_address(node.id))

    def in_return(self, node: MeshNode, reach: Collection[str], now_s: float) -> Iterator[Send]:
        """Yield a request for the links of a router that just requested ours, once between two ticks.

        It has a way to us, so its answer will arrive. An earlier request may have come too early for that.
        """
        if node.id not in self._returned:
            for request in self.about_links(node, reach, now_s):
                self._returned.add(node.id)
                yield request

    def about_addresses(
        self, node: MeshNode, reach: Collection[str], now_s: float, unprompted: bool = False
    ) -> Iterator[Send]:
        """Yield a request for addresses that ``node`` advertised, or ``unprompted`` before it advertises any."""
        if (unprompted or node.wants_addresses()) and self._may_request(node, reach):
            node.requested_addresses_s = node.asked_addresses_s = now_s
            yield Send(MobileAddressRequest(self._me, node.mobile_sequence), mobile_address(node.id))

    def _may_request(self, node: MeshNode, reach: Collection[str]) -> bool:
        """Return whether a request would reach ``node`` and is within the limit; count it if so."""
        may = node.id in reach and self._left > 0
        self._left -= may
        return may
