"""Any bytes from a router are one of the six messages or raise DecodeError, and no sequence of them breaks the mesh.

The input is a row of messages: a byte that chooses the connection and the time that passes, two bytes of length, the
message. The target checks that the count of routers that the mesh knows stays bounded, that each message that the mesh
sends parses, that an advertisement that it relays keeps its bytes behind the annotations, and that its paths follow
from the links that it knows.

Allowed: DecodeError from `parse`, because most bytes are no message of routers; the mesh counts it as a fault.
"""

from __future__ import annotations

from collections.abc import Mapping

from trouter.mesh.events import Ignored, Send
from trouter.mesh.mesh import Mesh
from trouter.mesh.messages import Newer, compose, parse
from trouter.mesh.paths import Paths
from trouter.testing.fuzz import values
from trouter.wire.annotations import parse_annotations
from trouter.wire.errors import DecodeError
from trouter.wire.sections import THROUGH_PROPERTIES, MessageScan

COVERS = ("trouter.mesh",)
MUTATOR = values
CONNECTIONS = 3
TIMES_S = (0.0, 0.1, 1.0, 4.0, 70.0)


def messages(data: bytes) -> list[tuple[int, bytes]]:
    """Return pairs of the choosing byte and a message."""
    found: list[tuple[int, bytes]] = []
    at = 0
    while at + 3 <= len(data) and len(found) < 50:
        size = data[at + 1] << 8 | data[at + 2]
        found.append((data[at], data[at + 3 : at + 3 + size]))
        at += 3 + size
    return found


def check_one(data: bytes) -> None:
    try:
        message = parse(data)
    except DecodeError:
        return
    if isinstance(message, Newer):
        return
    to = "amqp:/_topo/0/all/qdrouter"
    again = parse(compose(message, to))
    assert again == message or not getattr(message, "hints", True)


def check(data: bytes) -> None:
    if data[:1] == b"\0":  # one message without a length
        check_one(data)
    mesh = Mesh("R1", 1000)
    mesh.add_address("M0own", 0)
    for connection in range(CONNECTIONS):
        mesh.link_up(connection, 1 + connection, 0.0)
    now_s = 0.0
    rows = messages(data)
    for choice, octets in rows or [(0, data)]:
        check_one(octets)
        connection = choice % CONNECTIONS
        now_s += TIMES_S[choice // CONNECTIONS % len(TIMES_S)]
        relayed = mesh.take_message(octets, connection, now_s)
        if relayed.data:
            look_at_relayed(octets, relayed.data)
        mesh.tick(now_s)
        listen(mesh)
        look_at_ways(mesh)
        assert len(mesh.routers) <= 2 * len(rows) + octets_of(rows)
        assert set(mesh.neighbours.values()) <= set(range(CONNECTIONS))
    for connection in range(CONNECTIONS):
        mesh.link_down(connection, now_s)
        assert connection not in mesh.neighbours.values()
    mesh.tick(now_s + 1.0)
    listen(mesh)
    assert not mesh.neighbours


def look_at_ways(mesh: Mesh) -> None:
    """Check that after a tick the next hops are those that follow from all known links."""
    links: dict[str, Mapping[str, int]] = {router: node.peers for router, node in mesh.routers.items() if node.peers}
    links[mesh.me] = {router: mesh.links[connection].cost for router, connection in mesh.neighbours.items()}
    assert mesh.paths.next_hop == Paths(mesh.me, links).next_hop


def octets_of(rows: list[tuple[int, bytes]]) -> int:
    return sum(len(octets) for _, octets in rows)


def listen(mesh: Mesh) -> None:
    for event in mesh.events:
        if isinstance(event, Send):
            assert parse(compose(event.message, event.to)) is not None
        elif isinstance(event, Ignored):
            assert event.detail.isprintable()
            assert len(event.detail) < 2000
    mesh.events.clear()


def look_at_relayed(came: bytes, went: bytes) -> None:
    """Check that a relayed message equals the received one, except for the annotations."""
    before, behind = MessageScan(), MessageScan()
    before.scan_sections(came, 0, len(came), THROUGH_PROPERTIES, True)
    behind.scan_sections(went, 0, len(went), THROUGH_PROPERTIES, True)
    rest = came[before.annotations_end if before.annotations_start >= 0 else before.insert_at :]
    assert went.endswith(rest)
    assert parse_annotations(went, behind.annotations_start, behind.annotations_end, True).trace[-1] == "0/R1"
