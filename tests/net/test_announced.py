"""Connections whose PROXY header does not come: they end in time, and with the listener."""

from __future__ import annotations

import logging
import socket
from dataclasses import replace

import pytest
import trio
import trio.testing

from trouter.config import ListenerEntity
from trouter.config.hosts import proxy_addresses
from trouter.net import accepting
from trouter.net.accepting import PROXY_HEADER_S, AcceptingListener

ENTITY = replace(ListenerEntity(), proxy_protocol_hosts=proxy_addresses("127.0.0.1"))


class Recorded(AcceptingListener):
    """A listener that notes what it admits and refuses."""

    def __init__(self, sock: socket.socket) -> None:
        self.admitted: list[tuple[str, int]] = []
        self.reasons: list[str] = []
        super().__init__(ENTITY, [sock], logging.getLogger(__name__))

    def admit_socket(self, sock: socket.socket, address: tuple[str, int], nursery: trio.Nursery) -> bool:
        self.admitted.append(address)
        sock.close()
        return True

    def refuse_socket(self, sock: socket.socket, address: tuple[str, int], why: str) -> None:
        self.reasons.append(why)
        self._count_accepted(sock, refused=True)


def listening() -> tuple[Recorded, int]:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    return Recorded(sock), sock.getsockname()[1]


async def closed(client: socket.socket) -> bool:
    client.setblocking(False)
    await trio.lowlevel.wait_readable(client)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


async def test_without_a_header_a_proxy_is_refused_in_time(autojump_clock: trio.testing.MockClock) -> None:
    listener, port = listening()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.run)
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"PROXY TCP4 192.0.2.7 ")
            assert await closed(client)
        assert trio.current_time() >= PROXY_HEADER_S
        assert (listener.admitted, listener.reasons) == ([], ["no PROXY header within 5 s"])
        listener.stop()


async def test_a_listener_that_stops_closes_what_waits_for_its_header() -> None:
    listener, port = listening()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.run)
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"PROXY ")
            await trio.testing.wait_all_tasks_blocked()
            listener.stop()
            assert await closed(client)
    assert listener.done.is_set()
    assert listener.admitted == []


async def test_few_connections_at_once_wait_for_their_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "MAX_UNANNOUNCED", 2)
    listener, port = listening()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.run)
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
        await trio.testing.wait_all_tasks_blocked()
        clients.append(socket.create_connection(("127.0.0.1", port)))
        assert await closed(clients[2])
        assert listener.reasons == ["2 PROXY headers are awaited"]
        clients[0].sendall(b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 5672\r\n")
        assert await closed(clients[0])
        assert listener.admitted == [("192.0.2.7", 4000)]
        listener.stop()
        for each in clients:
            each.close()
