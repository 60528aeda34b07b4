"""Counts of deliveries: of links, of addresses, and of all together by outcome, class of address and age.

Routing.md 5.6 has the counts of management; the ages are for metrics. A delivery is counted once, when it ends. Its age
is 0 if it begins and ends in the same pass, because the time is that of the pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int


class Counters:
    """Deliveries by outcome and by age."""

    __slots__ = (
        "deliveries",
        "presettled",
        "dropped_presettled",
        "accepted",
        "rejected",
        "released",
        "modified",
        "undeliverable",
        "delayed_1s",
        "delayed_10s",
    )

    def __init__(self) -> None:
        self.deliveries: Py_ssize_t = 0
        self.presettled: Py_ssize_t = 0
        self.dropped_presettled: Py_ssize_t = 0
        self.accepted: Py_ssize_t = 0
        self.rejected: Py_ssize_t = 0
        self.released: Py_ssize_t = 0
        self.modified: Py_ssize_t = 0
        #: Deliveries without a receiver, released or dropped by the router.
        self.undeliverable: Py_ssize_t = 0
        self.delayed_1s: Py_ssize_t = 0
        self.delayed_10s: Py_ssize_t = 0

    def count_outcome(self, code: c_int, age_s: float) -> None:
        """Count the end of a delivery by its outcome's code (0 for none) and its age."""
        if code == 0x24:
            self.accepted += 1
        elif code == 0x26:
            self.released += 1
        elif code == 0x27:
            self.modified += 1
        elif code == 0x25:
            self.rejected += 1
        if age_s > 1.0:
            if age_s > 10.0:
                self.delayed_10s += 1
            else:
                self.delayed_1s += 1

    def as_dict(self) -> dict[str, int]:
        """Return all counts by name."""
        return {name: getattr(self, name) for name in sorted(Counters.__slots__)}


class AddressCounters:
    """Deliveries of one address (routing.md 5.6), or of all together."""

    __slots__ = (
        "ingress",
        "egress",
        "transit",
        "to_container",
        "from_container",
        "redirected",
        "ingress_container",
        "egress_container",
    )

    def __init__(self) -> None:
        self.ingress: Py_ssize_t = 0
        self.egress: Py_ssize_t = 0
        #: The part of ingress and egress from and to route containers.
        self.ingress_container: Py_ssize_t = 0
        self.egress_container: Py_ssize_t = 0
        self.transit: Py_ssize_t = 0
        #: Deliveries to and from consumers and senders inside the router.
        self.to_container: Py_ssize_t = 0
        self.from_container: Py_ssize_t = 0
        self.redirected: Py_ssize_t = 0

    def as_dict(self) -> dict[str, int]:
        """Return all counts by name."""
        return {name: getattr(self, name) for name in sorted(AddressCounters.__slots__)}

    def add_copies(self, copies: Copies) -> None:
        """Count the copies of one message."""
        self.to_container += copies.inside
        self.transit += copies.across
        self.egress += copies.here


class Copies:
    """How many copies of one message a forwarder made: ``total``, 0 if it was undeliverable.

    Of these, ``here`` are for links of the address, ``inside`` for consumers inside the router, ``across`` for other
    routers; the rest is for other addresses, which count them. Forwarders share the objects, so they are never changed.
    """

    __slots__ = ("here", "inside", "across", "total")

    def __init__(self, here: Py_ssize_t, inside: Py_ssize_t, across: Py_ssize_t, beside: Py_ssize_t = 0) -> None:
        """Note the copies, and those ``beside`` to other addresses."""
        self.here = here
        self.inside = inside
        self.across = across
        self.total: Py_ssize_t = here + inside + across + beside


