"""Treatments as routers advertise them, and the deliveries under way between routers."""

from __future__ import annotations

from typing import Final

#: The treatment of each advertised number (inter-router.md 2.6).
TREATMENT_OF_HINT: Final = {0: "multicast", 1: "multicast", 2: "closest", 3: "balanced"}
HINT_OF_TREATMENT: Final = {"multicast": 1, "closest": 2, "balanced": 3}


class Outstanding:
    """The number of unsettled deliveries of one address under way on one connection to another router.

    Balanced distribution weighs it (routing.md 2.3); a copy under way refers to it until it ends.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0
