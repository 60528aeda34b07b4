"""The router's counters (routing.md 5.6): one object per link and one for the whole router."""

from __future__ import annotations


class Counters:
    """Deliveries by outcome and by age."""

    __slots__ = (
        "accepted",
        "delayed_10s",
        "delayed_1s",
        "deliveries",
        "dropped_presettled",
        "modified",
        "presettled",
        "rejected",
        "released",
        "undeliverable",
    )

    def __init__(self) -> None:
        self.deliveries = 0
        self.presettled = 0
        self.dropped_presettled = 0
        self.accepted = 0
        self.rejected = 0
        self.released = 0
        self.modified = 0
        #: Deliveries without a receiver, released or dropped by the router.
        self.undeliverable = 0
        self.delayed_1s = 0
        self.delayed_10s = 0

    def count(self, code: int, age_s: float) -> None:
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
        "egress",
        "egress_container",
        "from_container",
        "ingress",
        "ingress_container",
        "redirected",
        "to_container",
        "transit",
    )

    def __init__(self) -> None:
        self.ingress = 0
        self.egress = 0
        #: The part of ingress and egress from and to route containers.
        self.ingress_container = 0
        self.egress_container = 0
        self.transit = 0
        #: Deliveries to and from consumers and senders inside the router.
        self.to_container = 0
        self.from_container = 0
        self.redirected = 0

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

    __slots__ = ("across", "here", "inside", "total")

    def __init__(self, here: int, inside: int, across: int, beside: int = 0) -> None:
        """Note the copies, and those ``beside`` to other addresses."""
        self.here = here
        self.inside = inside
        self.across = across
        self.total = here + inside + across + beside


class OriginTally:
    """A mutable count, for counts by name."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0
