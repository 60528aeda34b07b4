"""The lines that other programs search for, as a router with a client writes them (docs/logging.md)."""

from __future__ import annotations

import re
import socket
from typing import Final

import pytest
from proton import Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

from tests.routers import running

CONFIGURATION: Final = """
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, name: main }
log { module: DEFAULT, enable: info+, includeTimestamp: no }
"""
HOST: Final = r"127\.0\.0\.1:\d+"
ONE: Final = "del=1 presett=1 psdrop=0 acc=0 rej=0 rel=0 mod=0 delay1=0 delay10=0 blocked=no"
OPENED: Final = rf"dir=in host={HOST} vhost=127\.0\.0\.1 encrypted=no auth=ANONYMOUS user=anonymous container_id=me"
LINES: Final = (
    r"ROUTER \(info\) Router started in Standalone mode",
    r"ROUTER \(info\) Version: [0-9.]+",
    r"CONN_MGR \(info\) Configured Listener: 127\.0\.0\.1:0 proto=any, role=normal",
    rf"SERVER \(notice\) Listening on {HOST} \(main\)",
    r"SERVER \(notice\) Operational, 1 Threads Running \(process ID \d+\)",
    rf"SERVER \(info\) \[C1\] Accepted connection to {HOST} from {HOST}",
    rf'ROUTER_CORE \(info\) \[C1\] Connection Opened: {OPENED} props=\{{:a=1, :b="x", :password=<hidden>\}}',
    r"ROUTER_CORE \(info\) \[C1\]\[L1\] Link attached: dir=out source=\{q expire:sess\} target=\{<none> expire:sess\}",
    r"ROUTER_CORE \(info\) \[C1\]\[L2\] Link attached: dir=in source=\{<none> expire:sess\} target=\{q expire:sess\}",
    rf"ROUTER_CORE \(info\) \[C1\]\[L2\] Link detached: {ONE}",
    rf"ROUTER_CORE \(info\) \[C1\]\[L1\] Link lost: {ONE}",
    r"ROUTER_CORE \(info\) \[C1\] Connection Closed",
    rf"SERVER \(info\) \[C2\] Connection from {HOST} \(to 127\.0\.0\.1:0\) failed: amqp:connection:framing-error: .*",
)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("router")
    with running(CONFIGURATION, folder) as router:
        client = BlockingConnection(
            f"127.0.0.1:{router.port}", timeout=60, properties={"a": 1, "b": "x", "password": "p"}, container_id="me"
        )
        receiver = client.create_receiver("q", credit=1)
        sender = client.create_sender("q", options=AtMostOnce())
        sender.send(Message("x"))
        receiver.receive(timeout=60)
        sender.close()
        client.close()
        router.wait_for_line(r"\[C1\] Connection Closed")
        with socket.create_connection(("127.0.0.1", router.port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while stranger.recv(1000):
                pass
        router.wait_for_line(r"\[C2\] Connection from .* failed")
    return router.text()


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_others_look_for_is_written_in_their_form(log: str, line: str) -> None:
    assert re.search(rf"^{line}$", log, re.MULTILINE), log
