"""What routers tell each other of an address's treatment, and how much of it is on its way from one to the other."""

from __future__ import annotations

from typing import Final

#: How addresses are treated, by the number that routers tell each other (inter-router.md 2.6).
TREATMENT_OF_HINT: Final = {0: "multicast", 1: "multicast", 2: "closest", 3: "balanced"}
HINT_OF_TREATMENT: Final = {"multicast": 1, "closest": 2, "balanced": 3}


class Outstanding:
    """How many unsettled deliveries of one address are under way over one connection to another router.

    A count that balanced distribution weighs (routing.md 2.3); a copy under way refers to it until it ends.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0
