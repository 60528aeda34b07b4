"""The limits of one connection in a router process: links, unsettled deliveries, buffered messages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.peer import Link, Peer
from tests.routers import RunningRouter, running, same_worker
from trouter.wire.performatives import Accepted, Attach, Detach, End, Error, Flow, Source, Target, Transfer

CONFIGURATION = """
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, maxLinks: 2, maxUnsettled: 3 }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, maxBufferedBytes: 100000, maxSessionFrames: 100 }
"""
HALF = 50_000
TOO_MANY = "amqp:resource-limit-exceeded"


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(CONFIGURATION, tmp_path_factory.mktemp("router")) as process:
        yield process


def refused(peer: Peer, handle: int) -> Error | None:
    """Attach one more link; return the error of the refusal."""
    answer = peer.attach(Attach(f"more-{handle}", handle, True, source=Source("more"), target=Target()))
    assert answer.source is None
    detach = peer.expect(Detach)
    assert detach.closed
    peer.say(Detach(handle, closed=True))
    return detach.error


def test_more_links_than_a_connection_may_have_are_refused_one_by_one(router: RunningRouter) -> None:
    with Peer(router.port, sasl=True) as peer, Peer(router.port, sasl=True) as other:
        sender, receiver = peer.attach_sender("links", credit=False), peer.attach_receiver("links", 10)
        for handle in (7, 8):
            error = refused(peer, handle)
            assert error is not None
            assert error.condition == TOO_MANY
        assert other.attach_receiver("others").address == "others"
        peer.say(Detach(receiver.handle, closed=True))
        peer.expect(Detach)
        again = peer.attach_receiver("links", 10)
        delivery = peer.send_message(sender, b"still here")
        peer.take_message(again)
        peer.accept(0)
        assert peer.expect_outcome(delivery) == Accepted()
    router.wait_for_line(r"DENY AMQP Attach receiver link 'more' .* based on 'maxLinks'")


def test_a_receiver_that_settles_nothing_is_sent_no_more(router: RunningRouter) -> None:
    with Peer(router.port, sasl=True) as lazy, Peer(router.port, sasl=True) as sending:
        link = lazy.attach_receiver("unsettled", 10)
        sender = sending.attach_sender("unsettled")
        for number in range(5):
            sending.send_message(sender, b"%d" % number)
        taken = [lazy.expect(Transfer).delivery_id for _ in range(3)]
        lazy.flow(echo=True)
        assert isinstance(lazy.next(), Flow)  # and no fourth before it
        assert taken[0] is not None
        lazy.accept(taken[0])
        assert b"3" in lazy.take_message(link)


@pytest.mark.parametrize(("kept", "scarce"), [(HALF, False), (HALF + 1, True)])
def test_a_connection_that_keeps_half_of_its_limit_gets_an_eighth_of_the_window(
    router: RunningRouter, kept: int, scarce: bool
) -> None:
    """Kept messages take 4 of 100 frames; an eighth of the others is 12. The window opens when half of it is used."""
    port = router.ports[1]
    with Peer(port, sasl=True) as stalled, Peer(port, sasl=True) as sending:
        stalled.attach_receiver("half", 0)
        link = sending.attach_sender("half")
        for number in range(50):
            sending.transfer(link, bytes(kept - 49_000 if number == 49 else 1000), more=True, first=number == 0)
        sending.be_heard()
        for _ in range(44):
            sending.transfer(link, b"", more=True, first=False)
        sending.be_heard()
        assert (sending.window == 12) == scarce


def test_a_connection_beyond_its_buffer_limit_loses_its_session_and_other_connections_go_on(
    router: RunningRouter,
) -> None:
    port = router.ports[1]
    with (
        Peer(port, sasl=True) as stalled,
        Peer(same_worker(port), sasl=True) as flooding,
        Peer(same_worker(port), sasl=True) as other,
    ):
        stalled.attach_receiver("kept", 0)
        other.attach_receiver("kept too", 0)
        link: Link = flooding.attach_sender("kept")
        for number in range(10):
            flooding.say(Transfer(link.handle, number, b"%d" % number, 0), bytes(10_000))
        flooding.be_heard()
        flooding.say(Transfer(link.handle, 10, b"10", 0), b"x")
        end = flooding.expect(End)
        assert end.error is not None
        assert end.error.condition == TOO_MANY
        assert "100000 bytes" in str(end.error.description)
        other.send_message(other.attach_sender("kept too"), b"goes on")
        other.flow(echo=True)
        assert isinstance(other.next(), Flow)
    router.assert_no_fault_of_ours()
