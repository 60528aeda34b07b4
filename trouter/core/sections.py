"""The counts of addresses by the configured section that they match, where the section wants them.

Nothing here is on the way of a message: addresses and links have their counts anyway, and these are added up when they
are asked for. What goes leaves its counts to its section, so that no sum ever falls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from .counters import Counters
    from .entry import AddressEntry

#: The deliveries of addresses: from clients, to clients, and to other routers.
WAYS: Final = ("ingress", "egress", "transit")
#: The outcomes of deliveries on the links of clients, each for both directions.
OUTCOMES: Final = ("accepted", "rejected", "released", "modified", "presettled")
IN, OUT = "in", "out"
#: What a sum counts: one of ``WAYS``, or a direction and an outcome.
Counted = tuple[str, str]


class DirectedLink(Protocol):
    """What is needed of a link of the engine."""

    @property
    def incoming(self) -> bool:
        """Return whether the peer sends on it."""


class CountedLink(Protocol):
    """What is needed of the end of a link; one to a receiver has a ``backlog``, too."""

    @property
    def link(self) -> DirectedLink:
        """Return its link of the engine."""

    @property
    def entry(self) -> object:
        """Return its address; None for none."""

    @property
    def counters(self) -> Counters:
        """Return the counts of its deliveries."""


class SectionCounts:
    """The addresses that are counted, and what those that are gone have left. Sections are told by their names."""

    def __init__(self) -> None:
        #: By the key of the address, the name of its section.
        self.names: dict[str, str] = {}
        self._past: dict[str, Counter[Counted]] = {}

    def replace_sections(self, sections: Mapping[str, str], wanted: Iterable[str]) -> None:
        """Count these addresses (key -> name of the section); forget the sections that are not ``wanted``."""
        self.names = dict(sections)
        self._past = {name: self._past.get(name, Counter()) for name in wanted}

    def add_address(self, key: str, name: str) -> None:
        """Count a new address."""
        self.names[key] = name

    def leave_address(self, entry: AddressEntry) -> None:
        """Keep the counts of an address that goes, if it is counted."""
        past = self._past.get(self.names.pop(entry.key, ""))
        if past is not None:
            past.update(_of_entry(entry))

    def leave_link(self, entry: AddressEntry, direction: str, counters: Counters) -> None:
        """Keep the counts of a link of an address, if that is counted; the link goes before its address."""
        past = self._past.get(self.names.get(entry.key, ""))
        if past is not None:
            past.update(_of_link(direction, counters))

    def join_link(self, entry: AddressEntry, direction: str, counters: Counters) -> None:
        """Count a link of an address, if that is counted; what the link has counted before is no longer kept."""
        past = self._past.get(self.names.get(entry.key, ""))
        if past is not None:
            past.subtract(_of_link(direction, counters))

    def sums(
        self, entries: Mapping[str, AddressEntry], links: Iterable[CountedLink]
    ) -> dict[str, tuple[Counter[Counted], Counter[str]]]:
        """Return, by the name of each section, the sums since the router started, and its present numbers.

        That is ``addresses``, ``consumers``, ``producers``, and ``undelivered`` deliveries.
        """
        totals = {name: Counter(past) for name, past in self._past.items()}
        present: dict[str, Counter[str]] = {name: Counter() for name in self._past}
        for key, name in self.names.items():
            entry = entries.get(key)
            if entry is None or name not in totals:
                continue
            totals[name].update(_of_entry(entry))
            present[name].update(addresses=1, consumers=len(entry.forwarder.consumers), producers=len(entry.senders))
        for link in links if self.names else ():
            name = self.names.get(getattr(link.entry, "key", ""), "")
            if name in totals:
                totals[name].update(_of_link(IN if link.link.incoming else OUT, link.counters))
                present[name]["undelivered"] += 0 if link.link.incoming else int(getattr(link, "backlog", 0))
        return {name: (totals[name], present[name]) for name in totals}


def _of_entry(entry: AddressEntry) -> dict[Counted, int]:
    return {(way, ""): getattr(entry.counters, way) for way in WAYS}


def _of_link(direction: str, counters: Counters) -> dict[Counted, int]:
    return {(direction, outcome): getattr(counters, outcome) for outcome in OUTCOMES}
