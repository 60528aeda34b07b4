"""A router that leaves tells edge routers of no receiver that is gone, in whatever order receivers go."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from tests.core.test_edges import ADDRESSES, HEARTBEAT, downlink, edge_of, router, tracked, tracking
from trouter.core.edge.protocol import HEARTBEAT_CREDIT
from trouter.testing import compose


class Net:
    """An edge router that sends to three addresses, each with a receiver of its own; a fourth has one, too."""

    def __init__(self) -> None:
        self.above = router()
        self.edge = edge_of(self.above)
        self.notes = tracking(self.edge)
        self.other = edge_of(self.above)
        downlink(self.other, "E2")
        self.other.receiver("many")
        self.far = self.above.connect().receiver("far")
        self.near = self.above.connect()
        self.near.receiver("near")
        self.above.connect().receiver("new")
        for address in ADDRESSES:
            self.edge.sender(address)

    def told(self) -> list[str]:
        """Return the addresses of which the edge router was told, those without a receiver with a minus."""
        return [
            ("" if takes else "-") + key.removeprefix("M0").removeprefix("M1") for key, takes in tracked(self.notes)
        ]


STEPS: dict[str, Callable[[Net], object]] = {
    "a detach": lambda net: net.far.detach(),
    "a lost edge router": lambda net: net.other.drop(),
    "a lost client": lambda net: net.near.drop(),
    "an attach": lambda net: net.edge.sender("new"),
}


@pytest.mark.parametrize("stops", [True, False], ids=["stops", "drains"])
@pytest.mark.parametrize("order", list(permutations(STEPS)), ids=", ".join)
def test_no_receiver_that_goes_is_told_to_an_edge_router(order: tuple[str, ...], stops: bool) -> None:
    net = Net()
    assert net.told() == list(ADDRESSES)
    if stops:
        net.above.core.stop_credit()
    else:
        net.above.core.set_leaving(True)
    for step in order:
        STEPS[step](net)
    assert net.told() == [*ADDRESSES, "new"]
    net.above.core.set_leaving(False)  # a drain was cancelled; a stop is for good
    net.above.pump()
    assert sorted(net.told()[4:]) == ([] if stops else ["-far", "-many", "-near"])


def test_no_receiver_that_went_with_another_worker_is_told_until_that_is_there_again() -> None:
    net = Net()
    net.above.core.note_sibling(leaves=True)
    net.far.detach()
    assert net.told() == list(ADDRESSES)
    net.above.core.set_leaving(True)  # and a drain begins and is cancelled meanwhile
    net.above.core.set_leaving(False)
    net.above.pump()
    assert net.told() == list(ADDRESSES)
    net.above.core.note_sibling(leaves=False)
    net.above.pump()
    assert net.told() == [*ADDRESSES, "-far"]


def test_a_note_that_waits_for_credit_is_not_sent_by_a_router_that_leaves() -> None:
    above = router()
    edge = edge_of(above)
    notes = tracking(edge, credit=1)
    receiver = above.connect().receiver("far")
    edge.sender("far")
    assert tracked(notes) == [["M0far", True]]
    receiver.detach()
    above.core.set_leaving(True)
    notes.grant(10)
    assert tracked(notes) == [["M0far", True]]
    above.core.set_leaving(False)
    above.pump()
    assert tracked(notes) == [["M0far", True], ["M0far", False]]


def test_what_routers_tell_each_other_goes_on_while_one_stops() -> None:
    above = router()
    edge = edge_of(above)
    beats, clients = edge.sender(HEARTBEAT), edge.sender("far")
    above.core.stop_credit()
    assert (beats.credit, clients.credit) == (HEARTBEAT_CREDIT, 0)
    for _ in range(3 * HEARTBEAT_CREDIT):
        beats.send(compose(b"beat"), settled=True)
        above.pump()
    assert beats.credit == HEARTBEAT_CREDIT
