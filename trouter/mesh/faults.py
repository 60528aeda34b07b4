"""The faults of other routers: always counted, and reported once in an interval."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: Seconds before the same fault of the same router is reported again.
INTERVAL_S: Final = 60.0
#: Faults that are remembered, and so reported, in one interval; further ones are only counted.
MAX_REPORTED: Final = 1000


class MeshFault(StrEnum):
    """The reasons to ignore a message between routers, or a part of one."""

    MALFORMED = "malformed message"
    NEWER_VERSION = "newer version of the protocol"
    SAME_ID = "another router has the id of this router"
    SHARED_ID = "two other routers have one id"
    SECOND_ROUTER = "another router speaks over the same connection"
    UNKNOWN_ROUTER = "router is not known"
    TOO_MANY = "more than the router remembers"
    LOOPED = "it was here before"
    NO_WAY = "no path to the router that it is for"
    OFF_PATH = "the connection does not lead to the router of which it tells"
    OTHER_AUTHOR = "it entered the network at another router than the one of which it tells"
    UNREQUESTED = "it has addresses that this router did not request, or that were not advertised"


#: Faults that are not reported: they happen whenever the network changes.
UNREPORTED: Final = frozenset({MeshFault.UNKNOWN_ROUTER, MeshFault.LOOPED, MeshFault.NO_WAY})


@dataclass(slots=True)
class _Reported:
    at_s: float
    #: Its number since then.
    since: int = 0


class MeshFaults:
    """The counts of each fault, and those reported recently."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(MeshFault, 0)
        self._reported: dict[tuple[tuple[str, int], MeshFault], _Reported] = {}

    def note_fault(self, who: tuple[str, int], fault: MeshFault, now_s: float) -> int:
        """Count a fault of ``who``, a router and a connection; return how many to report, 0 for no report."""
        self.counts[fault] += 1
        if fault in UNREPORTED:
            return 0
        reported = self._reported.get((who, fault))
        if reported is None:
            if len(self._reported) >= MAX_REPORTED:
                self._reported = {key: each for key, each in self._reported.items() if now_s - each.at_s < INTERVAL_S}
            if len(self._reported) < MAX_REPORTED:
                self._reported[who, fault] = _Reported(now_s)
                return 1
            return 0
        reported.since += 1
        if now_s - reported.at_s < INTERVAL_S:
            return 0
        times, reported.since, reported.at_s = reported.since, 0, now_s
        return times
