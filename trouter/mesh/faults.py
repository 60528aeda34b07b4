"""What others get wrong: counted always, told once in a while, and remembered only as long as that takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: The same fault of the same router is told again no sooner than this.
INTERVAL_S: Final = 60.0
#: As many routers' faults are told in one interval; what is beyond is only counted.
MAX_TOLD: Final = 1000


class MeshFault(StrEnum):
    """Why a message of routers, or a part of one, was not believed."""

    MALFORMED = "malformed message"
    NEWER_VERSION = "newer version of the protocol"
    SAME_ID = "another router has the id of this router"
    SHARED_ID = "two other routers have one id"
    SECOND_ROUTER = "another router speaks over the same connection"
    UNKNOWN_ROUTER = "router is not known"
    TOO_MANY = "more than the router remembers"
    LOOPED = "it was here before"
    NO_WAY = "no path to the router that it is for"


#: These happen in every network while it finds its shape anew.
UNTOLD: Final = frozenset({MeshFault.UNKNOWN_ROUTER, MeshFault.LOOPED, MeshFault.NO_WAY})


@dataclass(slots=True)
class _Told:
    at_s: float
    #: How often it has happened since.
    since: int = 0


class MeshFaults:
    """How often each fault was seen, and which were told lately."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(MeshFault, 0)
        self._told: dict[tuple[tuple[str, int], MeshFault], _Told] = {}

    def note(self, who: tuple[str, int], fault: MeshFault, now_s: float) -> int:
        """Count what ``who``, a router and a connection, got wrong: how often since it was told, 0 to tell nothing."""
        self.counts[fault] += 1
        if fault in UNTOLD:
            return 0
        told = self._told.get((who, fault))
        if told is None:
            if len(self._told) >= MAX_TOLD:
                self._told = {key: told for key, told in self._told.items() if now_s - told.at_s < INTERVAL_S}
            if len(self._told) < MAX_TOLD:
                self._told[who, fault] = _Told(now_s)
                return 1
            return 0
        told.since += 1
        if now_s - told.at_s < INTERVAL_S:
            return 0
        times, told.since, told.at_s = told.since, 0, now_s
        return times
