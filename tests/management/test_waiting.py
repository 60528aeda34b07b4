"""The queue of requests that wait: its bounds, and who gives way to whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.management.waiting import MAX_WAITING, MAX_WAITING_BYTES, Requester, RequestQueue

pytestmark = pytest.mark.attack

MIB = 1 << 20
#: Who sends a request, and its size.
Sent = tuple[str, int]


def put(queue: RequestQueue[Sent], user: str, size: int, connection: int = 0) -> bool:
    return queue.put((user, size), size, Requester(user, connection))


def test_a_large_request_takes_the_place_of_the_newest_ones_of_the_user_with_the_most_bytes() -> None:
    lost: list[Sent] = []
    queue: RequestQueue[Sent] = RequestQueue(lost.append)
    for user in ("ann", "bob"):
        for number in range(8):
            assert put(queue, user, MIB - 10 + number - (user == "bob"), number % 2)
    assert not put(queue, "eve", 5 * MIB)  # nobody who keeps as much can give way
    assert (lost, len(queue)) == ([], 16)
    assert put(queue, "eve", 2 * MIB)
    assert [user for user, _ in lost] == ["ann", "bob"]
    assert lost[0] == ("ann", MIB - 3)
    assert len(queue) == 15


def test_a_user_is_not_pushed_out_by_one_who_has_as_much() -> None:
    lost: list[Sent] = []
    queue: RequestQueue[Sent] = RequestQueue(lost.append)
    for number in range(2 * MAX_WAITING):
        put(queue, str(number % 10), 1)
    assert lost == []
    assert 0.9 * MAX_WAITING <= len(queue) <= MAX_WAITING


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from([1, 1000, MIB, 5 * MIB])), max_size=60))
def test_whatever_comes_the_bounds_hold_and_each_request_waits_or_is_given_back(sent: list[Sent]) -> None:
    lost: list[Sent] = []
    queue: RequestQueue[Sent] = RequestQueue(lost.append)
    accepted: list[Sent] = []
    for user, size in sent:
        before = len(lost)
        if put(queue, user, size):
            accepted.append((user, size))
        else:
            assert len(lost) == before
        assert user not in {each for each, _ in lost[before:]}
        assert sum(size for _, size in accepted) - sum(size for _, size in lost) <= MAX_WAITING_BYTES
        assert len(queue) == len(accepted) - len(lost) <= MAX_WAITING
