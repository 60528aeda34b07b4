"""Connections that open and end leave nothing behind."""

from __future__ import annotations

from tests.e2e.peer import Peer
from tests.routers import RunningRouter
from trouter.wire.performatives import Close

COUNT = 3_000
AT_ONCE = 100
#: Bytes that allocators and the garbage collector keep for a while; 1,500 open connections need three times as many.
SLACK_BYTES = 8 * 1024 * 1024


def come_and_go(port: int, address: str) -> None:
    """Open connections at once: some only open, some have links, some of these close in order."""
    peers = [Peer(port, opened=False) for _ in range(AT_ONCE)]
    for position, peer in enumerate(peers):
        peer.open()
        if position % 4 == 0:
            peer.begin()
            peer.attach_receiver(address, credit=1)
            peer.attach_sender(address)
        if position % 8 == 0:
            peer.say(Close())
            peer.expect(Close)
    for peer in peers:
        peer.sock.close()


def test_3_000_connections_leave_no_trace(router: RunningRouter) -> None:
    come_and_go(router.port, "address")
    router.wait_for_line("Connection Closed", AT_ONCE)
    files = router.open_files()
    resident = 0
    for number in range(2, COUNT // AT_ONCE + 1):
        come_and_go(router.port, f"address.{number}")
        router.wait_for_line("Connection Closed", number * AT_ONCE)
        if number * AT_ONCE == COUNT // 2:
            resident = router.resident_bytes()
    assert router.open_files() == files
    assert router.resident_bytes() - resident < SLACK_BYTES
