"""A HUP that removes listeners or connectors beside routers of Qpid Dispatch: what they hear and keep."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.interop.strict.conftest import dial, listening
from tests.interop.strict.end import End, Link
from tests.interop.strict.routers import Above, Below, Interior
from tests.interop.strict.test_stopping import wait_for_close, wait_for_receiver
from tests.interop.strict.writing import message, text
from tests.networks import OPEN
from tests.routers import RunningRouter, running
from trouter.wire.performatives import Accepted

pytestmark = pytest.mark.slow

#: Addresses with a consumer at another edge router, at a neighbour that dialled, and at neighbours that were dialled.
FLOW, EAST, WEST, SOUTH = "flow", "east", "west", "south"
DELETED = ("amqp:connection:forced", "the connector was deleted")
CLIENTS = f"listener {{ name: clients, {OPEN} }}\n"
ROUTERS = f"""
listener {{ name: routers, {OPEN}, role: inter-router }}
listener {{ name: edges, {OPEN}, role: edge }}
"""


def connector(name: str, server: socket.socket, role: str) -> str:
    return f"connector {{ name: {name}, host: 127.0.0.1, port: {server.getsockname()[1]}, role: {role} }}\n"


def reload(router: RunningRouter, configuration: str) -> None:
    """Put another configuration in force by a HUP."""
    before = len(router.matching("Reloaded "))
    router.configuration.write_text(configuration)
    router.process.send_signal(signal.SIGHUP)
    router.wait_for_line("Reloaded ", before + 1)


def port_of(router: RunningRouter, name: str, count: int = 1) -> int:
    """Return the port of a listener that was opened ``count`` times."""
    return int(router.wait_for_line(rf"Listening on \S+:(\d+) \({name}\)", count)[1])


def meet(server: socket.socket, name: str, address: str, peers: list[End]) -> Interior:
    """Take the next connection of our router as a neighbour that has a consumer of the address."""
    beside = Interior(server.accept()[0], name, dials=False)
    peers.append(beside)
    beside.listen(address)
    beside.wait_met("R")
    return beside


def send(below: Below, links: dict[str, Link], *addresses: str) -> None:
    """Send a message to each address, and see it accepted."""
    for address in addresses:
        wait_for_receiver(below, address)
        below.wait_credit(links[address])
        sent = below.send(links[address], message(text(address)))
        below.wait_settled(sent)
        assert sent.outcome == (0x24, [])


def leave(peers: list[End]) -> None:
    """End the connections of these."""
    for peer in peers:
        peer.leave()


def ends(peer: End, since: int) -> list[str]:
    """Return what a peer has heard of ends of links, sessions and its connection, from a frame on."""
    return [frame.kind for frame, _ in peer.heard[since:] if frame.kind in ("detach", "end", "close")]


def withdrawn(peer: Interior) -> list[str]:
    """Return the addresses that our router has withdrawn from a neighbour."""
    return [key for opcode, _, body in peer.said if opcode == "MAU" for key in body.get("del", ())]


@dataclass
class Hub:
    """Our router, which dials two of its neighbours, and an edge router that sends to all of ``links``."""

    router: RunningRouter
    configuration: str
    servers: dict[str, socket.socket]
    dialled: list[Interior]
    east: Interior
    sending: Below
    receiving: Below
    links: dict[str, Link]


@pytest.fixture
def hub(tmp_path: Path, peers: list[End]) -> Iterator[Hub]:
    with ExitStack() as stack:
        stack.callback(leave, peers)
        servers = {address: stack.enter_context(listening()) for address in (WEST, SOUTH)}
        configuration = "router { mode: interior, id: R }\n" + CLIENTS
        connectors = "".join(connector(each, server, "inter-router") for each, server in servers.items())
        router = stack.enter_context(running(configuration + ROUTERS + connectors, tmp_path))
        dialled = [meet(server, address.title(), address, peers) for address, server in servers.items()]
        east = stack.enter_context(Interior(dial(port_of(router, "routers")), "E", dials=True))
        east.listen(EAST)
        east.wait_met("R")
        edges = [stack.enter_context(Below(dial(port_of(router, "edges")), name, dials=True)) for name in "ST"]
        peers += [east, *edges]
        for below in edges:
            below.wait_up()
        sending, receiving = edges
        receiving.listen(FLOW)
        links = {address: sending.sender(address) for address in (FLOW, EAST, WEST, SOUTH)}
        hub = Hub(router, configuration, servers, dialled, east, sending, receiving, links)
        send(sending, links, *links)
        yield hub


def test_a_removed_listener_keeps_its_routers_which_hear_nothing(hub: Hub, peers: list[End]) -> None:
    router, neighbours = hub.router, [hub.east, *hub.dialled]
    marks = {peer: len(peer.heard) for peer in (*neighbours, hub.sending, hub.receiving)}
    ports = [port_of(router, name) for name in ("routers", "edges")]
    connectors = "".join(connector(each, server, "inter-router") for each, server in hub.servers.items())
    reload(router, hub.configuration + connectors)
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            dial(port)
    hellos = hub.east.talk.count("< HELLO")
    hub.east.wait(lambda: hub.east.talk.count("< HELLO") > hellos + 1, "hellos")
    send(hub.sending, hub.links, *hub.links)
    assert {peer.name: ends(peer, mark) for peer, mark in marks.items()} == {peer.name: [] for peer in marks}
    assert all(hub.sending.takes_elsewhere.values())
    assert {peer.name: withdrawn(peer) for peer in neighbours} == {peer.name: [] for peer in neighbours}

    reload(router, hub.configuration + ROUTERS + connectors)
    hub.receiving.leave()
    hub.sending.wait(lambda: not hub.sending.takes_elsewhere[f"M0{FLOW}"], "the end of the receiver")
    again = Below(dial(port_of(router, "edges", 2)), "T", dials=True)
    peers.append(again)
    again.wait_up()
    again.listen(FLOW)
    send(hub.sending, hub.links, *hub.links)
    assert hub.sending.out_links.dead == set()
    assert hub.east.lost == []


def test_removed_connectors_close_together_and_their_neighbours_come_back(hub: Hub, peers: list[End]) -> None:
    router, marks = hub.router, {peer: len(peer.heard) for peer in hub.dialled}
    reload(router, hub.configuration + ROUTERS)
    wait_for_close(*hub.dialled)
    for peer, mark in marks.items():
        assert (ends(peer, mark), withdrawn(peer), peer.closed) == (["close"], [], DELETED)
    gone = {f"M0{address}": False for address in (WEST, SOUTH)}
    hub.sending.wait(lambda: hub.sending.takes_elsewhere.items() >= gone.items(), "the ends of the consumers")
    send(hub.sending, hub.links, FLOW, EAST)

    connectors = "".join(connector(each, server, "inter-router") for each, server in hub.servers.items())
    reload(router, hub.configuration + ROUTERS + connectors)
    for address, server in hub.servers.items():
        meet(server, address.title(), address, peers)
    send(hub.sending, hub.links, *hub.links)
    assert hub.sending.out_links.dead == set()
    assert hub.east.lost == []


def test_the_removed_connector_of_an_edge_router_withdraws_nothing(tmp_path: Path, peers: list[End]) -> None:
    with ExitStack() as stack:
        stack.callback(leave, peers)
        server = stack.enter_context(listening())
        configuration = "router { mode: edge, id: E }\n" + CLIENTS
        uplink = connector("up", server, "edge")
        router = stack.enter_context(running(configuration + uplink, tmp_path))
        client = stack.enter_context(Peer(router.port))
        client.attach_receiver("down", credit=9)
        links = []
        for again in (False, True):
            if again:
                reload(router, configuration + uplink)
            above = Above(server.accept()[0], "A", dials=False)
            peers.append(above)
            above.listen(["up"])
            above.wait_up()
            above.at("down", sends=True)
            links.append(client.attach_sender("up"))
            for link in links:
                assert client.expect_outcome(client.send_message(link, b"up")) == Accepted()
            mark, requests = len(above.heard), len(above.requests)
            reload(router, configuration)
            wait_for_close(above)
            kinds = {frame.kind for frame, to in above.heard[mark:] if to is None or to.kind != "heartbeat"}
            assert kinds <= {"flow", "close"}
            assert (above.closed, len(above.requests)) == (DELETED, requests)
