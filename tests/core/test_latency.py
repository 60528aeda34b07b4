"""The outcomes of deliveries and their times, by class of address and by outcome."""

from __future__ import annotations

import pytest

from trouter.core.counters import (
    ADDRESS_CLASSES,
    BOUNDS_S,
    OUTCOMES,
    Latency,
    Outcomes,
    TimeHistogram,
    address_class_of,
)
from trouter.core.terms import PeerTerms
from trouter.testing import MemoryRouter, compose
from trouter.wire.performatives import Accepted, Modified, Rejected, Released

CODES = {0x24: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified", 0: "none"}


def test_there_is_room_for_every_class_outcome_and_bucket() -> None:
    histograms = Latency().snapshot()
    assert set(histograms) == {(address_class, outcome) for address_class in ADDRESS_CLASSES for outcome in OUTCOMES}
    assert {len(each.counts) for each in histograms.values()} == {len(BOUNDS_S) + 1}


@pytest.mark.parametrize("address_class", range(len(ADDRESS_CLASSES)))
@pytest.mark.parametrize("code", CODES)
def test_each_class_and_outcome_has_its_own_numbers(address_class: int, code: int) -> None:
    outcomes = Outcomes()
    outcomes.latency.count_delivery(address_class, code, 0.3)
    key = (ADDRESS_CLASSES[address_class], CODES[code])
    assert {where for where, each in outcomes.latency.snapshot().items() if each.count} == {key}
    assert {where for where, count in outcomes.snapshot().items() if count} == {key}
    assert outcomes.latency.snapshot()[key] == TimeHistogram((*(int(bound == 0.5) for bound in BOUNDS_S), 0), 0.3)


@pytest.mark.parametrize("code", [0x23, 0x28, 0x34, -1, 1 << 30])
def test_a_state_that_is_no_core_outcome_counts_as_none(code: int) -> None:
    counted = Latency()
    counted.count_delivery(0, code, 0.0)
    assert counted.snapshot()["mobile", "none"].count == 1


@pytest.mark.parametrize("index", range(len(BOUNDS_S)))
def test_a_bound_belongs_to_the_bucket_below_it(index: int) -> None:
    counted = Latency()
    counted.count_delivery(0, 0x24, BOUNDS_S[index])
    counted.count_delivery(0, 0x24, BOUNDS_S[index] * 1.0001)
    counts = counted.snapshot()["mobile", "accepted"].counts
    assert (counts[index], counts[index + 1]) == (1, 1)


@pytest.mark.parametrize(
    ("key", "address_class"),
    [
        ("M0x", "mobile"),
        ("MFx", "mobile"),
        ("Lx", "local"),
        ("Tx", "topological"),
        ("RX", "router"),
        ("A1", "router"),
        ("HX", "router"),
        (None, "anonymous"),
    ],
)
def test_the_class_is_that_of_the_key(key: str | None, address_class: str) -> None:
    assert ADDRESS_CLASSES[address_class_of(key)] == address_class


def test_the_routers_totals_are_the_sums_of_all_classes() -> None:
    outcomes = Outcomes()
    for address_class in range(len(ADDRESS_CLASSES)):
        for code in CODES:
            for age_s in (0.5, 1.0, 1.1, 10.0, 10.1):
                outcomes.latency.count_delivery(address_class, code, age_s)
    totals = outcomes.totals()
    assert (totals.accepted, totals.rejected, totals.released, totals.modified) == (25, 25, 25, 25)
    assert (totals.delayed_1s, totals.delayed_10s) == (50, 25)
    assert (totals.presettled, totals.dropped_presettled, totals.deliveries) == (0, 0, 0)


@pytest.mark.parametrize("address", ["x", "_local/x", None])
def test_messages_are_counted_under_their_links_class(address: str | None) -> None:
    router = MemoryRouter()
    client = router.connect()
    receiver = client.receiver(address or "x", credit=100)
    sender = client.sender(address)
    for now_s, state in ((0.002, Accepted()), (0.02, Rejected()), (0.2, Released()), (2.0, Modified())):
        router.now_s = 10.0
        sender.send(compose(b"x", to="x"))
        router.pump()
        router.now_s = 10.0 + now_s
        receiver.received[-1].settle(state)
        router.pump()
    sender.send(compose(b"x", to="x"), settled=True)
    router.pump()
    address_class = {"x": "mobile", "_local/x": "local", None: "anonymous"}[address]
    counted = router.core.latency.snapshot()
    assert {key: each.count for key, each in counted.items() if each.count} == {
        (address_class, outcome): 1 for outcome in ("accepted", "rejected", "released", "modified")
    }
    assert counted[address_class, "modified"].sum_s == pytest.approx(2.0)
    assert counted[address_class, "modified"].counts[BOUNDS_S.index(2.5)] == 1
    assert router.core.outcomes.snapshot()[address_class, "presettled"] == 1


def test_drops_count_under_the_class_of_the_link_that_dropped() -> None:
    router = MemoryRouter()
    client = router.connect(PeerTerms(link_capacity=2))
    client.receiver("_local/x")
    sender = client.sender("_local/x")
    for _ in range(5):
        sender.send(compose(b"x"), settled=True)
        router.pump()
    counted = {key: count for key, count in router.core.outcomes.snapshot().items() if count}
    assert counted == {("local", "presettled"): 5, ("local", "dropped"): router.core.shared.totals.dropped_presettled}
    assert counted["local", "dropped"] > 0
