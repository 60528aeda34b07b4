"""Small input after the open must not cause much work or output (security.md 7.2, 7.3): frames are counted."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from tests.e2e.peer import FIRST_ID, Peer, message
from tests.engine.talks import begun, flow, receiving, sending
from tests.routers import RunningRouter, running
from trouter.wire.framing import frame
from trouter.wire.performatives import (
    Accepted,
    Attach,
    Disposition,
    Flow,
    Source,
    Target,
    Transfer,
    encode_performative,
)

pytestmark = pytest.mark.attack

CONFIGURATION = """
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, linkCapacity: 1000 }
"""


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(CONFIGURATION, tmp_path_factory.mktemp("router")) as process:
        yield process


@pytest.mark.parametrize("scope", ["session", "link we send on", "link we receive on"])
def test_echoes_that_come_together_are_answered_once(scope: str) -> None:
    """CVE-2026-68080."""
    if scope == "session":
        talk, handle = begun()[0], {}
    else:
        talk, handle = (sending() if scope == "link we send on" else receiving()).script, {"handle": 0}
    talk.sent()
    for _ in range(3):
        talk.peer_sends(*[flow(echo=True, **handle)] * 1_000)
        (answer,) = talk.sent()
        assert isinstance(answer.performative, Flow)


def test_a_hundred_thousand_echoes_are_few_answers(router: RunningRouter) -> None:
    with Peer(router.port) as peer:
        link = peer.attach_receiver("x")
        octets = frame(0, encode_performative(Flow(
            next_incoming_id=0, incoming_window=1, next_outgoing_id=FIRST_ID, outgoing_window=1, handle=link.handle,
            delivery_count=0, link_credit=1, echo=True,
        )))  # fmt: skip
        for _ in range(100):
            peer.raw(octets * 1_000)
        peer.say(Attach("the end", 5, True, source=Source("x"), target=Target()))
        answers = 0
        while not isinstance(said := peer.next(), Attach):
            answers += isinstance(said, Flow)
        assert 0 < answers < 10_000


def test_the_widest_disposition_costs_only_the_present_deliveries(router: RunningRouter) -> None:
    """CVE-2026-66276, through a real router: thousands of the widest ranges over a few deliveries."""
    with Peer(router.port) as receiver, Peer(router.port) as sender:
        source = receiver.attach_receiver("wide", credit=3)
        link = sender.attach_sender("wide")
        deliveries = [sender.send_message(link, b"x") for _ in range(3)]
        first = -1
        for _ in range(3):
            transfer = receiver.expect(Transfer)
            assert transfer.handle == source.remote_handle
            first = transfer.delivery_id if first < 0 and transfer.delivery_id is not None else first
        half = 0x7FFFFFFE
        for _ in range(5_000):
            receiver.say(Disposition(True, (first + 3) & 0xFFFFFFFF, (first + 3 + half) & 0xFFFFFFFF, True, Accepted()))
        receiver.say(Disposition(True, (first - 5) & 0xFFFFFFFF, (first - 5 + half) & 0xFFFFFFFF, True, Accepted()))
        heard: set[int] = set()
        while len(heard) < 3:
            said = sender.expect(Disposition)
            assert said.state == Accepted()
            last = said.first if said.last is None else said.last
            heard.update((said.first + step) & 0xFFFFFFFF for step in range(((last - said.first) & 0xFFFFFFFF) + 1))
        assert heard == set(deliveries)


def send_frames(peer: Peer, octets: bytes, count: int) -> None:
    """Send the same transfer frame repeatedly, as the session's window permits."""
    while count > 0:
        while peer.window <= 0:
            peer.take_flow(peer.expect(Flow))
        now = min(count, peer.window)
        peer.raw(octets * now)
        peer.window -= now
        peer._next_outgoing = (peer._next_outgoing + now) & 0xFFFFFFFF
        count -= now


@pytest.mark.parametrize(("size", "most"), [(0, 65_536), (1, 65_536 + 257)])
def test_a_message_of_countless_frames_ends_its_link(router: RunningRouter, size: int, most: int) -> None:
    """CVE-2026-66277; the receiver takes all of it, so that no window stops the sender."""
    with Peer(router.port) as receiver, Peer(router.port) as sender:
        receiver.attach_receiver("endless", credit=1)
        link = sender.attach_sender("endless")
        receiver.be_heard()
        sender.transfer(link, message(b""), more=True)
        more = frame(0, encode_performative(Transfer(link.handle, more=True)) + b"x" * size)
        send_frames(sender, more, most - 100)
        sender.be_heard()
        send_frames(sender, more, 200)
        error = sender.expect_detach()
        assert error is not None
        assert error.condition == "amqp:resource-limit-exceeded"
    router.wait_for_line(rf"Link detached: .*a delivery of \d+ bytes in more than {most} frames")


#: Annotations that claim more bytes than they have, and a header that is no list.
UNREADABLE = (b"\0\x53\x72\xd1\0\0\0\x0a\xff\xff\xff\xffxxxxxx", b"\0\x53\x70\xa1\x01x")


def test_a_bad_message_harms_its_own_delivery_only(router: RunningRouter) -> None:
    """CVE-2026-92608: three receivers, ten messages and another sender: all other deliveries arrive."""
    with Peer(router.port) as receiver, Peer(router.port) as bad, Peer(router.port) as good:
        source = receiver.attach_receiver("mixed", credit=100)
        worse, better = bad.attach_sender("mixed"), good.attach_sender("mixed")
        outcomes = []
        for number in range(10):
            wrong = bad.transfer(worse, UNREADABLE[number % 2])
            outcomes.append(type(bad.expect_outcome(wrong)).__name__)
            right = good.send_message(better, b"%d" % number)
            assert receiver.take_message(source) == message(b"%d" % number)
            assert good.expect_outcome(right) == Accepted()
        assert set(outcomes) == {"Rejected"}


def reset(peer: Peer) -> None:
    """Reset the connection."""
    peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.sock.close()


@pytest.mark.parametrize("who", ["receiver", "sender", "both"])
def test_clients_that_go_while_messages_are_on_their_way_harm_no_other(router: RunningRouter, who: str) -> None:
    """DISPATCH-1276, 1326, 1492, 2274."""
    before = len(router.matching("Connection Opened"))
    for number in range(30):
        receiver, sender = Peer(router.port), Peer(router.port)
        receiver.attach_receiver("storm", credit=number)
        receiver.attach_receiver("storm/2", credit=number)
        link = sender.attach_sender("storm")
        other = sender.attach_sender("storm/2")
        for count in range(10):
            sender.send_message(link, bytes(3_000), settled=count % 2 == 0)
            sender.transfer(other, message(bytes(100)), more=count == 9)
        if number % 4 == 1:
            receiver.flow(handle=0, delivery_count=0, link_credit=0, drain=True)
        for each, name in ((receiver, "receiver"), (sender, "sender")):
            if who in (name, "both"):
                reset(each)
        for each in (receiver, sender):
            each.sock.close()
    opened = [line.split("]")[0].rpartition("[")[2] for line in router.matching("Connection Opened")[before:]]
    assert len(opened) == 60
    for name in opened:
        router.wait_for_line(rf"\[{name}\] Connection Closed")
    with Peer(router.port) as receiver, Peer(router.port) as sender:
        source = receiver.attach_receiver("storm", credit=1)
        delivery = sender.send_message(sender.attach_sender("storm"), b"calm")
        assert receiver.take_message(source) == message(b"calm")
        assert sender.expect_outcome(delivery) == Accepted()
    router.assert_no_fault_of_ours()
