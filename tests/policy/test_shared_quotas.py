"""Quotas of users of several workers: exact one after the other, and within a bound at the same moment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.config.entities import Quotas
from trouter.engine.ports import Budget
from trouter.net import tallies
from trouter.net.tallies import HEAD_BYTES, SharedMemory, Tallies
from trouter.policy.book import Book, Share
from trouter.policy.quota_rules import QuotaRule

WORKERS = 3
UPTIME_S = 2.0**23


class Counter:
    deliveries = 0


class Credit:
    credit = 0


class Link:
    """A link on which a peer sends, and what it was granted."""

    def __init__(self, share: Share, wanted: int = 1000) -> None:
        self.counters = Counter()
        self.link = Credit()
        self._share = share
        self._wanted = wanted
        self.granted = 0

    def top_up_credit(self) -> None:
        granted = self._share.take_credit(self, self._wanted)
        self.link.credit += granted
        self.granted += granted

    def use_credit(self) -> None:
        """Send a message for each credit."""
        self.counters.deliveries += self.link.credit
        self.link.credit = 0


class Machine:
    """The books of the workers of a router."""

    def __init__(self, stack: ExitStack) -> None:
        self.now_s = UPTIME_S
        self.shared = SharedMemory(WORKERS)
        stack.callback(self.shared.close)
        self.tallies = [self._tallies(stack, place) for place in range(1, WORKERS + 1)]
        self.books = [self._book(each) for each in self.tallies]

    def _tallies(self, stack: ExitStack, place: int) -> Tallies:
        made = Tallies(os.dup(self.shared.descriptor), place, WORKERS, self.clock)
        stack.callback(made.close)
        return made

    def _book(self, counts: Tallies) -> Book:
        return Book(self.clock, lambda: Budget(0), lambda _: None, counts)

    def clock(self) -> float:
        self.now_s += 1e-7
        return self.now_s

    def kill(self, place: int) -> None:
        """End a worker, and start another in its place."""
        self.shared.clear_part(place)
        self.books[place - 1] = self._book(self.tallies[place - 1])

    def enter(self, place: int, *rules: QuotaRule, user: str = "u") -> Share:
        """Count a connection at a worker."""
        return self.books[place - 1].count_connection("n", "", rules, user, "h", int)


@pytest.fixture
def machine() -> Iterator[Machine]:
    with ExitStack() as stack:
        yield Machine(stack)


def rule(per: str = "", *, enforced: bool = True, **limits: int) -> QuotaRule:
    return QuotaRule("v", "v", per, Quotas(**limits), enforced)


def attach(share: Share, link: int, address: str | None = None) -> bool:
    """Attach a link if the quotas allow it; return whether they do."""
    answer = share.quotas_at_attach(address, 0)
    share._book.note_answer(answer)
    if not answer.rule:
        share.count_link(link, address)
    return not answer.rule


# --- numbers


@pytest.mark.parametrize("per", ["", "perUser", "perHost"])
def test_links_are_counted_at_all_workers(machine: Machine, per: str) -> None:
    shares = [machine.enter(place, rule(per, max_links=4)) for place in (1, 2, 3)]
    assert [attach(share, number) for number in range(2) for share in shares] == [True] * 4 + [False] * 2
    shares[0].uncount_link(0)
    assert [attach(shares[2], 2), attach(shares[1], 3)] == [True, False]


def test_the_links_of_another_user_are_another_number(machine: Machine) -> None:
    limit = rule("perUser", max_links=1)
    shares = [machine.enter(place, limit, user=user) for place, user in ((1, "a"), (2, "b"), (3, "a"))]
    assert [attach(share, 0) for share in shares] == [True, True, False]


def test_of_links_at_the_same_moment_at_most_one_less_than_a_worker_each_is_too_many(machine: Machine) -> None:
    shares = [machine.enter(place, rule(max_links=3)) for place in (1, 2, 3)]
    assert [attach(share, 0) for share in shares[:2]] == [True, True]
    answers = [share.quotas_at_attach(None, 0) for share in shares]  # each has asked, and none has a link yet
    assert [answer.rule for answer in answers] == [""] * WORKERS
    for share in shares:
        share.count_link(1, None)
    assert not any(attach(share, 2) for share in shares)
    assert sum(len(share.links) for share in shares) == 3 + WORKERS - 1


def test_the_links_of_a_killed_worker_are_free_again(machine: Machine) -> None:
    one, other = machine.enter(1, rule(max_links=2)), machine.enter(2, rule(max_links=2))
    assert [attach(one, 0), attach(other, 0), attach(other, 1)] == [True, True, False]
    machine.kill(1)
    assert [attach(other, 1), attach(machine.enter(1, rule(max_links=2)), 0)] == [True, False]


def test_an_address_at_several_workers_is_one(machine: Machine) -> None:
    one, other, third = (machine.enter(place, rule(max_addresses=2)) for place in (1, 2, 3))
    assert [attach(one, 0, "a"), attach(other, 0, "a"), attach(other, 1, "b")] == [True] * 3
    assert [attach(third, 0, "c"), attach(third, 1, "b"), attach(third, 2, None)] == [False, True, True]
    one.uncount_link(0)  # the other worker still has links to it
    assert not attach(one, 1, "c")
    other.uncount_link(0)
    machine.books[0].check_usage()
    assert attach(one, 1, "c")
    assert not attach(other, 2, "a")


def test_an_address_that_a_killed_worker_counted_is_counted_by_another_one_within_a_second(machine: Machine) -> None:
    one, other = machine.enter(1, rule(max_addresses=1)), machine.enter(2, rule(max_addresses=1))
    assert [attach(one, 0, "a"), attach(other, 0, "a")] == [True, True]
    machine.kill(1)
    machine.books[1].check_usage()
    assert not attach(machine.enter(1, rule(max_addresses=1)), 0, "b")


# --- bytes


def test_sessions_count_at_once_at_all_workers(machine: Machine) -> None:
    one, other = machine.enter(1, rule(max_buffered_bytes=1000)), machine.enter(2, rule(max_buffered_bytes=1000))
    one.add_held_bytes(600)
    assert [other.quotas_on_bytes(each).rule for each in (400, 401)] == ["", "v:maxBufferedBytes"]
    one.add_held_bytes(-600)
    assert not other.quotas_on_bytes(1000).rule


def test_messages_that_are_kept_are_seen_by_the_other_workers_with_the_next_round(machine: Machine) -> None:
    one, other = machine.enter(1, rule(max_buffered_bytes=1000)), machine.enter(2, rule(max_buffered_bytes=1000))
    (held,), (windows,) = one.buffers, other.buffers
    held.held = 1000  # as the engine counts
    assert attach(other, 0)
    machine.books[0].grant_waiting()
    assert not attach(other, 1)
    link = Link(other)
    link.top_up_credit()
    assert link.granted == 0
    assert windows.held * 2 > windows.limit  # windows narrow at half of what the others leave
    held.held = 0
    machine.books[0].grant_waiting()
    machine.books[1].grant_waiting()
    assert link.granted == 1000
    assert windows.held * 2 <= windows.limit


def test_a_connection_is_refused_for_what_other_workers_keep(machine: Machine) -> None:
    limit = rule(max_buffered_bytes=1000)
    machine.enter(1, limit).add_held_bytes(1249)
    assert not machine.books[1].quotas_at_open((limit,), "u", "h").rule
    machine.enter(2, limit).add_held_bytes(1)
    assert machine.books[2].quotas_at_open((limit,), "u", "h").rule == "v:maxBufferedBytes"
    machine.kill(1)
    assert not machine.books[2].quotas_at_open((limit,), "u", "h").rule


# --- rates


@pytest.mark.parametrize("per", ["", "perUser"])
def test_connections_a_second_are_of_all_workers(machine: Machine, per: str) -> None:
    limit = rule(per, max_connections_per_second=2)

    def opens(place: int) -> bool:
        book = machine.books[place - 1]
        answer = book.quotas_at_open((limit,), "u", "h")
        book.note_answer(answer)
        return not answer.rule

    assert [opens(place) for place in (1, 2, 3, 1)] == [True, True, False, False]
    machine.now_s += 0.5
    assert [opens(place) for place in (3, 2, 1)] == [True, False, False]


def test_links_a_second_are_of_all_workers(machine: Machine) -> None:
    shares = [machine.enter(place, rule(max_attaches_per_second=4)) for place in (1, 2, 3)]
    assert sum(attach(share, number) for number in range(4) for share in shares) == 4
    machine.now_s += 0.5
    assert sum(attach(share, number) for number in range(4, 8) for share in shares) == 2


def test_credit_is_of_all_workers_in_parts_of_all_senders(machine: Machine) -> None:
    links = [Link(machine.enter(place, rule(max_messages_per_second=60))) for place in (1, 2, 3)]
    for link in links:
        link.top_up_credit()
    assert [link.granted for link in links] == [60, 0, 0]  # the first one was alone
    links[0].use_credit()
    machine.now_s += 1.0
    for link in links:
        link.top_up_credit()
    assert [link.granted for link in links] == [80, 20, 20]
    links[1]._share.end_sending(links[1])  # its credit may be used by others
    links[0].use_credit()
    links[0].top_up_credit()
    assert [link.granted for link in links] == [100, 20, 20]


def test_bytes_that_one_worker_receives_close_the_credit_of_another(machine: Machine) -> None:
    limit, received = rule(max_bytes_per_second=10_000), [0]
    machine.books[0].count_connection("n", "", (limit,), "u", "h", lambda: received[0])
    link = Link(machine.enter(2, limit))
    received[0] = 25_000
    machine.books[0].check_usage()
    link.top_up_credit()
    assert link.granted == 0
    machine.now_s += 1.4
    machine.books[1].grant_waiting()
    assert link.granted == 0
    machine.now_s += 0.2
    machine.books[1].grant_waiting()
    assert link.granted > 0


def test_what_a_killed_worker_had_taken_is_forgotten_and_no_more_than_a_second_is_granted_again(
    machine: Machine,
) -> None:
    links = [Link(machine.enter(place, rule(max_messages_per_second=50))) for place in (1, 2)]
    for link in links:
        link.top_up_credit()
    assert sum(link.granted for link in links) == 50
    machine.kill(1)
    links[1].top_up_credit()
    late = Link(machine.enter(1, rule(max_messages_per_second=50)))
    late.top_up_credit()
    assert links[1].granted + late.granted <= 50


def test_other_limits_are_in_force_with_what_is_counted(machine: Machine) -> None:
    shares = [machine.enter(place, rule(max_messages_per_second=9)) for place in (1, 2)]
    assert all(attach(share, number, f"a{number}") for share in shares for number in range(2))
    limits = rule(max_links=5, max_addresses=3, max_attaches_per_second=3)
    for place, share in enumerate(shares):
        machine.books[place].move_connection(share, "", (limits,), int)
        for number in range(2):
            share.count_link(number, f"a{number}")
    assert [attach(shares[0], 5, "a0"), attach(shares[1], 5, "a1")] == [True, False]
    assert shares[1].meters[0].is_met("max_addresses", "new", machine.clock()) is False


# --- all of it

ALL = Quotas(
    max_links=5, max_addresses=3, max_messages_per_second=5, max_attaches_per_second=9, max_buffered_bytes=1000
)
RULES = [
    (QuotaRule("v", "v", "", ALL, enforced=True),),
    (QuotaRule("v", "v", "", ALL, enforced=True), QuotaRule("v", "v:g", "perUser", ALL, enforced=True)),
]
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "attach", "detach", "detach", "keep", "send", "tick", "leave", "kill"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    max_size=100,
)


@given(ACTS)
def test_whatever_workers_do_no_limit_is_exceeded_and_nothing_is_left(acts: list[tuple[str, int, int]]) -> None:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tallies, "BUCKETS", 64)
        machine = Machine(stack)
        there: dict[int, Share] = {}
        links: dict[int, Link] = {}
        for number, (act, who, which) in enumerate(acts):
            share, place = there.get(who), who % WORKERS + 1
            if act == "kill":
                machine.kill(place)
                for each in [each for each in there if each % WORKERS + 1 == place]:
                    del there[each]
                    links.pop(each, None)
                for book in machine.books:
                    book.check_usage()
            elif act == "enter" and share is None:
                there[who] = machine.enter(place, *RULES[which % 2], user="u")
            elif act == "tick":
                machine.now_s += which
                machine.books[place - 1].grant_waiting()
                machine.books[place - 1].check_usage()
            elif share is None:
                continue
            elif act == "attach":
                attach(share, number, f"a{which}" if which else None)
            elif act == "detach" and share.links:
                share.uncount_link(list(share.links)[which % len(share.links)])
            elif act == "keep":
                share.add_held_bytes(which)
            elif act == "send":
                links.setdefault(who, Link(share, 2)).top_up_credit()
            elif act == "leave":
                machine.books[place - 1].release_share(there.pop(who))
                links.pop(who, None)
            assert sum(len(each.links) for each in there.values()) <= ALL.max_links  # type: ignore[operator]
            used = {address for each in there.values() for address in each.links.values()} - {None}
            assert len(used) <= ALL.max_addresses  # type: ignore[operator]
        for who, share in there.items():
            machine.books[who % WORKERS].release_share(share)
        for _ in range(4):
            machine.now_s += 20
            for book in machine.books:
                book.check_usage()
        assert [len(book) for book in machine.books] == [0] * WORKERS
        for place in range(1, WORKERS + 1):
            start = HEAD_BYTES + (place - 1) * tallies.PART_BYTES
            for bucket in range(64):
                at = start + bucket * tallies.BUCKET_BYTES + tallies.DIGESTS_BYTES
                assert not any(os.pread(machine.shared.descriptor, tallies.KEYS * tallies.NUMBER_BYTES, at))
