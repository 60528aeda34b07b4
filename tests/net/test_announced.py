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


async def test_a_header_that_comes_too_slowly_is_refused_in_time(autojump_clock: trio.testing.MockClock) -> None:
    listener, port = listening()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.run)
        with socket.create_connection(("127.0.0.1", port)) as client:
            for octet in b"PROXY":  # one in a second, and never the last
                client.sendall(bytes((octet,)))
                await trio.sleep(1)
            assert await closed(client)
        assert PROXY_HEADER_S <= trio.current_time() < PROXY_HEADER_S + 1
        assert listener.reasons == ["no PROXY header within 5 s"]
        listener.stop()


HEADER = b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 5672\r\n"


@pytest.mark.parametrize(
    ("hosts", "octets", "reason"),
    [
        ("192.0.2.200", HEADER, "it is none of proxyProtocolHosts"),
        ("192.0.2.0/24, ::1", HEADER, "it is none of proxyProtocolHosts"),
        ("127.0.0.1", b"AMQP\x00\x01\x00\x00", "it does not begin with a PROXY header"),
        ("127.0.0.1", b"PROXY TCP4 evil 192.0.2.1 1 2\r\n", "its PROXY line has an invalid address"),
        ("127.0.0.1", b"PROXY " + b"x" * 200, "its PROXY line has more than 107 octets"),
        (
            "127.0.0.1",
            b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff",
            "its PROXY header has 65535 octets behind the first 16, at most 4096 may be",
        ),
    ],
    ids=["stranger", "stranger to a network", "no header", "no address", "too long a line", "too many TLVs"],
)
async def test_what_is_refused_is_not_admitted_under_any_address(hosts: str, octets: bytes, reason: str) -> None:
    listener, port = listening()
    listener.configure(replace(ENTITY, proxy_protocol_hosts=proxy_addresses(hosts)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.run)
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(octets)
            assert await closed(client)
        assert (listener.admitted, listener.reasons) == ([], [reason])
        listener.stop()


@pytest.mark.parametrize(
    "lie",
    [
        b"PROXY TCP4 127.0.0.9 127.0.0.1 1 2\r\n",
        b"PROXY TCP6 ::1 ::1 1 2\r\n",
        b"PROXY TCP6 ::ffff:127.0.0.1 ::1 1 2\r\n",
    ],
)
async def test_a_client_is_never_one_of_this_machine(lie: bytes) -> None:
    listener, port = listening()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.run)
        with socket.create_connection(("127.0.0.1", port)) as client:
            own = client.getsockname()
            client.sendall(lie)
            assert await closed(client)
        assert listener.admitted == [own]
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


async def test_a_connection_beyond_those_that_wait_for_their_headers_waits_for_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accepting, "MAX_UNANNOUNCED", 2)
    listener, port = listening()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.run)
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        clients[2].sendall(b"PROXY TCP4 192.0.2.8 192.0.2.1 4000 5672\r\n")
        await trio.testing.wait_all_tasks_blocked()
        assert (listener.admitted, listener.reasons) == ([], [])
        clients[0].sendall(b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 5672\r\n")
        assert await closed(clients[0])
        assert await closed(clients[2])
        assert listener.admitted == [("192.0.2.7", 4000), ("192.0.2.8", 4000)]
        listener.stop()
        for client in clients:
            client.close()
