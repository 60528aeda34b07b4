"""Module PROTOCOL at level trace: every frame of every connection, as a line (docs/logging.md)."""

from __future__ import annotations

import re

from proton import Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

from tests.management.node import node_of
from tests.routers import RunningRouter, StartRouter

CONFIGURATION = """
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
log { module: PROTOCOL, enable: trace+ }
"""


def test_every_frame_is_reported_and_no_message(start_router: StartRouter) -> None:
    router = start_router(CONFIGURATION)
    client = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60)
    receiver = client.create_receiver("q", credit=1)
    client.create_sender("q", options=AtMostOnce()).send(Message("not for the log" * 10_000))
    receiver.receive(timeout=60)
    client.close()
    router.wait_for_line(r"\[C1\] Connection Closed")
    text = router.text()
    assert "not for the log" not in text
    assert not re.search("no frame here|skipped|cannot be read", text)
    told = re.findall(r"PROTOCOL \(trace\) \[C1\]:FRAME: [\d ]* ?(<-|->) (SASL|AMQP|@[a-z-]+)", text)
    for way in ("<-", "->"):
        frames = [name for each, name in told if each == way]
        assert frames[0] == "SASL"
        assert frames[-1] == "@close"
        assert {"AMQP", "@open", "@begin", "@attach", "@transfer"} <= set(frames)
    assert ("->", "@flow") in told


FRAMES = r"PROTOCOL \(trace\) \[C{}\]"


def test_connections_that_are_open_follow_the_level_of_the_module(router: RunningRouter) -> None:
    client = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60)
    with node_of(router.port) as node:
        node.ask("UPDATE", {"enable": "trace+"}, name="log/PROTOCOL")
        client.create_sender("q")
        router.wait_for_line(FRAMES.format(1) + ":FRAME: 0 -> @attach")
        node.ask("UPDATE", {"enable": "info+"}, name="log/PROTOCOL")
        told = len(router.matching(FRAMES.format(1)))
        client.create_sender("r")
        node.query("listener")
        assert len(router.matching(FRAMES.format(1))) == told
    client.close()


def test_the_frames_of_one_connection_are_reported_on_demand(router: RunningRouter) -> None:
    client = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60)
    other = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60)
    with node_of(router.port) as node:
        for wanted in (True, False):
            answer = node.ask("UPDATE", {"enableProtocolTrace": wanted}, type="connection", identity="1")
            assert answer.body["enableProtocolTrace"] is wanted
            client.create_sender(f"to {wanted}")
            other.create_sender(f"to {wanted}")
    for each in (client, other):
        each.close()
    router.wait_for_line(r"\[C2\] Connection Closed")
    text = "\n".join(router.matching(FRAMES.format(1)))
    assert "to True" in text
    assert "to False" not in text
    assert router.matching(FRAMES.format(2)) == []


def test_a_connection_follows_the_module_until_management_decides(router: RunningRouter) -> None:
    """`no` ends the trace of a connection whatever the level of the module, and READ says what is traced."""

    def traced() -> list[bool]:
        return [node.get("READ", type="connection", identity=each)["enableProtocolTrace"] for each in ("1", "2")]

    client = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60)
    other = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60)
    with node_of(router.port) as node:
        assert traced() == [False, False]
        node.ask("UPDATE", {"enable": "trace+"}, name="log/PROTOCOL")
        assert traced() == [True, True]
        node.ask("UPDATE", {"enableProtocolTrace": False}, type="connection", identity="1")
        assert traced() == [False, True]
        for each in (client, other):
            each.create_sender("silent")
        node.ask("UPDATE", {"enable": "info+"}, name="log/PROTOCOL")
        assert traced() == [False, False]
        node.ask("UPDATE", {"enable": "trace+"}, name="log/PROTOCOL")
        assert traced() == [False, True]
    for each in (client, other):
        each.close()
    router.wait_for_line(r"\[C2\] Connection Closed")
    assert not [line for line in router.matching(FRAMES.format(1)) if "silent" in line or "@close" in line]
    assert [line for line in router.matching(FRAMES.format(2)) if "silent" in line]
