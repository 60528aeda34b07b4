"""The memory that the router keeps, by type: the current counts and sizes."""

from __future__ import annotations

import sys

import pytest

from trouter.core.allocations import BUFFER_BYTES, LOOKED_AT, MAX_ADDRESSES, owners, waiting_messages
from trouter.core.egress import Egress
from trouter.core.inprocess import InsideMessage
from trouter.core.message import IncomingDelivery, OutgoingDelivery
from trouter.core.network import RemoteRouter
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.testing import MemoryRouter, compose

NAMES = [
    "qd_connection_t",
    "qd_session_t",
    "qdr_address_t",
    "qdr_link_t",
    "qdr_delivery_t",
    "qd_message_t",
    "qd_buffer_t",
]
RULES = (AddressRule("m", distribution="multicast"),)


def counts(router: MemoryRouter) -> list[int]:
    rows = owners(router.core, ())
    assert [name for name, _, _ in rows] == NAMES
    return [count for _, _, count in rows[2:]]


def test_an_empty_router_keeps_nothing() -> None:
    assert counts(MemoryRouter()) == [0, 0, 0, 0, 0]


def test_a_size_is_that_of_the_object_and_of_the_objects_it_owns() -> None:
    router = MemoryRouter()
    client = router.connect()
    client.receiver("x")
    sizes = {name: size for name, size, _ in owners(router.core, ())}
    (outgoing,) = router.core.outgoing_endpoints()
    assert isinstance(outgoing, Egress)
    assert isinstance(outgoing.link, OutgoingLink)
    least = sum(map(sys.getsizeof, (outgoing, outgoing.link, outgoing.counters)))
    assert least < sizes["qdr_link_t"] < 3 * least
    delivery = sys.getsizeof(OutgoingDelivery(outgoing.link))
    assert delivery <= sizes["qdr_delivery_t"] < 2 * delivery
    assert sizes["qd_buffer_t"] == BUFFER_BYTES
    client.sender("x")
    mixed = {name: size for name, size, _ in owners(router.core, ())}
    assert mixed["qdr_link_t"] != sizes["qdr_link_t"]  # an incoming link has other parts
    assert {name: size for name, size in mixed.items() if name != "qdr_link_t"} == {
        name: size for name, size in sizes.items() if name != "qdr_link_t"
    }


def test_deliveries_count_on_both_links_whether_they_wait_or_are_unsettled() -> None:
    router = MemoryRouter()
    client = router.connect()
    receiver = client.receiver("x", credit=2)
    sender = client.sender("x")
    for _ in range(5):
        sender.send(compose(b"x"))
    router.pump()
    assert counts(router)[:4] == [1, 2, 10, 3]
    for message in receiver.received:
        message.settle()
    router.pump()
    assert counts(router)[:4] == [1, 2, 6, 3]
    receiver.detach()
    sender.detach()
    assert counts(router) == [0, 0, 0, 0, 0]


def test_presettled_deliveries_count_where_they_wait() -> None:
    router = MemoryRouter()
    client = router.connect()
    client.receiver("x")
    sender = client.sender("x")
    for _ in range(3):
        sender.send(compose(b"x"), settled=True)
    partial = sender.begin(compose(bytes(1000)), settled=True)
    router.pump()
    assert counts(router)[2:4] == [4, 4]
    partial.abort()
    router.pump()
    assert counts(router)[2:4] == [3, 3]


def test_a_multicast_message_counts_once_for_all_receivers() -> None:
    router = MemoryRouter(RULES)
    client = router.connect()
    for _ in range(4):
        client.receiver("m")
    client.sender("m").send(compose(b"x"))
    router.pump()
    assert counts(router)[2:4] == [5, 1]


@pytest.mark.parametrize("size", [0, 1, 300])
def test_small_pieces_of_a_message_are_kept_together(size: int) -> None:
    """A piece costs more than a byte; unread pieces are joined, so that many take the room of their bytes."""
    router = MemoryRouter()
    client = router.connect()
    receiver = client.receiver("x")
    sent = client.sender("x").begin(compose(bytes(200_000)))
    router.pump()
    for number in range(10_000):
        sent.more(bytes([number % 251]) * size)
        if number % 50 == 0:
            router.pump()
    router.pump()
    (link,) = [link for link in client.server.sessions()[0].links.by_handle.values() if isinstance(link, IncomingLink)]
    assert isinstance(link.partial, IncomingDelivery)
    waiting = link.partial.message
    assert waiting is not None
    assert len(waiting.chunks) <= 3 + waiting.held // 256
    receiver.grant(1)
    sent.finish(b"end")
    router.pump()
    body = b"".join(bytes([number % 251]) * size for number in range(10_000))
    assert receiver.received[0].payload == compose(bytes(200_000)) + body + b"end"


