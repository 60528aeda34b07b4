"""The tables, arrow by arrow; then every frame in every state of a live engine: the listed arrow or the named fault."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

from manual.states import MACHINES, page
from tests.engine.talks import (
    NEAR_WRAP,
    OPEN,
    attach,
    attached,
    begin,
    begun,
    client,
    flow,
    opened,
    receiving,
    sending,
    server,
    transfer,
)
from tests.script import Script
from trouter.engine.events import ConnectionClosed, Event, LinkDetached, SessionEnded
from trouter.engine.faults import Fault
from trouter.engine.limits import EngineLimits
from trouter.engine.link import add_link
from trouter.engine.link_base import Link
from trouter.engine.ports import (
    Budget,
    ConnectionPort,
    Delivery,
    LinkPort,
    SessionPort,
    advance_incoming,
    advance_outgoing,
)
from trouter.engine.session import Session
from trouter.engine.states import (
    ABORTED,
    BEGUN,
    COMPLETE,
    CONNECTION_NEXT,
    INCOMING_NEXT,
    LINK_NEXT,
    OUTGOING_NEXT,
    SASL_CLIENT_NEXT,
    SASL_SERVER_NEXT,
    SESSION_NEXT,
    SETTLED_HERE,
    SETTLED_THERE,
    ConnectionState,
    ConnectionStep,
    DeliveryState,
    DeliveryStep,
    IllegalStep,
    LinkState,
    LinkStep,
    SaslState,
    SaslStep,
    SessionState,
    SessionStep,
    advance,
)
from trouter.wire.framing import AMQP_HEADER, FRAME_SASL, frame
from trouter.wire.performatives import Close, Detach, Disposition, End, Error, Open, Performative, Source, Target

C, S, L, A, M = ConnectionState, SessionState, LinkState, SaslState, DeliveryState
WRONG = Error("amqp:internal-error")
ROOT = Path(__file__).resolve().parents[2]

SASL_CLIENT_STATES = {
    A.START, A.HEADER_SENT, A.AWAITING_MECHANISMS, A.CHOOSING, A.RESPONDED, A.RESPONDING, A.ACCEPTED, A.REFUSED,
}  # fmt: skip
SASL_SERVER_STATES = {A.START, A.HEADER_SENT, A.OFFERED, A.DECIDING, A.CHALLENGED, A.ACCEPTED, A.REFUSED}
DELIVERY_ENDS = {M.SETTLED_HERE, M.SETTLED_THERE, M.SETTLED, M.ABORTED}
#: name: (table, its states, its steps, the initial state, the states that may be final)
TABLES: dict[str, tuple[dict[Any, Any], set[Any], type[IntEnum], IntEnum, set[Any]]] = {
    "connection": (CONNECTION_NEXT, set(C), ConnectionStep, C.START, {C.END}),
    "session": (SESSION_NEXT, set(S), SessionStep, S.UNMAPPED, {S.END}),
    "link": (LINK_NEXT, set(L), LinkStep, L.DETACHED, {L.END}),
    "incoming delivery": (INCOMING_NEXT, set(M) - {M.NEW_SETTLED, M.DROPPED}, DeliveryStep, M.NEW, DELIVERY_ENDS),
    "outgoing delivery": (OUTGOING_NEXT, set(M), DeliveryStep, M.NEW, DELIVERY_ENDS | {M.DROPPED}),
    "sasl server": (SASL_SERVER_NEXT, SASL_SERVER_STATES, SaslStep, A.START, {A.ACCEPTED, A.REFUSED}),
    "sasl client": (SASL_CLIENT_NEXT, SASL_CLIENT_STATES, SaslStep, A.START, {A.ACCEPTED, A.REFUSED}),
}
CELLS = [(name, state, step) for name, row in TABLES.items() for state in sorted(row[1]) for step in row[2]]


@pytest.mark.parametrize(("name", "state", "step"), CELLS, ids=[f"{n}-{s.name}-{t.name}" for n, s, t in CELLS])
def test_a_drawn_step_advances_and_any_other_is_illegal(name: str, state: Any, step: Any) -> None:
    table, states, *_ = TABLES[name]
    if (state, step) in table:
        assert advance(table, state, step) is table[state, step]
        assert table[state, step] in states
    else:
        with pytest.raises(IllegalStep, match=r"^[a-z ]+ while [a-z ]+$"):
            advance(table, state, step)


@pytest.mark.parametrize("name", TABLES)
def test_every_state_can_be_reached(name: str) -> None:
    table, states, _, first, _ = TABLES[name]
    reached = {first}
    while more := {b for (a, _), b in table.items() if a in reached} - reached:
        reached |= more
    assert reached == states


@pytest.mark.parametrize("name", TABLES)
def test_every_state_can_get_to_the_end(name: str) -> None:
    table, states, _, _, last = TABLES[name]
    good = set(last)
    while more := {a for (a, _), b in table.items() if b in good} - good:
        good |= more
    assert good == states


def test_the_page_of_the_manual_has_the_tables_and_their_ends() -> None:
    assert (ROOT / "docs" / "protocol" / "states.md").read_text(encoding="utf-8") == page()
    for machine, row in zip(MACHINES, TABLES.values(), strict=True):
        assert (machine.table, machine.first, set(machine.last)) == (row[0], row[3], row[4])


# --- a live delivery


def delivery_in(state: DeliveryState, direction: str) -> Delivery:
    """Return a delivery that was led to ``state`` by the steps of the table."""
    table = INCOMING_NEXT if direction == "incoming" else OUTGOING_NEXT
    ways: dict[DeliveryState, list[DeliveryStep]] = {M.NEW: []}
    while state not in ways:
        for (before, step), after in table.items():
            if before in ways and after not in ways:
                ways[after] = [*ways[before], step]
    delivery = Delivery(LinkPort(SessionPort(ConnectionPort([], Budget(0)), 0, EngineLimits())))
    for step in ways[state]:
        advance_delivery(delivery, direction, step)
    return delivery


def advance_delivery(delivery: Delivery, direction: str, step: DeliveryStep) -> int:
    return advance_incoming(delivery, step) if direction == "incoming" else advance_outgoing(delivery, step)


def flags_of(delivery: Delivery) -> tuple[bool, ...]:
    return delivery.begun, delivery.complete, delivery.aborted, delivery.settled, delivery.remote_settled


DELIVERY_CELLS = [
    (name.split()[0], state, step)
    for name, (_, states, steps, *_) in TABLES.items()
    if steps is DeliveryStep
    for state in sorted(states)
    for step in steps
]


@pytest.mark.parametrize(
    ("direction", "state", "step"), DELIVERY_CELLS, ids=[f"{d}-{s.name}-{t.name}" for d, s, t in DELIVERY_CELLS]
)
def test_every_step_in_every_state_of_a_delivery(direction: str, state: DeliveryState, step: Any) -> None:
    delivery = delivery_in(state, direction)
    before = flags_of(delivery)
    assert delivery.state == state
    assert before == tuple(state in flag for flag in (BEGUN, COMPLETE, ABORTED, SETTLED_HERE, SETTLED_THERE))
    after = TABLES[f"{direction} delivery"][0].get((state, step))
    if after is None:
        with pytest.raises(IllegalStep, match=r"^[a-z ]+ while [a-z ]+$"):
            advance_delivery(delivery, direction, step)
        assert (delivery.state, flags_of(delivery)) == (state, before)
    else:
        assert advance_delivery(delivery, direction, step) == delivery.state == after


@pytest.mark.parametrize("state", M, ids=lambda state: state.name)
def test_settling_again_and_dropping_what_is_begun_change_nothing(state: DeliveryState) -> None:
    delivery = delivery_in(state, "outgoing")
    if delivery.settled:
        delivery.mark_settled()
        assert delivery.state == state
    if state not in (M.NEW, M.NEW_SETTLED):
        with pytest.raises(IllegalStep):
            delivery.drop_unsent()
        assert delivery.state == state


def test_the_sasl_tables_leave_out_no_state() -> None:
    assert set(SaslState) == SASL_CLIENT_STATES | SASL_SERVER_STATES


# --- the live engine


def connection_start() -> Script:
    return Script(server())


def connection_header_sent() -> Script:
    return Script(client())


def connection_headers_exchanged() -> Script:
    return Script(server()).peer_sends(AMQP_HEADER)


def connection_open_pipe() -> Script:
    talk = Script(client())
    talk.connection.open()
    return talk


def connection_open_received() -> Script:
    return Script(server()).peer_sends(AMQP_HEADER, OPEN)


def connection_open_sent() -> Script:
    return connection_open_pipe().peer_sends(AMQP_HEADER)


def connection_opened() -> Script:
    return opened()


def connection_close_pipe() -> Script:
    talk = connection_open_sent()
    talk.connection.close()
    return talk


def connection_open_close_pipe() -> Script:
    talk = connection_open_pipe()
    talk.connection.close()
    return talk


def connection_close_received() -> Script:
    return opened().peer_sends(Close())


def connection_open_close_received() -> Script:
    return connection_open_received().peer_sends(Close())


def connection_close_sent() -> Script:
    talk = opened()
    talk.connection.close()
    return talk


def connection_discarding() -> Script:
    talk = opened()
    talk.connection.close(WRONG)
    return talk


def connection_end() -> Script:
    return connection_close_sent().peer_sends(Close())


CONNECTIONS: dict[ConnectionState, Callable[[], Script]] = {
    state: globals()[f"connection_{state.name.lower()}"] for state in C if state is not C.HEADER_RECEIVED
}
BEFORE_HEADER = {C.START, C.HEADER_SENT, C.OPEN_PIPE, C.OPEN_CLOSE_PIPE}
CLOSING = {
    C.CLOSE_PIPE, C.CLOSE_RECEIVED, C.OPEN_CLOSE_RECEIVED, C.CLOSE_SENT, C.DISCARDING, C.END,
}  # fmt: skip
FRAMES: dict[str, Performative | bytes] = {
    "header": AMQP_HEADER,
    "open": OPEN,
    "begin": begin(),
    "attach": attach(),
    "flow": flow(),
    "transfer": transfer(),
    "disposition": Disposition(True, NEAR_WRAP),
    "detach": Detach(0),
    "end": End(),
    "close": Close(),
    "empty": frame(0, b""),
    "sasl": frame(0, b"\x00\x53\x41\x45", FRAME_SASL),
    "unknown": frame(0, b"\x00\x53\x77\x45"),
    "no performative": frame(0, b"\x45"),
    "garbage": b"GET / HTTP/1.1\r\n\r\n",
}
STEPS = {
    "header": ConnectionStep.RECEIVE_HEADER,
    "open": ConnectionStep.RECEIVE_OPEN,
    "close": ConnectionStep.RECEIVE_CLOSE,
}
IN_SESSIONS = {"attach", "flow", "transfer", "disposition", "detach", "end"}


def faults(events: list[Event]) -> list[Fault]:
    found = [each.fault for each in events if isinstance(each, ConnectionClosed | SessionEnded | LinkDetached)]
    return [each.fault for each in found if each is not None]


def wanted_of_connection(state: ConnectionState, name: str) -> ConnectionState | Fault:
    """Return the result that section 2.4 requires."""
    if state is C.END:
        return C.END
    if state in BEFORE_HEADER:
        return BEHIND_HEADER[state] if name == "header" else Fault.FRAMING
    if name in ("header", "garbage"):
        return Fault.FRAMING
    if name == "empty":
        return state
    if name == "sasl":
        return Fault.FRAME_TYPE
    if name == "no performative":
        return Fault.DECODE
    if name == "unknown":
        return Fault.UNKNOWN_PERFORMATIVE
    if name in STEPS:
        return CONNECTION_NEXT.get((state, STEPS[name]), Fault.ILLEGAL_CONNECTION_STEP)
    if state in CLOSING:
        return state
    if state in (C.OPENED, C.OPEN_RECEIVED):
        return Fault.CHANNEL_UNMAPPED if name in IN_SESSIONS else state
    return Fault.NOT_OPEN


#: The header is sent with the peer's arrival, so the state after it is the one after both.
BEHIND_HEADER = {
    C.START: C.HEADERS_EXCHANGED,
    C.HEADER_SENT: C.HEADERS_EXCHANGED,
    C.OPEN_PIPE: C.OPEN_SENT,
    C.OPEN_CLOSE_PIPE: C.CLOSE_PIPE,
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("state", CONNECTIONS, ids=lambda state: state.name)
def test_every_frame_in_every_state_of_a_connection(state: ConnectionState, name: str) -> None:
    talk = CONNECTIONS[state]()
    connection = talk.connection
    assert connection.state is state
    talk.sent()
    connection.events.clear()
    talk.peer_sends(FRAMES[name])
    wanted = wanted_of_connection(state, name)
    if isinstance(wanted, Fault):
        assert connection.failed
        assert faults(connection.events) == ([] if state in (C.CLOSE_RECEIVED, C.OPEN_CLOSE_RECEIVED) else [wanted])
        sent = [each.performative for each in talk.sent()]
        if state not in CLOSING | {C.OPEN_CLOSE_PIPE}:
            assert isinstance(sent[-1], Close)
            assert sent[-1].error is not None
            assert sent[-1].error.condition == wanted.value.condition
        else:
            assert sent == []
        talk.peer_sends(Close(), AMQP_HEADER, b"x").engine_sends()
        assert connection.finished
    else:
        assert connection.state is wanted
        assert faults(connection.events) == []
        talk.sent()


SESSION_FRAMES: dict[str, Performative] = {
    "begin": begin(),
    "answer": begin(remote_channel=0),
    "attach": attach("two", 1),
    "flow": flow(),
    "link flow": flow(handle=7, delivery_count=0, link_credit=1),
    "transfer": transfer(handle=7),
    "disposition": Disposition(True, NEAR_WRAP, NEAR_WRAP + 3, settled=True),
    "backwards": Disposition(True, NEAR_WRAP, NEAR_WRAP - 3, settled=True),
    "detach": Detach(7),
    "end": End(),
}


def session_in(state: SessionState) -> tuple[Script, Session | None]:
    """Return a session on the peer's channel 0 (if the peer has begun it) and the local one."""
    talk = opened()
    if state is S.UNMAPPED:
        return talk, None
    if state is S.END:
        talk.peer_sends(begin())
        session = talk.connection.sessions()[0]
        session.begin()
        session.end()
        talk.peer_sends(End())
        return talk, session
    if state in (S.BEGIN_RECEIVED, S.BEGIN_END_RECEIVED):
        talk.peer_sends(begin())
        session = talk.connection.sessions()[0]
        if state is S.BEGIN_END_RECEIVED:
            talk.peer_sends(End())
        return talk, session
    session = talk.connection.add_session()
    session.begin()
    if state is not S.BEGIN_SENT:
        talk.peer_sends(begin(remote_channel=0))
    if state is S.END_SENT:
        session.end()
    elif state is S.DISCARDING:
        session.end(WRONG)
    elif state is S.END_RECEIVED:
        talk.peer_sends(End())
    return talk, session


