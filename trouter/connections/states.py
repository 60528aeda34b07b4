"""The states of one connection of the router, as a table; ``engine/states.py`` has those of the protocol.

The step comes first, everything else follows it. Accepted and dialled connections have the same states.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Final

from trouter.engine.states import IllegalStep


class PeerState(IntEnum):
    """The state of a connection; from ENDING on everything that the peer sends is ignored."""

    #: The TLS handshake is over; the peer logs in, and its open is awaited.
    OPENING = auto()
    #: The opens are exchanged, and the policy has admitted the peer: it is listed and may attach links.
    OPEN = auto()
    #: The router ends it, and has sent or is about to send its close.
    ENDING = auto()
    #: As ENDING, by an operator or the process: it is no longer listed.
    DELETED = auto()
    #: It has ended completely.
    GONE = auto()


class PeerStep(IntEnum):
    """The steps between the states."""

    ADMIT = auto()
    END = auto()
    DELETE = auto()
    FORGET = auto()


S, T = PeerState, PeerStep
PEER_NEXT: Final[dict[tuple[PeerState, PeerStep], PeerState]] = {
    (S.OPENING, T.ADMIT): S.OPEN,
    (S.OPENING, T.END): S.ENDING,
    (S.OPENING, T.DELETE): S.DELETED,
    (S.OPENING, T.FORGET): S.GONE,
    (S.OPEN, T.END): S.ENDING,
    (S.OPEN, T.DELETE): S.DELETED,
    (S.OPEN, T.FORGET): S.GONE,
    (S.ENDING, T.END): S.ENDING,  # the peer gets the last reason
    (S.ENDING, T.DELETE): S.DELETED,
    (S.ENDING, T.FORGET): S.GONE,
    (S.DELETED, T.END): S.DELETED,
    (S.DELETED, T.DELETE): S.DELETED,
    (S.DELETED, T.FORGET): S.GONE,
    (S.GONE, T.END): S.GONE,  # an order may come just after the end
    (S.GONE, T.DELETE): S.GONE,
}


def advance(state: PeerState, step: PeerStep) -> PeerState:
    """Return the next state; IllegalStep if the table has none."""
    try:
        return PEER_NEXT[state, step]
    except KeyError:
        raise IllegalStep(f"{step.name} while {state.name}") from None
