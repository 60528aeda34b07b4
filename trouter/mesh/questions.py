"""What others have advertised and we have not heard is asked for: not too often, and not too much in a second."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from typing import Final

from .events import Send
from .messages import LinkStateRequest, MobileAddressRequest, mobile_address, router_address
from .nodes import MeshNode, MeshNodes

#: A question that was not answered, for it or the answer was lost on the way, is asked again after so long.
ASK_AGAIN_S: Final = 2.0
#: A message of a former start is under way no longer than this.
UNDER_WAY_S: Final = 10.0
#: Asked between two ticks.
QUESTIONS_PER_TICK: Final = 1000


def is_due(asked_s: float, now_s: float) -> bool:
    """Return whether an answer to what was asked then is not to be waited for any longer."""
    return asked_s <= now_s - ASK_AGAIN_S


class Questions:
    """The questions of the router ``me``. Only routers in ``reach`` are asked."""

    def __init__(self, me: str, nodes: MeshNodes) -> None:
        self._me = me
        self._nodes = nodes
        self._left = QUESTIONS_PER_TICK
        #: The routers that were asked in return since the last tick.
        self._returned: set[str] = set()

    def renew(self) -> None:
        """Allow as many questions as each second may have: one has passed."""
        self._left = QUESTIONS_PER_TICK
        self._returned.clear()

    def again(self, reach: Collection[str], now_s: float) -> Iterator[Send]:
        """Ask again for all that has had no answer for too long, the longest wait first."""
        waiting = [
            (min(node.asked_links_s, node.asked_addresses_s), router)
            for router, node in self._nodes.items()
            if (node.wants_links() and is_due(node.asked_links_s, now_s))
            or (node.wants_addresses() and is_due(node.asked_addresses_s, now_s))
        ]
        for _, router in heapq.nsmallest(self._left, waiting):
            node = self._nodes[router]
            if is_due(node.asked_links_s, now_s):
                yield from self.about_links(node, reach, now_s)
            if is_due(node.asked_addresses_s, now_s):
                yield from self.about_addresses(node, reach, now_s)

    def once_more(self, reach: Collection[str], now_s: float) -> Iterator[Send]:
        """Ask for all addresses of routers that were started anew a while ago.

        A change of addresses does not say which start of its router it belongs to, so one that was under way during
        the restart may have been taken for news.
        """
        for node in self._nodes.values():
            if now_s - node.restarted_s >= UNDER_WAY_S and self._may_ask(node, reach):
                node.restarted_s = float("inf")
                yield Send(MobileAddressRequest(self._me, 0), mobile_address(node.id))

    def about_links(self, node: MeshNode, reach: Collection[str], now_s: float) -> Iterator[Send]:
        """Ask for the links that were advertised."""
        if node.wants_links() and self._may_ask(node, reach):
            node.asked_links_s = now_s
            yield Send(LinkStateRequest(self._me), router_address(node.id))

    def in_return(self, node: MeshNode, reach: Collection[str], now_s: float) -> Iterator[Send]:
        """Ask a router for its links that has just asked for ours, once between two ticks.

        It has a way to us, so its answer arrives. What it was asked before may have come too early for that.
        """
        if node.id not in self._returned:
            for question in self.about_links(node, reach, now_s):
                self._returned.add(node.id)
                yield question

    def about_addresses(
        self, node: MeshNode, reach: Collection[str], now_s: float, unprompted: bool = False
    ) -> Iterator[Send]:
        """Ask for addresses that were advertised, or of a new neighbour at once: its advertisement may take long."""
        if (unprompted or node.wants_addresses()) and self._may_ask(node, reach):
            node.asked_addresses_s = now_s
            yield Send(MobileAddressRequest(self._me, node.mobile_sequence), mobile_address(node.id))

    def _may_ask(self, node: MeshNode, reach: Collection[str]) -> bool:
        """Return whether a question would get to ``node``, and is not one too many; if it may be asked, it counts."""
        may = node.id in reach and self._left > 0
        self._left -= may
        return may
