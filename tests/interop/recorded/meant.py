"""The intended differences between trouter's answers and Qpid Dispatch's, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tests.interop.recorded.recording import Difference


@dataclass(frozen=True)
class Meant:
    """One difference: its kind, its path (a regular expression), and the reason why it is intended."""

    kind: str
    where: str
    reason: str
    #: Whether it shows in every run; the others depend on the time of a frame.
    steady: bool = True

    def covers(self, difference: Difference) -> bool:
        """Return whether this row allows the difference."""
        return self.kind == difference.kind and re.fullmatch(self.where, difference.where) is not None


_STANDARD = "AMQP 1.0 part 1, 1.2: a reader takes every encoding of a type"

MEANT = (
    Meant("width", r"(open|attach)/.*", f"{_STANDARD}; ours is the smallest"),
    Meant("width", r"(flow|disposition|transfer(\(\w+\))?)/[a-z-]+", f"{_STANDARD}; ours are all of one width"),
    Meant("default", r"[a-z]+(\(\w+\))?/[a-z-]+", "part 1, 1.4: a null means the default; ours writes it out"),
    Meant("value", r"init/initial-response", "a trace of the client's choice: ours names no user and no machine"),
    Meant("value", r"open/properties/(product|version)", "each router's own name and version"),
    Meant("value", r"begin/incoming-window|flow/incoming-window", "a session holds a bounded number of frames"),
    Meant("value", r"begin/handle-max", "a session holds a bounded number of links"),
    Meant("value", r"attach/name", "names of links are random"),
    Meant(
        "value",
        r"attach/(source|target)(/expiry-policy)?",
        "part 2, 2.6.3: an answer repeats what the peer said of its terminus",
    ),
    Meant("value", r"attach/initial-delivery-count", "part 2, 2.7.3: a receiver's is ignored"),
    Meant("value", r"attach/source/address", "the rest of an address that a router made is random"),
    Meant("value", r"disposition/last", "part 2, 2.7.6: last is first where it is null; ours writes it out"),
    Meant("value", r"transfer(\(\w+\))?/delivery-(id|tag)", "each router counts its own deliveries"),
    Meant("value", r"transfer\(\w+\)/value/instance", "milliseconds: a router may be started twice in a second"),
    Meant("value", r"transfer\(lookup\)/properties/[2-5]", "addresses and numbers that the asking router made"),
    Meant(
        "value",
        r"flow/(next-(incoming|outgoing)-id|delivery-count|link-credit)",
        "counts of what had come and gone: ours returns credit for several deliveries at once",
        steady=False,
    ),
    Meant("width", r"transfer\(HELLO\)/value/seen", "an empty list, where the next row holds", steady=False),
    Meant("value", r"transfer\(HELLO\)/value/seen/\d+", "ours says its first hello when its links stand", steady=False),
    Meant("value", r"transfer\(LSU\)/value/(ls/)?ls_seq", "ours counts a neighbour before it is asked", steady=False),
)  # fmt: skip

#: Frames of trouter that match none of the recorded ones.
BESIDES = {
    "flow": "credit may be returned at other times",
    "disposition": "heartbeats and notes may be settled",
    "transfer": "heartbeats go on while the player waits",
    "transfer(HELLO)": "hellos go on while the player waits",
    "transfer(RA)": "a router advertises again after a change, and from time to time",
    "transfer(LSR)": "a router asks again for what has not come",
    "transfer(LSU)": "a router answers each request",
    "transfer(MAR)": "a router asks for the addresses of one that is new to it",
    "transfer(MAU)": "a router answers each request",
}


def unmeant(differences: Iterable[Difference]) -> list[str]:
    """Return the differences that no row allows, each once."""
    found = (each for each in differences if not any(row.covers(each) for row in MEANT))
    return list(dict.fromkeys(map(str, found)))


def unused(differences: Iterable[Difference]) -> list[str]:
    """Return the steady rows that match none of the differences."""
    listed = list(differences)
    return [row.where for row in MEANT if row.steady and not any(map(row.covers, listed))]
