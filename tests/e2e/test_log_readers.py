"""Lines that programs search for, parsed as these programs do: word for word, by module and level."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from proton import ConnectionException
from proton.utils import BlockingConnection, LinkDetached

from tests.e2e.peer import Peer
from tests.routers import RunningRouter, StartRouter
from trouter.wire.performatives import End, Transfer

STARTED = {
    "standalone": "router { id: R.1 }",
    "interior": "router { id: R.1, mode: interior }",
    "edge": "router { id: R.1, mode: edge }",
}
LISTENER = "\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"


@pytest.mark.parametrize("mode", STARTED)
def test_a_log_reader_finds_the_router_id_the_mode_and_the_version(start_router: StartRouter, mode: str) -> None:
    lines = start_router(STARTED[mode] + LISTENER).lines
    key = "SERVER (info) Container Name:"
    (at,) = (number for number, line in enumerate(lines) if key in line)
    assert at < 5
    assert lines[at].partition(key)[2].strip().split()[0] == "R.1"
    (started,) = (line for line in lines if "ROUTER (info) Router started in " in line)
    assert started.endswith(f"Router started in {mode.capitalize()} mode")
    assert any("ROUTER (info) Version: " in line for line in lines)


def test_the_listening_and_operational_lines_are_notices(start_router: StartRouter) -> None:
    router = start_router(STARTED["standalone"] + LISTENER)
    assert router.matching(rf"SERVER \(notice\) Listening on 127\.0\.0\.1:{router.port}$")
    assert router.matching(r"SERVER \(notice\) Operational, (\d+) Threads Running \(process ID (\d+)\)$")


def test_a_log_reader_finds_next_hops_costs_origins_and_radius(start_router: StartRouter) -> None:
    inter = "role: inter-router, authenticatePeer: no, saslMechanisms: ANONYMOUS"
    hub = start_router(f"router {{ mode: interior, id: A }}\nlistener {{ host: 127.0.0.1, port: 0, {inter} }}\n")
    start_router(
        "router { mode: interior, id: B }\n"
        f"connector {{ host: 127.0.0.1, port: {hub.port}, role: inter-router, saslMechanisms: ANONYMOUS }}\n"
    )
    found = hub.wait_for_line(r"ROUTER_LS \(info\) Computed next hops: (\{'B.*)")
    assert ast.literal_eval(found[1]) == {"B": "B"}
    assert ast.literal_eval(hub.wait_for_line(r"ROUTER_LS \(info\) Computed costs: (\{'B.*)")[1]) == {"B": 1}
    assert ast.literal_eval(hub.wait_for_line(r"ROUTER_LS \(info\) Computed valid origins: (\{.*\})")[1]) == {}
    assert hub.wait_for_line(r"ROUTER_LS \(info\) Computed radius: (\d+)")[1] == "1"
    hub.wait_for_line(r"ROUTER_HELLO \(info\) router B is a neighbour over \[C\d+\]")


def test_routers_that_talk_are_reported_and_cannot_write_lines_of_their_own(start_router: StartRouter) -> None:
    inter = "role: inter-router, authenticatePeer: no, saslMechanisms: ANONYMOUS"
    traced = "".join(f"log {{ module: ROUTER_{module}, enable: trace+ }}\n" for module in ("HELLO", "LS", "MA"))
    hub = start_router(
        f"router {{ mode: interior, id: A }}\nlistener {{ host: 127.0.0.1, port: 0, {inter} }}\n"
        f"listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}\n{traced}"
    )
    other = start_router(
        f"router {{ mode: interior, id: B=1'2 }}{LISTENER}"
        f"connector {{ host: 127.0.0.1, port: {hub.port}, role: inter-router, saslMechanisms: ANONYMOUS }}\n"
    )
    name = re.escape(r"B\x3d1\x272")
    hub.wait_for_line(r"ROUTER_HELLO \(trace\) SENT: HELLO\(id=A pv=1 area=0 inst=\d+ seen=\[\]\)$")
    hub.wait_for_line(rf"ROUTER_HELLO \(trace\) RCVD: HELLO\(id={name} pv=1 area=0 inst=\d+ seen=\['A'\]\)$")
    hub.wait_for_line(rf"ROUTER_HELLO \(info\) router {name} is a neighbour over \[C\d+\]")
    hub.wait_for_line(rf"ROUTER_LS \(trace\) RCVD: LSU\(id={name} pv=1 area=0 inst=\d+ ls_seq=\d+ ls=\{{'A': 1\}}\)$")
    hub.wait_for_line(r"ROUTER_LS \(trace\) SENT: RA\(id=A pv=1 area=0 inst=\d+ ls_seq=\d+ mobile_seq=\d+\)$")
    hub.wait_for_line(rf"ROUTER_LS \(info\) paths through the network recomputed: .*{name}")
    client = BlockingConnection(f"127.0.0.1:{other.port}", timeout=60)
    client.create_receiver("there")
    hub.wait_for_line(rf"ROUTER_MA \(debug\) router {name}: 1 addresses added, 0 deleted$")
    hub.wait_for_line(rf"ROUTER_MA \(trace\) RCVD: MAU\(id={name} pv=1 area=0 mobile_seq=\d+ add=\['M0there'\]")
    client.close()
    assert other.stop() == 0
    hub.wait_for_line(rf"ROUTER_HELLO \(info\) router {name} is no longer a neighbour: ")
    assert "B=1" not in "".join(line for line in hub.lines if "ROUTER_" in line and "Computed" not in line)


SERVICE = """
router { id: R }
authServicePlugin { name: none, host: 127.0.0.1, port: 1 }
listener {
    host: 127.0.0.1
    port: 0
    saslPlugin: none
}
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
"""


def test_a_service_and_a_session_that_fail_are_reported_by_their_modules(start_router: StartRouter) -> None:
    router = start_router(SERVICE)
    with pytest.raises(ConnectionException):
        BlockingConnection(f"127.0.0.1:{router.ports[0]}", timeout=60)
    router.wait_for_line(r"AUTHSERVICE \(warning\) authServicePlugin none: it cannot be reached: ")
    with Peer(router.ports[1]) as peer:
        peer.say(Transfer(7, 0, b"tag"))
        assert peer.expect(End).error is not None
        number = peer.number
    router.wait_for_line(rf"CONTAINER \(info\) \[C{number}\] Session on channel 0 ended: .*transfer on handle 7")


POLICY = """
router { id: R }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
policy { enableVhostPolicy: yes, defaultVhost: shop }
vhost {
    hostname: shop
    allowUnknownUser: yes
    groups: { $default: {
        users: *, remoteHosts: *, sources: free, targets: free, maxReceivers: 1, maxSenders: 1, maxSessions: 2
    } }
}
log { module: POLICY, enable: debug+ }
"""
DENIED = r"POLICY \(info\) \[C(\d+)\] DENY AMQP Attach (\w+) (.*)for user '([^']*)', rhost '([^']*)', vhost '([^']*)' "


@pytest.fixture
def held(start_router: StartRouter) -> RunningRouter:
    return start_router(POLICY)


def test_a_denied_link_and_the_counts_at_the_end_of_its_connection(held: RunningRouter) -> None:
    client = BlockingConnection(f"127.0.0.1:{held.port}", timeout=60)
    client.create_receiver("free")
    for name in ("second", "third"):
        with pytest.raises(LinkDetached):
            client.create_receiver("free", name=name)
    with pytest.raises(LinkDetached):
        client.create_sender("other")
    client.close()
    denied = held.wait_for_line(DENIED + r"based on maxReceivers limit$")
    assert denied.groups() == ("1", "receiver", "", "anonymous", "127.0.0.1", "shop")
    denied = held.wait_for_line(DENIED + r"based on .*targets:none'")
    assert denied[3] == "link 'other' "
    ended = held.wait_for_line(r"POLICY \(debug\) \[C1\] Connection '([^']+)' closed with resources (.*)$")
    assert ended[1].endswith(f":{ended[1].rpartition(':')[2]}")
    counts = dict(re.findall(r"(\w+)[=:] ?(\d+)", ended[2]))
    assert counts == {
        "n_sessions": "0",
        "n_senders": "0",
        "n_receivers": "0",
        "sessions_denied": "0",
        "senders_denied": "1",
        "receivers_denied": "2",
        "max_message_size_denied": "0",
        "nConnections": "0",
    }


def test_the_denials_at_the_end_of_a_connection_are_those_of_its_vhost_so_far(held: RunningRouter) -> None:
    for number, senders in ((1, 1), (2, 2), (3, 2)):
        client = BlockingConnection(f"127.0.0.1:{held.port}", timeout=60)
        if number < 3:
            with pytest.raises(LinkDetached):
                client.create_sender("other")
        client.close()
        held.wait_for_line(
            rf"\[C{number}\] Connection .* sessions_denied=0, senders_denied={senders}, receivers_denied=0,"
        )


def test_the_counts_at_the_end_of_a_connection_that_is_lost(held: RunningRouter) -> None:
    with Peer(held.port) as peer:
        peer.begin(channel=1)
        peer.attach_receiver("free")
        peer.attach_sender("free")
    held.wait_for_line("closed with resources n_sessions=2, n_senders=1, n_receivers=1,")


def test_a_name_does_not_end_its_quotes(held: RunningRouter, tmp_path: Path) -> None:
    client = BlockingConnection(f"127.0.0.1:{held.port}", timeout=60)
    with pytest.raises(LinkDetached):
        client.create_sender("x' for user 'root")
    client.close()
    line = held.wait_for_line(r"DENY AMQP Attach sender link (.*)")[1]
    assert line.startswith(r"'x\x27 for user \x27root' for user 'anonymous'")
