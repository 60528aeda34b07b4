"""The states of one connection of the router, as a table; ``engine/states.py`` has those of the conversation on it.

A step is taken first, everything else follows it. Accepted and dialled connections have the same states.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Final

from trouter.engine.states import IllegalStep


class PeerState(IntEnum):
    """How far a connection is; from ENDING on nothing that the peer sends counts any more."""

    #: TLS is over; the peer logs in, and its open is awaited.
    OPENING = auto()
    #: The opens are exchanged, and the policy has admitted the peer: it is listed, its links may come.
    OPEN = auto()
    #: The router ends it, and has said why or is about to.
    ENDING = auto()
    #: As ENDING, by order of an operator or of the process: it is listed no longer.
    DELETED = auto()
    #: Nothing of it is left.
    GONE = auto()


class PeerStep(IntEnum):
    """What moves a connection on."""

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
    (S.ENDING, T.END): S.ENDING,  # the last reason is the one that the peer hears
    (S.ENDING, T.DELETE): S.DELETED,
    (S.ENDING, T.FORGET): S.GONE,
    (S.DELETED, T.END): S.DELETED,
    (S.DELETED, T.DELETE): S.DELETED,
    (S.DELETED, T.FORGET): S.GONE,
    (S.GONE, T.END): S.GONE,  # an order may come just behind the end
    (S.GONE, T.DELETE): S.GONE,
}


def advance(state: PeerState, step: PeerStep) -> PeerState:
    """Return the next state; IllegalStep where the table draws none."""
    try:
        return PEER_NEXT[state, step]
    except KeyError:
        raise IllegalStep(f"{step.name} while {state.name}") from None
