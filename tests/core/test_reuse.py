"""Deliveries reuse the memory of those that are gone, and keep nothing of them."""

from __future__ import annotations

import gc
import os
import tracemalloc
from typing import TypeVar

import pytest

from trouter._twin import is_compiled
from trouter.core.message import IncomingDelivery, Message, OutgoingDelivery
from trouter.engine.ports import Delivery, LinkPort
from trouter.testing.memory import MemoryRouter

K = TypeVar("K", IncomingDelivery, OutgoingDelivery)
#: More than a type keeps the memory of; and less.
MANY = 5000
FEW = 1000
#: The compiled modules are of a build that reuses the memory of deliveries.
REUSED = is_compiled("trouter.core.message") and os.environ.get("TROUTER_REUSE") != "0"


def fields_of(delivery: Delivery) -> dict[str, object]:
    """Return every field of a delivery."""
    names = {name for kind in type(delivery).__mro__ for name in vars(kind) if not name.startswith("__")}
    fields = {name: getattr(delivery, name) for name in names}
    return {name: value for name, value in fields.items() if not callable(value)}


def count_deliveries() -> int:
    return sum(isinstance(each, IncomingDelivery | OutgoingDelivery) for each in gc.get_objects())


def make(kind: type[K], link: LinkPort) -> K:
    """Return a new delivery as the core makes it: the compiled twin does not run its constructor."""
    if not is_compiled("trouter.core.message"):
        return kind(link)
    made = kind.__new__(kind)
    made.link = link
    return made


@pytest.mark.parametrize("kind", [IncomingDelivery, OutgoingDelivery])
def test_a_delivery_in_the_memory_of_another_is_as_new(kind: type[K]) -> None:
    link = MemoryRouter().connect().sender("queue").link
    fresh = fields_of(make(kind, link))
    used = [make(kind, link) for _ in range(MANY)]
    for each in used:
        each.tag = each.remote_state = each.transfer_state = b"used"
        each.number = each.delivery_id = each.payload_bytes = each.remote_code = 7
        each.message = Message(link.session, None)  # type: ignore[arg-type]  # no source is asked
        each.arrived_at_s = 1.0
        each.mark_settled()
    del used, each
    again = [make(kind, link) for _ in range(MANY)]
    assert all(fields_of(each) == fresh for each in again)
    assert all(gc.is_tracked(each) for each in again)


def test_deliveries_that_refer_to_each_other_are_collected() -> None:
    link = MemoryRouter().connect().sender("queue").link
    gc.collect()
    before = count_deliveries()
    for _ in range(MANY):
        coming, going = IncomingDelivery(link), OutgoingDelivery(link)
        coming.single_copy, going.sender_delivery = going, coming
    del coming, going
    gc.collect()
    assert count_deliveries() == before


@pytest.mark.parametrize("kind", [IncomingDelivery, OutgoingDelivery])
def test_memory_of_deliveries_is_given_back_unless_the_build_reuses_it(kind: type[K]) -> None:
    link = MemoryRouter().connect().sender("queue").link
    used = [make(kind, link) for _ in range(MANY)]
    used.clear()  # as much is kept as may be
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        used += [make(kind, link) for _ in range(FEW)]
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert (taken < FEW * kind.__basicsize__) == REUSED
