"""The state machines of connection, session, link, delivery and SASL, as tables (AMQP 1.0 part 2, 2.4.6, 2.5.5, 2.6.3,
2.6.12; part 5, 5.3).

A step that a table does not have is illegal; the caller decides whether that is the peer's fault or our own bug. The
machine advances first and everything else changes after it, so a refused step changes nothing. Tests and the manual's
diagrams read these tables too.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeVar


class ConnectionState(IntEnum):
    START = 0
    HEADER_RECEIVED = 1
    HEADER_SENT = 2
    HEADERS_EXCHANGED = 3
    OPEN_PIPE = 4
    OPEN_RECEIVED = 5
    OPEN_SENT = 6
    OPENED = 7
    CLOSE_PIPE = 8
    CLOSE_RECEIVED = 9
    CLOSE_SENT = 10
    DISCARDING = 11
    OPEN_CLOSE_PIPE = 12
    END = 13
    OPEN_CLOSE_RECEIVED = 14


class ConnectionStep(IntEnum):
    RECEIVE_HEADER = 0
    SEND_HEADER = 1
    RECEIVE_OPEN = 2
    SEND_OPEN = 3
    RECEIVE_CLOSE = 4
    SEND_CLOSE = 5
    SEND_CLOSE_ERROR = 6


class SessionState(IntEnum):
    """UNMAPPED is before the first begin; the standard has no name for the END after both ends."""

    UNMAPPED = 0
    BEGIN_SENT = 1
    BEGIN_RECEIVED = 2
    MAPPED = 3
    END_SENT = 4
    END_RECEIVED = 5
    DISCARDING = 6
    BEGIN_END_RECEIVED = 7
    END = 8


class SessionStep(IntEnum):
    RECEIVE_BEGIN = 0
    SEND_BEGIN = 1
    RECEIVE_END = 2
    SEND_END = 3
    SEND_END_ERROR = 4


class LinkState(IntEnum):
    """DETACHED is before the first attach, END after both detaches: another attach makes another link."""

    DETACHED = 0
    ATTACH_SENT = 1
    ATTACH_RECEIVED = 2
    ATTACHED = 3
    DETACH_SENT = 4
    DETACH_RECEIVED = 5
    DETACH_PIPE = 6
    ATTACH_DETACH_RECEIVED = 7
    END = 8


#: The peer attached the link and waits for our answer, also if it has detached it again.
UNANSWERED: Final = frozenset({LinkState.ATTACH_RECEIVED, LinkState.ATTACH_DETACH_RECEIVED})


class LinkStep(IntEnum):
    RECEIVE_ATTACH = 0
    SEND_ATTACH = 1
    RECEIVE_DETACH = 2
    SEND_DETACH = 3


class DeliveryState(IntEnum):
    """How much of a delivery was transferred, and who has settled it; DECIDED: the receiver has sent an outcome."""

    NEW = 0
    NEW_SETTLED = 1
    PARTIAL = 2
    PARTIAL_DECIDED = 3
    PARTIAL_SETTLED_HERE = 4
    PARTIAL_SETTLED_THERE = 5
    PARTIAL_SETTLED = 6
    COMPLETE = 7
    DECIDED = 8
    SETTLED_HERE = 9
    SETTLED_THERE = 10
    SETTLED = 11
    ABORTED = 12
    DROPPED = 13


class DeliveryStep(IntEnum):
    """BEGIN and FINISH are its first and its last frame, DECIDE is an outcome without settlement."""

    BEGIN = 0
    FINISH = 1
    ABORT = 2
    DECIDE = 3
    SETTLE_HERE = 4
    SETTLE_THERE = 5
    DROP = 6


class SaslState(IntEnum):
    START = 0
    HEADER_SENT = 1
    OFFERED = 2
    DECIDING = 3
    CHALLENGED = 4
    AWAITING_MECHANISMS = 5
    CHOOSING = 6
    RESPONDED = 7
    RESPONDING = 8
    ACCEPTED = 9
    REFUSED = 10


class SaslStep(IntEnum):
    RECEIVE_HEADER = 0
    SEND_HEADER = 1
    SEND_MECHANISMS = 2
    RECEIVE_MECHANISMS = 3
    SEND_INIT = 4
    RECEIVE_INIT = 5
    SEND_CHALLENGE = 6
    RECEIVE_CHALLENGE = 7
    SEND_RESPONSE = 8
    RECEIVE_RESPONSE = 9
    SEND_OUTCOME = 10
    RECEIVE_OUTCOME = 11
    SEND_REFUSAL = 12
    RECEIVE_REFUSAL = 13


C, D = ConnectionState, ConnectionStep
CONNECTION_NEXT: Final[dict[tuple[ConnectionState, ConnectionStep], ConnectionState]] = {
    (C.START, D.RECEIVE_HEADER): C.HEADER_RECEIVED,
    (C.START, D.SEND_HEADER): C.HEADER_SENT,
    (C.HEADER_RECEIVED, D.SEND_HEADER): C.HEADERS_EXCHANGED,
    (C.HEADER_SENT, D.RECEIVE_HEADER): C.HEADERS_EXCHANGED,
    (C.HEADER_SENT, D.SEND_OPEN): C.OPEN_PIPE,
    (C.OPEN_PIPE, D.RECEIVE_HEADER): C.OPEN_SENT,
    (C.OPEN_PIPE, D.SEND_CLOSE): C.OPEN_CLOSE_PIPE,
    (C.OPEN_PIPE, D.SEND_CLOSE_ERROR): C.OPEN_CLOSE_PIPE,
    (C.OPEN_CLOSE_PIPE, D.RECEIVE_HEADER): C.CLOSE_PIPE,
    (C.HEADERS_EXCHANGED, D.RECEIVE_OPEN): C.OPEN_RECEIVED,
    (C.HEADERS_EXCHANGED, D.SEND_OPEN): C.OPEN_SENT,
    (C.OPEN_SENT, D.RECEIVE_OPEN): C.OPENED,
    (C.OPEN_SENT, D.SEND_CLOSE): C.CLOSE_PIPE,
    (C.OPEN_SENT, D.SEND_CLOSE_ERROR): C.DISCARDING,
    (C.CLOSE_PIPE, D.RECEIVE_OPEN): C.CLOSE_SENT,
    (C.OPEN_RECEIVED, D.SEND_OPEN): C.OPENED,
    (C.OPENED, D.RECEIVE_CLOSE): C.CLOSE_RECEIVED,
    (C.OPENED, D.SEND_CLOSE): C.CLOSE_SENT,
    (C.OPENED, D.SEND_CLOSE_ERROR): C.DISCARDING,
    (C.OPEN_SENT, D.RECEIVE_CLOSE): C.CLOSE_RECEIVED,
    (C.OPEN_RECEIVED, D.RECEIVE_CLOSE): C.OPEN_CLOSE_RECEIVED,
    (C.OPEN_CLOSE_RECEIVED, D.SEND_OPEN): C.CLOSE_RECEIVED,
    (C.CLOSE_RECEIVED, D.SEND_CLOSE): C.END,
    (C.CLOSE_RECEIVED, D.SEND_CLOSE_ERROR): C.END,
    (C.CLOSE_PIPE, D.RECEIVE_CLOSE): C.END,
    (C.CLOSE_SENT, D.RECEIVE_CLOSE): C.END,
    (C.DISCARDING, D.RECEIVE_OPEN): C.DISCARDING,
    (C.DISCARDING, D.RECEIVE_CLOSE): C.END,
}

S, T = SessionState, SessionStep
SESSION_NEXT: Final[dict[tuple[SessionState, SessionStep], SessionState]] = {
    (S.UNMAPPED, T.SEND_BEGIN): S.BEGIN_SENT,
    (S.UNMAPPED, T.RECEIVE_BEGIN): S.BEGIN_RECEIVED,
    (S.BEGIN_SENT, T.RECEIVE_BEGIN): S.MAPPED,
    (S.BEGIN_SENT, T.SEND_END): S.END_SENT,
    (S.BEGIN_SENT, T.SEND_END_ERROR): S.DISCARDING,
    (S.BEGIN_RECEIVED, T.SEND_BEGIN): S.MAPPED,
    (S.BEGIN_RECEIVED, T.RECEIVE_END): S.BEGIN_END_RECEIVED,
    (S.BEGIN_END_RECEIVED, T.SEND_BEGIN): S.END_RECEIVED,
    (S.MAPPED, T.SEND_END): S.END_SENT,
    (S.MAPPED, T.SEND_END_ERROR): S.DISCARDING,
    (S.MAPPED, T.RECEIVE_END): S.END_RECEIVED,
    (S.END_SENT, T.RECEIVE_BEGIN): S.END_SENT,
    (S.END_SENT, T.RECEIVE_END): S.END,
    (S.END_RECEIVED, T.SEND_END): S.END,
    (S.END_RECEIVED, T.SEND_END_ERROR): S.END,
    (S.DISCARDING, T.RECEIVE_BEGIN): S.DISCARDING,
    (S.DISCARDING, T.RECEIVE_END): S.END,
}

L, K = LinkState, LinkStep
LINK_NEXT: Final[dict[tuple[LinkState, LinkStep], LinkState]] = {
    (L.DETACHED, K.SEND_ATTACH): L.ATTACH_SENT,
    (L.DETACHED, K.RECEIVE_ATTACH): L.ATTACH_RECEIVED,
    (L.ATTACH_SENT, K.RECEIVE_ATTACH): L.ATTACHED,
    (L.ATTACH_SENT, K.SEND_DETACH): L.DETACH_PIPE,
    (L.ATTACH_RECEIVED, K.SEND_ATTACH): L.ATTACHED,
    (L.ATTACH_RECEIVED, K.RECEIVE_DETACH): L.ATTACH_DETACH_RECEIVED,
    (L.ATTACH_DETACH_RECEIVED, K.SEND_ATTACH): L.DETACH_RECEIVED,
    (L.ATTACHED, K.SEND_DETACH): L.DETACH_SENT,
    (L.ATTACHED, K.RECEIVE_DETACH): L.DETACH_RECEIVED,
    (L.DETACH_PIPE, K.RECEIVE_ATTACH): L.DETACH_SENT,
    (L.DETACH_SENT, K.RECEIVE_DETACH): L.END,
    (L.DETACH_RECEIVED, K.SEND_DETACH): L.END,
}

M, N = DeliveryState, DeliveryStep
#: The deliveries that a peer sends to us. Frames between the first and the last change nothing.
INCOMING_NEXT: Final[dict[tuple[DeliveryState, DeliveryStep], DeliveryState]] = {
    (M.NEW, N.BEGIN): M.PARTIAL,
    (M.PARTIAL, N.FINISH): M.COMPLETE,
    (M.PARTIAL, N.ABORT): M.ABORTED,
    (M.PARTIAL, N.DECIDE): M.PARTIAL_DECIDED,
    (M.PARTIAL, N.SETTLE_HERE): M.PARTIAL_SETTLED_HERE,
    (M.PARTIAL, N.SETTLE_THERE): M.PARTIAL_SETTLED_THERE,
    (M.PARTIAL_DECIDED, N.FINISH): M.DECIDED,
    (M.PARTIAL_DECIDED, N.ABORT): M.ABORTED,
    (M.PARTIAL_DECIDED, N.DECIDE): M.PARTIAL_DECIDED,
    (M.PARTIAL_DECIDED, N.SETTLE_HERE): M.PARTIAL_SETTLED_HERE,
    (M.PARTIAL_DECIDED, N.SETTLE_THERE): M.PARTIAL_SETTLED_THERE,
    (M.PARTIAL_SETTLED_HERE, N.FINISH): M.SETTLED_HERE,
    (M.PARTIAL_SETTLED_HERE, N.ABORT): M.ABORTED,
    (M.PARTIAL_SETTLED_HERE, N.SETTLE_THERE): M.PARTIAL_SETTLED,
    (M.PARTIAL_SETTLED_THERE, N.FINISH): M.SETTLED_THERE,
    (M.PARTIAL_SETTLED_THERE, N.ABORT): M.ABORTED,
    (M.PARTIAL_SETTLED_THERE, N.SETTLE_HERE): M.PARTIAL_SETTLED,
    (M.PARTIAL_SETTLED, N.FINISH): M.SETTLED,
    (M.PARTIAL_SETTLED, N.ABORT): M.ABORTED,
    (M.COMPLETE, N.DECIDE): M.DECIDED,
    (M.COMPLETE, N.SETTLE_HERE): M.SETTLED_HERE,
    (M.COMPLETE, N.SETTLE_THERE): M.SETTLED_THERE,
    (M.DECIDED, N.DECIDE): M.DECIDED,
    (M.DECIDED, N.SETTLE_HERE): M.SETTLED_HERE,
    (M.DECIDED, N.SETTLE_THERE): M.SETTLED_THERE,
    (M.SETTLED_HERE, N.SETTLE_THERE): M.SETTLED,
    (M.SETTLED_THERE, N.SETTLE_HERE): M.SETTLED,
}
#: The deliveries that we send. One that waits may be settled before its first frame, or be given up.
OUTGOING_NEXT: Final[dict[tuple[DeliveryState, DeliveryStep], DeliveryState]] = INCOMING_NEXT | {
    (M.NEW, N.SETTLE_HERE): M.NEW_SETTLED,
    (M.NEW, N.DROP): M.DROPPED,
    (M.NEW_SETTLED, N.BEGIN): M.PARTIAL_SETTLED_HERE,
    (M.NEW_SETTLED, N.DROP): M.DROPPED,
}
_OVER: Final = frozenset({M.ABORTED, M.DROPPED})
#: The states in which a flag of a delivery is set.
BEGUN: Final = frozenset(M) - {M.NEW, M.NEW_SETTLED, M.DROPPED}
COMPLETE: Final = frozenset({M.COMPLETE, M.DECIDED, M.SETTLED_HERE, M.SETTLED_THERE, M.SETTLED}) | _OVER
ABORTED: Final = _OVER
SETTLED_HERE: Final = _OVER | {
    M.NEW_SETTLED, M.PARTIAL_SETTLED_HERE, M.PARTIAL_SETTLED, M.SETTLED_HERE, M.SETTLED,
}  # fmt: skip
SETTLED_THERE: Final = _OVER | {M.PARTIAL_SETTLED_THERE, M.PARTIAL_SETTLED, M.SETTLED_THERE, M.SETTLED}

A, B = SaslState, SaslStep
SASL_SERVER_NEXT: Final[dict[tuple[SaslState, SaslStep], SaslState]] = {
    (A.START, B.RECEIVE_HEADER): A.START,
    (A.START, B.SEND_HEADER): A.HEADER_SENT,
    (A.HEADER_SENT, B.SEND_MECHANISMS): A.OFFERED,
    (A.OFFERED, B.RECEIVE_INIT): A.DECIDING,
    (A.DECIDING, B.SEND_CHALLENGE): A.CHALLENGED,
    (A.CHALLENGED, B.RECEIVE_RESPONSE): A.DECIDING,
    (A.DECIDING, B.SEND_OUTCOME): A.ACCEPTED,
    (A.DECIDING, B.SEND_REFUSAL): A.REFUSED,
}
SASL_CLIENT_NEXT: Final[dict[tuple[SaslState, SaslStep], SaslState]] = {
    (A.START, B.SEND_HEADER): A.HEADER_SENT,
    (A.HEADER_SENT, B.RECEIVE_HEADER): A.AWAITING_MECHANISMS,
    (A.AWAITING_MECHANISMS, B.RECEIVE_MECHANISMS): A.CHOOSING,
    (A.CHOOSING, B.SEND_INIT): A.RESPONDED,
    (A.RESPONDED, B.RECEIVE_CHALLENGE): A.RESPONDING,
    (A.RESPONDING, B.SEND_RESPONSE): A.RESPONDED,
    (A.RESPONDED, B.RECEIVE_OUTCOME): A.ACCEPTED,
    (A.RESPONDED, B.RECEIVE_REFUSAL): A.REFUSED,
}

State = TypeVar("State", bound=IntEnum)
Step = TypeVar("Step", bound=IntEnum)


class IllegalStep(Exception):
    """The table has no such transition; the caller decides whether that is the peer's fault."""


def advance(table: dict[tuple[State, Step], State], state: State, step: Step) -> State:
    """Return the state after ``step``; IllegalStep if ``table`` has no such transition."""
    following = table.get((state, step))
    if following is None:
        raise IllegalStep(f"{step.name.lower().replace('_', ' ')} while {state.name.lower().replace('_', ' ')}")
    return following


def flat(table: dict[tuple[State, Step], State], states: type[State], width: int) -> bytes:
    """Return ``table`` as bytes: at ``state * width + step`` the state after that step, or 0.

    0 is the first state of every table, to which no step leads.
    """
    numbers = {state * width + step: following for (state, step), following in table.items()}
    return bytes(numbers.get(number, 0) for number in range(len(states) * width))
