"""The ring of unsettled deliveries against a dict, over the wrap, with stragglers; its cost follows its entries."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.engine.talks import MASK32, NEAR_WRAP
from trouter.engine.limits import UNLIMITED, EngineLimits
from trouter.engine.ports import Budget, ConnectionPort, Delivery, LinkPort, SessionPort
from trouter.engine.unsettled import DeliveryRing, DispositionRanges

HALF = 0x80000000
GAPS = st.one_of(st.just(1), st.integers(1, 20), st.integers(1, 100_000), st.integers(1, HALF - 1))


LINK = LinkPort(SessionPort(ConnectionPort([], Budget(UNLIMITED)), 0, EngineLimits()))


class Model(RuleBasedStateMachine):
    """Every id the ring holds lies within 2**31 of the newest, as serial numbers must."""

    @initialize(first=st.integers(0, MASK32))
    def begin(self, first: int) -> None:
        self.ring = DeliveryRing()
        self.held: dict[int, Delivery] = {}
        self.newest = (first - 1) & MASK32

    def add(self, gap: int) -> None:
        self.newest = (self.newest + gap) & MASK32
        delivery = Delivery(LINK)
        delivery.delivery_id = self.newest
        self.ring.append(self.newest, delivery)
        self.held[self.newest] = delivery

    @rule(gap=GAPS)
    def append(self, gap: int) -> None:
        oldest = next(iter(self.held), None)
        if oldest is None or ((self.newest + gap - oldest) & MASK32) < HALF:
            self.add(gap)

    @rule(count=st.integers(1, 100))
    def append_many(self, count: int) -> None:
        for _ in range(count):
            self.append(1)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(list(self.held)))
        self.ring.remove(key)
        del self.held[key]

    @precondition(lambda self: self.held)
    @rule(keep=st.integers(0, 3))
    def remove_all_but(self, keep: int) -> None:
        for key in list(self.held)[keep:]:
            self.ring.remove(key)
            del self.held[key]

    @rule(key=st.integers(0, MASK32))
    def remove_an_absent_delivery(self, key: int) -> None:
        if key not in self.held:
            self.ring.remove(key)
            assert self.ring.get(key) is None

    @rule(start=st.integers(-300, 300), reach=st.one_of(st.integers(0, 600), st.integers(0, HALF - 1)))
    def between(self, start: int, reach: int) -> None:
        first = (self.newest + start) & MASK32
        last = (first + reach) & MASK32
        wanted = {key for key in self.held if ((key - first) & MASK32) <= reach}
        found = self.ring.between(first, last)
        assert [each.delivery_id for each in found] == [key for key in self.held if key in wanted]
        assert all(self.held[each.delivery_id] is each for each in found)

    @invariant()
    def the_same(self) -> None:
        if hasattr(self, "ring"):
            assert self.ring.count == len(self.held)
            assert self.ring.all() == list(self.held.values())
            for key, delivery in self.held.items():
                assert self.ring.get(key) is delivery


TestModel = Model.TestCase


@given(first=st.integers(0, MASK32), order=st.permutations(range(24)))
def test_any_order_of_settlement_leaves_an_empty_ring(first: int, order: list[int]) -> None:
    ring = DeliveryRing()
    for number in range(24):
        ring.append((first + number) & MASK32, Delivery(LINK))
    for number in order:
        ring.remove((first + number) & MASK32)
    assert ring.count == 0
    assert ring.all() == []
    assert ring.between(first, (first + 0x7FFFFFFF) & MASK32) == []


def test_a_straggler_does_not_keep_the_ring_wide() -> None:
    """A single delivery stays while 300,000 pass by: memory follows the deliveries outstanding."""
    tracemalloc.start()
    ring = DeliveryRing()
    stays = Delivery(LINK)
    ring.append(NEAR_WRAP, stays)
    before = tracemalloc.get_traced_memory()[0]
    for number in range(1, 300_001):
        key = (NEAR_WRAP + number) & MASK32
        ring.append(key, stays)
        ring.remove(key)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert ring.all() == [stays]
    assert ring.get(NEAR_WRAP) is stays
    assert grown < 10_000


def test_a_ring_that_was_full_once_gives_its_memory_back() -> None:
    tracemalloc.start()
    ring = DeliveryRing()
    delivery = Delivery(LINK)
    before = tracemalloc.get_traced_memory()[0]
    for number in range(50_000):
        ring.append((NEAR_WRAP + number) & MASK32, delivery)
    for number in range(50_000):
        ring.remove((NEAR_WRAP + number) & MASK32)
    ring.append(50_000 + NEAR_WRAP & MASK32, delivery)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert ring.count == 1
    assert grown < 50_000


def test_the_cost_of_a_range_follows_the_present_deliveries() -> None:
    """Only the first and the last of 200,000 are left: a hundred thousand walks over the gap would take minutes."""
    ring = DeliveryRing()
    delivery = Delivery(LINK)
    for number in range(200_000):
        ring.append((NEAR_WRAP + number) & MASK32, delivery)
    for number in range(1, 199_999):
        ring.remove((NEAR_WRAP + number) & MASK32)
    last = (NEAR_WRAP + 199_999) & MASK32
    for _ in range(100_000):
        assert len(ring.between(NEAR_WRAP, last)) == 2
    ring.remove(NEAR_WRAP)
    ring.remove(last)
    assert ring.count == 0
    ring.append((last + 1) & MASK32, delivery)
    assert ring.all() == [delivery]


@pytest.mark.parametrize("reach", [0x7FFFFFFF, 0x7FFFFFFE, 1000])
def test_a_range_before_or_behind_the_ring_is_empty(reach: int) -> None:
    ring = DeliveryRing()
    for number in range(10):
        ring.append((NEAR_WRAP + number) & MASK32, Delivery(LINK))
    before = (NEAR_WRAP - 1) & MASK32
    behind = (NEAR_WRAP + 10) & MASK32
    assert ring.between((before - reach) & MASK32, before) == []
    assert ring.between(behind, (behind + reach) & MASK32) == []
    assert len(ring.between(before, (before + reach) & MASK32)) == 10
    assert len(ring.between((behind - reach) & MASK32, behind)) == 10


def test_settlements_write_nothing_when_nothing_was_reported() -> None:
    out = bytearray()
    settlements = DispositionRanges(True)
    settlements.write_disposition(out, 0)
    assert not settlements.pending
    settlements.add_settlement(out, 0, MASK32, None, True)
    settlements.add_settlement(out, 0, 0, None, True)
    assert out == b""
    settlements.write_disposition(out, 0)
    settlements.write_disposition(out, 0)
    assert len(out) == 26
