"""A client that sends one message for each flow, as some event-driven clients do, never waits for ever."""

from __future__ import annotations

import pytest

from tests.e2e.peer import Peer
from tests.routers import PLAIN_LISTENER, StartRouter
from trouter.wire.performatives import Accepted, Flow

COUNT = 20


@pytest.mark.parametrize("settled", [False, True])
def test_a_sender_that_sends_one_message_for_each_flow_comes_to_its_end(
    start_router: StartRouter, settled: bool
) -> None:
    """The sender never nears the end of its credit, and each message brings it a flow all the same."""
    router = start_router(PLAIN_LISTENER)
    with Peer(router.port) as receiving, Peer(router.port) as sending:
        taking = receiving.attach_receiver("flows", credit=2 * COUNT)
        link = sending.attach_sender("flows")
        whole = link.credit
        assert whole > 2 * COUNT
        for number in range(COUNT):
            delivery = sending.send_message(link, b"%d" % number, settled)
            receiving.take_message(taking)
            if not settled:
                assert sending.expect_outcome(delivery) == Accepted()
            while link.credit < whole:
                sending.take_flow(sending.expect(Flow))
