"""Ended objects leave nothing behind: no link without an end, nothing that waits for the garbage collector."""

from __future__ import annotations

import gc

import pytest

from trouter.core.arrival import NO_LINK, Arrival
from trouter.core.egress import Egress
from trouter.core.ingress import Ingress
from trouter.engine.connection import Connection
from trouter.engine.events import LinkDetached, SessionEnded
from trouter.engine.link_base import Link
from trouter.engine.ports import Delivery
from trouter.engine.session import Session
from trouter.testing import MemoryClient, MemoryRouter, compose
from trouter.wire.performatives import Attach, Detach, End, Source, Target, Transfer


def alive(*kinds: type) -> int:
    return sum(isinstance(each, kinds) for each in gc.get_objects())


def busy(router: MemoryRouter) -> MemoryClient:
    """Return a client with links and messages of every kind under way."""
    client = router.connect()
    receiver = client.receiver("x", credit=3)
    sender = client.sender("x")
    anonymous = client.sender()
    for number in range(6):
        sender.send(compose(b"%d" % number), settled=number % 2 == 0)
        anonymous.send(compose(b"y", to="x"))
    sender.begin(compose(bytes(200_000)))
    router.pump()
    assert receiver.received
    return client


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("how", ["drop", "close", "end"])
def test_a_connection_that_is_over_goes_without_the_collector(how: str) -> None:
    router = MemoryRouter()
    before = alive(Ingress, Egress), alive(Delivery)
    client = busy(router)
    getattr(client, how)()
    router.core.watch_links(1.0)
    assert alive(Ingress, Egress) == before[0]
    server = client.__dict__.pop("server")
    router.clients.clear()
    router._outbox.clear()
    server.drop_references()
    connections, sessions = alive(Connection), alive(Session)
    lost = len(server.sessions())
    assert lost == 0
    del server
    assert alive(Connection) == connections - 1
    assert alive(Session) <= sessions


@pytest.mark.usefixtures("no_collector")
def test_a_session_that_is_over_goes_without_the_collector() -> None:
    router = MemoryRouter()
    client = busy(router)
    ours = {id(session) for session in client.server.sessions()}
    client.end()
    router.core.watch_links(1.0)
    assert not [each for each in gc.get_objects() if isinstance(each, Session) and id(each) in ours]


@pytest.mark.usefixtures("no_collector")
def test_a_link_that_is_over_goes_without_the_collector() -> None:
    router = MemoryRouter()
    client = router.connect()
    before = alive(Ingress, Egress)
    for _ in range(10):
        receiver = client.receiver("x", credit=5)
        sender = client.sender("x")
        sender.send(compose(b"x"))
        router.pump()
        sender.detach()
        receiver.detach()
    assert alive(Ingress, Egress) <= before + 1
    router.core.watch_links(1.0)
    assert alive(Ingress, Egress) == before


@pytest.mark.usefixtures("no_collector")
def test_kept_messages_of_a_lost_connection_do_not_wake_it() -> None:
    router = MemoryRouter()
    receiver = router.connect().receiver("x")
    client = router.connect()
    client.sender("x").send(compose(bytes(1000)), settled=True)
    router.pump()
    (session,) = client.server.sessions()
    client.drop()
    client.server.drop_references()
    router._outbox.clear()
    assert session.windows.held_bytes > 0
    receiver.grant(1)
    router.pump()
    assert session.windows.held_bytes == 0
    assert len(receiver.received) == 1
    assert client.server not in router._outbox
    assert not client.server.out


def test_a_session_that_broke_a_rule_and_ended_in_one_read_loses_its_links() -> None:
    router = MemoryRouter()
    client = router.connect()
    receiver = client.receiver("x", credit=10)
    other = router.connect().sender("x")
    session = client.session
    client.connection.write(session.channel, Detach(77))
    session.end()
    router.pump()
    assert len(client.faults) == 1
    assert list(router.core.links) == [2]
    assert other.send(compose(b"x")).delivery.begun
    router.pump()
    assert router.core.table.entries["M0x"].count_destinations() == 0
    assert client.server.link_count == 0
    assert client.server.sessions() == []
    assert receiver.received == []


def test_a_link_that_broke_a_rule_and_detached_in_one_read_is_lost() -> None:
    router = MemoryRouter()
    client = router.connect()
    sender = client.sender("x")
    client.connection.write(client.session.channel, _transfer(sender.link.handle))
    sender.link.detach(True)
    router.pump()
    assert len(client.faults) == 1
    assert router.core.links == {}
    assert client.server.link_count == 0
    assert client.server.sessions()[0].links.list_links() == []


@pytest.mark.parametrize("session_fault", [False, True])
def test_a_reported_link_stays_until_the_holder_takes_the_event(session_fault: bool) -> None:
    """This holds also when the connection ends before the holder takes the event."""
    router = MemoryRouter()
    client = router.connect()
    sender = client.sender("x")
    broken = Detach(77) if session_fault else _transfer(sender.link.handle)
    client.connection.write(client.session.channel, broken)
    client.connection.write(client.session.channel, End() if session_fault else Detach(sender.link.handle, True))
    client.server.receive_data(bytes(client.connection.out))
    client.connection.out.clear()
    (event,) = client.server.events
    assert isinstance(event, SessionEnded if session_fault else LinkDetached)
    client.server.events.clear()
    client.drop()
    assert router.core.links == {}


def test_names_and_handles_of_a_reported_link_are_free_once_it_is_answered() -> None:
    router = MemoryRouter()
    client = router.connect()
    for _ in range(3):
        sender = client.sender("x", name="again")
        client.connection.write(client.session.channel, _transfer(sender.link.handle))
        sender.link.detach(True)
        router.pump()
    client.connection.write(client.session.channel, Attach("again", 5, False, source=Source(), target=Target("x")))
    router.pump()
    assert [each.link.handle for each in router.core.links.values()] == [0]


def _transfer(handle: int) -> Transfer:
    """Return a transfer on a link that has no credit, because it has no consumer."""
    return Transfer(handle, 0xFFFFFFFE, b"tag")


class Failing:
    """A receiver of events about messages, with a bug."""

    def note_received(self, arrival: Arrival) -> None:
        raise LookupError

    def note_aborted(self, link: Link) -> None:
        raise AssertionError


@pytest.mark.parametrize("size", [10, 200_000], ids=["one-frame", "several-frames"])
def test_a_bug_leaves_no_message_in_hand(size: int) -> None:
    router = MemoryRouter()
    client = router.connect()
    sender = client.sender("x")
    client.receiver("x", credit=3)
    [ingress] = [link.sink for link in client.server.sessions()[0].links.list_links() if link.incoming]
    assert isinstance(ingress, Ingress)
    ingress.tap = Failing()
    sender.send(compose(bytes(size)))
    with pytest.raises(LookupError):
        router.pump()
    arrival = ingress.arrival
    assert arrival.source is not ingress
    assert arrival.rewriter is not ingress.destination.rewriter
    assert arrival.delivery.link is NO_LINK
    assert (arrival.message, arrival.data) == (None, b"")
