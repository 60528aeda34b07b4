"""When memory runs out, the user with the most memory loses connections (trouter.admission.memory)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from trouter.admission.memory import (
    DELIVERY_BYTES,
    HOGS_PART,
    MUCH_PART,
    OPERATORS,
    REFUSED_LINK_BYTES,
    MemoryWatch,
    cost_bytes,
)
from trouter.engine.connection import Connection
from trouter.engine.limits import EngineLimits
from trouter.engine.ports import Budget
from trouter.hooks import ListenerFacts, PeerFacts
from trouter.net.view import ConnectionView
from trouter.policy.book import SESSION_BYTES
from trouter.telemetry.recorder import Recorder
from trouter.testing import MemoryRouter, compose
from trouter.wire.performatives import Error, Open

LIMIT = 1000 * SESSION_BYTES


class Connected:
    """A connection of a user, with as many sessions."""

    def __init__(self, number: int, user: str, sessions: int, role: str = "normal") -> None:
        self.number = number
        self.facts = PeerFacts(
            number, ListenerFacts("l", "h", "0", role), "127.0.0.1", 1, encrypted=False, loopback=True
        )
        self.engine = Connection(EngineLimits(), Open("r"), [], None, server=True)
        self.closed_with: Error | None = None
        self._user = user
        for _ in range(sessions):
            self.engine.add_session()
        self.engine.out.clear()

    def describe_connection(self) -> dict[str, Any]:
        return {"vhost": "v", "user": self._user}

    def close_at_once(self, error: Error) -> None:
        self.closed_with = error

    def suspend_credit(self, withheld: bool) -> None:
        """Do nothing: these connections keep no messages."""


def watch_at(percent: int, *connections: Connected) -> MemoryWatch:
    taken = LIMIT * percent // 100
    watch = MemoryWatch(Budget(0), Recorder(), lambda: taken, lambda: taken, lambda: 0.0)
    watch.set_limit(LIMIT)
    watch.check_memory(cast("list[ConnectionView]", connections))
    return watch


def closed(*connections: Connected) -> list[int]:
    return [each.number for each in connections if each.closed_with is not None]


def test_sessions_and_links_cost_memory() -> None:
    engine = Connected(1, "a", 7).engine
    assert cost_bytes(engine) == 7 * SESSION_BYTES


@pytest.mark.attack
def test_deliveries_that_a_peer_does_not_settle_cost_memory_at_both_ends() -> None:
    router = MemoryRouter()
    sending, receiving = router.connect(), router.connect()
    receiver, sender = receiving.receiver("x", credit=10), sending.sender("x")
    engines = (sending.server, receiving.server)
    before = [cost_bytes(each) for each in engines]
    for _ in range(7):
        sender.send(compose(b"1"))
    router.pump()
    assert [cost_bytes(each) - was for each, was in zip(engines, before, strict=True)] == [7 * DELIVERY_BYTES] * 2
    for message in receiver.received:
        message.settle()
    router.pump()
    assert [cost_bytes(each) for each in engines] == before


def test_the_user_with_the_most_memory_loses_connections_and_new_connections_are_admitted() -> None:
    """Two connections of user b take more together than the single one of user a, which is larger than each."""
    connections = [Connected(1, "a", 120), Connected(2, "b", 100), Connected(3, "b", 110), Connected(4, "c", 1)]
    watch = watch_at(95, *connections)
    assert closed(*connections) == [3]  # enough for the ten percent above the limit
    assert connections[2].closed_with is not None
    assert connections[2].closed_with.condition == "amqp:resource-limit-exceeded"
    assert not watch.refusal


def test_one_after_the_other_pays() -> None:
    connections = [Connected(1, "b", 100), Connected(2, "b", 110)]
    watch = watch_at(95, *connections)
    watch.check_memory(cast("list[ConnectionView]", connections))
    assert closed(*connections) == [2]
    watch.check_memory(cast("list[ConnectionView]", connections[:1]))
    assert closed(*connections) == [1, 2]


@pytest.mark.parametrize("percent", [85, 89])
def test_below_the_last_mark_only_a_user_whose_links_and_sessions_take_a_quarter_loses_connections(
    percent: int,
) -> None:
    quarter = 1000 // HOGS_PART
    less, enough = Connected(1, "a", quarter - 1), Connected(2, "b", quarter)
    assert not watch_at(percent, less).refusal
    assert not closed(less)
    less.engine.buffered_bytes = LIMIT  # messages do not count: credit limits them
    watch_at(percent, less)
    assert not closed(less)
    watch_at(percent, less, enough)
    assert closed(less, enough) == [2]


def test_below_the_mark_for_links_no_connection_is_closed() -> None:
    connection = Connected(1, "a", 500)
    watch_at(84, connection)
    assert not closed(connection)


def test_what_is_kept_of_opens_and_attaches_costs_memory() -> None:
    engine = Connected(1, "a", 0).engine
    engine.kept_bytes = engine.buffered_bytes = 7
    assert cost_bytes(engine) == 7
    engine.refused_count = 2
    assert cost_bytes(engine) == 7 + 2 * REFUSED_LINK_BYTES


def test_garbage_is_collected_before_anyone_pays_and_not_too_often() -> None:
    """The memory in use falls with the collection."""
    now, used, connection = [0.0], [950, 100, 950, 950], Connected(1, "a", 900)
    watch = MemoryWatch(Budget(0), Recorder(), lambda: 950, lambda: used.pop(0), lambda: now[0])
    watch.set_limit(1000)
    watch.check_memory(cast("list[ConnectionView]", [connection]))
    assert not closed(connection)
    watch.check_memory(cast("list[ConnectionView]", [connection]))  # too early for another collection
    assert closed(connection) == [1]


@pytest.mark.parametrize("operator", [True, False])
def test_a_few_operators_are_admitted_while_no_other_client_is(operator: bool) -> None:
    watch = watch_at(95)
    assert watch.refusal_reason(busy=True)
    assert not watch.refusal_reason(busy=False)
    assert [watch.may_stay(number, operator=operator) for number in range(OPERATORS + 1)] == [operator] * OPERATORS + [
        False
    ]
    assert bool(watch.refusal_reason(busy=False)) == operator
    gone: list[ConnectionView] = []
    watch.check_memory(gone)
    assert not watch.refusal_reason(busy=False)  # the operators' connections have ended


def test_where_no_user_takes_much_newcomers_are_refused() -> None:
    much = 1000 // MUCH_PART
    less, enough = Connected(1, "a", much - 1), Connected(2, "b", much)
    assert watch_at(95, less).refusal
    assert not closed(less)
    assert not watch_at(95, enough).refusal
    assert closed(enough)


def test_routers_do_not_pay() -> None:
    router, client = Connected(1, "r", 900, "inter-router"), Connected(2, "a", 60)
    watch_at(99, router, client)
    assert closed(router, client) == [2]
