"""Long messages between an edge router and the one above it: each has a link of its own, in both directions.

The test is the other end, and behaves as Qpid Dispatch does (docs/edge.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.core.endings import leave
from tests.core.rows import link_row
from tests.core.test_edges import downlink, edge_of, router
from tests.core.test_uplinks import Edge
from trouter.core.edge.downlinks import open_edge_streams
from trouter.core.streams import KEPT_IDLE
from trouter.core.table import AddressRule
from trouter.engine.session import Session
from trouter.testing import MemoryClient, MemoryReceiver, MemoryRouter, MemorySender, compose
from trouter.wire.performatives import Accepted, Error, Modified, Released, Source, Target

LARGE = compose(b"x" * 300_000)
#: Bytes of a message that are forwarded before the rest has arrived.
BEGINNING = 200_000
TOO_LITTLE = 100_000
FOREVER = Source(expiry_policy="link-detach"), Target(expiry_policy="link-detach")


def offer_streams(router: MemoryRouter, peer: MemoryClient) -> None:
    """Offer links for streams in the open of the other end."""

    def begin() -> Session:
        session = peer.server.add_session()
        session.begin()
        return session

    open_edge_streams(router.core, peer.terms.connection_number, 250, begin, Session.end, None)


class Above:
    """An interior router with an edge router that receives from ``x``, and a client."""

    def __init__(self, *rules: AddressRule) -> None:
        self.router = MemoryRouter(rules, router_id="A", mode="interior") if rules else router()
        self.edge = edge_of(self.router)
        offer_streams(self.router, self.edge)
        self.client = self.router.connect()

    def streams(self) -> list[Any]:
        """Return the streams that were attached to the edge router."""
        return list(self.edge.attached)


def take(*links: MemoryReceiver) -> None:
    """Accept the messages that arrived completely."""
    for link in links:
        for message in link.received:
            if message.complete and not message.delivery.settled:
                message.settle(Accepted())


def test_a_long_message_to_an_edge_router_takes_a_link_of_its_own() -> None:
    above = Above()
    plain = above.edge.receiver("x", credit=10)
    sender = above.client.sender("x")
    sent = sender.begin(LARGE[:BEGINNING])
    above.router.pump()
    assert plain.received == []
    (stream,) = above.streams()
    assert isinstance(stream, MemoryReceiver)
    attach = stream.attach
    assert attach is not None
    assert attach.name.startswith("qdlink.")
    assert (attach.source, attach.target) == FOREVER
    assert (attach.role, attach.snd_settle_mode, attach.rcv_settle_mode, attach.max_message_size) == (False, 2, 0, 0)
    assert stream.link.session is not plain.link.session
    stream.grant(250)
    above.router.pump()
    (came,) = stream.received
    assert came.annotations == {"x-opt-qd.to": "x", "x-opt-qd.ingress": "0/A", "x-opt-qd.trace": ["0/A"]}
    assert len(came.payload) >= BEGINNING
    small = above.client.sender("x").send(compose(b"small"))
    above.router.pump()
    assert plain.bodies == [b"small"]
    take(plain)
    sent.finish(LARGE[BEGINNING:])
    above.router.pump()
    take(stream)
    above.router.pump()
    assert (sent.outcome, small.outcome) == (Accepted(), Accepted())
    assert came.body == b"x" * 300_000
    assert above.router.held_bytes() == 0


def test_the_link_is_kept_for_the_next_one_and_each_has_its_own() -> None:
    above = Above()
    above.edge.receiver("x", credit=10)
    senders = [above.client.sender("x", session=above.client.add_session()) for _ in range(3)]
    for count in (1, 3, 2):
        sent = [sender.begin(LARGE[:BEGINNING]) for sender in senders[:count]]
        above.router.pump()
        for each in above.streams():
            each.grant(10 - each.credit)
        above.router.pump()
        for each in sent:
            each.finish(LARGE[BEGINNING:])
        above.router.pump()
        take(*above.streams())
        above.router.pump()
        assert [each.outcome for each in sent] == [Accepted()] * count
    assert len(above.streams()) == 3
    assert len({each.link.session for each in above.streams()}) == 3
    assert sum(len(each.received) for each in above.streams()) == 6


@pytest.mark.parametrize("message", [compose(b"x" * TOO_LITTLE), LARGE])
def test_a_message_that_is_here_in_full_is_no_stream(message: bytes) -> None:
    above = Above()
    plain = above.edge.receiver("x", credit=1)
    above.client.sender("x").send(message, frames=1 if message is LARGE else 3)
    above.router.pump()
    assert bool(above.streams()) == (message is LARGE), "frames of 16 kB: it comes in many"
    assert len(plain.received) == (message is not LARGE)


def test_long_messages_for_the_edge_router_itself_have_their_own_link_too() -> None:
    above = Above()
    down = downlink(above.edge)
    for sender, to in ((above.client.sender("_edge/E1/temp.x"), None), (above.client.sender(), "_edge/E1/temp.x")):
        large = compose(b"x" * 300_000, to=to)
        sent = sender.send(large)
        above.router.pump()
        (stream,) = above.streams()
        stream.grant(10 - stream.credit)
        above.router.pump()
        take(stream)
        above.router.pump()
        assert sent.outcome == Accepted()
        assert stream.received[-1].annotations.get("x-opt-qd.to") == (None if to else "_edge/E1/temp.x")
    assert down.received == []


def test_without_the_edge_routers_offer_the_link_of_the_address_is_taken() -> None:
    above = router()
    edge = edge_of(above)
    plain = edge.receiver("x", credit=1)
    sent = above.connect().sender("x").begin(LARGE[:BEGINNING])
    above.pump()
    assert len(plain.received) == 1
    sent.finish(LARGE[BEGINNING:])
    above.pump()
    assert plain.bodies == [b"x" * 300_000]


def test_an_edge_router_that_refuses_stream_links_gets_the_next_message_on_the_ordinary_link() -> None:
    above = Above()
    plain = above.edge.receiver("x", credit=10)
    above.edge.answers = False
    sent = above.client.sender("x").begin(LARGE[:BEGINNING])
    above.router.pump()
    (stream,) = above.streams()
    stream.refuse(Error("amqp:not-allowed", "no"))
    assert sent.outcome == Released()
    again = above.client.sender("x", session=above.client.add_session()).send(LARGE)
    above.router.pump()
    take(plain)
    above.router.pump()
    assert again.outcome == Accepted()
    assert len(above.streams()) == 1
    sent.finish(LARGE[BEGINNING:])
    above.router.pump()
    assert above.router.held_bytes() == 0


@pytest.mark.parametrize("granted", [0, 10])
@pytest.mark.parametrize("how", ["abort", "detach", "drop"])
def test_a_stream_that_is_taken_back_is_aborted_and_its_link_is_used_again(how: str, granted: int) -> None:
    above = Above()
    above.edge.receiver("x", credit=10)
    sender = above.client.sender("x")
    sent = sender.begin(LARGE[:BEGINNING])
    above.router.pump()
    (stream,) = above.streams()
    stream.grant(granted)
    above.router.pump()
    leave(how, sender, sent)
    assert [each.aborted for each in stream.received] == [True] * bool(granted)
    after = above.router.connect().sender("x").send(LARGE)
    stream.grant(10)
    above.router.pump()
    take(stream)
    above.router.pump()
    assert after.outcome == Accepted()
    assert len(above.streams()) == 1
    assert above.router.held_bytes() == 0


@pytest.mark.parametrize("how", ["detach", "end", "drop"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_message_that_an_edge_router_has_not_taken_in_full_is_released(how: str, whole: bool) -> None:
    above = Above()
    above.edge.receiver("x", credit=10)
    sent = above.client.sender("x").begin(LARGE[:BEGINNING])
    above.router.pump()
    (stream,) = above.streams()
    stream.grant(1)
    above.router.pump()
    if whole:
        sent.finish(LARGE[BEGINNING:])
        above.router.pump()
    if how == "detach":
        stream.detach()
    elif how == "end":
        above.edge.end(stream.link.session)
    else:
        above.edge.drop()
    assert isinstance(sent.outcome, Modified if whole else Released)
    if not whole:
        sent.finish(LARGE[BEGINNING:])
        above.router.pump()
    assert sent.settled
    assert above.router.held_bytes() == 0


def test_an_edge_router_that_takes_nothing_keeps_back_nothing_of_others() -> None:
    """The window of the stream's own session closes, and no other window."""
    above = Above()
    stalled, other = above.edge.receiver("x", credit=10), above.edge.receiver("y", credit=10)
    above.client.sender("x").send(compose(b"x" * 30_000_000))
    above.router.pump()
    for address, link in (("x", stalled), ("y", other)):
        sent = above.router.connect().sender(address).send(compose(b"small"))
        above.router.pump()
        take(link)
        above.router.pump()
        assert sent.outcome == Accepted()