def wanted_of_session(state: SessionState, name: str) -> SessionState | Fault:
    """Return the result that section 2.5 requires, for a frame on the peer's channel 0."""
    if name == "answer" and state is S.BEGIN_SENT:
        return S.MAPPED
    # the peer has no session there
    unheard = state in (S.UNMAPPED, S.BEGIN_SENT, S.END_RECEIVED, S.BEGIN_END_RECEIVED, S.END)
    if name == "answer":
        return Fault.REMOTE_CHANNEL if unheard else Fault.CHANNEL_IN_USE
    if name == "begin":
        return state if unheard else Fault.CHANNEL_IN_USE
    if unheard:
        return Fault.CHANNEL_UNMAPPED
    if name == "end":
        return SESSION_NEXT[state, SessionStep.RECEIVE_END]
    if state in (S.END_SENT, S.DISCARDING):
        return state
    wrong = {
        "transfer": Fault.UNATTACHED_HANDLE,
        "link flow": Fault.UNATTACHED_HANDLE,
        "detach": Fault.UNATTACHED_HANDLE,
        "backwards": Fault.DISPOSITION_RANGE,
    }
    return wrong.get(name, state)


@pytest.mark.parametrize("name", SESSION_FRAMES)
@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_every_frame_in_every_state_of_a_session(state: SessionState, name: str) -> None:
    talk, session = session_in(state)
    if session is not None:
        assert session.state is state
    talk.sent()
    connection = talk.connection
    connection.events.clear()
    talk.peer_sends(SESSION_FRAMES[name])
    wanted = wanted_of_session(state, name)
    if isinstance(wanted, Fault):
        assert faults(connection.events) == [wanted]
        last = talk.sent()[-1].performative
        assert isinstance(last, End | Close)
        assert last.error is not None
        assert last.error.condition == wanted.value.condition
        assert connection.failed == isinstance(last, Close)
        # other frames that cross the local end are skipped, and the peer's end is the last of them
        if isinstance(last, End):
            connection.events.clear()
            talk.peer_sends(*SESSION_FRAMES.values())
            assert connection.failed == (name == "answer") or faults(connection.events)[0].value.scope == 2
    else:
        assert faults(connection.events) == []
        assert not connection.failed
        if session is not None:
            assert session.state is wanted
        talk.sent()


