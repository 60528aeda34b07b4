"""Attaches that come in one read: all are answered before a sender on another connection can send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.peer import FIRST_ID, Link, Peer, message
from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, interior
from tests.routers import PLAIN_LISTENER, running
from trouter.wire.framing import frame
from trouter.wire.performatives import Attach, Flow, Performative, Source, Target, Transfer, encode_performative

#: Receivers of each of two sessions: 32 events are handled at once, and two of them are begins.
RECEIVERS = 15
#: Credit for all messages.
CREDIT = Flow(
    next_incoming_id=0,
    incoming_window=1000,
    next_outgoing_id=FIRST_ID,
    outgoing_window=1000,
    delivery_count=0,
    link_credit=2 * RECEIVERS,
)
#: Addresses that are tried, one after another.
ROUNDS = 12


@pytest.fixture(params=["standalone", "edge"])
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    """Return the port of a router that answers at once, and of an edge router, which asks its interior router first."""
    with ExitStack() as stack:
        if request.param == "standalone":
            yield stack.enter_context(running(PLAIN_LISTENER, tmp_path)).port
            return
        above = stack.enter_context(running(interior("A", {}, EDGE_LISTENER), tmp_path))
        below = stack.enter_context(running(edge("E", [edge_port(above)]), tmp_path))
        below.wait_for_line(r"Edge connection \(id=\d+\) to interior established$")
        yield client_port(below)


def write(channel: int, performative: Performative, payload: bytes = b"") -> bytes:
    return frame(channel, encode_performative(performative) + payload, 0)


def receivers(address: str, channel: int) -> bytes:
    """Return the attaches of receivers, each with credit for all messages."""
    octets = b""
    for handle in range(RECEIVERS):
        name = f"{address}.{channel}.{handle}"
        octets += write(channel, Attach(name, handle, True, source=Source(address), target=Target()))
        octets += write(channel, replace(CREDIT, handle=handle))
    return octets


def send_at_the_first_credit(peer: Peer, link: Link) -> None:
    """Send as many messages as there are receivers, in one write, once the router grants credit."""
    while link.credit < 2 * RECEIVERS:
        peer.take_flow(peer.expect(Flow))
    octets = b""
    for number in range(2 * RECEIVERS):
        transfer = Transfer(link.handle, number, number.to_bytes(4, "big"), 0, False)
        octets += write(0, transfer, message(b"x"))
    peer.raw(octets)


def test_messages_are_spread_evenly_over_receivers_that_attach_in_one_write(port: int) -> None:
    for number in range(ROUNDS):
        address = f"q{number}"
        with Peer(port) as sending, Peer(port) as receiving, ThreadPoolExecutor(1) as pool:
            link = sending.attach_sender(address, credit=False)
            sent = pool.submit(send_at_the_first_credit, sending, link)
            receiving.begin(channel=1)
            receiving.raw(receivers(address, 0) + receivers(address, 1))
            got: Counter[int] = Counter()
            while got.total() < 2 * RECEIVERS:
                performative = receiving.next()
                if isinstance(performative, Transfer):
                    got[performative.handle] += 1
            sent.result()
            assert got == dict.fromkeys(range(RECEIVERS), 2), f"round {number}"