class OriginTally:
    """A mutable count, for counts by name."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count: Py_ssize_t = 0


#: Routers of origin that are counted for one link; further ones are not.
_MAX_ORIGINS: Final[Py_ssize_t] = 256


class Origins:
    """The deliveries offered to one link that entered the network at other routers, by their names in annotations."""

    __slots__ = ("tallies", "_last", "_last_tally")

    def __init__(self) -> None:
        self.tallies: dict[str, OriginTally] = {}
        self._last: str | None = None
        self._last_tally: OriginTally | None = None

    def count_origin(self, origin: str) -> None:
        """Count a delivery that came from another router."""
        tally: OriginTally | None = self._last_tally if origin is self._last else None
        if tally is None:
            tally = self.tallies.get(origin)
            if tally is None:
                if len(self.tallies) >= _MAX_ORIGINS:
                    return
                tally = self.tallies[origin] = OriginTally()
            self._last = origin
            self._last_tally = tally
        tally.count += 1


#: Classes of addresses. A link without an address, whose messages name theirs, is a class too.
ADDRESS_CLASSES: Final = ("mobile", "local", "topological", "router", "anonymous")
_FAMILY_OF_LETTER: Final = {"M": 0, "L": 1, "T": 2, "R": 3, "A": 3, "H": 3}
_ANONYMOUS: Final = 4
#: The outcomes from 0x24 on, in the order of their descriptors, and settlement without one.
OUTCOMES: Final = ("accepted", "rejected", "released", "modified", "none")
#: The upper bounds of the buckets, in seconds; one more bucket holds the rest.
BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# C ints in the compiled twin; a test compares them with the tables above.
_FAMILIES: Final[Py_ssize_t] = 5
_KINDS: Final[Py_ssize_t] = 5
_BOUNDS: Final[Py_ssize_t] = 13
_SLOTS: Final[Py_ssize_t] = 14
_FIRST: Final[Py_ssize_t] = 0x24


@dataclass(frozen=True, slots=True)
class TimeHistogram:
    """Deliveries by age: a count for each of ``BOUNDS_S`` and one more, and the sum of all ages."""

    counts: tuple[int, ...]
    sum_s: float

    @property
    def count(self) -> int:
        """Number of deliveries."""
        return sum(self.counts)


class Latency:
    """Ages of deliveries at their end, from their arrival."""

    __slots__ = ("_bounds", "_counts", "_sums")

    def __init__(self) -> None:
        self._bounds: Annotated[list[float], "double[13]"] = list(BOUNDS_S)
        # Arrays in the compiled twin, which can be made from a list but not from a multiplied one.
        self._counts: Annotated[list[int], "Py_ssize_t[350]"] = [0 for _ in range(_FAMILIES * _KINDS * _SLOTS)]
        self._sums: Annotated[list[float], "double[25]"] = [0.0 for _ in range(_FAMILIES * _KINDS)]

    def count_delivery(self, address_class: Py_ssize_t, code: c_int, age_s: float) -> None:
        """Count a delivery that ended, by its outcome's code (0 or any other for none) and its age."""
        kind: Py_ssize_t = code - _FIRST
        if kind < 0 or kind >= _KINDS:
            kind = _KINDS - 1
        slot: Py_ssize_t = 0
        while slot < _BOUNDS and age_s > self._bounds[slot]:
            slot += 1
        row: Py_ssize_t = address_class * _KINDS + kind
        self._counts[row * _SLOTS + slot] += 1
        self._sums[row] += age_s

    def snapshot(self) -> dict[tuple[str, str], TimeHistogram]:
        """Return the histogram of each class and outcome."""
        counts, sums = list(self._counts), list(self._sums)
        return {
            (address_class, outcome): TimeHistogram(tuple(counts[row * _SLOTS : (row + 1) * _SLOTS]), sums[row])
            for row, (address_class, outcome) in enumerate(
                (address_class, kind) for address_class in ADDRESS_CLASSES for kind in OUTCOMES
            )
        }


class Outcomes:
    """All deliveries by class and outcome; ``latency`` has those that were not pre-settled.

    A link that receives or drops a pre-settled delivery counts it here, by class.
    """

    __slots__ = ("latency", "presettled", "dropped")

    def __init__(self) -> None:
        self.latency = Latency()
        self.presettled: Annotated[list[int], "Py_ssize_t[5]"] = [0 for _ in range(_FAMILIES)]
        self.dropped: Annotated[list[int], "Py_ssize_t[5]"] = [0 for _ in range(_FAMILIES)]

    def snapshot(self) -> dict[tuple[str, str], int]:
        """Return the number of deliveries of each class and outcome, ``presettled`` and ``dropped`` included."""
        presettled, dropped = list(self.presettled), list(self.dropped)
        totals = {key: histogram.count for key, histogram in self.latency.snapshot().items()}
        for index, address_class in enumerate(ADDRESS_CLASSES):
            totals[address_class, "presettled"] = presettled[index]
            totals[address_class, "dropped"] = dropped[index]
        return totals

    def totals(self) -> Counters:
        """Return the sums over all classes, as in the router's row of management."""
        counters = Counters()
        for (_, outcome), histogram in self.latency.snapshot().items():
            if outcome != "none":
                setattr(counters, outcome, getattr(counters, outcome) + histogram.count)
            counters.delayed_1s += sum(histogram.counts[_ONE_SECOND:-1])
            counters.delayed_10s += histogram.counts[-1]
        counters.presettled = sum(list(self.presettled))
        counters.dropped_presettled = sum(list(self.dropped))
        return counters


def address_class_of(key: str | None) -> int:
    """Return the class of the address with this key, as an index into ``ADDRESS_CLASSES``; None is no address."""
    return _ANONYMOUS if key is None else _FAMILY_OF_LETTER.get(key[0], 0)


#: The first bucket above one second.
_ONE_SECOND: Final = BOUNDS_S.index(1.0) + 1