LINK_FRAMES: dict[str, Performative] = {
    "attach": attach("one", 3),
    "attach on the handle": attach("two", 0),
    "flow": flow(handle=0, delivery_count=NEAR_WRAP, link_credit=1),
    "transfer": transfer(),
    "detach": Detach(0),
    "close": Detach(0, closed=True),
}


def link_in(state: LinkState) -> tuple[Script, Session, Link | None]:
    """Return a link named one on which the peer sends, with handle 0 at both ends."""
    talk, session = begun()
    if state is L.DETACHED:
        return talk, session, None
    if state is L.END:
        talk.peer_sends(attach())
        link = session.links.by_handle[0]
        link.attach(Source("here"), Target("there"))
        link.detach(False)
        talk.peer_sends(Detach(0))
        return talk, session, link
    if state in (L.ATTACH_RECEIVED, L.ATTACH_DETACH_RECEIVED):
        talk.peer_sends(attach())
        link = session.links.by_handle[0]
        if state is L.ATTACH_DETACH_RECEIVED:
            talk.peer_sends(Detach(0))
        return talk, session, link
    link = add_link(session, "one", True)
    link.attach(Source("here"), Target("there"))
    if state is L.DETACH_PIPE:
        link.detach(False)
    elif state is not L.ATTACH_SENT:
        talk.peer_sends(attach())
    if state is L.DETACH_SENT:
        link.detach(False)
    elif state is L.DETACH_RECEIVED:
        talk.peer_sends(Detach(0))
    return talk, session, link


