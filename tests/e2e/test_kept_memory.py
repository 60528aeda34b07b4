"""What a client can make a router keep besides messages, who pays for it, and who may still log in."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.peer import Gone, Peer
from tests.routers import DEADLINE_S, RunningRouter, running
from trouter.admission.memory import OPERATORS, SHORT_OF_MEMORY, TAKES_MOST
from trouter.wire.performatives import Attach, Begin, Close, Detach, End, Source, Target

pytestmark = pytest.mark.attack

CONFIGURATION = """
router {{ id: R{limit} }}
policy {{ enableVhostPolicy: yes }}
vhost {{
    hostname: clients
    groups: {{ $default: {{ users: *, remoteHosts: *, sources: ok.*, targets: ok.*, management: none }} }}
}}
vhost {{
    hostname: operators
    groups: {{ $default: {{ users: *, remoteHosts: *, sources: *, targets: *, management: admin }} }}
}}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: ANONYMOUS
    idleTimeoutSeconds: 0
    linkCapacity: 1
}}
"""
#: Values that take some 70 bytes each in the router and one in the frame: as many as an attach may have.
EMPTY_LISTS: dict[str, list[list[object]]] = {"a": [[] for _ in range(8000)]}
MANY_SYMBOLS = tuple(f"{number:x}" for number in range(2500))
MB = 1_000_000


def change_limit(router: RunningRouter, limit: str) -> None:
    reloads = len(router.matching(r"MAIN \(info\) Reloaded"))
    router.configuration.write_text(CONFIGURATION.format(limit=limit))
    router.process.send_signal(signal.SIGHUP)
    router.wait_for_line(r"MAIN \(info\) Reloaded", reloads + 1)


def attaches(count: int, address: str, **fields: Any) -> list[Attach]:
    fields = {"source": Source(address), "target": Target(), **fields}
    return [Attach(f"link {number}", number, True, **fields) for number in range(count)]


#: What a stranger sends, and whether the router answers it with a detach.
FRAMES = {
    "properties of refused links": (attaches(100, "no", properties=EMPTY_LISTS), True),
    "unsettled maps of refused links": (attaches(100, "no", unsettled=EMPTY_LISTS), True),
    "filters of refused links": (attaches(100, "no", source=Source("no", filter=EMPTY_LISTS)), True),
    "capabilities of refused links": (attaches(100, "no", desired_capabilities=MANY_SYMBOLS), True),
    "capabilities of a terminus": (attaches(100, "no", source=Source("no", capabilities=MANY_SYMBOLS)), True),
    "odd addresses": (attaches(100, "no", source=Source(EMPTY_LISTS["a"])), True),
    "properties of links": (attaches(100, "ok.x", properties=EMPTY_LISTS), False),
    "filters of links": (attaches(100, "ok.x", source=Source("ok.x", filter=EMPTY_LISTS)), False),
    "the other terminus": (
        attaches(100, "ok.x", target=Target(dynamic_node_properties={"a": [[] for _ in range(900)]})),
        False,
    ),
}


@pytest.mark.parametrize("frames", FRAMES)
def test_a_client_leaves_little_behind_in_the_router_however_its_attaches_decode(frames: str, tmp_path: Path) -> None:
    """The peer answers no detach; what it sent would decode to some 60 MB."""
    said, refused = FRAMES[frames]
    with running(CONFIGURATION.format(limit=""), tmp_path) as router, Peer(router.port, hostname="clients") as peer:
        before = 0
        for each in said:
            peer.say(each)
            peer.expect(Attach)
            if refused:
                peer.expect(Detach)
            before = before or router.resident_bytes()
        assert router.resident_bytes() - before < 8 * MB


@pytest.mark.parametrize("kind", ["begin", "flow"])
def test_the_properties_of_begins_and_flows_leave_nothing_behind(kind: str, tmp_path: Path) -> None:
    properties: dict[str, list[list[object]]] = {"a": [[] for _ in range(900)]}
    with running(CONFIGURATION.format(limit=""), tmp_path) as router, Peer(router.port, hostname="clients") as peer:
        peer.be_heard()
        before = router.resident_bytes()
        for number in range(1, 500):
            if kind == "begin":
                begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1, properties=properties)
                peer.say(begin, channel=number)
                peer.expect(Begin)
            else:
                peer.flow(properties=properties)
        peer.be_heard()
        assert router.resident_bytes() - before < 8 * MB


def test_a_session_that_brings_more_attaches_than_its_connection_may_hold_is_ended(tmp_path: Path) -> None:
    configuration = CONFIGURATION.format(limit="").replace("linkCapacity", "maxBufferedBytes: 100000\n    linkCapacity")
    with running(configuration, tmp_path) as router, Peer(router.port, hostname="clients") as peer:
        for each in attaches(10, "ok." + "x" * 4000, target=Target("y" * 12_000)):
            peer.say(each)
        answered = 0
        while isinstance(said := peer.next(), Attach):  # of links that came before the others had
            answered += 1
        assert isinstance(said, End)
        assert said.error is not None
        assert said.error.condition == "amqp:resource-limit-exceeded"
        assert answered < 7  # as many as 100,000 bytes hold


def fill(peer: Peer) -> Close:
    """Attach links with long names until the router closes the connection; return its close."""
    number = 0
    try:
        while True:
            name = f"{number:08}" + "n" * 8000
            peer.say(Attach(name, number, True, source=Source("ok." + "a" * 4000), target=Target("t" * 4000)))
            if isinstance(said := peer.next(), Close):
                return said
            number += 1
    except (Gone, OSError) as gone:
        raise AssertionError("the router closed the socket without a close") from gone


def test_the_client_whose_attaches_fill_the_memory_is_cut_off_and_others_may_log_in_again(tmp_path: Path) -> None:
    with running(CONFIGURATION.format(limit=""), tmp_path) as router:
        with Peer(router.port, hostname="clients") as other, Peer(router.port, hostname="clients") as greedy:
            change_limit(router, f", maxMemoryBytes: {router.resident_bytes() + 60 * MB}")
            close = fill(greedy)
            assert close.error == TAKES_MOST
            router.wait_for_line("ALARM memory cleared: .* the mark is 85")
            other.be_heard()
        with Peer(router.port, hostname="clients") as again:
            again.be_heard()


def test_an_operator_may_log_in_while_no_other_client_may(tmp_path: Path) -> None:
    with running(CONFIGURATION.format(limit=""), tmp_path) as router:
        change_limit(router, f", maxMemoryBytes: {router.resident_bytes() * 100 // 95}")
        router.wait_for_line("ALARM memory raised: .* the mark is 90")
        with Peer(router.port, opened=False) as client:
            client.open(hostname="clients")
            close = client.expect(Close)
            assert close.error == SHORT_OF_MEMORY
        operators = [Peer(router.port, hostname="operators") for _ in range(OPERATORS)]
        for each in operators:
            each.be_heard()
        with Peer(router.port, opened=False) as refused:
            refused.expect_end_of_stream()
        change_limit(router, "")
        router.wait_for_line("ALARM memory cleared: .* the mark is 90")
        with Peer(router.port, hostname="clients") as again:
            again.be_heard()
        for each in operators:
            each.sock.close()


KEEPS_SOME = """
from trouter.admission.process_memory import collect, give_back, resident_bytes, used_bytes
before = used_bytes()
objects = [[number] for number in range(2_000_000)]
full = used_bytes()
kept = objects[::5000]
del objects
collect()
give_back()
print(before, full, used_bytes(), resident_bytes())
"""


def test_memory_that_python_keeps_for_new_objects_does_not_count_as_used() -> None:
    """The objects that are left keep their arenas resident."""
    done = subprocess.run(
        [sys.executable, "-c", KEEPS_SOME], capture_output=True, text=True, check=True, timeout=DEADLINE_S
    )
    before, full, after, resident = map(int, done.stdout.split())
    assert full > before + 100 * MB
    assert resident > before + 100 * MB
    assert after < before + 30 * MB
