"""A client that makes the router write much: many receivers of one address, small frames that are read slowly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.peer import Peer
from tests.management.node import NODE, Node, node_of
from tests.routers import RunningRouter, running
from trouter.wire.performatives import Detach

pytestmark = pytest.mark.attack

#: Output that waits for a peer before its links pause (docs/limits.md), and the largest frame beside it.
PAUSE_BYTES, FRAME_BYTES = 512 << 10, 1 << 20
#: What the router writes in frames around a message, at most.
FRAME_HEAD_BYTES = 64
RECEIVERS = 20
QUOTA = 5
CONFIGURATION = """
router { id: R }
policy { enableVhostPolicy: yes }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
address { prefix: many, distribution: multicast }
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: { $default: { remoteHosts: *, sources: *, targets: *, management: admin, allowDynamicSource: yes } }
}
vhost {
    hostname: small.org
    allowUnknownUser: yes
    groups: { $default: { remoteHosts: *, sources: *, targets: *, maxReceivers: %d } }
}
"""


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(CONFIGURATION % QUOTA, tmp_path_factory.mktemp("router")) as process:
        yield process


def output_of(node: Node, peer: Peer) -> int:
    """Return the octets that wait to be sent to a peer."""
    rows = node.get("GET-MEMORY", **NODE, by="connection")
    (row,) = [each for each in rows if str(each["connection"]) == str(peer.number)]
    return int(row["output"])


@pytest.mark.parametrize("frame_bytes", [512, 16_384])
def test_small_frames_that_are_not_read_wait_in_a_bounded_output(router: RunningRouter, frame_bytes: int) -> None:
    with (
        node_of(router.port) as node,
        Peer(router.port) as sender,
        Peer(router.port, max_frame_size=frame_bytes, receive_buffer=4096) as reader,
    ):
        reader.attach_receiver("q", 250)
        link = sender.attach_sender("q")
        for _ in range(4):
            sender.send_message(link, bytes(1 << 20), settled=True)
        sender.be_heard()
        assert output_of(node, reader) <= PAUSE_BYTES + FRAME_BYTES
        with Peer(router.port) as other:  # and others are served
            receiver, own = other.attach_receiver("other", 1), other.attach_sender("other")
            other.send_message(own, b"x", settled=True)
            assert other.take_message(receiver).endswith(b"x")


def test_a_message_to_many_goes_out_once_to_each_receiver_and_no_more(router: RunningRouter) -> None:
    octets = 10_000
    with ExitStack() as stack:
        sender = stack.enter_context(Peer(router.port))
        readers = [stack.enter_context(Peer(router.port)) for _ in range(RECEIVERS)]
        links = [reader.attach_receiver("many/x", 10) for reader in readers]
        link = sender.attach_sender("many/x")
        sender.send_message(link, bytes(octets), settled=True)
        for reader, own in zip(readers, links, strict=True):
            assert octets < len(reader.take_message(own)) < octets + FRAME_HEAD_BYTES
            reader.be_heard()  # nothing else has come


def test_the_receivers_of_a_connection_bound_what_an_octet_costs(router: RunningRouter) -> None:
    with Peer(router.port, hostname="small.org") as peer:
        for _ in range(QUOTA):
            assert peer.attach_receiver("many/y", 10).address == "many/y"
        assert peer.attach_receiver("many/y").address is None
        error = peer.expect(Detach).error
        assert error is not None
        assert error.condition == "amqp:resource-limit-exceeded"