def wanted_of_link(state: LinkState, name: str) -> LinkState | Fault:
    """Return the result that section 2.6 requires."""
    on_handle = state in (L.ATTACH_RECEIVED, L.ATTACHED, L.DETACH_SENT)  # the peer's handle 0 has a link
    if name == "attach":
        answers = {L.ATTACH_SENT: L.ATTACHED, L.DETACH_PIPE: L.DETACH_SENT}
        return Fault.LINK_NAME_IN_USE if on_handle else answers.get(state, state)
    if name == "attach on the handle":
        return Fault.HANDLE_IN_USE if on_handle else state
    if not on_handle:
        return Fault.UNATTACHED_HANDLE
    if name in ("detach", "close"):
        return LINK_NEXT[state, LinkStep.RECEIVE_DETACH]
    if name == "transfer" and state is not L.DETACH_SENT:
        return Fault.TRANSFER_LIMIT
    return state


@pytest.mark.parametrize("name", LINK_FRAMES)
@pytest.mark.parametrize("state", L, ids=lambda state: state.name)
def test_every_frame_in_every_state_of_a_link(state: LinkState, name: str) -> None:
    talk, session, link = link_in(state)
    if link is not None:
        assert link.state is state
    talk.sent()
    connection = talk.connection
    connection.events.clear()
    talk.peer_sends(LINK_FRAMES[name])
    wanted = wanted_of_link(state, name)
    if isinstance(wanted, Fault):
        assert faults(connection.events) == [wanted]
        last = talk.sent()[-1].performative
        assert isinstance(last, Detach | End | Close)
        assert last.error is not None
        assert last.error.condition == wanted.value.condition
        assert [Detach, End, Close].index(type(last)) == wanted.value.scope
    else:
        assert faults(connection.events) == []
        assert session.state is S.MAPPED
        if link is not None:
            assert link.state is wanted
        talk.sent()


