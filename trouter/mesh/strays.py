"""What other routers are said to have, in messages that were not believed, until they say so themselves.

A message of a router may come by a way that does not lead there: while the network changes, and where Qpid Dispatch
sends it by all ways. Its router then says the same by the right way soon. Only if it does not, the message is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .faults import MeshFault
from .nodes import MeshNode, MeshNodes

#: Seconds within which a router says what was said of it.
CONFIRMED_WITHIN_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class StrayClaim:
    """A message over ``connection`` that was ignored: the numbers in it, None for those that it does not name."""

    connection: int
    fault: MeshFault
    detail: str
    instance: int | None = None
    link_sequence: int = 0
    mobile_sequence: int = 0

    def has_come_true(self, node: MeshNode) -> bool:
        """Return whether ``node`` has come to what it says."""
        return (
            self.instance in (None, node.instance)
            and self.link_sequence <= max(node.link_sequence, node.advertised_links)
            and self.mobile_sequence <= max(node.mobile_sequence, node.advertised_addresses)
        )


class Strays:
    """The claims about the routers of ``nodes``: the first about each, until it is judged."""

    def __init__(self, nodes: MeshNodes) -> None:
        self._nodes = nodes
        self._claims: dict[str, tuple[float, StrayClaim]] = {}

    def note_claim(self, node: MeshNode, claim: StrayClaim, now_s: float) -> None:
        """Judge the claim about ``node`` later, unless it has come true already."""
        if not claim.has_come_true(node):
            self._claims.setdefault(node.id, (now_s, claim))

    def due_reports(self, now_s: float) -> Iterator[StrayClaim]:
        """Yield the claims that have not come true in time."""
        due = [router for router, (at_s, _) in self._claims.items() if now_s - at_s >= CONFIRMED_WITHIN_S]
        for router in due:
            _, claim = self._claims.pop(router)
            node = self._nodes.get(router)
            if node is not None and not claim.has_come_true(node):
                yield claim