def test_pieces_grow_only_where_no_receiver_has_come_to_them() -> None:
    router = MemoryRouter(RULES)
    client = router.connect()
    quick, slow = client.receiver("m", credit=10), client.receiver("m", credit=10)
    late = router.connect().receiver("m")  # without credit it is still before the first piece, which keeps the others
    sent = client.sender("m").begin(compose(bytes(200_000)))
    expected = compose(bytes(200_000))
    for number in range(600):
        piece = bytes([number % 251]) * (number % 40)
        sent.more(piece)
        expected += piece
        if number % 3:
            router.pump()
        if number == 400:
            (link,) = [
                link for link in client.server.sessions()[0].links.list_links() if isinstance(link, IncomingLink)
            ]
            assert isinstance(link.partial, IncomingDelivery)
            assert link.partial.message is not None
            assert len(link.partial.message.chunks) > 200
            late.grant(1)
    sent.finish(b"end")
    router.pump()
    for receiver in (quick, slow, late):
        assert receiver.received[0].payload == expected + b"end"


def test_buffers_hold_the_bytes_that_are_not_sent_on() -> None:
    router = MemoryRouter()
    client = router.connect(PeerTerms(100))
    receiver = client.receiver("x")
    sender = client.sender("x")
    for _ in range(10):
        sender.send(compose(bytes(5120 - 8)))
    router.pump()
    assert counts(router)[4] == 100
    client.stalled = True
    receiver.grant(10)
    router.pump()
    held = sum(len(each.server.out) for each in router.clients)
    assert held > 51200
    assert counts(router)[4] == -(-held // BUFFER_BYTES)
    client.stalled = False
    router.pump()
    assert counts(router)[4] == 0


def test_waiting_messages_are_counted_by_address_with_the_largest_first() -> None:
    router = MemoryRouter(RULES)
    client = router.connect()
    for address, size in (("small", 100), ("large", 1000), ("m", 500)):
        client.receiver(address)
        if address == "m":
            client.receiver(address)
        for _ in range(LOOKED_AT + 20):
            client.sender(address).send(compose(bytes(size)), settled=False)
    client.receiver("empty")
    router.pump()
    rows = {each.address: each for each in waiting_messages(router.core)}
    assert list(rows) == ["large", "m", "small"]
    assert [rows[name].messages for name in rows] == [LOOKED_AT + 20] * 3
    assert rows["large"].bytes == (LOOKED_AT + 20) * len(compose(bytes(1000)))
    assert rows["small"].links == 1 + LOOKED_AT + 20


def test_addresses_beyond_the_largest_are_one_row() -> None:
    router = MemoryRouter()
    client = router.connect()
    for number in range(MAX_ADDRESSES + 3):
        client.receiver(f"a{number}")
        client.sender(f"a{number}").send(compose(bytes(100 + number)))
    router.pump()
    *rows, others = waiting_messages(router.core)
    assert [each.address for each in rows] == [f"a{number}" for number in range(MAX_ADDRESSES + 2, 2, -1)]
    assert (others.others, others.messages, others.links) == (3, 3, 6)
    assert others.bytes == sum(len(compose(bytes(size))) for size in (100, 101, 102))


class Drop:
    """A consumer inside the router that does nothing."""

    def receive(self, received: InsideMessage) -> None:
        pass


def test_what_one_address_session_or_connection_gets_no_other_has() -> None:
    """Those that have none of something share one empty list or dict for it."""
    router = MemoryRouter()
    used, unused = router.connect(), router.connect()
    for client in (used, unused):
        client.receiver(f"of-{client.connection.local_open.container_id}")
    subscriptions = [router.core.inside.subscribe("inside", Drop()) for _ in range(2)]
    used.sender("inside")
    anonymous = used.sender()
    anonymous.send(compose(b"x", to="inside"))
    used.receiver("gone").detach()
    session = used.add_session()
    session.end()
    router.pump()
    inside, other = (router.core.table.entries[key] for key in ("M0inside", "M0of-client-1"))
    assert (len(inside.forwarder.subscriptions), len(inside.senders), len(inside.known_as)) == (2, 1, 1)
    worker = RemoteRouter("R.2", sibling=True)
    inside.forwarder.add_remote(worker)
    assert (inside.forwarder.remotes, inside.forwarder.siblings) == ([worker], [worker])
    of_other = other.forwarder
    kept = [of_other.subscriptions, of_other.remotes, of_other.siblings, other.senders, other.known_as]
    assert not any(kept)
    inside.forwarder.remove_remote(worker)
    handles = [unused.receiver(f"{number}").link.remote_handle for number in range(3)]
    assert handles == [1, 2, 3]  # none that another session has free
    channels = [unused.add_session() for _ in range(2)]
    router.pump()
    assert [each.remote_channel for each in channels] == [1, 2]
    narrow = router.connect(client_limits=EngineLimits(max_frame_bytes=512, session_window_frames=1))
    narrow.receiver("much", credit=1)
    narrow.stalled = True
    used.sender("much").send(compose(bytes(5000)))
    router.pump()
    (waiting,), (idle, *_) = narrow.server.sessions(), unused.server.sessions()
    assert (len(waiting.waiting_links), len(idle.waiting_links)) == (1, 0)
    for each in subscriptions:
        router.core.inside.unsubscribe(each)
    router.core.inside.unsubscribe(subscriptions[0])  # a second time
    assert not inside.forwarder.subscriptions