# --- late calls of the application


@pytest.mark.parametrize("state", [state for state in CONNECTIONS if state not in BEFORE_HEADER], ids=lambda s: s.name)
def test_an_open_is_sent_once_for_repeated_calls(state: ConnectionState) -> None:
    talk = CONNECTIONS[state]()
    talk.connection.open()
    talk.connection.open()
    sent = [each.performative for each in talk.sent()]
    assert sum(isinstance(each, Open) for each in sent) <= 1
    assert not [each for each in sent if isinstance(each, Open) and sent.index(each) > 1]


@pytest.mark.parametrize("state", CONNECTIONS, ids=lambda state: state.name)
@pytest.mark.parametrize("error", [None, WRONG], ids=["well", "error"])
def test_a_close_is_sent_once_and_no_frame_follows_it(state: ConnectionState, error: Error | None) -> None:
    talk = CONNECTIONS[state]()
    connection = talk.connection
    before = talk.sent()
    connection.close(error)
    connection.close(error)
    connection.open()
    sent = [each.performative for each in before + talk.sent()]
    closes = [at for at, each in enumerate(sent) if isinstance(each, Close)]
    if state in (C.START, C.HEADER_SENT, C.HEADERS_EXCHANGED):
        assert closes == []
    elif state is not C.END:
        assert closes == [len(sent) - 1]
        assert sum(isinstance(each, Open) for each in sent) <= 1


