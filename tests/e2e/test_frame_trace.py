"""Module PROTOCOL at level trace: every frame of every connection, as a line (configuration.md, section 8)."""

from __future__ import annotations

import re

from proton import Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

from tests.routers import StartRouter

CONFIGURATION = """
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
log { module: PROTOCOL, enable: trace+ }
"""


def test_every_frame_is_told_and_no_message(start_router: StartRouter) -> None:
    router = start_router(CONFIGURATION)
    client = BlockingConnection(f"127.0.0.1:{router.port}", timeout=10)
    receiver = client.create_receiver("q", credit=1)
    client.create_sender("q", options=AtMostOnce()).send(Message("not for the log" * 10_000))
    receiver.receive(timeout=10)
    client.close()
    router.wait_for_line(r"\[C1\] Connection Closed")
    text = router.text()
    assert "not for the log" not in text
    assert not re.search("no frame here|skipped|cannot be read", text)
    told = re.findall(r"PROTOCOL \(trace\) \[C1\]:\d* (<-|->) (SASL|AMQP|@[a-z-]+)", text)
    for way in ("<-", "->"):
        frames = [name for each, name in told if each == way]
        assert frames[0] == "SASL"
        assert frames[-1] == "@close"
        assert {"AMQP", "@open", "@begin", "@attach", "@transfer"} <= set(frames)
    assert ("->", "@flow") in told
