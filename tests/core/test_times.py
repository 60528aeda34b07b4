"""The times of deliveries to each address, while a client of management requests them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.core.entry import AddressEntry
from trouter.core.times import Times, TimesByAddress
from trouter.testing import MemoryRouter, compose

EDGES = [0, 1, 31, 32, 33, 63, 64, 65, 2**20 - 1, 2**20, 2**53, 2**62, 2**63 - 1]


def bucket_of(value: int) -> int:
    """Return the bucket by the manual's formula: 32 in each doubling."""
    exponent = value.bit_length() - 1
    return value if value < 32 else (exponent - 4) * 32 + (value >> (exponent - 5)) - 32


def counted(times: Times) -> dict[int, int]:
    return {bucket: count for bucket, count in enumerate(times.counts) if count}


@pytest.mark.parametrize("value", EDGES)
def test_edge_values_fall_into_the_buckets_of_the_records(value: int) -> None:
    times = Times()
    times.add_latency(value)
    assert counted(times) == {bucket_of(value): 1}


@given(st.lists(st.integers(0, 2**40)))
def test_the_buckets_are_those_of_the_records(values: list[int]) -> None:
    times = Times()
    for value in values:
        times.add_latency(value)
    expected: dict[int, int] = {}
    for value in values:
        expected[bucket_of(value)] = expected.get(bucket_of(value), 0) + 1
    assert counted(times) == expected
    assert (times.smallest, times.largest) == (min(values, default=0), max(values, default=0))


def test_so_many_addresses_are_counted_and_no_more() -> None:
    times = TimesByAddress(2)
    records = [AddressEntry(f"M0q{number}", f"q{number}", "balanced") for number in range(3)]
    for _ in range(2):
        for record in records:
            times.count_delivery(record, 0.5)
            times.count_delivery(record, -1.0)
        taken = times.collect_times()
        assert [address for address, _ in taken] == ["q0", "q1"]
        assert [counted(each) for _, each in taken] == [{bucket_of(500_000): 1, 0: 1}] * 2
        assert all(record.times is None for record in records)
    assert times.collect_times() == []


def test_deliveries_are_counted_by_address_only_while_a_client_reads_them() -> None:
    router = MemoryRouter([])
    client = router.connect()
    receivers = [client.receiver(address, credit=10) for address in ("a", "b")]
    senders = [client.sender(address) for address in ("a", "b")]

    def deliver() -> None:
        for sender in senders:
            sender.send(compose(b"x"))
        router.pump()
        router.now_s += 0.25
        for receiver in receivers:
            receiver.received[-1].settle()
        router.pump()

    deliver()
    assert router.core.shared.times is None
    router.core.shared.times = TimesByAddress(10)
    deliver()
    assert [(address, counted(each)) for address, each in router.core.shared.times.collect_times()] == [
        ("a", {bucket_of(250_000): 1}),
        ("b", {bucket_of(250_000): 1}),
    ]
