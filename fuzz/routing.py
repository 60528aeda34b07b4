"""Any bytes from a client of a whole router do not disturb the other clients: each message arrives and is settled once.

The first byte chooses the client's first frames, the size of the pieces, and whether the client closes or is cut off.
After it is gone, its links, addresses, messages and credit are gone. While it is connected, each of its senders has the
credit that the router owes it.

Allowed: nothing. A fault of a client ends only that client's connection.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.engine.limits import EngineLimits
from trouter.testing import MemoryClient, MemoryReceiver, MemoryRouter, MemorySender, compose
from trouter.testing.fuzz import behind, frames
from trouter.wire.performatives import Accepted

MUTATOR = behind(1, frames)
COVERS = ("trouter.core",)
RULES: Final = (
    AddressRule("multicast", distribution="multicast"),
    AddressRule("closest", distribution="closest"),
    AddressRule("fall", enable_fallback=True),
)
LIMITS: Final = EngineLimits(
    max_frame_bytes=4096,
    channel_max=7,
    handle_max=31,
    max_links=40,
    session_window_frames=8,
    idle_timeout_s=0.0,
    max_sasl_rounds=3,
    high_water_bytes=4096,
)
#: A small link capacity, so that an input can use up a sender's credit.
TERMS: Final = PeerTerms(link_capacity=4)


class Hostile:
    """A client that sends the input's bytes and ignores the router's answers."""

    def __init__(self, router: MemoryRouter, how: int) -> None:
        self.client: MemoryClient = router.connect(TERMS, limits=LIMITS) if how & 1 else fresh(router)
        self.router = router

    def say(self, octets: bytes) -> None:
        server = self.client.server
        server.receive_data(octets)
        while server.events:
            self.client._serve(server.events.pop(0))
        self.router.flush()
        server.out.clear()
        if server.paused:
            server.resume_output()

    def go(self, orderly: bool) -> None:
        if orderly:
            self.client.server.receive_data(b"\0\0\0\x0c\2\0\0\0\0\x53\x18\x45")
            while self.client.server.events:
                self.client._serve(self.client.server.events.pop(0))
        self.client.server.out.clear()
        self.client.drop()


def fresh(router: MemoryRouter) -> MemoryClient:
    """Return a client that has sent nothing yet."""
    terms = replace(TERMS, connection_number=len(router.clients) + 1)
    client = MemoryClient(router, "hostile", terms, LIMITS, LIMITS, router._outbox)
    router.clients.append(client)
    return client


def check(data: bytes) -> None:
    how, stream = (data[0], data[1:]) if data else (0, b"")
    router = MemoryRouter(RULES)
    good = router.connect()
    own = hashlib.sha256(data).hexdigest()  # an address that no input contains
    receiver = good.receiver(own, credit=10)
    sender = good.sender(own)
    before = state(router)
    hostile = Hostile(router, how)
    step = (len(stream) or 1, 1, 100)[(how >> 1) % 3]
    for start in range(0, len(stream), step):
        hostile.say(stream[start : start + step])
    look_at_credit(router)
    exchange(router, sender, receiver, b"while it is there")
    hostile.go(bool(how & 8))
    router.pump()
    exchange(router, sender, receiver, b"afterwards")
    assert state(router) == before
    assert good.closed is None
    assert good.faults == []
    assert router.held_bytes() == 0
    good.drop()
    assert not router.core.links
    assert not router.core.table.entries


def look_at_credit(router: MemoryRouter) -> None:
    """Check that the router owes no sender as much credit as the sender has left."""
    for sender in router.core.incoming_endpoints():
        if sender.link.attached and not sender.link.draining:
            owed = sender.capacity - sender.account.kept_credit - sender.link.credit - sender.unsettled
            assert owed <= 0 or owed < sender.link.credit, f"{owed} of {sender.capacity} are owed"


def state(router: MemoryRouter) -> tuple[object, ...]:
    core = router.core
    return sorted(core.table.entries), len(core.links), core.count_unsettled()


def exchange(router: MemoryRouter, sender: MemorySender, receiver: MemoryReceiver, body: bytes) -> None:
    sent = sender.send(compose(body))
    router.pump()
    ours = [message for message in receiver.received if message.body == body]
    assert len(ours) == 1
    ours[0].settle()
    receiver.grant(1)
    router.pump()
    assert sent.history == [(Accepted(), True)]
