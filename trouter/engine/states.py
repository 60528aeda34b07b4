"""The state machines of connection, session, link and SASL, as tables (AMQP 1.0 part 2, 2.4.6, 2.5.5, 2.6.3; part 5,
5.3).

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
    UNMAPPED = 0
    BEGIN_SENT = 1
    BEGIN_RECEIVED = 2
    MAPPED = 3
    END_SENT = 4
    END_RECEIVED = 5
    DISCARDING = 6
    BEGIN_END_RECEIVED = 7


class SessionStep(IntEnum):
    RECEIVE_BEGIN = 0
    SEND_BEGIN = 1
    RECEIVE_END = 2
    SEND_END = 3
    SEND_END_ERROR = 4


class LinkState(IntEnum):
    DETACHED = 0
    ATTACH_SENT = 1
    ATTACH_RECEIVED = 2
    ATTACHED = 3
    DETACH_SENT = 4
    DETACH_RECEIVED = 5
    DETACH_PIPE = 6
    ATTACH_DETACH_RECEIVED = 7


#: The peer attached the link and waits for our answer, also if it has detached it again.
UNANSWERED: Final = frozenset({LinkState.ATTACH_RECEIVED, LinkState.ATTACH_DETACH_RECEIVED})


class LinkStep(IntEnum):
    RECEIVE_ATTACH = 0
    SEND_ATTACH = 1
    RECEIVE_DETACH = 2
    SEND_DETACH = 3


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
    (S.END_SENT, T.RECEIVE_END): S.UNMAPPED,
    (S.END_RECEIVED, T.SEND_END): S.UNMAPPED,
    (S.END_RECEIVED, T.SEND_END_ERROR): S.UNMAPPED,
    (S.DISCARDING, T.RECEIVE_BEGIN): S.DISCARDING,
    (S.DISCARDING, T.RECEIVE_END): S.UNMAPPED,
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
    (L.DETACH_SENT, K.RECEIVE_DETACH): L.DETACHED,
    (L.DETACH_RECEIVED, K.SEND_DETACH): L.DETACHED,
}

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
