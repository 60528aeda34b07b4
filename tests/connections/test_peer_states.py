"""The table of a connection's states: every path leads to the end, and none leads back."""

from __future__ import annotations

import itertools

import pytest
import trio

from trouter.connections.lifetime import Lifetime
from trouter.connections.states import PEER_NEXT, PeerState, PeerStep, advance
from trouter.engine.states import IllegalStep
from trouter.hooks import ListenerFacts, PeerFacts
from trouter.wire.performatives import Error

S, T = PeerState, PeerStep
NOT_DRAWN = [pair for pair in itertools.product(S, T) if pair not in PEER_NEXT]
FIRST, SECOND = Error("amqp:connection:forced", "first"), Error("amqp:not-allowed", "second")


@pytest.mark.parametrize(("state", "step"), PEER_NEXT, ids=lambda each: each.name)
def test_a_step_leads_to_the_state_of_the_table_and_never_back(state: PeerState, step: PeerStep) -> None:
    assert advance(state, step) is PEER_NEXT[state, step]
    assert PEER_NEXT[state, step] >= state


@pytest.mark.parametrize(("state", "step"), NOT_DRAWN, ids=lambda each: each.name)
def test_a_step_outside_the_table_raises_illegal_step(state: PeerState, step: PeerStep) -> None:
    with pytest.raises(IllegalStep, match=f"{step.name} while {state.name}"):
        advance(state, step)


def test_every_state_can_get_to_the_end() -> None:
    good = {S.GONE}
    while more := {state for (state, _), after in PEER_NEXT.items() if after in good} - good:
        good |= more
    assert good == set(S)


def test_only_a_connection_that_opens_can_be_admitted() -> None:
    assert {state for state, step in PEER_NEXT if step is T.ADMIT} == {S.OPENING}


def lifetime(*, outgoing: bool = False) -> Lifetime:
    listener = ListenerFacts(name="one", host="127.0.0.1", port="5672", role="normal")
    facts = PeerFacts(7, listener, "192.0.2.7", 1234, encrypted=False, loopback=False)
    return Lifetime(facts, trio.CancelScope(), outgoing=outgoing)


async def test_the_peer_gets_the_last_reason_and_a_deleted_connection_stays_deleted() -> None:
    one = lifetime()
    assert not one.is_ending
    one.end_connection(FIRST, T.DELETE)
    one.end_connection(SECOND)
    assert (one.state, one.close_error, one.is_ending) == (S.DELETED, SECOND, True)
    assert one.scope.cancel_called


@pytest.mark.parametrize(("outgoing", "failure"), [(False, ""), (True, "amqp:connection:forced first")])
async def test_our_own_close_is_why_a_dialled_connection_failed(outgoing: bool, failure: str) -> None:
    one = lifetime(outgoing=outgoing)
    one.end_connection(FIRST)
    one.end_connection(SECOND)
    assert one.failure == failure


async def test_credentials_that_end_while_the_connection_ends_change_nothing() -> None:
    one = lifetime()
    one.end_connection(FIRST)
    one.end_expired()
    assert one.close_error is FIRST


async def test_an_order_behind_the_end_is_forgiven_and_a_second_end_is_not() -> None:
    one = lifetime()
    one.mark_ended()
    one.end_connection(FIRST, T.DELETE)
    assert one.state is S.GONE
    with pytest.raises(IllegalStep):
        one.mark_ended()