@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
@pytest.mark.parametrize("command", ["begin", "end", "end with an error"])
def test_a_late_command_to_a_session_does_nothing(state: SessionState, command: str) -> None:
    talk, session = session_in(state)
    if session is None:
        return
    talk.sent()
    if command == "begin":
        session.begin()
        session.begin()
        assert len(talk.sent()) == (1 if state in (S.BEGIN_RECEIVED, S.BEGIN_END_RECEIVED) else 0)
    else:
        error = WRONG if command == "end with an error" else None
        session.end(error)
        session.end(error)
        session.begin()
        ours = {S.BEGIN_RECEIVED: 2, S.BEGIN_END_RECEIVED: 2, S.END_SENT: 0, S.DISCARDING: 0, S.END: 0}
        sent = [each.performative for each in talk.sent()]
        assert len(sent) == ours.get(state, 1)
        assert not sent or sent[-1] == End(error)


@pytest.mark.parametrize("state", L, ids=lambda state: state.name)
@pytest.mark.parametrize("command", ["attach", "detach", "refuse"])
def test_a_late_command_to_a_link_does_nothing(state: LinkState, command: str) -> None:
    talk, _, link = link_in(state)
    if link is None:
        return
    talk.sent()
    unanswered = state in (L.ATTACH_RECEIVED, L.ATTACH_DETACH_RECEIVED)
    if command == "attach":
        link.attach(None, None)
        link.attach(None, None)
        assert len(talk.sent()) == (1 if unanswered else 0)
    elif command == "refuse":
        link.refuse(WRONG)
        link.refuse(WRONG)
        link.attach(None, None)
        assert len(talk.sent()) == (2 if unanswered else 0)
    else:
        link.detach(True, WRONG)
        link.detach(True, WRONG)
        link.attach(None, None)
        sent = talk.sent()
        assert len(sent) == (2 if unanswered else 0 if state in (L.DETACH_SENT, L.DETACH_PIPE, L.END) else 1)
        assert not sent or sent[-1].performative == Detach(0, True, WRONG)


def test_nothing_goes_out_on_a_session_or_link_once_the_connection_is_closed() -> None:
    for talk in (receiving(), sending()):
        connection = talk.connection
        connection.close()
        talk.script.engine_sends(Close())
        talk.session.begin()
        other = connection.add_session()
        other.begin()
        add_link(other, "two", True).attach(None, None)
        add_link(talk.session, "three", False).attach(None, None)
        talk.link.detach(True)
        talk.session.end()
        other.end()
        connection.tick(1.0)
        talk.script.engine_sends()


def test_a_session_that_both_sides_ended_stays_ended() -> None:
    talk, session = begun()
    link, _ = attached(talk, attach())
    talk.peer_sends(End())
    session.end()
    talk.engine_sends(End())
    talk.connection.drop_session(session)
    session.begin()
    link.detach(True)
    talk.engine_sends()
    assert talk.connection.link_count == 0
    assert talk.connection.sessions() == []


def test_a_link_that_both_sides_detached_stays_detached() -> None:
    talk, session = begun()
    link, _ = attached(talk, attach())
    talk.peer_sends(Detach(0))
    link.detach(False)
    talk.engine_sends(Detach(0))
    link.attach(None, None)
    talk.engine_sends()
    assert talk.connection.link_count == 0
    assert session.links.list_links() == []
