"""The counts of a vhost's connections (security.md 4.10)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.policy.compiled import ConnectionLimits
from trouter.policy.counts import VhostConnections
from trouter.policy.kinds import Reason

PLENTY = ConnectionLimits(100, 100, 100)
ALL, USER, HOST = Reason.MAX_CONNECTIONS, Reason.MAX_CONNECTIONS_PER_USER, Reason.MAX_CONNECTIONS_PER_HOST


def counted(*connections: tuple[str, str]) -> VhostConnections:
    counts = VhostConnections()
    for number, (user, host) in enumerate(connections):
        counts.add_connection(f"{host}:{number}", user, host)
    return counts


LIMITS = {
    "room for everything": (PLENTY, ()),
    "all": (PLENTY._replace(connections=3), (ALL,)),
    "one more of all": (PLENTY._replace(connections=4), ()),
    "of the user": (PLENTY._replace(per_user=2), (USER,)),
    "one more of the user": (PLENTY._replace(per_user=3), ()),
    "from the host": (PLENTY._replace(per_host=2), (HOST,)),
    "one more from the host": (PLENTY._replace(per_host=3), ()),
    "every reason is told": (ConnectionLimits(3, 2, 2), (ALL, USER, HOST)),
    "0 is none": (ConnectionLimits(0, 0, 0), (ALL, USER, HOST)),
}


@pytest.mark.parametrize(("limits", "reasons"), LIMITS.values(), ids=LIMITS)
def test_one_more_is_held_to_every_limit(limits: ConnectionLimits, reasons: tuple[Reason, ...]) -> None:
    counts = counted(("alice", "h1"), ("alice", "h2"), ("bob", "h2"))
    assert counts.limits_reached(limits, "alice", "h2") == reasons


def test_users_on_one_host_and_hosts_of_one_user_are_not_mixed_up() -> None:
    counts = counted(("alice", "h"), ("bob", "h"))
    assert counts.limits_reached(ConnectionLimits(100, 1, 100), "carol", "h") == ()
    assert counts.limits_reached(ConnectionLimits(100, 100, 1), "carol", "h") == (HOST,)
    assert counts.limits_reached(ConnectionLimits(100, 1, 100), "alice", "other") == (USER,)
    assert counts.limits_reached(ConnectionLimits(100, 100, 1), "alice", "other") == ()


def test_a_connection_that_left_leaves_room_and_no_trace() -> None:
    counts = counted(("alice", "h1"), ("alice", "h2"))
    counts.remove_connection("h1:0")
    assert (len(counts), counts.by_user(), counts.by_host()) == (1, {"alice": ["h2:1"]}, {"h2": ["h2:1"]})
    counts.remove_connection("h2:1")
    assert (len(counts), counts.by_user(), counts.by_host()) == (0, {}, {})


def test_users_that_come_and_go_leave_nothing_behind() -> None:
    counts = VhostConnections()
    for number in range(100_000):
        counts.add_connection("name", f"user{number}", f"host{number}")
        counts.remove_connection("name")
    assert (counts.by_user(), counts.by_host()) == ({}, {})


def test_a_name_is_counted_once() -> None:
    counts = counted(("alice", "h"))
    with pytest.raises(ValueError, match="already"):
        counts.add_connection("h:0", "bob", "other")
    assert counts.by_user() == {"alice": ["h:0"]}
    with pytest.raises(KeyError):
        counts.remove_connection("other:0")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.booleans()), max_size=60))
def test_counts_equal_a_plain_count(steps: list[tuple[str, str, bool]]) -> None:
    counts = VhostConnections()
    names = itertools.count()
    there: dict[str, tuple[str, str]] = {}
    for user, host, come in steps:
        if come or not there:
            name = str(next(names))
            counts.add_connection(name, user, host)
            there[name] = user, host
        else:
            gone = next(iter(there))
            counts.remove_connection(gone)
            del there[gone]
    for user, host in itertools.product("abc", "xyz"):
        of_user = sum(one == user for one, _ in there.values())
        from_host = sum(one == host for _, one in there.values())
        exact = ConnectionLimits(len(there) + 1, of_user + 1, from_host + 1)
        assert counts.limits_reached(exact, user, host) == ()
        assert counts.limits_reached(ConnectionLimits(len(there), of_user, from_host), user, host) == (ALL, USER, HOST)
