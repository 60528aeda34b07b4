"""A bug in what the whole router needs ends the router in order: its peers get a close, its records are sealed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.routers import watched
from trouter.records.check import check_folder
from trouter.records.segments import OPEN, segments_in
from trouter.wire.performatives import Close

EMPTY_FRAME = b"\x00\x00\x00\x08\x02\x00\x00\x00"
TEXT = """
router {{ id: R, drainTimeoutSeconds: 1 }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
recordLog {{ dir: {folder}/records }}
"""


@pytest.mark.parametrize("service", ["sockets", "timers"])
def test_the_router_stops_in_order_with_the_status_of_a_bug(service: str, tmp_path: Path) -> None:
    path = tmp_path / "router.conf"
    path.write_text(TEXT.format(folder=tmp_path), encoding="utf-8")
    command = [sys.executable, "-m", "tests.net.failing_router", service, "-c", str(path)]
    with watched(command, path) as router:
        router.wait_for_line("Operational")
        with Peer(router.port) as receiver, Peer(router.port) as sender:
            receiver.attach_receiver("a", credit=10)
            link = sender.attach_sender("a")
            sender.send_message(link, b"under way")
            sender.be_heard()
            router.process.send_signal(signal.SIGUSR1)
            router.wait_for_line("planted")
            sender.raw(EMPTY_FRAME)  # the sockets have something to read
            router.wait_for_line(rf"ERROR \(error\) internal error in the {service}: the router stops")
            for peer in (receiver, sender):
                while not isinstance(end := peer.next(), Close):
                    pass
                assert end.error is not None
                assert end.error.condition == "amqp:connection:forced"
        assert router.wait() == os.EX_SOFTWARE
    report = check_folder(tmp_path / "records")
    assert not report.errors
    assert report.records > 0
    assert not any(place.path.name.endswith(OPEN) for place in segments_in(tmp_path / "records"))