@pytest.mark.parametrize("settled", [False, True])
def test_balanced_distribution_counts_messages_under_way_as_the_load_of_the_edge_router(settled: bool) -> None:
    above = Above()
    there = above.edge.receiver("x", credit=10)
    here = above.client.receiver("x", credit=10)
    first = above.client.sender("x", session=above.client.add_session()).begin(LARGE[:BEGINNING])
    above.router.pump()
    (stream,) = above.streams()
    stream.grant(10)
    above.router.pump()
    if settled:
        first.finish(LARGE[BEGINNING:])
        above.router.pump()
        take(stream)
        above.router.pump()
    sender = above.client.sender("x")
    for _ in range(2):
        sender.send(compose(b"small"))
        above.router.pump()
        take(here, there)
        above.router.pump()
    assert (len(there.received), len(here.received)) == ((1, 1) if settled else (0, 2))


def test_idle_links_beyond_those_kept_are_closed_a_few_at_a_time() -> None:
    above = Above()
    above.edge.receiver("x", credit=10)
    sent = [
        above.client.sender("x", session=above.client.add_session(), pump=False).begin(LARGE[:140_000])
        for _ in range(KEPT_IDLE + 15)
    ]
    above.router.pump()
    for stream in above.streams():
        stream.grant(1)
    for each in sent:
        each.finish(LARGE[140_000:])
    above.router.pump()
    take(*above.streams())
    above.router.pump()
    assert len(above.streams()) == KEPT_IDLE + 15
    for left in (5, 0, 0):
        above.router.core.network.close_idle_streams()
        above.router.pump()
        assert len(above.streams()) - len(above.edge.ended) == KEPT_IDLE + left


def test_management_shows_the_link_as_one_of_the_connection() -> None:
    above = Above()
    above.edge.receiver("x", credit=10)
    above.client.sender("x").begin(LARGE[:BEGINNING])
    above.router.pump()
    (stream,) = (each for each in above.router.core.outgoing_endpoints() if each.streaming and each.streaming.owner)
    row = link_row(above.router.core, stream)
    assert (row["linkType"], row["linkDir"], row["owningAddr"]) == ("endpoint", "out", None)
    assert row["connectionId"] == str(above.edge.terms.connection_number)
    assert row["undeliveredCount"] == 1
    assert above.router.core.is_own(stream.link), "a policy has no say in it"


# ------------------------------------------------------------------------------------------------ from the edge router


class Below(Edge):
    """An edge router whose interior router accepts links for streams."""

    def go_up(self, capacity: int) -> Any:
        offer_streams(self.router, self.above)
        return super().go_up(capacity)

    def streams(self) -> list[Any]:
        """Return the links that were attached to the interior router besides those of the uplink and of addresses."""
        return [each for each in self.above.attached if each.link.session not in self.first_sessions()]

    def first_sessions(self) -> set[Any]:
        """Return the sessions of the uplink's own links."""
        return {each.link.session for each in self.above.attached[:8]}


@pytest.mark.parametrize("address", ["x", "many", "near"])
def test_a_long_message_goes_up_over_a_link_of_its_own(address: str) -> None:
    edge = Below()
    sender = edge.router.connect().sender(address)
    plain = edge.one(address)
    edge.say(f"M0{address}", True)
    plain.grant(10)
    edge.router.pump()
    sent = sender.begin(LARGE[:BEGINNING])
    edge.router.pump()
    (stream,) = edge.streams()
    stream.grant(250)
    edge.router.pump()
    (came,) = stream.received
    assert (stream.attach.source, stream.attach.target) == FOREVER
    assert came.annotations == {"x-opt-qd.to": address}, "an edge router leaves no trace"
    small = edge.router.connect().sender(address).send(compose(b"small"))
    edge.router.pump()
    take(plain)
    sent.finish(LARGE[BEGINNING:])
    edge.router.pump()
    take(stream)
    edge.router.pump()
    assert (sent.outcome, small.outcome) == (Accepted(), Accepted())
    assert (came.body, plain.bodies) == (b"x" * 300_000, [b"small"])
    again = sender.send(LARGE)
    edge.router.pump()
    take(stream)
    edge.router.pump()
    assert again.outcome == Accepted()
    assert edge.streams() == [stream]
    assert edge.router.held_bytes() == 0


def test_a_long_message_for_elsewhere_goes_up_so_too() -> None:
    edge = Below()
    anonymous: Any = edge.above.attached[0]
    anonymous.grant(10)
    sent = edge.router.connect().sender().send(compose(b"x" * 300_000, to="_topo/0/B/temp.1"))
    edge.router.pump()
    (stream,) = edge.streams()
    stream.grant(1)
    edge.router.pump()
    take(stream)
    edge.router.pump()
    assert sent.outcome == Accepted()
    assert anonymous.received == []


def test_the_phase_of_a_long_message_stands_in_its_annotations() -> None:
    edge = Below()
    sender = edge.router.connect().sender("staged", capabilities=("qd.waypoint.3",))
    edge.say("M3staged", True)
    sender.send(LARGE)
    edge.router.pump()
    (stream,) = edge.streams()
    stream.grant(1)
    edge.router.pump()
    assert stream.received[0].annotations == {"x-opt-qd.phase": 3, "x-opt-qd.to": "staged"}


@pytest.mark.parametrize("how", [lambda edge: edge.above.drop(), lambda edge: edge.streams()[0].detach()])
def test_a_message_that_has_not_gone_up_in_full_is_released(how: Callable[[Below], None]) -> None:
    edge = Below()
    sent = edge.router.connect().sender().begin(compose(b"x" * 300_000, to="elsewhere")[:BEGINNING])
    edge.router.pump()
    edge.streams()[0].grant(1)
    edge.router.pump()
    how(edge)
    edge.router.pump()
    assert sent.outcome == Released()


# ----------------------------------------------------------------------------------------- from Qpid Dispatch


def test_a_long_message_of_an_edge_router_may_come_on_any_link_and_session() -> None:
    above = Above()
    here = above.client.receiver("x", credit=10)
    plain = above.edge.sender("x")
    stream = above.edge.sender(session=above.edge.add_session(), source=FOREVER[0], target=FOREVER[1])
    assert isinstance(stream, MemorySender)
    assert (stream.error, stream.credit) == (None, 10)
    sent = stream.begin(compose(b"x" * 300_000, annotations={"x-opt-qd.to": "x"})[:BEGINNING])
    above.router.pump()
    assert len(here.received) == 1
    assert plain.send(compose(b"small")).outcome is None
    sent.finish(compose(b"x" * 300_000, annotations={"x-opt-qd.to": "x"})[BEGINNING:])
    above.router.pump()
    assert sorted(here.bodies, key=len) == [b"small", b"x" * 300_000]
    take(here)
    above.router.pump()
    assert sent.outcome == Accepted()


def test_a_long_message_from_above_finds_its_receiver_and_goes_nowhere_else() -> None:
    edge = Below()
    client = edge.router.connect()
    here = client.receiver("x", credit=10)
    way: dict[str, object] = {"x-opt-qd.to": "x", "x-opt-qd.ingress": "0/A", "x-opt-qd.trace": ["0/A"]}
    stream = edge.above.sender(session=edge.above.add_session(), source=FOREVER[0], target=FOREVER[1])
    large = compose(b"x" * 300_000, annotations=way)
    sent = stream.send(large)
    edge.router.pump()
    take(here)
    edge.router.pump()
    assert (here.bodies, sent.outcome) == ([b"x" * 300_000], Accepted())
    assert here.received[0].annotations is None
    here.detach()
    gone = stream.send(large)
    edge.router.pump()
    assert gone.outcome == Released()
    assert edge.streams() == []
